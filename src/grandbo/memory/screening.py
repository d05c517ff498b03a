"""
The screen at the doors: what becomes of one command's text under the tenant's policy.

Each command has a `Screening` of its own. It refuses, or gives the text as it may be stored, and keeps account of what
it found for the event. The value found is in no error, no event and no log; what takes its place in the text is keyed,
so that equal values stay equal within a tenant, and a retry stays a retry.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from grandbo.errors import GrandboError, ScreenRefused, SubjectMissing
from grandbo.events.log import streams_of
from grandbo.events.models import Action, EntryQuarantined, Policy, Screened, ScreenFinding
from grandbo.finding_limits import BODY_LIMIT_BYTES, NAME_LIMIT, SUMMARY_LIMIT, TAG_LIMIT, TITLE_LIMIT, URI_LIMIT
from grandbo.memory.finding import EvidenceItem, Finding, Incident
from grandbo.memory.policy import DEFAULT_SCREENING
from grandbo.screening import SCREEN_VERSION, SIGNALS, Hit, Outcome, Signal, redacted, screen
from grandbo.storage.database import Database
from grandbo.storage.tables import receipt_keys
from grandbo.storage.tenancy import of_tenant
from grandbo.types import digest_of

# What somebody is like is kept about that somebody, or not at all.
TRAIT = "trait"
_KEY_LABEL = b"grandbo/screening/1"
_FIRST_KEY = sa.select(receipt_keys.c.key).where(of_tenant(receipt_keys), receipt_keys.c.epoch == 1)
# A tenant's first receipt key is made with the tenant and never changes; later epochs come beside it.
_keys: WeakKeyDictionary[Database, dict[UUID, bytes]] = WeakKeyDictionary()

_LINES = ("title", "service", "external_id", "namespace", "owner")
_TEXTS = ("summary", "body")
_CLAIM = ("title", "summary", "body")
_LIMITS = {
    "title": TITLE_LIMIT,
    "summary": SUMMARY_LIMIT,
    "body": BODY_LIMIT_BYTES,
    "tags": TAG_LIMIT,
    "evidence.uri": URI_LIMIT,
}
_MUST_SAY = ("title", "evidence.type", "evidence.uri", "incident.source", "incident.id")
# What a reason or a note is looked at for; nobody recalls them, so an instruction in one instructs nobody.
_IN_REASONS = ("secrets", "smuggled", "hidden")


def screening_key(database: Database, tenant_id: UUID) -> bytes:
    """The tenant's key for what takes the place of a value, derived from its first receipt key."""
    known = _keys.setdefault(database, {})
    if tenant_id not in known:
        with database.transaction("writer", tenant_id, read_only=True) as transaction:
            first = bytes(transaction.execute(_FIRST_KEY, {"tenant_id": tenant_id})[0]["key"])
        known[tenant_id] = hmac.new(first, _KEY_LABEL, hashlib.sha256).digest()
    return known[tenant_id]


class Screening:
    """
    One command's screening.

    Args:
        is_reviewed: a person decides before the text counts, or has decided: what would be quarantined is flagged.
        names_subject: it says whom it is about: personal data in it is no reason to refuse it. Asked once, where it
            matters, if it has to be found out.
    """

    def __init__(
        self,
        database: Database,
        tenant_id: UUID,
        policy: Policy,
        *,
        is_reviewed: bool = False,
        names_subject: bool | Callable[[], bool] = False,
    ) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._outcomes: dict[str, Outcome] = {
            signal: policy.screening.get(signal, DEFAULT_SCREENING[signal]) for signal in SIGNALS
        }
        self._is_reviewed = is_reviewed
        self._names_subject = names_subject
        self._found: Counter[tuple[str, str, Action]] = Counter()
        self._signals: dict[str, None] = {}
        self._quarantining: dict[tuple[Signal, str], None] = {}
        self.has_keyed = False

    # -- what comes of it ----------------------------------------------------------------------------------------------

    @property
    def screened(self) -> Screened:
        """What was found and done, for the event."""
        return self.screened_with()

    def screened_with(self, *others: Screening) -> Screened:
        """The same, with what was found in the same text before some of it was taken out."""
        found = self._found
        for other in others:
            found = found | other._found
        findings = (
            ScreenFinding(field=field, kind=kind, action=action, count=count)
            for (field, kind, action), count in sorted(found.items())
        )
        return Screened(version=SCREEN_VERSION, findings=tuple(findings))

    @property
    def flags(self) -> tuple[str, ...]:
        """What a reviewer is told of it: the signals that were flagged."""
        return tuple(f"screen_{signal}" for signal in self._signals)

    @property
    def quarantines(self) -> bool:
        """Whether the text has to be put away until someone has looked at it."""
        return bool(self._quarantining)

    @property
    def quarantines_beside_claim(self) -> bool:
        """Whether something else than the claim itself is a reason to: a published entry must not be joined by that."""
        return any(field not in _CLAIM for _, field in self._quarantining)

    def quarantined(self, after_revision: int) -> EntryQuarantined:
        """The event that puts it away, and says why."""
        found = ", ".join(f"{signal} in {field}" for signal, field in self._quarantining)
        reason = f"The screen, version {SCREEN_VERSION}, found: {found}."
        return EntryQuarantined(revision=after_revision + 1, reason=reason)

    def digest(self, said: Any) -> str:
        """The digest of what a command says; keyed where a value was taken out: a bare one would let it be guessed."""
        bare = digest_of(said)
        return self._keyed(bare) if self.has_keyed else bare

    # -- text ----------------------------------------------------------------------------------------------------------

    def finding(self, finding: Finding) -> Finding:
        """
        A finding as it may be stored; the same object where nothing was taken out.

        Raises:
            ScreenRefused: with the field and the kind, never the value.
        """
        values = {name: getattr(finding, name) for name in (*_LINES, *_TEXTS, "tags")}
        values["evidence"] = [item.model_dump() for item in finding.evidence]
        values["incident"] = finding.incident.model_dump() if finding.incident else None
        changed = self.changed_values(values)
        if "evidence" in changed:
            changed["evidence"] = tuple(EvidenceItem.model_construct(**item) for item in changed["evidence"])
        if "incident" in changed:
            changed["incident"] = Incident.model_construct(**changed["incident"])
        return finding.model_copy(update=changed) if changed else finding

    def values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The same for some fields of a finding as plain values, such as those of a correction."""
        return {**values, **self.changed_values(values)}

    def changed_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Of some fields those that are not stored as they were given, as they are stored."""
        flat = screened_fields(values)
        kept = self._pass(flat)
        return _changed(values, flat, kept) if kept != flat else {}

    def reason(self, text: str, field: str = "reason", *, limit: int) -> str:
        """A reason or a note as it may be stored: without secrets, and without what nobody sees."""
        hits = [hit for hit in screen({field: text}).findings if hit.signal in _IN_REASONS]
        kept = [hit for hit in hits if self._outcomes[hit.signal] != "flag"]
        if refused := next((hit for hit in kept if self._outcomes[hit.signal] == "refuse"), None):
            raise _refusal(refused)
        return self._redacted(field, text, kept, limit) if kept else text

    def check_restorable(self, values: Mapping[str, Any]) -> None:
        """Refuse to bring a text back that the screen would not let in as it is."""
        for hit in screen(screened_fields(values)).of("secrets", "smuggled"):
            if self._outcomes[hit.signal] in ("refuse", "redact"):
                raise ScreenRefused(
                    f"{_named(hit.field)}: that revision holds {_what(hit)}; correct the entry instead.",
                    field=_named(hit.field),
                    kind=hit.kind,
                )

    def _pass(self, fields: dict[str, str]) -> dict[str, str]:
        found = screen(fields).findings
        if not found:
            return fields
        by_field: dict[str, list[Hit]] = {}
        for hit in found:
            action = self._action(hit)
            self._found[_named(hit.field), hit.kind, action] += 1
            if action == "redact":
                by_field.setdefault(hit.field, []).append(hit)
        return {
            name: self._redacted(name, text, by_field[name], _LIMITS.get(_named(name), NAME_LIMIT))
            if name in by_field
            else text
            for name, text in fields.items()
        }

    def _action(self, hit: Hit) -> Action:
        outcome = self._outcomes[hit.signal]
        if hit.signal == "personal" and (outcome == "refuse" or hit.kind == TRAIT):
            outcome = "flag" if self._is_named() else "refuse"
        if outcome == "refuse":
            raise _refusal(hit)
        if outcome == "redact":
            return "redact"
        if outcome == "quarantine" and not self._is_reviewed:
            self._quarantining[hit.signal, _named(hit.field)] = None
            return "quarantine"
        self._signals[hit.signal] = None
        return "flag"

    def _is_named(self) -> bool:
        if not isinstance(self._names_subject, bool):
            self._names_subject = self._names_subject()
        return self._names_subject

    def _redacted(self, field: str, text: str, hits: Sequence[Hit], limit: int) -> str:
        is_keyed = any(hit.signal != "hidden" for hit in hits)
        key = screening_key(self._database, self._tenant_id) if is_keyed else None
        self.has_keyed = self.has_keyed or is_keyed
        kept = redacted(text, hits, key)
        name = _named(field)
        if len(kept.encode()) > limit and len(kept) > limit:
            raise ScreenRefused(
                f"{name}: it holds {_what(hits[0])}, and has no room for what would take its place; take it out.",
                field=name,
                kind=hits[0].kind,
            )
        if name in _MUST_SAY and not kept.strip():
            raise ScreenRefused(f"{name}: nothing in it can be seen.", field=name, kind=hits[0].kind)
        return kept

    def _keyed(self, digest: str) -> str:
        key = screening_key(self._database, self._tenant_id)
        return hmac.new(key, digest.encode("ascii"), hashlib.sha256).hexdigest()


def is_about(database: Database, tenant_id: UUID, stream_id: UUID) -> Callable[[], bool]:
    """Whether what stands in a stream names its subject, to be asked where that matters."""

    def ask() -> bool:
        with database.transaction("auditor", tenant_id, read_only=True) as transaction:
            return stream_id in streams_of(transaction, tenant_id, [stream_id])[1]

    return ask


def refuse_traits(text: str, field: str) -> None:
    """Raise `SubjectMissing` for a text that says what somebody is like, where no subject can be named."""
    if hit := next((hit for hit in screen({field: text}).of("personal") if hit.kind == TRAIT), None):
        raise _refusal(hit)


def screened_fields(values: Mapping[str, Any]) -> dict[str, str]:
    """What the screen looks at of a finding's plain values: text by field, of a list each member under its own name."""
    flat = {name: values[name] for name in (*_LINES, *_TEXTS) if values.get(name)}
    flat |= {f"tags.{place}": tag for place, tag in enumerate(values.get("tags") or ())}
    for place, item in enumerate(values.get("evidence") or ()):
        flat |= {f"evidence.{name}.{place}": item[name] for name in ("type", "uri", "label")}
    return flat | {f"incident.{name}": text for name, text in (values.get("incident") or {}).items()}


def _changed(values: Mapping[str, Any], flat: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, Any]:
    names = {_named(name).partition(".")[0] for name, text in kept.items() if text != flat[name]}
    changed: dict[str, Any] = {name: kept[name] for name in names if name in kept}
    if "tags" in names:
        tags = (kept[f"tags.{place}"] for place in range(len(values["tags"])))
        changed["tags"] = tuple(dict.fromkeys(tag for tag in tags if tag.strip()))
    if "evidence" in names:
        changed["evidence"] = tuple(
            {**item, **{name: kept[f"evidence.{name}.{place}"] for name in ("type", "uri", "label")}}
            for place, item in enumerate(values["evidence"])
        )
    if "incident" in names:
        changed["incident"] = {name: kept[f"incident.{name}"] for name in values["incident"]}
    return changed


def _named(field: str) -> str:
    """The field without the place in its list."""
    name, _, place = field.rpartition(".")
    return name if place.isdigit() else field


def _what(hit: Hit) -> str:
    return f"what the screen takes for {hit.signal} ({hit.kind})"


def _refusal(hit: Hit) -> GrandboError:
    field = _named(hit.field)
    if hit.signal == "personal":
        return SubjectMissing(
            f"{field}: it holds {_what(hit)}, so it speaks of a person: name the subject, or take it out.",
            field=field,
            kind=hit.kind,
        )
    return ScreenRefused(
        f"{field}: it holds {_what(hit)}, which this tenant refuses; take it out and send again.",
        field=field,
        kind=hit.kind,
    )

"""
Deciders of an entry's life: from its state and a wish to the event that happened, or to a typed refusal. Pure.

`ALLOWED` is the whole table of what each state accepts; a test walks it. A restore brings back text and never a status,
an un-archiving brings back a status and never text: neither can happen unnoticed inside the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from grandbo.applicability import Applies, parse_applies
from grandbo.errors import IllegalTransition, InvalidInput, KindNotRecorded, RevisionStale
from grandbo.events import models
from grandbo.memory.decide import applies_to, claim_digest_of, text_digest
from grandbo.types import Kind, LinkType, Status, utc_text

ALLOWED: dict[str, frozenset[str]] = {
    "correct": frozenset({"published", "quarantined"}),
    "restore": frozenset({"published", "archived", "quarantined"}),
    "archive": frozenset({"published", "superseded"}),
    "unarchive": frozenset({"archived"}),
    "dispute": frozenset({"published"}),
    "resolve": frozenset({"published", "archived", "superseded", "quarantined"}),
    "supersede": frozenset({"published"}),
    "verify": frozenset({"published"}),
    "expire": frozenset({"published", "archived", "quarantined"}),
    "reclassify": frozenset({"published", "archived", "quarantined"}),
    "quarantine": frozenset({"published", "archived", "superseded"}),
    "release": frozenset({"quarantined"}),
    "corroborate": frozenset({"published"}),
    "link": frozenset({"published", "archived", "superseded", "quarantined"}),
    "unlink": frozenset({"published", "archived", "superseded", "quarantined"}),
}


@dataclass(frozen=True, slots=True)
class EntryState:
    """An entry as it stands, or as a revision of it stood."""

    entry_id: UUID
    revision: int
    kind: Kind
    status: Status
    disputed: bool
    visibility: str
    title: str
    summary: str
    body: str
    service: str
    tags: tuple[str, ...]
    confidence_bp: int
    evidence: tuple[dict[str, str], ...]
    occurred_at: datetime | None
    occurred_precision: str | None
    ended_at: datetime | None
    valid_from: datetime
    expires_at: datetime
    namespace: str
    owner: str | None
    applicability: tuple[str, ...]
    incident_source: str | None
    incident_id: str | None
    supported_by: tuple[dict[str, str], ...]
    superseded_by: UUID | None

    @property
    def incidents(self) -> frozenset[tuple[str, str]]:
        """The incidents that taught it or support it, each with the tool that knows it."""
        supporting = {(item["source"], item["id"]) for item in self.supported_by}
        if self.incident_source is None or self.incident_id is None:
            return frozenset(supporting)
        return frozenset({*supporting, (self.incident_source, self.incident_id)})

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> EntryState:
        """From a row of the entries or of the revisions."""
        values = {name: row[name] for name in cls.__slots__}
        listed = ("tags", "evidence", "applicability", "supported_by")
        return cls(**values | {name: tuple(values[name]) for name in listed})


class Standing(Protocol):
    """As much of an entry's state as putting it away and letting it out rest on."""

    @property
    def revision(self) -> int:
        """The number of its present revision."""

    @property
    def status(self) -> Status:
        """Whether it is recalled, and if not, why."""


def check_acceptable(state: EntryState, verb: str, expected_revision: int | None) -> None:
    """
    Refuse a wish that was formed on another revision, or that this state does not accept.

    Raises:
        RevisionStale, IllegalTransition: the latter says what the state does accept.
    """
    if expected_revision is not None and expected_revision != state.revision:
        raise RevisionStale(
            f"This was decided on revision {expected_revision}, and the entry is at {state.revision}: "
            "look at both and decide again.",
            expected=expected_revision,
            current=state.revision,
        )
    possible = accepted(state.status, disputed=state.disputed)
    if verb not in possible:
        idle = "disputed already" if state.disputed else "not disputed"
        how = idle if state.status in ALLOWED[verb] else state.status
        raise IllegalTransition(
            f"The entry is {how}; {verb} is not possible, these are: {', '.join(possible)}.",
            entry_status=state.status,
            allowed=possible,
        )


def accepted(status: Status, *, disputed: bool) -> list[str]:
    """The verbs that an entry accepts as it stands, in the order of the alphabet."""
    idle = "dispute" if disputed else "resolve"
    return sorted(verb for verb, states in ALLOWED.items() if status in states and verb != idle)


def decide_correct(
    state: EntryState, changes: Mapping[str, Any], reason: str, screened: models.Screened
) -> models.EntryCorrected | None:
    """What `changes` names is replaced, all else stays; None where nothing would be other than it is."""
    text = _text_of(state)
    whole = {**text, **changes}
    if whole["occurred_at"] and whole["ended_at"] and whole["ended_at"] < whole["occurred_at"]:
        raise InvalidInput("ended_at: it lies before occurred_at.", field="ended_at")
    changed = tuple(sorted(name for name, value in changes.items() if text[name] != value))
    if not changed:
        return None
    return models.EntryCorrected(**_text_event(state, whole), reason=reason, changed=changed, screened=screened)


def decide_restore(state: EntryState, earlier: EntryState, reason: str) -> models.EntryRevisionRestored:
    """The text of an earlier revision, whole, as a new revision; kind, tier and status are left alone."""
    if earlier.revision >= state.revision:
        raise InvalidInput("revision: it must be one before the current one.", field="revision")
    if not earlier.title:
        raise InvalidInput("revision: what it said was erased.", field="revision")
    return models.EntryRevisionRestored(
        **_text_event(state, _text_of(earlier)), reason=reason, restored_revision=earlier.revision
    )


def decide_archive(state: EntryState, reason: str) -> models.EntryArchived:
    """Put it away."""
    return models.EntryArchived(revision=state.revision + 1, reason=reason)


def decide_unarchive(state: EntryState, reason: str) -> models.EntryUnarchived:
    """Bring it back, also into the place that another entry had taken."""
    return models.EntryUnarchived(
        revision=state.revision + 1, reason=reason, no_longer_superseded=state.superseded_by is not None
    )


def decide_dispute(state: EntryState, other: EntryState | None, reason: str) -> models.EntryDisputed:
    """Mark it disputed, against another entry where there is one."""
    if other is not None and other.entry_id == state.entry_id:
        raise InvalidInput("other: an entry cannot dispute itself.", field="other")
    other_id = str(other.entry_id) if other else None
    return models.EntryDisputed(revision=state.revision + 1, reason=reason, other_entry_id=other_id)


def decide_resolve(state: EntryState, reason: str) -> models.EntryDisputeResolved:
    """The entry stands."""
    return models.EntryDisputeResolved(revision=state.revision + 1, reason=reason)


def decide_supersede(state: EntryState, by: EntryState, reason: str) -> models.EntrySuperseded:
    """Another entry, a published one, takes its place."""
    if by.entry_id == state.entry_id:
        raise InvalidInput("by: an entry cannot supersede itself.", field="by")
    if by.status != "published":
        raise IllegalTransition(
            f"The entry that should take its place is {by.status}; name one that is published.", entry_status=by.status
        )
    return models.EntrySuperseded(revision=state.revision + 1, reason=reason, superseded_by=str(by.entry_id))


def decide_verify(state: EntryState, days: int, reason: str, now: datetime) -> models.EntryVerified:
    """Someone checked it; the next review is due after `days`. Verified is not the same as unexpired."""
    review_at = utc_text(now + timedelta(days=days))
    return models.EntryVerified(revision=state.revision + 1, reason=reason, review_at=review_at)


def decide_expire(state: EntryState, expires_at: datetime, reason: str) -> models.EntryExpirySet:
    """It is valid until then; a time that has passed ends it at once."""
    if expires_at <= state.valid_from:
        raise InvalidInput("expires_at: it must lie after the entry became valid.", field="expires_at")
    return models.EntryExpirySet(revision=state.revision + 1, reason=reason, expires_at=utc_text(expires_at))


@dataclass(frozen=True, slots=True)
class Classification:
    """What an entry shall count as; None leaves a field as it is, an empty owner takes the owner away."""

    kind: Kind | None = None
    visibility: str | None = None
    namespace: str | None = None
    owner: str | None = None
    applicability: tuple[Applies, ...] | None = None


def decide_reclassify(state: EntryState, wanted: Classification, reason: str) -> models.EntryReclassified | None:
    """Another kind, tier, namespace, owner or applicability; None where all are what they were."""
    kind, visibility = wanted.kind or state.kind, wanted.visibility or state.visibility
    if kind == "episode" and state.kind != kind:
        raise KindNotRecorded("kind: an episode is recorded under its session; no entry becomes one.", field="kind")
    namespace = state.namespace if wanted.namespace is None else wanted.namespace
    owner = state.owner if wanted.owner is None else wanted.owner or None
    shown = tuple(str(item) for item in wanted.applicability) if wanted.applicability is not None else None
    applicability = state.applicability if shown is None else shown
    after = (kind, visibility, namespace, owner, applicability)
    if after == (state.kind, state.visibility, state.namespace, state.owner, state.applicability):
        return None
    return models.EntryReclassified(
        revision=state.revision + 1,
        reason=reason,
        kind=kind,
        visibility=visibility,
        namespace=namespace,
        owner=owner,
        applicability=applies_to(parse_applies(item) for item in applicability),
        claim_digest=claim_digest_of(kind, visibility, state.title, state.summary, state.body),
    )


def decide_quarantine(state: Standing, reason: str) -> models.EntryQuarantined:
    """Out of every answer until someone has looked at it."""
    return models.EntryQuarantined(revision=state.revision + 1, reason=reason)


def decide_release(state: Standing, before: Status, reason: str) -> models.EntryReleased:
    """Back to the status that it had before."""
    return models.EntryReleased(revision=state.revision + 1, reason=reason, status=before)


def decide_corroborate(
    state: EntryState, incident: models.IncidentRef, evidence: tuple[models.Evidence, ...]
) -> models.EntryCorroborated | None:
    """Another incident supports it; None where that one taught it or supports it already."""
    if (incident.source, incident.id) in state.incidents:
        return None
    return models.EntryCorroborated(revision=state.revision + 1, incident=incident, evidence=evidence)


def decide_link(
    state: EntryState, other: EntryState, link_type: LinkType, is_linked: bool, reason: str
) -> models.EntryLinked | None:
    """Link it to another entry; None where it is linked like that already."""
    if other.entry_id == state.entry_id:
        raise InvalidInput("to: an entry cannot be linked to itself.", field="to")
    if is_linked:
        return None
    to = str(other.entry_id)
    return models.EntryLinked(revision=state.revision, link_type=link_type, to_entry_id=to, reason=reason)


def decide_unlink(
    state: EntryState, other_id: UUID, link_type: LinkType, is_linked: bool, reason: str
) -> models.EntryUnlinked | None:
    """Take a link away; None where there is none."""
    if not is_linked:
        return None
    to = str(other_id)
    return models.EntryUnlinked(revision=state.revision, link_type=link_type, to_entry_id=to, reason=reason)


def _text_of(state: EntryState) -> dict[str, Any]:
    names = ("title", "summary", "body", "service", "tags", "confidence_bp", "evidence")
    times = ("occurred_at", "occurred_precision", "ended_at")
    return {name: getattr(state, name) for name in (*names, *times)}


def _text_event(state: EntryState, text: Mapping[str, Any]) -> dict[str, Any]:
    title, summary, body = text["title"], text["summary"], text["body"]
    return {
        **text,
        "evidence": tuple(models.Evidence(**item) for item in text["evidence"]),
        "occurred_at": utc_text(text["occurred_at"]) if text["occurred_at"] else None,
        "ended_at": utc_text(text["ended_at"]) if text["ended_at"] else None,
        "revision": state.revision + 1,
        "visibility": state.visibility,
        "claim_digest": claim_digest_of(state.kind, state.visibility, title, summary, body),
        "text_digest": text_digest(title, summary, body),
    }

"""What may be done to an entry, as forms: the fields that each verb asks for, and the wish that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from grandbo.errors import InvalidInput
from grandbo.events.models import Policy
from grandbo.library import TenantMemory
from grandbo.memory import wishes
from grandbo.memory.govern import Wish
from grandbo.memory.policy import visible_tiers
from grandbo.types import LINK_TYPES, ORGANISATION_KINDS, Principal
from grandbo.web.call import Values, id_of, raw_text, text

FieldKind = Literal["line", "text", "choice", "number", "id", "hidden"]
State = Mapping[str, Any]

_EVIDENCE_HINT = "One a line: type | address | label"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form; `initial` gives what stands in it for an entry as it is."""

    name: str
    label: str
    kind: FieldKind = "line"
    hint: str = ""
    required: bool = False
    initial: Callable[[State], str] = lambda _state: ""
    choices: Callable[[TenantMemory], tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """What was typed, beside the state on which it was begun."""

    memory: TenantMemory
    entry_id: UUID
    base: State
    values: Values
    options: dict[str, Any]

    @property
    def reason(self) -> str:
        return raw_text(self.values, "reason")

    @property
    def who(self) -> tuple[UUID, Principal, Policy]:
        return self.memory.tenant_id, self.memory.principal, self.memory.tenant.policy

    def whole_number(self, name: str) -> int | None:
        """A number that was typed. Raises `InvalidInput`."""
        given = text(self.values, name)
        if given is None:
            return None
        if not given.isascii() or not given.isdigit() or len(given) > 10:
            raise InvalidInput(f"{name}: it must be a whole number.", field=name)
        return int(given)

    def entry(self, name: str) -> UUID:
        """The entry that was named. Raises `InvalidInput`."""
        found = id_of(self.values.get(name))
        if found is None:
            raise InvalidInput(f"{name}: give the id of an entry, or the address of its page.", field=name)
        return found

    def changed(self, fields: tuple[Field, ...]) -> dict[str, str]:
        """The fields whose text is no more what it was."""
        typed = {field.name: raw_text(self.values, field.name) for field in fields if field.name in self.values}
        before = {field.name: unix_lines(field.initial(self.base)) for field in fields}
        return {name: value for name, value in typed.items() if value != before[name]}


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that may be done to an entry."""

    name: str
    label: str
    explains: str
    wish: Callable[[Form], Wish]
    fields: tuple[Field, ...] = ()
    takes_reason: bool = True


def unix_lines(value: str) -> str:
    """Text with the line ends that a form is compared by."""
    return value.replace("\r\n", "\n").replace("\r", "\n")


def evidence_lines(state: State) -> str:
    """Evidence as lines to be edited."""
    return "\n".join(" | ".join((item["type"], item["uri"], item["label"])) for item in state["evidence"])


def read_evidence(value: str) -> list[dict[str, str]]:
    """Evidence from its lines. Raises `InvalidInput`."""
    found = []
    for line in value.splitlines():
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split("|", 2)]
        if len(parts) < 2:
            raise InvalidInput("evidence: write each line as type | address | label.", field="evidence")
        found.append({"type": parts[0], "uri": parts[1], "label": parts[2] if len(parts) > 2 else ""})
    return found


def read_lines(value: str) -> list[str]:
    """Lines without the empty ones."""
    return [line.strip() for line in value.splitlines() if line.strip()]


def _confidence_text(state: State) -> str:
    return str(state["confidence_bp"])


def _confidence(value: str) -> int:
    if not value.strip().isascii() or not value.strip().isdigit():
        raise InvalidInput("confidence_bp: it must be a whole number from 0 to 10000.", field="confidence_bp")
    return int(value)


_CORRECTION = (
    Field("title", "Title", required=True, initial=lambda state: state["title"]),
    Field("summary", "Summary", "text", initial=lambda state: state["summary"]),
    Field("body", "Text", "text", initial=lambda state: state["body"]),
    Field("service", "Service", initial=lambda state: state["service"]),
    Field("tags", "Tags", "text", "One a line", initial=lambda state: "\n".join(state["tags"])),
    Field("evidence", "Evidence", "text", _EVIDENCE_HINT, initial=evidence_lines),
    Field(
        "confidence_bp",
        "Confidence, in basis points",
        "number",
        "10000 is certain",
        initial=lambda s: str(s["confidence_bp"]),
    ),
)
_READERS: dict[str, Callable[[str], Any]] = {
    "tags": read_lines,
    "evidence": read_evidence,
    "confidence_bp": _confidence,
    "applicability": read_lines,
}


def corrected(values: Mapping[str, str]) -> dict[str, Any]:
    """Fields that were typed, as a correction takes them."""
    return {name: _READERS.get(name, str)(value) for name, value in values.items()}


def _correct(form: Form) -> Wish:
    changes = corrected(form.changed(_CORRECTION))
    if not changes:
        raise InvalidInput("Nothing was changed; change at least one field.", field="title")
    return wishes.correct(form.entry_id, changes, form.reason, **form.options)


_CLASSIFICATION = (
    Field("kind", "Kind", "choice", initial=lambda state: state["kind"], choices=lambda _memory: ORGANISATION_KINDS),
    Field(
        "visibility",
        "Visible to",
        "choice",
        initial=lambda state: state["visibility"],
        choices=lambda memory: visible_tiers(memory.tenant.policy, memory.principal),
    ),
    Field("namespace", "Namespace", initial=lambda state: state["namespace"]),
    Field("owner", "Owner", initial=lambda state: state["owner"] or ""),
    Field(
        "applicability",
        "Applies to",
        "text",
        "One system a line, with versions: worker >=4,<7; empty for everything",
        initial=lambda state: "\n".join(state["applicability"]),
    ),
)


def _reclassify(form: Form) -> Wish:
    changes = corrected(form.changed(_CLASSIFICATION))
    if not changes:
        raise InvalidInput("Nothing was changed; change at least one field.", field="kind")
    _, principal, policy = form.who
    return wishes.reclassify(principal, policy, form.entry_id, changes, form.reason, **form.options)


def _plain(make: Callable[..., Wish]) -> Callable[[Form], Wish]:
    return lambda form: make(form.entry_id, form.reason, **form.options)


def _dispute(form: Form) -> Wish:
    other = form.entry("other") if text(form.values, "other") else None
    return wishes.dispute(*form.who, form.entry_id, other, form.reason, **form.options)


def _restore(form: Form) -> Wish:
    revision = form.whole_number("revision")
    if revision is None:
        raise InvalidInput("revision: say which one.", field="revision")
    return wishes.restore(*form.who, form.entry_id, revision, form.reason, **form.options)


def _link_type(form: Form) -> str:
    return text(form.values, "type") or ""


def _corroborate(form: Form) -> Wish:
    incident = {"source": text(form.values, "source") or "", "id": text(form.values, "incident") or ""}
    evidence = read_evidence(raw_text(form.values, "evidence"))
    return wishes.corroborate(form.entry_id, incident, evidence, **form.options)


_LINK = (
    Field(
        "type", "How", "choice", initial=lambda _state: "relates_to", choices=lambda _memory: LINK_TYPES, required=True
    ),
    Field("to", "To which entry", "id", required=True),
)

VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("correct", "Correct", "Replace what is wrong; all else stays.", _correct, _CORRECTION),
        Verb(
            "verify",
            "Verify",
            "Say that you checked it; sets the next review.",
            lambda form: wishes.verify(
                form.entry_id, form.whole_number("days"), form.reason, form.who[2], **form.options
            ),
            (Field("days", "Next review in days", "number", "Empty: what the policy says"),),
        ),
        Verb(
            "dispute",
            "Dispute",
            "It is still recalled, marked as disputed.",
            _dispute,
            (Field("other", "By which other entry", "id", "Empty where there is none"),),
        ),
        Verb("resolve", "Resolve the dispute", "The entry stands.", _plain(wishes.resolve)),
        Verb("archive", "Archive", "Put it away: nobody recalls it any more.", _plain(wishes.archive)),
        Verb("unarchive", "Unarchive", "Bring it back.", _plain(wishes.unarchive)),
        Verb(
            "restore",
            "Restore",
            "Bring the text of an earlier revision back; the status stays what it is.",
            _restore,
            (Field("revision", "Revision", "number", required=True),),
        ),
        Verb(
            "supersede",
            "Supersede",
            "Another entry takes its place.",
            lambda form: wishes.supersede(*form.who, form.entry_id, form.entry("by"), form.reason, **form.options),
            (Field("by", "By which entry", "id", required=True),),
        ),
        Verb(
            "expire",
            "Set expiry",
            "Until when it is valid.",
            lambda form: wishes.expire(form.entry_id, text(form.values, "at") or "", form.reason, **form.options),
            (
                Field(
                    "at",
                    "Until",
                    hint="A date, 2027-01-31, or a time with its zone",
                    required=True,
                    initial=lambda state: state["expires_at"],
                ),
            ),
        ),
        Verb("reclassify", "Reclassify", "Another kind, tier, owner or applicability.", _reclassify, _CLASSIFICATION),
        Verb(
            "corroborate",
            "Corroborate",
            "Another incident supports it; its evidence is the reason.",
            _corroborate,
            (
                Field("source", "Tool that knows the incident", hint="pager, for one", required=True),
                Field("incident", "Id of the incident", required=True),
                Field("evidence", "Evidence", "text", _EVIDENCE_HINT, required=True),
            ),
            takes_reason=False,
        ),
        Verb(
            "link",
            "Link",
            "Say how it hangs together with another entry.",
            lambda form: wishes.link(
                *form.who, form.entry_id, _link_type(form), form.entry("to"), form.reason, **form.options
            ),
            _LINK,
        ),
        Verb(
            "unlink",
            "Unlink",
            "Take a link away.",
            lambda form: wishes.unlink(
                form.memory.tenant_id, form.entry_id, _link_type(form), form.entry("to"), form.reason, **form.options
            ),
            _LINK,
        ),
        Verb(
            "quarantine",
            "Quarantine",
            "Out of every answer until someone has looked at it.",
            _plain(wishes.quarantine),
        ),
        Verb(
            "release",
            "Release",
            "Out of quarantine, with the status of before.",
            lambda form: wishes.release(form.memory.tenant_id, form.entry_id, form.reason, **form.options),
        ),
    )
}

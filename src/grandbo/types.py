"""The vocabulary as types: identifiers, times, principals, kinds. Pure; nothing here does I/O."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, get_args

from uuid_utils.compat import uuid7

from grandbo.errors import InvalidInput

Kind = Literal["finding", "runbook", "reference", "decision", "ruled_out", "personal", "episode", "note"]
OrganisationKind = Literal["finding", "runbook", "reference", "decision", "ruled_out", "episode"]
ProposedKind = Literal["finding", "runbook", "reference", "decision", "ruled_out", "personal", "episode"]
Status = Literal["published", "archived", "superseded", "quarantined"]
PrincipalType = Literal["human", "agent", "hook", "system"]
LinkType = Literal["caused_by", "duplicates", "contradicts", "supersedes", "mitigated_by", "relates_to"]
Verdict = Literal["helped", "irrelevant", "wrong", "stale"]
Precision = Literal["time", "day", "month", "year"]

KINDS: tuple[Kind, ...] = get_args(Kind)
# What the organisation remembers. A memory about a person needs its subject, and a note belongs to its investigation.
ORGANISATION_KINDS: tuple[OrganisationKind, ...] = get_args(OrganisationKind)
PROPOSED_KINDS: tuple[ProposedKind, ...] = get_args(ProposedKind)
STATUSES: tuple[Status, ...] = get_args(Status)
LINK_TYPES: tuple[LinkType, ...] = get_args(LinkType)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
PRINCIPAL_TYPES: tuple[PrincipalType, ...] = get_args(PrincipalType)

# Every UUIDv5 of Grandbo is made in this namespace. Changing it would make every retried command look new.
NAMESPACE = uuid.UUID("6f1f1d1e-5a0c-5f3b-9c54-2b1d3c9f7a10")

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The clock of the write side; tests freeze it."""
    return datetime.now(UTC)


def new_id() -> uuid.UUID:
    """A UUIDv7: unique, and in the order of its making."""
    return uuid7()


def derived_id(*parts: str) -> uuid.UUID:
    """A UUIDv5 of the parts, none of which can run into the next: each is written with its length."""
    return uuid.uuid5(NAMESPACE, "".join(f"{len(part)}:{part}" for part in parts))


def digest_of(document: Any) -> str:
    """
    SHA-256 of plain values, hex: equal values, equal digest.

    For identities that are compared and never shown to a verifier; what is hashed into the chain is RFC 8785.
    """
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def utc_text(moment: datetime) -> str:
    """The one spelling of a time in the log: `YYYY-MM-DDTHH:MM:SS.ffffffZ`, fixed width."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def from_utc_text(text: str) -> datetime:
    """Read what `utc_text` wrote."""
    return datetime.fromisoformat(text)


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as a source states it: an instant, or only a day, a month, a year."""

    at: datetime
    precision: Precision


TIME_WANTED = "write RFC 3339 with a zone, such as 2026-01-02T03:04:05Z, or a date such as 2026-01-02"
_PARTIAL: tuple[tuple[re.Pattern[str], str, Precision], ...] = (
    (re.compile(r"\d{4}"), "-01-01", "year"),
    (re.compile(r"\d{4}-\d{2}"), "-01", "month"),
    (re.compile(r"\d{4}-\d{2}-\d{2}"), "", "day"),
)
_LEAP_SECOND = re.compile(r"(.+[T ]\d{2}:\d{2}:)60((?:\.\d+)?(?:Z|[+-]\d{2}:\d{2}))")


def parse_moment(text: str, field_name: str) -> Moment:
    """
    Read an RFC 3339 time, or a date, month or year.

    Raises:
        InvalidInput: for a time without a zone (which instant is meant is not for us to guess) and for anything else.
    """
    for pattern, rest, precision in _PARTIAL:
        if pattern.fullmatch(text):
            try:
                day = date.fromisoformat(text + rest)
            except ValueError:
                break
            return Moment(datetime(day.year, day.month, day.day, tzinfo=UTC), precision)
    return Moment(parse_instant(text, field_name), "time")


def parse_instant(text: str, field_name: str, wanted: str = TIME_WANTED) -> datetime:
    """
    Read an RFC 3339 time, in UTC. A leap second is the instant after it, as clocks and PostgreSQL count.

    Raises:
        InvalidInput: for anything else, and for a time without a zone: which instant is meant is not for us to guess.
    """
    try:
        # The RFC lets T and Z be small.
        if "T" not in (plain := text.upper()) and " " not in plain:
            raise ValueError
        leap = _LEAP_SECOND.fullmatch(plain)
        moment = datetime.fromisoformat(plain if leap is None else f"{leap[1]}59{leap[2]}")
    except ValueError:
        raise InvalidInput(f"{field_name}: this is not a time; {wanted}.", field=field_name) from None
    if leap is None:
        return require_zone(moment, field_name, wanted)
    return _after_leap_second(require_zone(moment, field_name, wanted), field_name, wanted)


def _after_leap_second(before: datetime, field_name: str, wanted: str) -> datetime:
    """They have been at the end of June and of December, UTC, and nowhere else."""
    if (before.month, before.day, before.hour, before.minute) not in ((6, 30, 23, 59), (12, 31, 23, 59)):
        raise InvalidInput(
            f"{field_name}: no leap second is there, only at the end of 30 June or 31 December in UTC; {wanted}.",
            field=field_name,
        )
    try:
        return before + timedelta(seconds=1)
    except OverflowError:
        raise InvalidInput(f"{field_name}: the year must lie between 1 and 9999.", field=field_name) from None


def require_zone(moment: datetime, field_name: str, wanted: str = TIME_WANTED) -> datetime:
    """Refuse a naive time; give an aware one in UTC."""
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidInput(f"{field_name}: the time has no zone; {wanted}.", field=field_name)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{field_name}: the year must lie between 1 and 9999.", field=field_name) from None


@dataclass(frozen=True, slots=True)
class Principal:
    """Who acts. It comes from the credential, never from a body; the name is for people, the log holds `ref` alone."""

    type: PrincipalType
    principal_id: uuid.UUID
    name: str = ""
    roles: frozenset[str] = field(default_factory=frozenset)
    # A credential may be for reading alone, whatever the roles allow.
    read_only: bool = False
    # Tiers of subjects that are this principal's own, where a verb has asked for them; no role gives one.
    own_tiers: tuple[str, ...] = ()

    @property
    def ref(self) -> str:
        """`type:uuid`, as the log has it."""
        return f"{self.type}:{self.principal_id}"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The answer to a write. Position and hash together let the caller prove later that the event was kept."""

    entry_id: uuid.UUID
    revision: int
    position: int
    hash: str
    created: bool

    def as_dict(self) -> dict[str, object]:
        """The shape that every door gives."""
        return {
            "entry_id": str(self.entry_id),
            "revision": self.revision,
            "position": self.position,
            "hash": self.hash,
            "created": self.created,
        }

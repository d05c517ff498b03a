"""
Subjects: the people and workspaces that something may be remembered about.

Outside they are known by a reference, such as an e-mail address. Here only its keyed digest is kept, a name sealed
under the subject's own key, and a random id that everything else goes by.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, get_args
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput, NotFound, SubjectErased
from grandbo.events.log import LOCK_HEAD, CommandContext, Event, head_of, recorded_event, seal_events
from grandbo.events.log import stream_versions as versions_of
from grandbo.events.parts import EventBody
from grandbo.events.subjects import SubjectHeld, SubjectHoldLifted, SubjectKind, SubjectRegistered
from grandbo.memory.commands import Command, on_hold, run_command
from grandbo.memory.govern import check_reason
from grandbo.memory.policy import may, require, require_writing
from grandbo.memory.principals import parse_principal, principal_refs
from grandbo.projections.runner import append
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.keyring import KeyContext
from grandbo.storage.subject_keys import (
    FIND_REFERENCE,
    KEEP_KEY,
    fetch_keys,
    find_keys,
    find_references,
    highest_epoch,
    new_key_row,
    open_keys,
    reference_digest,
)
from grandbo.storage.tables import events, subjects
from grandbo.storage.tenancy import of_tenant
from grandbo.text import check_text
from grandbo.types import Clock, Principal, digest_of, new_id, utc_now, utc_text

KINDS: tuple[SubjectKind, ...] = get_args(SubjectKind)
REFERENCE_LIMIT = 200
NAME_LIMIT = 200
PRINCIPALS_LIMIT = 16
PRIVATE_TIER = "subject_"

_subject = sa.bindparam("subject", type_=sa.Uuid)
SUBJECT = sa.select(subjects).where(of_tenant(subjects), subjects.c.subject_id == _subject)
_LOCK_SUBJECT = SUBJECT.with_for_update()
_ALL = sa.select(subjects).where(of_tenant(subjects)).order_by(subjects.c.position, subjects.c.subject_id)
_OWN = sa.select(subjects.c.subject_id).where(
    of_tenant(subjects),
    subjects.c.state == "active",
    sa.bindparam("ref", type_=sa.Text) == sa.any_(subjects.c.principals),
)
_EVERY = sa.select(subjects.c.subject_id).where(of_tenant(subjects), subjects.c.state == "active")
_REGISTRATIONS = (
    sa.select(events)
    .where(
        of_tenant(events),
        events.c.stream_id == _subject,
        events.c.event_type == SubjectRegistered.EVENT_TYPE,
    )
    .order_by(events.c.position.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject as it stands; `name` is None where it was not asked for, and of one that was erased."""

    subject_id: UUID
    kind: SubjectKind
    state: str
    principals: tuple[str, ...]
    registered_at: datetime | None
    held_by: str | None
    held_at: datetime | None
    hold_reason: str | None
    erased_at: datetime | None
    name: str | None = None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Subject:
        """From a row of the subjects."""
        same = {name: row[name] for name in cls.__slots__ if name not in ("name", "principals")}
        return cls(**same, principals=tuple(row["principals"]))

    @property
    def tier(self) -> str:
        """The tier that is its own: whoever it is not for does not see it."""
        return private_tier(self.subject_id)

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        hold = None
        if self.held_at is not None:
            hold = {"reason": self.hold_reason, "by": self.held_by, "since": utc_text(self.held_at)}
        return {
            "subject_id": str(self.subject_id),
            "kind": self.kind,
            "name": self.name,
            "state": self.state,
            "principals": list(self.principals),
            "registered_at": utc_text(self.registered_at) if self.registered_at else None,
            "hold": hold,
            "erased_at": utc_text(self.erased_at) if self.erased_at else None,
        }


@dataclass(frozen=True, slots=True)
class Registered:
    """A subject, and whether it was made just now."""

    subject: Subject
    created: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**self.subject.as_dict(), "created": self.created}


def private_tier(subject_id: UUID) -> str:
    """The tier of what is remembered about one subject; longer than any tier that a policy can name."""
    return f"{PRIVATE_TIER}{subject_id.hex}"


def is_private(visibility: str) -> bool:
    """Whether a tier is some subject's own."""
    return visibility.startswith(PRIVATE_TIER) and len(visibility) == len(PRIVATE_TIER) + 32


def register_subject(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    kind: object,
    reference: object,
    name: object,
    *,
    principals: Sequence[str] = (),
    clock: Clock = utc_now,
) -> Registered:
    """
    Register a person or a workspace. The same reference again is the same subject; a new name or other principals are
    put on record.

    Args:
        reference: what it is called elsewhere, such as an e-mail address; case and outer blanks do not count.
        principals: `type:name` of those whose own recalls are told what is remembered about it.

    Raises:
        Forbidden, InvalidInput, KeyUnavailable
    """
    require(principal, "govern")
    chosen, called = _checked_kind(kind), _checked(name, "name", NAME_LIMIT)
    digest = reference_digest(database, tenant_id, chosen, checked_reference(reference))
    if not isinstance(principals, list | tuple) or len(principals) > PRINCIPALS_LIMIT:
        raise InvalidInput(f"principals: a list of at most {PRINCIPALS_LIMIT}.", field="principals")
    if not all(isinstance(one, str) for one in principals):
        raise InvalidInput("principals: each is [type:]name.", field="principals")
    owners = principal_refs(database, tenant_id, [parse_principal(one) for one in principals], clock=clock)
    row = new_key_row(database, highest_epoch(database, tenant_id), tenant_id, new_id(), digest)
    with database.transaction("writer", tenant_id) as transaction:
        head = head_of(transaction.execute(LOCK_HEAD, {"tenant_id": tenant_id}))
        known = transaction.execute_as(
            "keyholder", FIND_REFERENCE, {"tenant_id": tenant_id, "references": [digest]}, back="writer"
        )
        subject_id: UUID = known[0]["subject_id"] if known else row["subject_id"]
        if not known:
            row = _in_current_epoch(database, row)
            transaction.execute_as("keyholder", KEEP_KEY, row, back="writer")
        keys = open_keys(transaction, database.keys, tenant_id, [subject_id], back="writer")
        body = SubjectRegistered(kind=chosen, reference=digest.hex(), name=called, principals=owners)
        if known and _says_the_same(transaction, tenant_id, subject_id, body, keys):
            found = Subject.of_row(transaction.execute(SUBJECT, {"tenant_id": tenant_id, "subject": subject_id})[0])
            return Registered(replace(found, name=called), created=False)
        context = CommandContext(tenant_id, principal, new_id(), digest_of(str(subject_id)))
        versions = versions_of(transaction, tenant_id, [subject_id])
        event = Event(subject_id, body, subject_id=subject_id)
        sealed = seal_events(context, head, [event], versions, clock(), keys)
        append(transaction, sealed)
        made = Subject.of_row(transaction.execute(SUBJECT, {"tenant_id": tenant_id, "subject": subject_id})[0])
    return Registered(replace(made, name=called), created=not known)


def find_subject(database: Database, tenant_id: UUID, named: object) -> UUID:
    """
    The id of a subject from its id, or from its reference.

    Raises:
        NotFound: there is none; one that was erased has no reference any more.
    """
    if (known := _as_id(named)) is not None:
        return known
    found = find_references(database, tenant_id, _digests(database, tenant_id, named))
    if not found:
        raise NotFound("There is no such subject in this tenant.")
    return found[0]


def find_with_key(database: Database, tenant_id: UUID, named: object) -> tuple[UUID, dict[UUID, bytes]]:
    """The same with its key, opened before any lock is taken; without one where it was erased."""
    if (known := _as_id(named)) is not None:
        return known, fetch_keys(database, tenant_id, [known])
    found = find_keys(database, tenant_id, _digests(database, tenant_id, named))
    if not found:
        raise NotFound("There is no such subject in this tenant.")
    return next(iter(found)), found


def _digests(database: Database, tenant_id: UUID, named: object) -> list[bytes]:
    """Under which digests a reference may be known: whether of a person or of a workspace it does not say."""
    reference = checked_reference(named)
    return [reference_digest(database, tenant_id, kind, reference) for kind in KINDS]


def read_subject(transaction: Transaction, tenant_id: UUID, subject_id: UUID) -> Subject:
    """The subject, or its tombstone. Raises `NotFound`."""
    rows = transaction.execute(SUBJECT, {"tenant_id": tenant_id, "subject": subject_id})
    if not rows:
        raise NotFound("There is no such subject in this tenant.")
    return Subject.of_row(rows[0])


def active_subject(transaction: Transaction, tenant_id: UUID, subject_id: UUID) -> Subject:
    """A subject that was not erased. Raises `NotFound`, `SubjectErased`."""
    found = read_subject(transaction, tenant_id, subject_id)
    if found.state == "erased":
        raise SubjectErased
    return found


def locked_subject(transaction: Transaction, tenant_id: UUID, subject_id: UUID) -> Subject:
    """The same, locked against an erasure that runs at the same time. Raises `NotFound`, `SubjectErased`."""
    transaction.execute(_LOCK_SUBJECT, {"tenant_id": tenant_id, "subject": subject_id})
    # Read once it is ours: whoever held it may have been an erasure.
    return active_subject(transaction, tenant_id, subject_id)


def show_subject(database: Database, tenant_id: UUID, principal: Principal, named: object) -> Subject:
    """A subject with its name."""
    subject_id = find_subject(database, tenant_id, named)
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        found = read_subject(transaction, tenant_id, subject_id)
        if not (may(principal, "audit") or principal.ref in found.principals):
            require(principal, "audit")
        return replace(found, name=_name_of(transaction, database, tenant_id, found))


def list_subjects(database: Database, tenant_id: UUID, principal: Principal) -> list[Subject]:
    """All subjects and tombstones, oldest first, without their names: those are asked for one by one."""
    require(principal, "audit")
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        return [Subject.of_row(row) for row in transaction.execute(_ALL, {"tenant_id": tenant_id})]


def own_tiers(database: Database, tenant_id: UUID, principal: Principal, shared_with: Sequence[str]) -> tuple[str, ...]:
    """
    The private tiers that a principal's recalls are told: those of the subjects that are its own; everyone's where the
    tenant's policy shares them with one of its roles.
    """
    shares = bool(principal.roles & set(shared_with))
    params: dict[str, Any] = {"tenant_id": tenant_id} if shares else {"tenant_id": tenant_id, "ref": principal.ref}
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_EVERY if shares else _OWN, params)
    return tuple(sorted(private_tier(row["subject_id"]) for row in rows))


def hold_subject(
    database: Database, tenant_id: UUID, principal: Principal, named: object, reason: object, *, clock: Clock = utc_now
) -> Subject:
    """Set a legal hold; one that stands already keeps the reason that it has."""
    return _hold(database, tenant_id, principal, named, reason, clock, is_set=True)


def lift_hold(
    database: Database, tenant_id: UUID, principal: Principal, named: object, reason: object, *, clock: Clock = utc_now
) -> Subject:
    """Release a hold; where none stands nothing happens."""
    return _hold(database, tenant_id, principal, named, reason, clock, is_set=False)


def refuse_held(subject: Subject) -> None:
    """Raise `SubjectOnHold` with the reason and who set it."""
    if subject.held_at is not None:
        raise on_hold({name: getattr(subject, name) for name in ("subject_id", "held_by", "held_at", "hold_reason")})


def checked_reference(given: object) -> str:
    """A reference in the one form that is digested: NFKC, without case and outer blanks."""
    text = _checked(given, "reference", REFERENCE_LIMIT)
    return unicodedata.normalize("NFKC", text).casefold().strip()


def _hold(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    named: object,
    reason: object,
    clock: Clock,
    *,
    is_set: bool,
) -> Subject:
    require(principal, "administer")
    require_writing(principal)
    check_reason(reason)
    subject_id = find_subject(database, tenant_id, named)
    body: EventBody = SubjectHeld(reason=str(reason)) if is_set else SubjectHoldLifted(reason=str(reason))

    def decide(found: list[list[Row]], _now: datetime) -> Sequence[Event]:
        if not found[0]:
            raise NotFound("There is no such subject in this tenant.")
        subject = Subject.of_row(found[0][0])
        if subject.state == "erased":
            raise SubjectErased
        return [Event(subject_id, body)] if (subject.held_at is not None) != is_set else []

    key = {"tenant_id": tenant_id, "subject": subject_id}
    context = CommandContext(tenant_id, principal, new_id(), digest_of([body.EVENT_TYPE, str(subject_id), reason]))
    run_command(database, Command(context, [(SUBJECT, key)], decide), clock=clock)
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        return read_subject(transaction, tenant_id, subject_id)


def _in_current_epoch(database: Database, row: dict[str, Any]) -> dict[str, Any]:
    """A rotation may have begun while we waited for the lock: what it did not see must be in its epoch."""
    provider = database.keys.provider
    epoch = provider.epoch(row["kek_epoch"])
    if epoch == row["kek_epoch"]:
        return row
    before = KeyContext(row["tenant_id"], row["subject_id"], row["kek_epoch"])
    key = database.keys.opened(before, row["wrapped_dek"])
    return {**row, "kek_epoch": epoch, "wrapped_dek": provider.wrap(replace(before, epoch=epoch), key)}


def _says_the_same(
    transaction: Transaction, tenant_id: UUID, subject_id: UUID, body: SubjectRegistered, keys: Mapping[UUID, bytes]
) -> bool:
    rows = transaction.execute(_REGISTRATIONS, {"tenant_id": tenant_id, "subject": subject_id})
    if not rows:
        return False
    said = recorded_event(rows[0], keys).data
    return isinstance(said, SubjectRegistered) and said.model_copy(update={"command_digest": None}) == body


def _name_of(transaction: Transaction, database: Database, tenant_id: UUID, subject: Subject) -> str | None:
    if subject.state == "erased":
        return None
    keys = open_keys(transaction, database.keys, tenant_id, [subject.subject_id], back="auditor")
    return name_in(transaction, tenant_id, subject.subject_id, keys)


def name_in(transaction: Transaction, tenant_id: UUID, subject_id: UUID, keys: Mapping[UUID, bytes]) -> str | None:
    """What the subject is called; None without its key."""
    rows = transaction.execute(_REGISTRATIONS, {"tenant_id": tenant_id, "subject": subject_id})
    said = recorded_event(rows[0], keys).data if rows else None
    return said.name if isinstance(said, SubjectRegistered) else None


def key_of_subject(database: Database, tenant_id: UUID, subject_id: UUID) -> bytes:
    """The subject's key, opened before any lock is taken. Raises `SubjectErased`, `KeyUnavailable`."""
    key = fetch_keys(database, tenant_id, [subject_id]).get(subject_id)
    if key is None:
        raise SubjectErased
    return key


def _checked_kind(given: object) -> SubjectKind:
    chosen = next((known for known in KINDS if known == given), None)
    if chosen is None:
        raise InvalidInput(f"kind: it must be one of {', '.join(KINDS)}.", field="kind")
    return chosen


def _checked(given: object, field: str, limit: int) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InvalidInput(f"{field}: it must say something.", field=field)
    return check_text(given, field, limit=limit, single_line=True)


def _as_id(named: object) -> UUID | None:
    if isinstance(named, UUID):
        return named
    try:
        return UUID(named) if isinstance(named, str) else None
    except ValueError:
        return None

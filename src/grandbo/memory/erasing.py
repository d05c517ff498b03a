"""
Erasing an entry: asked for by one person, confirmed by another, and then gone from the log and from every projection.

One transaction does all of it: the event that says so, the rows, the receipts' references, and the bodies in the log.
Before it nothing has happened; after it everything has. What follows, the erasure list and the certificate, is made
from what is stored, and made again where it is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import Forbidden, InvalidInput, NotFound
from grandbo.events.erasures import EntryErased, ErasureReason
from grandbo.events.log import (
    LOCK_HEAD,
    CommandContext,
    Event,
    Head,
    RecordedEvent,
    head_of,
    seal_events,
    stream_versions,
    streams_of,
)
from grandbo.events.models import Policy
from grandbo.memory.commands import keys_for
from grandbo.memory.erasing_revisions import checked_revisions, plan_for, redact
from grandbo.memory.forgetting import erase_subject
from grandbo.memory.govern import CURRENT
from grandbo.memory.kept import kept_state
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.subjects import find_subject, is_private, read_subject, refuse_held
from grandbo.memory.traces import count_rows, quoting_streams, remove_traces
from grandbo.projections.runner import append
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.tables import erasures
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, digest_of, new_id, utc_now, utc_text

REASONS: tuple[ErasureReason, ...] = get_args(ErasureReason)

_erasure = sa.bindparam("which", type_=sa.Uuid)
_ASKED = ("tenant_id", "erasure_id", "entry_id", "subject_id", "reason", "keeps_current", "revisions", "still_in")
_ASK = sa.insert(erasures).values(
    {name: sa.bindparam(name, type_=erasures.c[name].type) for name in (*_ASKED, "requested_by", "requested_at")}
)
ERASURE = sa.select(erasures).where(of_tenant(erasures), erasures.c.erasure_id == _erasure)
_OF_SUBJECT = (
    sa.select(erasures)
    .where(of_tenant(erasures), erasures.c.subject_id == sa.bindparam("subject", type_=sa.Uuid))
    .order_by(erasures.c.position.desc().nulls_last(), erasures.c.requested_at)
    .limit(1)
)
ALL_ERASURES = sa.select(erasures).where(of_tenant(erasures)).order_by(erasures.c.requested_at, erasures.c.erasure_id)
_CANCEL = (
    sa.delete(erasures)
    .where(of_tenant(erasures), erasures.c.erasure_id == _erasure, erasures.c.position.is_(None))
    .returning(erasures.c.erasure_id)
)
_DONE = (
    sa.update(erasures)
    .where(of_tenant(erasures), erasures.c.erasure_id == _erasure)
    .values(
        {
            name: sa.bindparam(f"new_{name}", type_=erasures.c[name].type)
            for name in ("confirmed_by", "erased_at", "position", "hash", "outcome", "still_in")
        }
    )
)
# The first stays: two who confirm at once are given the same one.
_CERTIFY = (
    sa.update(erasures)
    .where(of_tenant(erasures), erasures.c.erasure_id == _erasure, erasures.c.certificate.is_(None))
    .values(certificate=sa.bindparam("new_certificate", type_=sa.Text))
)


@dataclass(frozen=True, slots=True)
class Erasure:
    """A request, and once it is confirmed what became of it."""

    erasure_id: UUID
    entry_id: UUID | None
    subject_id: UUID | None
    reason: str
    keeps_current: bool
    # Of an erasure of single revisions; and in which others some of the same words stand, by field.
    revisions: tuple[int, ...] | None
    still_in: list[dict[str, Any]] | None
    requested_by: str
    requested_at: datetime
    confirmed_by: str | None
    erased_at: datetime | None
    position: int | None
    hash: str | None
    outcome: dict[str, Any] | None
    certificate: str | None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Erasure:
        """From a row of the erasures."""
        same = {name: row[name] for name in cls.__slots__ if name not in ("hash", "revisions")}
        named = None if row["revisions"] is None else tuple(row["revisions"])
        return cls(**same, revisions=named, hash=bytes(row["hash"]).hex() if row["hash"] else None)

    def as_dict(self) -> dict[str, Any]:
        """Plain values; `state` is `requested`, `erased` or `certified`."""
        state = "requested" if self.position is None else "erased" if self.certificate is None else "certified"
        return {
            "erasure_id": str(self.erasure_id),
            "entry_id": str(self.entry_id) if self.entry_id else None,
            "subject_id": str(self.subject_id) if self.subject_id else None,
            "state": state,
            "reason": self.reason,
            "keeps_current": self.keeps_current,
            "revisions": None if self.revisions is None else list(self.revisions),
            "still_in": self.still_in,
            "requested_by": self.requested_by,
            "requested_at": utc_text(self.requested_at),
            "confirmed_by": self.confirmed_by,
            "erased_at": utc_text(self.erased_at) if self.erased_at else None,
            "position": self.position,
            "hash": self.hash,
            "outcome": self.outcome,
            "certificate": self.certificate,
        }


def request_erasure(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    entry_id: UUID,
    reason: object,
    *,
    keeps_current: bool = False,
    revisions: object = (),
    clock: Clock = utc_now,
) -> Erasure:
    """
    Ask for an entry to be erased; a second person has to confirm it.

    Args:
        keeps_current: erase its past alone, and keep what it says now.
        revisions: erase these alone; the answer says in which others some of the same words stand.

    Raises:
        Forbidden, NotFound, InvalidInput
        IllegalTransition: one of the revisions is what the entry says now.
    """
    row = _request(tenant_id, principal, reason, clock) | {"entry_id": entry_id, "keeps_current": keeps_current}
    named = checked_revisions(revisions)
    if named and keeps_current:
        raise InvalidInput("revisions: name some, or erase the whole past; not both.", field="revisions")
    with database.transaction("writer", tenant_id) as transaction:
        _visible(transaction, tenant_id, entry_id, policy, principal)
        about = _refuse_held_entry(transaction, tenant_id, entry_id)
        if named:
            planned = plan_for(transaction, database.keys, tenant_id, entry_id, about, named)
            row |= {"revisions": list(named), "still_in": planned.still_in}
        transaction.execute(_ASK, row)
        return _read(transaction, tenant_id, row["erasure_id"])


def forget_subject(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    named: object,
    reason: object,
    *,
    clock: Clock = utc_now,
) -> Erasure:
    """
    Erase all that is held about a subject, in one transaction; or where the policy wants two people for it, ask for
    that. Of one that was erased the same answer again.

    Raises:
        Forbidden, NotFound, InvalidInput, SubjectOnHold
    """
    row = _request(tenant_id, principal, reason, clock)
    subject_id = find_subject(database, tenant_id, named)
    with database.transaction("writer", tenant_id) as transaction:
        head = head_of(transaction.execute(LOCK_HEAD, {"tenant_id": tenant_id}))
        known = transaction.execute(_OF_SUBJECT, {"tenant_id": tenant_id, "subject": subject_id})
        subject = read_subject(transaction, tenant_id, subject_id)
        if known and (known[0]["position"] is not None or policy.people.second_person):
            return Erasure.of_row(known[0])
        refuse_held(subject)
        if not known:
            transaction.execute(_ASK, row | {"subject_id": subject_id})
        asked = Erasure.of_row(known[0]) if known else _read(transaction, tenant_id, row["erasure_id"])
        if policy.people.second_person:
            return asked
        return _erase_subject(transaction, tenant_id, principal, head, asked, clock)


def confirm_erasure(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    erasure_id: UUID,
    *,
    clock: Clock = utc_now,
) -> Erasure:
    """
    Erase, in one transaction. Confirmed twice it is done once.

    Raises:
        Forbidden: not a person, not an admin, or the one who asked.
        NotFound: no such request, or its entry is not the caller's to see.
    """
    _require_person(principal)
    key = {"tenant_id": tenant_id, "which": erasure_id}
    with database.transaction("writer", tenant_id) as transaction:
        head = head_of(transaction.execute(LOCK_HEAD, {"tenant_id": tenant_id}))
        found = transaction.execute(ERASURE, key)
        if not found:
            raise NotFound("There is no such request in this tenant.")
        asked = Erasure.of_row(found[0])
        if asked.position is not None:
            return asked
        if asked.subject_id is not None:
            if asked.requested_by == principal.ref and policy.people.second_person:
                raise Forbidden("A second person has to confirm it; you asked for it.")
            return _erase_subject(transaction, tenant_id, principal, head, asked, clock)
        if asked.requested_by == principal.ref:
            raise Forbidden("A second person has to confirm it; you asked for it.")
        assert asked.entry_id is not None
        current = _visible(transaction, tenant_id, asked.entry_id, policy, principal)
        about = _refuse_held_entry(transaction, tenant_id, asked.entry_id)
        context = CommandContext(tenant_id, principal, erasure_id, digest_of([str(erasure_id)]))
        if asked.revisions:
            planned = plan_for(transaction, database.keys, tenant_id, asked.entry_id, about, asked.revisions)
            what = (asked.entry_id, about, planned, _said(asked))
            erased, outcome = redact(transaction, database.keys, context, head, *what, clock)
            return _done(transaction, tenant_id, erasure_id, principal, erased, outcome, planned.still_in)
        streams = [asked.entry_id, *quoting_streams(transaction, tenant_id, [asked.entry_id])]
        decided = _decide(asked, asked.entry_id, current, streams, about)
        versions = stream_versions(transaction, tenant_id, [asked.entry_id])
        keys = keys_for(transaction, database.keys, tenant_id, decided)
        sealed = seal_events(context, head, decided, versions, clock(), keys)
        erased = sealed[0]
        outcome = count_rows(transaction, tenant_id, streams)
        append(transaction, sealed)
        at = erased.header.recorded_at
        told, outcome["bodies_removed"] = remove_traces(transaction, tenant_id, streams, erased.position, at)
        outcome["rows_removed"] |= told
        return _done(transaction, tenant_id, erasure_id, principal, erased, outcome)


def _erase_subject(
    transaction: Transaction, tenant_id: UUID, principal: Principal, head: Head, asked: Erasure, clock: Clock
) -> Erasure:
    assert asked.subject_id is not None
    subject = read_subject(transaction, tenant_id, asked.subject_id)
    refuse_held(subject)
    context = CommandContext(tenant_id, principal, asked.erasure_id, digest_of([str(asked.erasure_id)]))
    erased, outcome = erase_subject(transaction, context, head, subject, _said(asked), clock)
    outcome["kind"] = subject.kind
    outcome["before"] = {"position": head.position, "hash": head.hash.hex()}
    return _done(transaction, tenant_id, asked.erasure_id, principal, erased, outcome)


def _done(
    transaction: Transaction,
    tenant_id: UUID,
    erasure_id: UUID,
    principal: Principal,
    erased: RecordedEvent,
    outcome: dict[str, Any],
    still_in: list[dict[str, Any]] | None = None,
) -> Erasure:
    values = {
        "new_confirmed_by": principal.ref,
        "new_erased_at": erased.header.recorded_at,
        "new_position": erased.position,
        "new_hash": erased.hash,
        "new_outcome": outcome,
        "new_still_in": still_in,
    }
    transaction.execute(_DONE, {"tenant_id": tenant_id, "which": erasure_id, **values})
    return _read(transaction, tenant_id, erasure_id)


def cancel_erasure(database: Database, tenant_id: UUID, principal: Principal, erasure_id: UUID) -> None:
    """Take a request back that was not confirmed yet. Raises `NotFound`."""
    _require_person(principal)
    with database.transaction("writer", tenant_id) as transaction:
        if not transaction.execute(_CANCEL, {"tenant_id": tenant_id, "which": erasure_id}):
            raise NotFound("There is no such request that still waits in this tenant.")


def list_erasures(database: Database, tenant_id: UUID, principal: Principal) -> list[Erasure]:
    """All requests and what became of them, oldest first."""
    require(principal, "audit")
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        return [Erasure.of_row(row) for row in transaction.execute(ALL_ERASURES, {"tenant_id": tenant_id})]


def keep_certificate(database: Database, tenant_id: UUID, erasure_id: UUID, certificate: str) -> None:
    """Store the certificate beside its erasure, unless it has one."""
    with database.transaction("writer", tenant_id) as transaction:
        transaction.execute(_CERTIFY, {"tenant_id": tenant_id, "which": erasure_id, "new_certificate": certificate})


def _require_person(principal: Principal) -> None:
    require(principal, "administer")
    if principal.type != "human":
        raise Forbidden("Erasing takes two people; this credential is not a person's.")


def _request(tenant_id: UUID, principal: Principal, reason: object, clock: Clock) -> dict[str, Any]:
    _require_person(principal)
    chosen = next((known for known in REASONS if known == reason), None)
    if chosen is None:
        raise InvalidInput(f"reason: it must be one of {', '.join(REASONS)}.", field="reason")
    return {
        "tenant_id": tenant_id,
        "erasure_id": new_id(),
        "entry_id": None,
        "subject_id": None,
        "reason": chosen,
        "keeps_current": False,
        "revisions": None,
        "still_in": None,
        "requested_by": principal.ref,
        "requested_at": clock(),
    }


def _read(transaction: Transaction, tenant_id: UUID, erasure_id: UUID) -> Erasure:
    return Erasure.of_row(transaction.execute(ERASURE, {"tenant_id": tenant_id, "which": erasure_id})[0])


def _visible(transaction: Transaction, tenant_id: UUID, entry_id: UUID, policy: Policy, principal: Principal) -> Row:
    """The entry's row. What is remembered about a subject may be erased by who may not read it."""
    rows = transaction.execute(CURRENT, {"tenant_id": tenant_id, "entry_id": entry_id})
    if not rows or not (is_private(rows[0]["visibility"]) or rows[0]["visibility"] in visible_tiers(policy, principal)):
        raise NotFound
    return rows[0]


def _refuse_held_entry(transaction: Transaction, tenant_id: UUID, entry_id: UUID) -> UUID | None:
    """Whom the entry is about, if it is about somebody. Raises `SubjectOnHold`."""
    about = streams_of(transaction, tenant_id, [entry_id])[1].get(entry_id)
    if about is not None:
        refuse_held(read_subject(transaction, tenant_id, about))
    return about


def _said(asked: Erasure) -> dict[str, Any]:
    """What an erasure's event says besides what goes."""
    return {
        "reason": asked.reason,
        "requested_by": asked.requested_by,
        "requested_at": utc_text(asked.requested_at),
    }


def _decide(asked: Erasure, entry_id: UUID, current: Row, streams: list[UUID], about: UUID | None) -> list[Event]:
    erased = EntryErased(streams=tuple(map(str, streams)), positions=(), **_said(asked))
    kept = [Event(entry_id, kept_state(current), subject_id=about)] if asked.keeps_current else []
    return [Event(entry_id, erased), *kept]

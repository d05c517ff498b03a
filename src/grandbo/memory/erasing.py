"""
Erasing an entry: asked for by one person, confirmed by another, and then gone from the log and from every projection.

One transaction does all of it: the event that says so, the rows, the receipts' references, and the bodies in the log.
Before it nothing has happened; after it everything has. What follows, the erasure list and the certificate, is made
from what is stored, and made again where it is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import Forbidden, InvalidInput, NotFound
from grandbo.events.erasures import EntryErased, ErasureReason
from grandbo.events.log import (
    LOCK_HEAD,
    CommandContext,
    Event,
    append_steps,
    head_of,
    seal_events,
    stream_versions,
)
from grandbo.events.models import Policy
from grandbo.memory.erasing_deliveries import forget_deliveries
from grandbo.memory.govern import CURRENT
from grandbo.memory.kept import kept_state
from grandbo.memory.policy import require, visible_tiers
from grandbo.projections.erasures import ERASING
from grandbo.projections.runner import steps_for
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.erasing import KEEP_RECEIPTS_OUT, REMOVE_BODIES
from grandbo.storage.tables import (
    candidates,
    embedding_attempts,
    erasures,
    events,
    feedback,
    receipt_entries,
    receipts,
)
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, digest_of, new_id, utc_now, utc_text

REASONS: tuple[ErasureReason, ...] = get_args(ErasureReason)

_entry = sa.bindparam("entry_id", type_=sa.Uuid)
_erasure = sa.bindparam("which", type_=sa.Uuid)
_ids = sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid)))
_ASK = sa.insert(erasures).values(
    {name: sa.bindparam(name) for name in ("tenant_id", "erasure_id", "entry_id", "reason", "keeps_current")}
    | {name: sa.bindparam(name) for name in ("requested_by", "requested_at")}
)
ERASURE = sa.select(erasures).where(of_tenant(erasures), erasures.c.erasure_id == _erasure)
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
            for name in ("confirmed_by", "erased_at", "position", "hash", "outcome")
        }
    )
)
# The first stays: two who confirm at once are given the same one.
_CERTIFY = (
    sa.update(erasures)
    .where(of_tenant(erasures), erasures.c.erasure_id == _erasure, erasures.c.certificate.is_(None))
    .values(certificate=sa.bindparam("new_certificate", type_=sa.Text))
)
# Every stream that quotes the entry: what was proposed for it or became it, and what was said of it.
_QUOTING = (
    sa.select(candidates.c.candidate_id.label("stream"))
    .where(
        of_tenant(candidates),
        sa.or_(candidates.c.entry_id == _entry, candidates.c.into_entry == _entry, candidates.c.disputes == _entry),
    )
    .union(sa.select(feedback.c.feedback_id).where(of_tenant(feedback), feedback.c.entry_id == _entry))
)
_POSITIONS = (
    sa.select(events.c.position)
    .where(of_tenant(events), events.c.stream_id == _ids, events.c.body.is_not(None))
    .order_by(events.c.position)
)
_SERVED = sa.select(receipts.c.receipt_id, receipts.c.matches).where(
    of_tenant(receipts),
    receipts.c.receipt_id.in_(
        sa.select(receipt_entries.c.receipt_id).where(of_tenant(receipt_entries), receipt_entries.c.entry_id == _entry)
    ),
)
_UNTELL = (
    sa.update(receipts)
    .where(of_tenant(receipts), receipts.c.receipt_id == sa.bindparam("receipt", type_=sa.Uuid))
    .values(matches=sa.bindparam("new_matches", type_=pg.JSONB))
)
_UNLIST = sa.delete(receipt_entries).where(of_tenant(receipt_entries), receipt_entries.c.entry_id == _entry)
_FORGET_ATTEMPTS = sa.delete(embedding_attempts).where(
    of_tenant(embedding_attempts), embedding_attempts.c.entry_id == _entry
)


@dataclass(frozen=True, slots=True)
class Erasure:
    """A request, and once it is confirmed what became of it."""

    erasure_id: UUID
    entry_id: UUID
    reason: str
    keeps_current: bool
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
        same = {name: row[name] for name in cls.__slots__ if name != "hash"}
        return cls(**same, hash=bytes(row["hash"]).hex() if row["hash"] else None)

    def as_dict(self) -> dict[str, Any]:
        """Plain values; `state` is `requested`, `erased` or `certified`."""
        state = "requested" if self.position is None else "erased" if self.certificate is None else "certified"
        return {
            "erasure_id": str(self.erasure_id),
            "entry_id": str(self.entry_id),
            "state": state,
            "reason": self.reason,
            "keeps_current": self.keeps_current,
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
    clock: Clock = utc_now,
) -> Erasure:
    """
    Ask for an entry to be erased; a second person has to confirm it.

    Args:
        keeps_current: erase its past alone, and keep what it says now.

    Raises:
        Forbidden, NotFound, InvalidInput
    """
    _require_person(principal)
    chosen = next((known for known in REASONS if known == reason), None)
    if chosen is None:
        raise InvalidInput(f"reason: it must be one of {', '.join(REASONS)}.", field="reason")
    row = {
        "tenant_id": tenant_id,
        "erasure_id": new_id(),
        "entry_id": entry_id,
        "reason": chosen,
        "keeps_current": keeps_current,
        "requested_by": principal.ref,
        "requested_at": clock(),
    }
    with database.transaction("writer", tenant_id) as transaction:
        _visible(transaction, tenant_id, entry_id, policy, principal)
        transaction.execute(_ASK, row)
        return Erasure.of_row(transaction.execute(ERASURE, {"tenant_id": tenant_id, "which": row["erasure_id"]})[0])


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
        if asked.requested_by == principal.ref:
            raise Forbidden("A second person has to confirm it; you asked for it.")
        current = _visible(transaction, tenant_id, asked.entry_id, policy, principal)
        streams = _streams(transaction, tenant_id, asked.entry_id)
        decided = _decide(asked, current, streams)
        context = CommandContext(tenant_id, principal, erasure_id, digest_of([str(erasure_id)]))
        versions = stream_versions(transaction, tenant_id, [asked.entry_id])
        sealed = seal_events(context, head, decided, versions, clock())
        erased = sealed[0]
        outcome = _count(transaction, tenant_id, streams)
        transaction.batch([*append_steps(sealed), *steps_for(sealed)])
        at = erased.header.recorded_at
        told, outcome["bodies_removed"] = remove_traces(transaction, tenant_id, streams, erased.position, at)
        outcome["rows_removed"] |= told
        values = {
            "new_confirmed_by": principal.ref,
            "new_erased_at": at,
            "new_position": erased.position,
            "new_hash": erased.hash,
            "new_outcome": outcome,
        }
        transaction.execute(_DONE, {**key, **values})
        return Erasure.of_row(transaction.execute(ERASURE, key)[0])


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


def _visible(transaction: Transaction, tenant_id: UUID, entry_id: UUID, policy: Policy, principal: Principal) -> Row:
    rows = transaction.execute(CURRENT, {"tenant_id": tenant_id, "entry_id": entry_id})
    if not rows or rows[0]["visibility"] not in visible_tiers(policy, principal):
        raise NotFound
    return rows[0]


def _streams(transaction: Transaction, tenant_id: UUID, entry_id: UUID) -> list[UUID]:
    rows = transaction.execute(_QUOTING, {"tenant_id": tenant_id, "entry_id": entry_id})
    return [entry_id, *sorted(row["stream"] for row in rows)]


def _decide(asked: Erasure, current: Row, streams: list[UUID]) -> list[Event]:
    erased = EntryErased(
        reason=asked.reason,  # type: ignore[arg-type]  # one of the reasons: the table holds no other
        requested_by=asked.requested_by,
        requested_at=utc_text(asked.requested_at),
        streams=tuple(map(str, streams)),
    )
    kept = [Event(asked.entry_id, kept_state(current))] if asked.keeps_current else []
    return [Event(asked.entry_id, erased), *kept]


def _count(transaction: Transaction, tenant_id: UUID, streams: list[UUID]) -> dict[str, Any]:
    """What is about to go, store by store, and the positions whose bodies will."""
    params = {"tenant_id": tenant_id, "ids": streams}
    rows = {name: transaction.execute(_count_of(name), params)[0]["n"] for name in ERASING}
    positions = [row["position"] for row in transaction.execute(_POSITIONS, params)]
    return {"streams": [str(stream) for stream in streams], "positions": positions, "rows_removed": rows}


_COUNTS = {
    name: sa.select(sa.func.count().label("n")).select_from(statement.table).where(statement.whereclause)
    for name, statement in ERASING.items()
    if statement.whereclause is not None
}


def _count_of(name: str) -> sa.Select[Any]:
    return _COUNTS[name]


def remove_traces(
    transaction: Transaction, tenant_id: UUID, streams: Sequence[UUID], position: int, at: datetime
) -> tuple[dict[str, int], int]:
    """
    Take out of receipts, deliveries and the log what the erasure at this position names.

    Args:
        streams: those that it names; the first is the entry's.

    Gives how many rows of which store told of it, and how many bodies there were.
    """
    transaction.execute(KEEP_RECEIPTS_OUT, {"tenant_id": tenant_id})
    told = {"receipts": _untell(transaction, tenant_id, streams[0])}
    told |= forget_deliveries(transaction, tenant_id, streams, at)
    transaction.assume("keyholder")
    removed: int = transaction.execute(REMOVE_BODIES, {"position": position})[0]["removed"]
    transaction.assume("writer")
    return told, removed


def _untell(transaction: Transaction, tenant_id: UUID, entry_id: UUID) -> int:
    """A receipt keeps that something was served at a place, and no longer what; gives how many receipts did."""
    key = {"tenant_id": tenant_id, "entry_id": entry_id}
    served = transaction.execute(_SERVED, key)
    gone = str(entry_id)
    steps = [
        (
            _UNTELL,
            {
                "tenant_id": tenant_id,
                "receipt": row["receipt_id"],
                "new_matches": [{"erased": True} if m.get("entry_id") == gone else m for m in row["matches"]],
            },
        )
        for row in served
    ]
    transaction.batch([*steps, (_UNLIST, key), (_FORGET_ATTEMPTS, key)])
    return len(served)

"""What an erasure takes out besides projections: of receipts, deliveries, work that waits, and the log itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.memory.erasing_deliveries import forget_deliveries
from grandbo.projections.erasures import ERASING
from grandbo.storage.compiling import Executable
from grandbo.storage.database import Step, Transaction
from grandbo.storage.erasing import KEEP_RECEIPTS_OUT, REMOVE_BODIES, REMOVE_BODIES_AT
from grandbo.storage.tables import (
    candidates,
    contradiction_checks,
    embedding_attempts,
    entries,
    events,
    feedback,
    receipt_entries,
    receipts,
)
from grandbo.storage.tenancy import of_tenant

_ids = sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid)))
_entry = sa.bindparam("entry_id", type_=sa.Uuid)
_revisions = sa.any_(sa.bindparam("revisions", type_=pg.ARRAY(sa.Integer)))
# Every stream that quotes one of the entries: what was proposed for it or became it, and what was said of it.
_QUOTING = (
    sa.select(candidates.c.candidate_id.label("stream"))
    .where(
        of_tenant(candidates),
        sa.or_(candidates.c.entry_id == _ids, candidates.c.into_entry == _ids, candidates.c.disputes == _ids),
    )
    .union(sa.select(feedback.c.feedback_id).where(of_tenant(feedback), feedback.c.entry_id == _ids))
)
_POSITIONS = (
    sa.select(events.c.position)
    .where(
        of_tenant(events),
        events.c.body.is_not(None),
        sa.or_(events.c.stream_id == _ids, events.c.subject_id == sa.bindparam("about", type_=sa.Uuid)),
        events.c.event_type.not_like(r"%\_erased"),
    )
    .order_by(events.c.position)
)
# What was said of these revisions of an entry, and what was proposed as the text of one of them.
_QUOTING_REVISIONS = (
    sa.select(candidates.c.candidate_id.label("stream"))
    .where(
        of_tenant(candidates),
        sa.or_(candidates.c.entry_id == _entry, candidates.c.into_entry == _entry, candidates.c.disputes == _entry),
        sa.or_(
            candidates.c.content["text_digest"].astext == sa.any_(sa.bindparam("digests", type_=pg.ARRAY(sa.Text))),
            sa.and_(candidates.c.entry_id == _entry, candidates.c.entry_revision == _revisions),
        ),
    )
    .union(
        sa.select(feedback.c.feedback_id).where(
            of_tenant(feedback), feedback.c.entry_id == _entry, feedback.c.revision == _revisions
        )
    )
)
_SERVED = sa.select(receipts.c.receipt_id, receipts.c.matches).where(
    of_tenant(receipts),
    receipts.c.receipt_id.in_(
        sa.select(receipt_entries.c.receipt_id).where(of_tenant(receipt_entries), receipt_entries.c.entry_id == _ids)
    ),
)
_UNTELL = (
    sa.update(receipts)
    .where(of_tenant(receipts), receipts.c.receipt_id == sa.bindparam("receipt", type_=sa.Uuid))
    .values(matches=sa.bindparam("new_matches", type_=pg.JSONB))
)
_UNLIST = sa.delete(receipt_entries).where(of_tenant(receipt_entries), receipt_entries.c.entry_id == _ids)
_UNLIST_REVISIONS = sa.delete(receipt_entries).where(
    of_tenant(receipt_entries), receipt_entries.c.entry_id == _entry, receipt_entries.c.revision == _revisions
)
# Work that waits for an entry, by store.
_WAITING: dict[str, sa.Delete] = {
    "embedding_attempts": sa.delete(embedding_attempts).where(
        of_tenant(embedding_attempts), embedding_attempts.c.entry_id == _ids
    ),
    "contradiction_checks": sa.delete(contradiction_checks).where(
        of_tenant(contradiction_checks), contradiction_checks.c.entry_id == _ids
    ),
}
# What is noted of them has a digest of the text that was tried: it may be that of a revision which is gone.
_FORGET_ATTEMPTS = sa.delete(embedding_attempts).where(
    of_tenant(embedding_attempts),
    embedding_attempts.c.entry_id == _entry,
    sa.not_(
        sa.exists(
            sa.select(sa.literal_column("1")).where(
                of_tenant(entries),
                entries.c.entry_id == embedding_attempts.c.entry_id,
                entries.c.text_digest == embedding_attempts.c.text_digest,
            )
        )
    ),
)
_CANCEL: dict[str, Executable] = {
    name: statement.returning(sa.literal_column("1").label("one")) for name, statement in _WAITING.items()
}
_COUNTS = {
    name: sa.select(sa.func.count().label("n")).select_from(statement.table).where(statement.whereclause)
    for name, statement in ERASING.items()
    if statement.whereclause is not None
}


def quoting_streams(transaction: Transaction, tenant_id: UUID, entries: Sequence[UUID]) -> list[UUID]:
    """The candidates and the feedback that quote these entries."""
    rows = transaction.execute(_QUOTING, {"tenant_id": tenant_id, "ids": list(entries)})
    return sorted(row["stream"] for row in rows)


def count_rows(
    transaction: Transaction, tenant_id: UUID, streams: Sequence[UUID], *, about: UUID | None = None
) -> dict[str, Any]:
    """What is about to go, store by store, and at which positions bodies will: of these streams, or about a subject."""
    params = {"tenant_id": tenant_id, "ids": list(streams), "about": about}
    rows = {name: transaction.execute(statement, params)[0]["n"] for name, statement in _COUNTS.items()}
    positions = [row["position"] for row in transaction.execute(_POSITIONS, params)]
    return {"streams": [str(stream) for stream in streams], "positions": positions, "rows_removed": rows}


def quoting_revisions(
    transaction: Transaction, tenant_id: UUID, entry_id: UUID, revisions: Sequence[int], digests: Collection[str]
) -> list[UUID]:
    """The candidates that proposed these revisions or hold their texts, and the feedback on them."""
    params = {"tenant_id": tenant_id, "entry_id": entry_id, "revisions": list(revisions), "digests": sorted(digests)}
    return sorted(row["stream"] for row in transaction.execute(_QUOTING_REVISIONS, params))


def remove_traces(
    transaction: Transaction,
    tenant_id: UUID,
    streams: Sequence[UUID],
    position: int,
    at: datetime,
    *,
    about: UUID | None = None,
) -> tuple[dict[str, int], int]:
    """
    Take out of receipts, deliveries, waiting work and the log what the erasure at this position names.

    Args:
        about: the subject that is erased, whose deliveries go too.

    Gives how many rows of which store told of it, and how many bodies there were.
    """
    transaction.execute(KEEP_RECEIPTS_OUT, {"tenant_id": tenant_id})
    key = {"tenant_id": tenant_id, "ids": list(streams)}
    gone = {str(stream) for stream in streams}
    told = {"receipts": _untell(transaction, key, _UNLIST, lambda match: match["entry_id"] in gone)}
    told |= _forget_work(transaction, tenant_id, streams, at, about)
    removed = transaction.execute_as("keyholder", REMOVE_BODIES, {"position": position}, back="writer")
    return told, int(removed[0]["removed"])


def remove_revision_traces(
    transaction: Transaction,
    tenant_id: UUID,
    entry_id: UUID,
    revisions: Sequence[int],
    streams: Sequence[UUID],
    position: int,
    at: datetime,
) -> tuple[dict[str, int], int]:
    """
    The same for single revisions of an entry that stays.

    Args:
        streams: those whose deliveries and waiting work go; the entry's own where it is from a delivery.
    """
    transaction.execute(KEEP_RECEIPTS_OUT, {"tenant_id": tenant_id})
    key = {"tenant_id": tenant_id, "ids": [entry_id], "entry_id": entry_id, "revisions": list(revisions)}

    def is_gone(match: dict[str, Any]) -> bool:
        return match["entry_id"] == str(entry_id) and match["revision"] in revisions

    told = {"receipts": _untell(transaction, key, _UNLIST_REVISIONS, is_gone)}
    told |= _forget_work(transaction, tenant_id, streams, at)
    transaction.execute(_FORGET_ATTEMPTS, key)
    at_position = {"position": position}
    whole = transaction.execute_as("keyholder", REMOVE_BODIES, at_position, back="writer")
    single = transaction.execute_as("keyholder", REMOVE_BODIES_AT, at_position, back="writer")
    return told, int(whole[0]["removed"]) + int(single[0]["removed"])


def _forget_work(
    transaction: Transaction, tenant_id: UUID, streams: Sequence[UUID], at: datetime, about: UUID | None = None
) -> dict[str, int]:
    """What tools delivered, and what waits."""
    told = forget_deliveries(transaction, tenant_id, streams, at, about)
    key = {"tenant_id": tenant_id, "ids": list(streams)}
    cancelled = transaction.batch([(statement, key) for statement in _CANCEL.values()])
    return told | {name: len(rows) for name, rows in zip(_CANCEL, cancelled, strict=True)}


def _untell(
    transaction: Transaction, key: dict[str, Any], unlist: sa.Delete, is_gone: Callable[[dict[str, Any]], bool]
) -> int:
    """A receipt keeps that something was served at a place, and no longer what; gives how many receipts did."""
    steps: list[Step] = []
    for row in transaction.execute(_SERVED, key):
        matches = [{"erased": True} if "entry_id" in m and is_gone(m) else m for m in row["matches"]]
        if matches != row["matches"]:
            new = {"tenant_id": key["tenant_id"], "receipt": row["receipt_id"], "new_matches": matches}
            steps.append((_UNTELL, new))
    transaction.batch([*steps, (unlist, key)])
    return len(steps)

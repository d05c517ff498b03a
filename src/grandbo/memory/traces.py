"""What an erasure takes out besides projections: of receipts, deliveries, work that waits, and the log itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.memory.erasing_deliveries import forget_deliveries
from grandbo.projections.erasures import ERASING
from grandbo.storage.compiling import Executable
from grandbo.storage.database import Transaction
from grandbo.storage.erasing import KEEP_RECEIPTS_OUT, REMOVE_BODIES
from grandbo.storage.tables import (
    candidates,
    contradiction_checks,
    embedding_attempts,
    events,
    feedback,
    receipt_entries,
    receipts,
)
from grandbo.storage.tenancy import of_tenant

_ids = sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid)))
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
# Work that waits for an entry, by store.
_WAITING: dict[str, sa.Delete] = {
    "embedding_attempts": sa.delete(embedding_attempts).where(
        of_tenant(embedding_attempts), embedding_attempts.c.entry_id == _ids
    ),
    "contradiction_checks": sa.delete(contradiction_checks).where(
        of_tenant(contradiction_checks), contradiction_checks.c.entry_id == _ids
    ),
}
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


def remove_traces(
    transaction: Transaction, tenant_id: UUID, streams: Sequence[UUID], position: int, at: datetime
) -> tuple[dict[str, int], int]:
    """
    Take out of receipts, deliveries, waiting work and the log what the erasure at this position names.

    Gives how many rows of which store told of it, and how many bodies there were.
    """
    transaction.execute(KEEP_RECEIPTS_OUT, {"tenant_id": tenant_id})
    told = {"receipts": _untell(transaction, tenant_id, streams)}
    told |= forget_deliveries(transaction, tenant_id, streams, at)
    key = {"tenant_id": tenant_id, "ids": list(streams)}
    cancelled = transaction.batch([(statement, key) for statement in _CANCEL.values()])
    told |= {name: len(rows) for name, rows in zip(_CANCEL, cancelled, strict=True)}
    removed = transaction.execute_as("keyholder", REMOVE_BODIES, {"position": position}, back="writer")
    return told, int(removed[0]["removed"])


def _untell(transaction: Transaction, tenant_id: UUID, streams: Sequence[UUID]) -> int:
    """A receipt keeps that something was served at a place, and no longer what; gives how many receipts did."""
    key = {"tenant_id": tenant_id, "ids": list(streams)}
    served = transaction.execute(_SERVED, key)
    gone = {str(stream) for stream in streams}
    steps = [
        (
            _UNTELL,
            {
                "tenant_id": tenant_id,
                "receipt": row["receipt_id"],
                "new_matches": [{"erased": True} if m.get("entry_id") in gone else m for m in row["matches"]],
            },
        )
        for row in served
    ]
    transaction.batch([*steps, (_UNLIST, key)])
    return len(served)

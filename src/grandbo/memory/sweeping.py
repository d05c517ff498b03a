"""
The sweep: puts on the record that entries have passed their expiry.

A record and nothing else: whether an entry has expired is decided by its `expires_at` wherever it is asked, so that no
answer depends on the sweep having run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from grandbo.events.log import CommandContext, Event
from grandbo.events.models import EntryExpired
from grandbo.memory.commands import Appended, Command, run_commands
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import entries, events, subjects
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, derived_id, digest_of, utc_now, utc_text

SWEEP = Principal("system", derived_id("system", "expiry-sweep"), "expiry-sweep")
BATCH = 100

_is_due = sa.and_(
    of_tenant(entries),
    entries.c.status == "published",
    entries.c.expires_at <= sa.bindparam("now", type_=sa.DateTime(timezone=True)),
    entries.c.expiry_noted.is_distinct_from(entries.c.expires_at),
    # What is about a subject on hold does not expire until it is released.
    entries.c.entry_id.not_in(
        sa.select(events.c.stream_id)
        .join(
            subjects, sa.and_(subjects.c.tenant_id == events.c.tenant_id, subjects.c.subject_id == events.c.subject_id)
        )
        .where(of_tenant(events), of_tenant(subjects), subjects.c.held_at.is_not(None))
    ),
)
_columns = (entries.c.entry_id, entries.c.revision, entries.c.expires_at)
_PASSED = sa.select(*_columns).where(_is_due).order_by(entries.c.expires_at, entries.c.entry_id).limit(BATCH)
_STILL = sa.select(*_columns).where(_is_due, entries.c.entry_id == sa.bindparam("entry_id", type_=sa.Uuid))


def sweep(database: Database, tenant_id: UUID, *, clock: Clock = utc_now) -> int:
    """Note up to a hundred expiries; gives how many were. Two at once note each once."""
    now = clock()
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_PASSED, {"tenant_id": tenant_id, "now": now})
    if not rows:
        return 0
    outcomes = run_commands(database, tenant_id, [_command(tenant_id, row, now) for row in rows], clock=clock)
    return sum(isinstance(item, Appended) and bool(item.events) and not item.replayed for item in outcomes)


def _command(tenant_id: UUID, row: Row, now: datetime) -> Command:
    entry_id: UUID = row["entry_id"]

    def decide(found: list[list[Row]], _now: datetime) -> Sequence[Event]:
        body = [EntryExpired(revision=item["revision"], expires_at=utc_text(item["expires_at"])) for item in found[0]]
        return [Event(entry_id, item) for item in body]

    said = ["expired", str(entry_id), str(row["revision"]), utc_text(row["expires_at"])]
    context = CommandContext(tenant_id, SWEEP, derived_id(*said), digest_of(said))
    return Command(context, [(_STILL, {"tenant_id": tenant_id, "entry_id": entry_id, "now": now})], decide)

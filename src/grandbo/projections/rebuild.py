"""
Replay: repair the projections of a tenant from its log, or prove that they need no repair.

Both run the very same projectors as an append does. A replay never skips: the first event that cannot be read or
projected ends it, and the old rows stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.log import LOCK_HEAD, READ_HEAD, head_of, read_events
from grandbo.projections.runner import steps_for
from grandbo.storage.database import Database, Transaction
from grandbo.storage.tables import PROJECTIONS, SCRATCH_SCHEMA
from grandbo.storage.tenancy import TENANT, of_tenant

BATCH = 100
SHOWN_DIFFERENCES = 20

Progress = Callable[[int], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that a replay makes otherwise: in the live table only, or in the replay only."""

    table: str
    side: str
    key: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"table": self.table, "side": self.side, "key": self.key}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a replay found: the digest of the live projections, and where a replay differs from them."""

    tenant_id: UUID
    position: int
    digest: str
    differences: list[Difference]

    @property
    def ok(self) -> bool:
        """Rebuild equals live."""
        return not self.differences


def rebuild(database: Database, tenant_id: UUID, *, progress: Progress | None = None) -> int:
    """
    Delete the tenant's projection rows and replay its log, in one transaction; give the number of events.

    Readers keep the old rows until the commit; writers of this tenant wait for it.
    """
    with database.transaction("writer", tenant_id) as transaction:
        head_of(transaction.execute(LOCK_HEAD, {"tenant_id": tenant_id}))
        transaction.assume("projector")
        for table in reversed(PROJECTIONS):
            transaction.execute(sa.delete(table).where(of_tenant(table)), {"tenant_id": tenant_id})
        return _replay(transaction, transaction, tenant_id, progress)


def check(database: Database, tenant_id: UUID, *, progress: Progress | None = None) -> CheckResult:
    """
    Replay into the scratch schema, compare row by row with the live tables of the same snapshot, leave nothing behind.

    Nothing is locked: the snapshot fixes both sides, so writers go on.
    """
    with database.transaction("projector", tenant_id, snapshot=True) as transaction:
        head = head_of(transaction.execute(READ_HEAD, {"tenant_id": tenant_id}))
        scratch = transaction.at_schema(SCRATCH_SCHEMA)
        transaction.fix_output()
        _replay(transaction, scratch, tenant_id, progress)
        digests = {table.name: _digest(transaction, table, tenant_id) for table in PROJECTIONS}
        differences: list[Difference] = []
        for table in PROJECTIONS:
            if _digest(scratch, table, tenant_id) != digests[table.name]:
                differences += _differences(transaction, scratch, table, tenant_id)
        transaction.rollback()
    whole = hashlib.sha256("\n".join(f"{name} {digest}" for name, digest in digests.items()).encode()).hexdigest()
    return CheckResult(tenant_id, head.position, whole, differences)


def _replay(log: Transaction, target: Transaction, tenant_id: UUID, progress: Progress | None) -> int:
    count = 0
    for events in _batches(read_events(log, tenant_id), BATCH):
        target.batch(steps_for(events))
        count += len(events)
        if progress:
            progress(count)
    return count


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _row_digest(table: sa.Table) -> sa.ColumnElement[Any]:
    row_text = sa.cast(table.table_valued(), sa.Text)
    return sa.func.sha256(sa.func.convert_to(row_text, "UTF8"), type_=sa.LargeBinary)


def _key_order(table: sa.Table) -> list[sa.ColumnElement[Any]]:
    # COLLATE "C": the digest of a tenant must not depend on the server's collation.
    return [
        sa.collate(column, "C") if isinstance(column.type, sa.Text) else column for column in table.primary_key.columns
    ]


@lru_cache
def _digest_query(table: sa.Table) -> sa.Select[Any]:
    nothing: sa.ColumnElement[bytes] = sa.literal_column("''::bytea")
    in_order = pg.aggregate_order_by(nothing, *_key_order(table))
    joined = sa.func.string_agg(_row_digest(table), in_order, type_=sa.LargeBinary)
    digest = sa.func.encode(sa.func.sha256(sa.func.coalesce(joined, nothing)), "hex")
    return sa.select(digest.label("digest")).where(of_tenant(table))


@lru_cache
def _rows_query(table: sa.Table) -> sa.Select[Any]:
    key: list[Any] = [sa.cast(column, sa.Text).label(column.name) for column in table.primary_key.columns]
    return sa.select(*key, _row_digest(table).label("row_digest")).where(of_tenant(table))


def _digest(transaction: Transaction, table: sa.Table, tenant_id: UUID) -> str:
    return str(transaction.execute(_digest_query(table), {TENANT.key: tenant_id})[0]["digest"])


def _differences(live: Transaction, scratch: Transaction, table: sa.Table, tenant_id: UUID) -> list[Difference]:
    here, replayed = (_keyed_rows(side, table, tenant_id) for side in (live, scratch))
    only = [("live", key) for key, _ in sorted(here - replayed)] + [
        ("replay", key) for key, _ in sorted(replayed - here)
    ]
    names = [column.name for column in table.primary_key.columns]
    return [Difference(table.name, side, dict(zip(names, key, strict=True))) for side, key in only[:SHOWN_DIFFERENCES]]


def _keyed_rows(transaction: Transaction, table: sa.Table, tenant_id: UUID) -> set[tuple[tuple[str, ...], bytes]]:
    rows = transaction.execute(_rows_query(table), {TENANT.key: tenant_id})
    names = [column.name for column in table.primary_key.columns]
    return {(tuple(row[name] for name in names), row["row_digest"]) for row in rows}

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

from grandbo.errors import MomentUnknown
from grandbo.events.log import LAST_POSITION, LOCK_HEAD, READ_HEAD, head_of, read_rows, recorded_event
from grandbo.events.sealing import Keys
from grandbo.projections import erasures
from grandbo.projections.embeddings import SCOPE
from grandbo.projections.gathering import gathered
from grandbo.projections.redactions import as_left, what_is_left
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.subject_keys import open_keys
from grandbo.storage.tables import PROJECTIONS, SCRATCH_SCHEMA, embeddings, events
from grandbo.storage.tenancy import TENANT, of_tenant

# Events in one round trip. More are hardly faster, and their vectors are all held at once.
BATCH = 500
SHOWN_DIFFERENCES = 20

# These are in every digest. A table that came later counts once it holds a row, so that the digest of a log that has
# none of its events stays what it was signed as.
_FIRST_TABLES = frozenset(
    f"org_memory_{name}" for name in ("policies", "entries", "revisions", "terms", "embeddings", "links")
)
_NO_ROWS = hashlib.sha256(b"").hexdigest()
# What a temporal row carries of its entry as it is now: no live row says what that was at an earlier position.
_CARRIED: dict[sa.Table, tuple[str, ...]] = {embeddings: SCOPE}
# What follows from another column of its row. It is compared and is in no digest: one that was signed before there was
# such a column stays what it was signed as.
_FOLLOWING: dict[sa.Table, tuple[str, ...]] = {embeddings: ("signature",)}

_ERASED_SINCE = sa.select(events).where(
    of_tenant(events),
    events.c.position > sa.bindparam("position", type_=sa.BigInteger),
    erasures.is_reaching,
)

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
    """
    What a replay found: the digest of the projections at a position, and where a replay differs from the live ones.

    Attributes:
        signed: the digest that the checkpoint of this position states, where there is one and it was asked for.
    """

    tenant_id: UUID
    position: int
    digest: str
    differences: list[Difference]
    signed: str | None = None

    @property
    def ok(self) -> bool:
        """Rebuild equals live, and what was signed."""
        return not self.differences and self.signed in (None, self.digest)


def rebuild(database: Database, tenant_id: UUID, *, progress: Progress | None = None) -> int:
    """
    Delete the tenant's projection rows and replay its log, in one transaction; give the number of events.

    Readers keep the old rows until the commit; writers of this tenant wait for it.
    """
    with database.transaction("writer", tenant_id) as transaction:
        head_of(transaction.execute(LOCK_HEAD, {"tenant_id": tenant_id}))
        keys = open_keys(transaction, database.keys, tenant_id, None, back="projector")
        for table in reversed(PROJECTIONS):
            transaction.execute(sa.delete(table).where(of_tenant(table)), {"tenant_id": tenant_id})
        return _replay(transaction, transaction, tenant_id, keys, progress)


def check(
    database: Database, tenant_id: UUID, *, until: int | None = None, progress: Progress | None = None
) -> CheckResult:
    """
    Replay into the scratch schema, compare row by row with the live tables of the same snapshot, leave nothing behind.

    Nothing is locked: the snapshot fixes both sides, so writers go on.

    Args:
        until: replay to this position; the digest is the one that a check gave when the log ended there. Compared is
            what the live temporal tables say of that position.

    Raises:
        MomentUnknown: the log does not reach there.
    """
    with database.transaction("projector", tenant_id, snapshot=True) as transaction:
        head = head_of(transaction.execute(READ_HEAD, {"tenant_id": tenant_id}))
        position = head.position if until is None else until
        if not 1 <= position <= head.position:
            raise MomentUnknown(f"until: this tenant's log has the positions 1 to {head.position}.", field="until")
        scratch = transaction.at_schema(SCRATCH_SCHEMA)
        transaction.fix_output()
        # Of the same snapshot: with a key that is newer or older than the log that is read, rows would seem to differ.
        keys = open_keys(transaction, database.keys, tenant_id, None, back="projector")
        _replay(transaction, scratch, tenant_id, keys, progress, until=position)
        _erase_again(transaction, scratch, tenant_id, position)
        if position == head.position:
            whole, differences = _compared(transaction, scratch, tenant_id)
        else:
            whole = _whole({table.name: _digest(scratch, table, tenant_id) for table in PROJECTIONS})
            differences = _compared_then(transaction, scratch, tenant_id, position)
        transaction.rollback()
    return CheckResult(tenant_id, position, whole, differences)


def _compared(live: Transaction, scratch: Transaction, tenant_id: UUID) -> tuple[str, list[Difference]]:
    digests = {table.name: _digest(live, table, tenant_id) for table in PROJECTIONS}
    differences: list[Difference] = []
    for table in PROJECTIONS:
        counts = live.execute(_counts_query(table), {TENANT.key: tenant_id})[0]
        if len(set(counts.values())) > 1:
            differences += _differences(live, scratch, table, tenant_id, _rows_query(table))
    return _whole(digests), differences


def _compared_then(live: Transaction, scratch: Transaction, tenant_id: UUID, position: int) -> list[Difference]:
    """The temporal tables alone: the others say what is so now, and their past stands in the revisions."""
    differences: list[Difference] = []
    for table in PROJECTIONS:
        if "to_position" in table.c:
            differences += _differences(live, scratch, table, tenant_id, _rows_then_query(table), position)
    return differences


def _whole(digests: dict[str, str]) -> str:
    lines = [f"{name} {digest}" for name, digest in digests.items() if name in _FIRST_TABLES or digest != _NO_ROWS]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _replay(
    log: Transaction,
    target: Transaction,
    tenant_id: UUID,
    keys: Keys,
    progress: Progress | None,
    *,
    until: int = LAST_POSITION,
) -> int:
    count = 0
    left = what_is_left(log, tenant_id, keys)
    for batch in _batches(read_rows(log, tenant_id, until=until), BATCH):
        # Each is read when its turn comes: the server works on those before it meanwhile.
        target.batch(gathered(as_left(recorded_event(row, keys), left) for row in batch))
        count += len(batch)
        if progress:
            progress(count)
    return count


def _erase_again(log: Transaction, target: Transaction, tenant_id: UUID, position: int) -> None:
    """What was erased after the position is gone from the live rows of then: it must not come of a replay of then."""
    rows = log.execute(_ERASED_SINCE, {TENANT.key: tenant_id, "position": position})
    for row in rows:
        target.batch(erasures.project(recorded_event(row)))


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _row_digest(table: sa.Table) -> sa.ColumnElement[Any]:
    return _sha256(sa.cast(table.table_valued(), sa.Text))


def _signed_row_digest(table: sa.Table) -> sa.ColumnElement[Any]:
    following = _FOLLOWING.get(table)
    if following is None:
        return _row_digest(table)
    signed = [column for column in table.c if column.name not in following]
    return _sha256(sa.cast(sa.func.row(*signed), sa.Text))


def _sha256(row_text: sa.ColumnElement[str]) -> sa.ColumnElement[Any]:
    return sa.func.sha256(sa.func.convert_to(row_text, "UTF8"), type_=sa.LargeBinary)


def _key_order(table: sa.Table) -> list[sa.ColumnElement[Any]]:
    # COLLATE "C": the digest of a tenant must not depend on the server's collation.
    return [
        sa.collate(column, "C") if isinstance(column.type, sa.Text) else column for column in table.primary_key.columns
    ]


@lru_cache
def _digest_query(table: sa.Table) -> sa.Select[Any]:
    """A digest of the digests of the tenant's rows, in the order of their keys."""
    nothing: sa.ColumnElement[bytes] = sa.literal_column("''::bytea")
    in_order = pg.aggregate_order_by(nothing, *_key_order(table))
    joined = sa.func.string_agg(_signed_row_digest(table), in_order, type_=sa.LargeBinary)
    digest = sa.func.encode(sa.func.sha256(sa.func.coalesce(joined, nothing)), "hex")
    return sa.select(digest.label("digest")).where(of_tenant(table))


@lru_cache
def _counts_query(table: sa.Table) -> sa.Select[Any]:
    """
    How many rows are live, how many are replayed, and how many are the same in both, byte for byte as they are stored.

    Nothing is printed for it, as it is for a digest. What is stored otherwise may still say the same, and is looked at.
    """
    live = table.alias("live")
    replayed = table.to_metadata(sa.MetaData(), schema=SCRATCH_SCHEMA).alias("replayed")
    of_one_key = [live.c[column.name] == replayed.c[column.name] for column in table.primary_key]
    same_bytes = live.table_valued().op("*=", return_type=sa.Boolean())(replayed.table_valued())
    counted = sa.select(sa.func.count())
    counts = {
        "live": counted.where(of_tenant(live)),
        "replayed": counted.where(of_tenant(replayed)),
        "same": counted.where(of_tenant(live), of_tenant(replayed), *of_one_key, same_bytes),
    }
    return sa.select(*(count.scalar_subquery().label(name) for name, count in counts.items()))


@lru_cache
def _rows_query(table: sa.Table) -> sa.Select[Any]:
    return sa.select(*_key_texts(table), _row_digest(table).label("row_digest")).where(of_tenant(table))


@lru_cache
def _rows_then_query(table: sa.Table) -> sa.Select[Any]:
    """The rows as they were at a position: those that had begun, open where they were closed later."""
    position = sa.bindparam("position", type_=sa.BigInteger)
    until = sa.case((table.c.to_position <= position, table.c.to_position), else_=None)
    carried = _CARRIED.get(table, ())
    said = [until if column.name == "to_position" else column for column in table.c if column.name not in carried]
    row_text = sa.cast(sa.func.row(*said), sa.Text)
    return sa.select(*_key_texts(table), _sha256(row_text).label("row_digest")).where(
        of_tenant(table), table.c.from_position <= position
    )


def _key_texts(table: sa.Table) -> list[Any]:
    return [sa.cast(column, sa.Text).label(column.name) for column in table.primary_key.columns]


def _digest(transaction: Transaction, table: sa.Table, tenant_id: UUID) -> str:
    return str(transaction.execute(_digest_query(table), {TENANT.key: tenant_id})[0]["digest"])


def _differences(
    live: Transaction,
    scratch: Transaction,
    table: sa.Table,
    tenant_id: UUID,
    rows: sa.Select[Any],
    position: int | None = None,
) -> list[Difference]:
    params = {TENANT.key: tenant_id} | ({} if position is None else {"position": position})
    here, replayed = (_keyed_rows(side.execute(rows, params), table) for side in (live, scratch))
    only = [("live", key) for key, _ in sorted(here - replayed)] + [
        ("replay", key) for key, _ in sorted(replayed - here)
    ]
    names = [column.name for column in table.primary_key.columns]
    return [Difference(table.name, side, dict(zip(names, key, strict=True))) for side, key in only[:SHOWN_DIFFERENCES]]


def _keyed_rows(rows: list[Row], table: sa.Table) -> set[tuple[tuple[str, ...], bytes]]:
    names = [column.name for column in table.primary_key.columns]
    return {(tuple(row[name] for name in names), row["row_digest"]) for row in rows}

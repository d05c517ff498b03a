"""How many entries are in a scope: which way a recall goes, and how much of a large scope it looks at."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Generic, TypeVar
from uuid import UUID

import sqlalchemy as sa

from grandbo.recall.scan import Scan
from grandbo.recall.scope import Scope, Shape, in_scope, visible
from grandbo.recall.since import MOST_EVENTS, Change, change_since, upcoming
from grandbo.recall.view import View, entries_in_scope, standing_then, vectors_in_scope, vectors_of
from grandbo.storage.database import Transaction
from grandbo.storage.tables import entries
from grandbo.storage.tenancy import of_tenant

_DEEPEST = 20_000
_MOST_COUNTS = 1_024
Value = TypeVar("Value")

_some: sa.Select[Any] = (
    sa.select(sa.literal_column("1")).where(of_tenant(entries)).limit(sa.bindparam("at_most", type_=sa.Integer))
)
_FIRST = sa.select(sa.func.count().label("count")).select_from(_some.subquery("some"))


@dataclass(frozen=True, slots=True)
class Counts:
    """
    What is in a scope.

    Attributes:
        eligible: entries in scope.
        embedded: how many of them have a vector in the space that is asked; None where none is.
        standing: all entries in the asker's tiers, in scope or not: what rarity of a large scope is counted over.
    """

    eligible: int
    embedded: int | None
    standing: int

    def applied(self, scan: Scan) -> Scan:
        """
        The scan, with the survivors that so many vectors ask for.

        Doubled as often as it takes: each number is a statement of its own, and so there are few.
        """
        survivors = scan.survivors
        while survivors * 10_000 < (self.embedded or 0) * scan.survivors_bp:
            survivors *= 2
        return replace(scan, survivors=survivors)

    def depth(self, scan: Scan) -> int:
        """How many to look at by words, so that as many are left in scope as where all are."""
        eligible = max(1, self.eligible)
        if scan.in_proportion:
            return min(_DEEPEST, -(-scan.depth * self.standing // eligible))
        return min(_DEEPEST, scan.depth * -(-self.standing // eligible))


@dataclass(frozen=True, slots=True)
class _Counted:
    counts: Counts
    position: int
    since: datetime
    until: datetime | None

    def holds(self, instant: datetime) -> bool:
        return self.since <= instant and (self.until is None or instant < self.until)

    def changed_by(self, change: Change, position: int, instant: datetime) -> _Counted:
        counts = self.counts
        counts = Counts(
            counts.eligible + change.eligible,
            None if counts.embedded is None else counts.embedded + change.embedded,
            counts.standing + change.standing,
        )
        return _Counted(counts, position, instant, min(filter(None, (self.until, change.until)), default=None))


class _Kept(Generic[Value]):
    """What was counted last, under its key; the oldest is forgotten first. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: OrderedDict[tuple[Any, ...], Value] = OrderedDict()

    def get(self, key: tuple[Any, ...]) -> Value | None:
        with self._lock:
            return self._values.get(key)

    def put(self, key: tuple[Any, ...], value: Value) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > _MOST_COUNTS:
                self._values.popitem(last=False)


class Counting:
    """
    Counts of large scopes, kept until an entry's time comes or ends; the change by what was written since is looked up.

    Those of the past too: as long as nobody writes, what was then is the same for who asks from now.

    One per process; safe to share between threads.
    """

    def __init__(self) -> None:
        self._kept = _Kept[_Counted]()
        self._stood = _Kept[tuple[int, int]]()

    def of(self, transaction: Transaction, scope: Scope, position: int, stamp: str | None, most: int) -> Counts | None:
        """
        Count the live scope, in the transaction's snapshot, as a role that sees all tiers.

        Gives None where no more than `most` are in scope.
        """
        key = (_asked(scope), stamp, most)
        kept = self._kept.get(key)
        if kept is None or kept.position != position or not kept.holds(scope.instant):
            if self._is_within(scope, position, most):
                return None
            asked = {**scope.params(), "stamp": stamp}
            kept = _carried_on(transaction, scope, asked, position, kept, most) or self._counted(
                transaction, scope, asked, position, most
            )
            self._kept.put(key, kept)
            self._stood.put((scope.tenant_id, scope.tiers), (position, kept.counts.standing))
        return kept.counts if kept.counts.eligible > most else None

    def of_then(self, transaction: Transaction, scope: Scope, params: dict[str, Any], most: int) -> Counts | None:
        """The same of the scope as it was at a position and an instant, for who asks from one head."""
        head = (params["seen_at"], tuple(params["seen_tiers"]))
        key = (params["position"], scope.instant, head, _asked(scope), params["stamp"], most)
        kept = self._kept.get(key)
        if kept is None:
            kept = _Counted(count_then(transaction, scope, params, most), params["position"], scope.instant, None)
            self._kept.put(key, kept)
        return kept.counts if kept.counts.eligible > most else None

    def _is_within(self, scope: Scope, position: int, most: int) -> bool:
        """Whether it is known without counting: an event brings no more than one entry into the asker's tiers."""
        at, standing = self._stood.get((scope.tenant_id, scope.tiers)) or (position, most + 1)
        return at <= position and standing + position - at <= most

    @staticmethod
    def _counted(transaction: Transaction, scope: Scope, params: dict[str, Any], position: int, most: int) -> _Counted:
        row = transaction.execute(_live_query(scope.shape), params)[0]
        embedded = _embedded(transaction, View.LIVE, scope.shape, params) if row["eligible"] > most else None
        counts = Counts(row["eligible"], embedded, row["standing"])
        return _Counted(counts, position, scope.instant, row["until"])


def _carried_on(
    transaction: Transaction, scope: Scope, params: dict[str, Any], position: int, kept: _Counted | None, most: int
) -> _Counted | None:
    """What was counted before, with what has changed since; None where that is not known."""
    if kept is None or not kept.holds(scope.instant) or not kept.position < position <= kept.position + MOST_EVENTS:
        return None
    change = change_since(transaction, scope.shape, params, kept.position)
    if change is None:
        return None
    carried = kept.changed_by(change, position, scope.instant)
    has_grown_large = carried.counts.embedded is None and carried.counts.eligible > most
    # Of a scope that was not large its vectors were not counted.
    return None if has_grown_large and params["stamp"] is not None else carried


def _asked(scope: Scope) -> tuple[Any, ...]:
    return scope.tenant_id, scope.tiers, scope.statuses, scope.kinds, scope.service


def are_more_than(transaction: Transaction, tenant_id: UUID, most: int) -> bool:
    """
    Whether the tenant has more entries than this, whatever their status and tier.

    No scope of any moment is larger than all there is. To count one of the past takes as long as to read it.
    """
    found = transaction.execute(_FIRST, {"tenant_id": tenant_id, "at_most": most + 1})
    return bool(found[0]["count"] > most)


def count_then(transaction: Transaction, scope: Scope, params: dict[str, Any], most: int) -> Counts:
    """Count the scope as it was at a position; where no more than `most` were in it, not their vectors."""
    row = transaction.execute(_then_query(scope.shape), params)[0]
    embedded = _embedded(transaction, View.AS_OF, scope.shape, params) if row["eligible"] > most else None
    return Counts(row["eligible"], embedded, row["standing"])


def _embedded(transaction: Transaction, view: View, shape: Shape, params: dict[str, Any]) -> int | None:
    if params["stamp"] is None:
        return None
    count: int = transaction.execute(_embedded_query(view, shape), params)[0]["embedded"]
    return count


@lru_cache(maxsize=64)
def _live_query(shape: Shape) -> sa.Select[Any]:
    return sa.select(
        sa.func.count().filter(in_scope(entries, shape)).label("eligible"),
        sa.func.count().label("standing"),
        upcoming(entries).label("until"),
    ).where(visible(entries))


@lru_cache(maxsize=64)
def _then_query(shape: Shape) -> sa.Select[Any]:
    standing = standing_then(shape).subquery("standing")
    in_scope: sa.ColumnElement[Any] = sa.func.count().filter(standing.c.in_scope)
    return sa.select(in_scope.label("eligible"), sa.func.count().label("standing")).select_from(standing)


@lru_cache(maxsize=64)
def _embedded_query(view: View, shape: Shape) -> sa.Select[Any]:
    eligible = entries_in_scope(view, shape).cte("eligible").prefix_with("MATERIALIZED", dialect="postgresql")
    vectors = vectors_of(view)
    return sa.select(sa.func.count().label("embedded")).where(
        vectors_in_scope(vectors, view, shape, eligible),
        vectors.c.stamp == sa.bindparam("stamp", type_=sa.Text),
        # Every entry with vectors has a first window.
        vectors.c.window_no == 0,
    )

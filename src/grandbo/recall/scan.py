"""
How much of a scope is measured: all of it, or, where it is large, what lies nearest by signature.

The choice is a function of the position, the scope and of what stands on the receipt, so an answer can be given again
exactly, whatever was written since.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import ConfigurationError
from grandbo.events.models import Policy
from grandbo.recall.scope import Scope, Shape, in_scope, visible
from grandbo.recall.view import View, entries_in_scope, standing_then, vectors_in_scope
from grandbo.storage.database import Transaction
from grandbo.storage.tables import embeddings, entries
from grandbo.storage.tenancy import of_tenant

# Measured: of the 25 nearest of 5,000 and of 31,310 real texts 0.999 are among so many, of 100,000 mixed ones 0.998.
SURVIVORS = 250
# So of more vectors twice as many survive, or four times: at least this share. Of 1,000,000 all 25 are among 2,000.
SURVIVORS_BP = 25
# How many of the best by their rarer words are looked at again, at least; more where the scope is a small part of all.
DEPTH = 1_000
# Of those, who could not come near the place so many times as far down as the list is long is left out unlooked at.
MARGIN = 2
# Postings that are read, the rarest terms first: so many, or a tenth as many as there are entries; and those of the
# rarest three whatever they are. The terms of which none is read are common.
POSTINGS = 25_000
SHARE_BP = 1_000
RAREST = 3
# Of a term that stands in so many of one in sixteen entries the rest is reckoned, within some 4 percent.
SAMPLED_FROM = 512
_DEEPEST = 20_000
_MOST_COUNTS = 1_024

_some: sa.Select[Any] = (
    sa.select(sa.literal_column("1")).where(of_tenant(entries)).limit(sa.bindparam("at_most", type_=sa.Integer))
)
_FIRST = sa.select(sa.func.count().label("count")).select_from(_some.subquery("some"))
_INSTANT = sa.bindparam("instant", type_=sa.DateTime(timezone=True))


@dataclass(frozen=True, slots=True)
class Scan:
    """
    Up to how many entries in scope everything is measured; beyond, how much of it.

    Attributes:
        exact_up_to: None: always all, as in answers of before there were signatures.
        survivors: the vectors nearest by signature that are measured.
        depth: the best by the rarer words whose other words, and scope, are looked at.
        postings, share_bp, rarest: postings that are read, the rarest terms first: so many, or as many as this share of
            all entries in basis points, and those of the few rarest. Terms beyond are common.
        sampled_from: how frequent a term is follows from a sample of the entries where so many of the sample have it.
            None: it is counted, as in answers of before there was a sample.
        margin: of the best by the rarer words those are looked at whom the common ones could lift over the place this
            many times the candidates. None: all of them, as in answers of before.
        survivors_bp: of many vectors at least this share survives, in basis points; 0, as before: as many as of few.
        in_proportion: whether the depth grows with how much of all is out of scope; else in whole multiples, as before.
    """

    exact_up_to: int | None
    survivors: int = SURVIVORS
    depth: int = DEPTH
    postings: int = POSTINGS
    share_bp: int = SHARE_BP
    rarest: int = RAREST
    sampled_from: int | None = SAMPLED_FROM
    margin: int | None = MARGIN
    in_proportion: bool = True
    survivors_bp: int = SURVIVORS_BP

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a receipt."""
        return asdict(self)

    @classmethod
    def of_receipt(cls, parameters: dict[str, Any]) -> Scan:
        """The scan that a receipt names."""
        kept = parameters.get("scan")
        return EXACT if kept is None else cls(**{**_OF_BEFORE, **kept})


EXACT = Scan(None)
# What a receipt says nothing of was not there when it was made.
_OF_BEFORE: dict[str, Any] = {"sampled_from": None, "margin": None, "in_proportion": False, "survivors_bp": 0}

# The sets of numbers that a policy may name, each as it was when it landed, for ever: what was answered by it is
# answered so again. Other numbers are another set; `LAST_SCAN` is the number of the last, which has the numbers above.
SCANS: Mapping[int, Scan] = {
    1: Scan(
        exact_up_to=None,
        survivors=500,
        depth=1_000,
        postings=25_000,
        share_bp=1_000,
        rarest=3,
        sampled_from=512,
        margin=2,
        in_proportion=True,
        survivors_bp=25,
    ),
    2: Scan(exact_up_to=None),
}
Scanning = Callable[[Policy], Scan]


class ScanUnknown(ConfigurationError):
    """The policy scans a large scope by numbers that this Grandbo does not have; upgrade it, it will not guess."""

    code = "scan_unknown"


def scan_of(policy: Policy, sets: Mapping[int, Scan] = SCANS) -> Scan:
    """The scan that a policy asks for. Raises `ScanUnknown`: a newer version set it."""
    numbers = sets.get(policy.scan)
    if numbers is None:
        raise ScanUnknown(
            f"The policy scans a large scope by set {policy.scan}, which this Grandbo does not have; upgrade it, or "
            f"change the policy to one up to {max(sets)}.",
            scan=policy.scan,
        )
    return replace(numbers, exact_up_to=policy.exact_up_to)


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
    since: datetime
    until: datetime | None

    def holds(self, instant: datetime) -> bool:
        return self.since <= instant and (self.until is None or instant < self.until)


class Counting:
    """
    Counts of large scopes, kept for as long as they hold: until the next event, or until an entry's time comes or ends.

    Those of the past too: as long as nobody writes, what was then is the same for who asks from now.

    One per process; safe to share between threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Any, ...], _Counted] = OrderedDict()

    def of(self, transaction: Transaction, scope: Scope, position: int, stamp: str | None) -> Counts:
        """Count the live scope, in the transaction's snapshot, as a role that sees all tiers."""
        key = (position, _asked(scope), stamp)
        kept = self._of(key)
        if kept is not None and kept.holds(scope.instant):
            return kept.counts
        params = {**scope.params(), "stamp": stamp}
        row = transaction.execute(_live_query(scope.shape), params)[0]
        embedded = _embedded(transaction, View.LIVE, scope.shape, params)
        counts = Counts(row["eligible"], embedded, row["standing"])
        return self._keep(key, _Counted(counts, scope.instant, row["until"]))

    def of_then(self, transaction: Transaction, scope: Scope, params: dict[str, Any]) -> Counts:
        """Count the scope as it was at a position and an instant, for who asks from one head."""
        head = (params["seen_at"], tuple(params["seen_tiers"]))
        key = (params["position"], scope.instant, head, _asked(scope), params["stamp"])
        kept = self._of(key)
        if kept is not None:
            return kept.counts
        return self._keep(key, _Counted(count_then(transaction, scope, params), scope.instant, None))

    def _of(self, key: tuple[Any, ...]) -> _Counted | None:
        with self._lock:
            return self._kept.get(key)

    def _keep(self, key: tuple[Any, ...], counted: _Counted) -> Counts:
        with self._lock:
            self._kept[key] = counted
            while len(self._kept) > _MOST_COUNTS:
                self._kept.popitem(last=False)
        return counted.counts


def _asked(scope: Scope) -> tuple[Any, ...]:
    return scope.tenant_id, scope.tiers, scope.statuses, scope.kinds, scope.service


def are_more_than(transaction: Transaction, tenant_id: UUID, most: int) -> bool:
    """
    Whether the tenant has more entries than this, whatever their status and tier.

    No scope of any moment is larger than all there is. To count one of the past takes as long as to read it.
    """
    found = transaction.execute(_FIRST, {"tenant_id": tenant_id, "at_most": most + 1})
    return bool(found[0]["count"] > most)


def count_then(transaction: Transaction, scope: Scope, params: dict[str, Any]) -> Counts:
    """Count the scope as it was at a position."""
    row = transaction.execute(_then_query(scope.shape), params)[0]
    return Counts(row["eligible"], _embedded(transaction, View.AS_OF, scope.shape, params), row["standing"])


def _embedded(transaction: Transaction, view: View, shape: Shape, params: dict[str, Any]) -> int | None:
    if params["stamp"] is None:
        return None
    count: int = transaction.execute(_embedded_query(view, shape), params)[0]["embedded"]
    return count


@lru_cache(maxsize=64)
def _live_query(shape: Shape) -> sa.Select[Any]:
    upcoming = sa.func.least(
        sa.func.min(entries.c.expires_at).filter(entries.c.expires_at > _INSTANT),
        sa.func.min(entries.c.valid_from).filter(entries.c.valid_from > _INSTANT),
    )
    return sa.select(
        sa.func.count().filter(in_scope(entries, shape)).label("eligible"),
        sa.func.count().label("standing"),
        upcoming.label("until"),
    ).where(visible(entries))


@lru_cache(maxsize=64)
def _then_query(shape: Shape) -> sa.Select[Any]:
    standing = standing_then(shape).subquery("standing")
    in_scope: sa.ColumnElement[Any] = sa.func.count().filter(standing.c.in_scope)
    return sa.select(in_scope.label("eligible"), sa.func.count().label("standing")).select_from(standing)


@lru_cache(maxsize=64)
def _embedded_query(view: View, shape: Shape) -> sa.Select[Any]:
    eligible = entries_in_scope(view, shape).cte("eligible").prefix_with("MATERIALIZED", dialect="postgresql")
    return sa.select(sa.func.count().label("embedded")).where(
        vectors_in_scope(view, shape, eligible),
        embeddings.c.stamp == sa.bindparam("stamp", type_=sa.Text),
        # Every entry with vectors has a first window.
        embeddings.c.window_no == 0,
    )

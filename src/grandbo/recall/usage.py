"""
How the memory is used: counts of entries, candidates and recalls, and what waits. Never a topic, which nobody keeps.

Like everything else it counts what the caller may see, and nothing beyond.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import InvalidInput
from grandbo.events.models import Policy
from grandbo.memory.candidacy import CANDIDATE_STATUSES
from grandbo.memory.candidate_rows import IS_HIDDEN_PAIR
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.told import WITHIN_TIERS, tier_params
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import candidates, embedding_attempts, embeddings, entries, events, receipts, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.storage.vectors import stands_by_key
from grandbo.types import Clock, Principal, utc_now, utc_text

DEFAULT_DAYS = 30
MAX_DAYS = 366

_tiers = sa.any_(sa.bindparam("tiers", type_=pg.ARRAY(sa.Text)))
_ENTRIES = (
    sa.select(entries.c.kind, entries.c.status, sa.func.count().label("count"))
    .where(of_tenant(entries), entries.c.visibility == _tiers)
    .group_by(entries.c.kind, entries.c.status)
    .order_by(entries.c.kind, entries.c.status)
)
_CANDIDATES = (
    sa.select(candidates.c.status, sa.func.count().label("count"))
    .where(of_tenant(candidates), candidates.c.visibility == _tiers, sa.not_(IS_HIDDEN_PAIR))
    .group_by(candidates.c.status)
)
_day = sa.cast(receipts.c.made_at, sa.Date)
_reason = receipts.c.searched["empty_reason"].astext
_RECALLS = (
    sa.select(_day.label("day"), _reason.label("reason"), sa.func.count().label("count"))
    .where(
        of_tenant(receipts), WITHIN_TIERS, receipts.c.made_at >= sa.bindparam("since", type_=sa.DateTime(timezone=True))
    )
    .group_by(_day, _reason)
    .order_by(_day, _reason)
)


def _percentile(share: float) -> sa.ColumnElement[Any]:
    return sa.func.percentile_disc(share).within_group(receipts.c.took_us)


# By day, and over all days in the row without one.
_LATENCY = (
    sa.select(
        _day.label("day"),
        sa.func.count().label("recalls"),
        _percentile(0.5).label("p50_us"),
        _percentile(0.95).label("p95_us"),
    )
    .where(
        of_tenant(receipts),
        WITHIN_TIERS,
        receipts.c.made_at >= sa.bindparam("since", type_=sa.DateTime(timezone=True)),
        receipts.c.took_us.is_not(None),
    )
    .group_by(sa.func.rollup(_day))
    .order_by(_day.nulls_first())
)
_stamp = sa.bindparam("stamp", type_=sa.Text)
_one: sa.ColumnElement[int] = sa.literal_column("1")
_has_vector = sa.exists(
    sa.select(_one).where(
        of_tenant(embeddings),
        embeddings.c.stamp == _stamp,
        embeddings.c.entry_id == entries.c.entry_id,
        embeddings.c.text_digest == entries.c.text_digest,
        stands_by_key(embeddings),
    )
)
_is_dead = sa.exists(
    sa.select(_one).where(
        of_tenant(embedding_attempts),
        embedding_attempts.c.stamp == _stamp,
        embedding_attempts.c.entry_id == entries.c.entry_id,
        embedding_attempts.c.text_digest == entries.c.text_digest,
        embedding_attempts.c.dead,
    )
)
_BACKLOG = sa.select(
    sa.func.count().filter(sa.not_(_is_dead)).label("pending"), sa.func.count().filter(_is_dead).label("dead")
).where(of_tenant(entries), entries.c.visibility == _tiers, sa.not_(_has_vector))


# Of each entry when it came to say what it says, and when that had its vectors: of what says something else by now
# nobody waits any more.
_said = (
    sa.select(
        entries.c.entry_id,
        sa.func.min(revisions.c.changed_at).label("since"),
        sa.func.min(events.c.recorded_at).label("until"),
    )
    .join(
        revisions,
        sa.and_(revisions.c.entry_id == entries.c.entry_id, revisions.c.text_digest == entries.c.text_digest),
    )
    .outerjoin(
        embeddings,
        sa.and_(
            of_tenant(embeddings),
            embeddings.c.stamp == _stamp,
            embeddings.c.entry_id == entries.c.entry_id,
            embeddings.c.text_digest == entries.c.text_digest,
            embeddings.c.window_no == 0,
        ),
    )
    .outerjoin(events, sa.and_(of_tenant(events), events.c.position == embeddings.c.from_position))
    .where(of_tenant(entries), of_tenant(revisions), entries.c.visibility == _tiers)
    .group_by(entries.c.entry_id)
    .cte("said")
)


def _moves(at: sa.ColumnElement[Any], by: int) -> sa.Select[Any]:
    day = sa.cast(at, sa.Date)
    columns: tuple[Any, ...] = (day.label("day"), sa.func.count().label("n"), sa.literal_column(str(by)).label("by"))
    return sa.select(*columns).where(at.is_not(None)).group_by(day)


_WAITED = sa.union_all(_moves(_said.c.since, 1), _moves(_said.c.until, -1))


def usage(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    *,
    stamp: str | None,
    days: object = None,
    clock: Clock = utc_now,
) -> dict[str, Any]:
    """
    Counts: `entries` by kind and status, `candidates` by status, `recalls` by day, `empty` by reason, `backlog`, and
    `waited`, the entries without a vector at each day's end; `latency`: how long answers took from question to answer,
    the topic's embedding included, in microseconds.

    Args:
        stamp: the space whose missing vectors are the backlog; None where nothing is embedded.
        days: how far back recalls are counted, today included: 1 to 366, 30 unless given.
    """
    require(principal, "audit")
    span = _checked_days(days)
    own = visible_tiers(policy, principal)
    now = clock()
    since = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=span - 1)
    params = {**tier_params(tenant_id, policy, own), "tiers": list(own), "since": since}
    # The one role that reads what failed to embed; nothing is written.
    with database.transaction("writer", tenant_id, read_only=True, snapshot=True) as transaction:
        queries = (_ENTRIES, _CANDIDATES, _RECALLS, _LATENCY, _BACKLOG, _WAITED)
        found, waiting, asked, latency, backlog, moves = transaction.batch(
            [(query, {**params, "stamp": stamp}) for query in queries]
        )
    by_status = {row["status"]: row["count"] for row in waiting}
    return {
        "since": utc_text(since),
        "until": utc_text(now),
        "entries": [dict(row) for row in found],
        "candidates": {status: by_status.get(status, 0) for status in CANDIDATE_STATUSES},
        "recalls": _by_day(asked),
        **_totals(asked),
        "latency": _latency(latency),
        "backlog": dict(backlog[0]) if stamp else None,
        "waited": _waited(moves, since.date(), now.date()) if stamp else [],
    }


def _waited(moves: list[Row], first: date, last: date) -> list[dict[str, Any]]:
    """At the end of each day, how many entries had no vector for what they say now."""
    by_day: Counter[date] = Counter()
    for row in moves:
        by_day[row["day"]] += row["n"] * row["by"]
    count = sum(change for day, change in by_day.items() if day < first)
    shown = []
    for day in (first + timedelta(days=number) for number in range((last - first).days + 1)):
        count += by_day[day]
        shown.append({"day": day.isoformat(), "entries": count})
    return shown


def _by_day(rows: list[Row]) -> list[dict[str, Any]]:
    days: dict[str, dict[str, Any]] = {}
    for row in rows:
        day = days.setdefault(row["day"].isoformat(), {"day": row["day"].isoformat(), "recalls": 0, "empty": {}})
        day["recalls"] += row["count"]
        if row["reason"] is not None:
            day["empty"][row["reason"]] = row["count"]
    return list(days.values())


def _totals(rows: list[Row]) -> dict[str, Any]:
    total = sum(row["count"] for row in rows)
    empty: dict[str, int] = {}
    for row in rows:
        if row["reason"] is not None:
            empty[row["reason"]] = empty.get(row["reason"], 0) + row["count"]
    rates = {reason: {"recalls": count, "rate_bp": count * 10_000 // total} for reason, count in sorted(empty.items())}
    return {"recalls_total": total, "empty": rates}


def _latency(rows: list[Row]) -> dict[str, Any]:
    """Over all days, and of each; the percentiles are None where no answer was timed."""
    of_day = {row["day"]: {name: row[name] for name in ("recalls", "p50_us", "p95_us")} for row in rows}
    whole = of_day.pop(None, {"recalls": 0, "p50_us": None, "p95_us": None})
    return {**whole, "days": [{"day": day.isoformat(), **found} for day, found in of_day.items()]}


def _checked_days(days: object) -> int:
    if days is None:
        return DEFAULT_DAYS
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MAX_DAYS:
        raise InvalidInput(f"days: it must be a whole number from 1 to {MAX_DAYS}.", field="days")
    return days

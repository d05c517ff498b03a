"""
What is due: entries whose review is overdue or comes up, that expire soon, or that have expired without a word; and
those of which somebody who was told them has said that they are wrong, or stale, and nobody has answered yet.

And saying of many at once that they were checked: row by row, each with its reason, a bad one not in the way of the
next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import GrandboError, InvalidInput, NotFound
from grandbo.events.models import Policy
from grandbo.memory.policy import require, visible_tiers
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import entries, feedback, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, from_utc_text, utc_now, utc_text

DEFAULT_WITHIN = "7d"
DEFAULT_PAGE = 50
MAX_PAGE = 500
_WITHIN = re.compile(r"(\d{1,4})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}
_CURSOR = re.compile(r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z)_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_FIRST = (datetime.fromisoformat("0001-01-01T00:00:00+00:00"), UUID(int=0))

_Time = sa.DateTime(timezone=True)
_now, _soon = (sa.bindparam(name, type_=_Time) for name in ("now", "soon"))
# What a person does to an entry that answers those who said that it is wrong or stale.
_ANSWERS = ("entry_corrected", "entry_revision_restored", "entry_verified", "entry_disputed")
_is_answered = sa.exists().where(
    of_tenant(revisions),
    revisions.c.entry_id == feedback.c.entry_id,
    revisions.c.revision > feedback.c.revision,
    sa.or_(*(revisions.c.event_type == name for name in _ANSWERS)),
)
_complaints = (
    sa.select(
        feedback.c.entry_id,
        sa.func.min(feedback.c.given_at).label("since"),
        sa.func.array_agg(sa.distinct(feedback.c.verdict)).label("verdicts"),
    )
    .where(
        of_tenant(feedback),
        feedback.c.to_position.is_(None),
        sa.or_(feedback.c.verdict == "wrong", feedback.c.verdict == "stale"),
        sa.not_(_is_answered),
    )
    .group_by(feedback.c.entry_id)
    .subquery("complaints")
)
_due_at = sa.func.least(entries.c.review_at, entries.c.expires_at, _complaints.c.since)
_is_noted = sa.func.coalesce(entries.c.expiry_noted == entries.c.expires_at, sa.false())
_has_expired = entries.c.expires_at <= _now
_DUE = (
    sa.select(
        entries.c.entry_id,
        entries.c.revision,
        entries.c.kind,
        entries.c.title,
        entries.c.service,
        entries.c.owner,
        entries.c.visibility,
        entries.c.verified_at,
        entries.c.review_at,
        entries.c.expires_at,
        _due_at.label("due_at"),
        _complaints.c.verdicts,
    )
    .select_from(entries.outerjoin(_complaints, _complaints.c.entry_id == entries.c.entry_id))
    .where(
        of_tenant(entries),
        entries.c.visibility == sa.any_(sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))),
        entries.c.status == "published",
        sa.or_(sa.and_(_has_expired, sa.not_(_is_noted)), sa.and_(sa.not_(_has_expired), _due_at < _soon)),
        sa.tuple_(_due_at, entries.c.entry_id)
        > sa.tuple_(sa.bindparam("after_due", type_=_Time), sa.bindparam("after_id", type_=sa.Uuid)),
    )
    .order_by(_due_at, entries.c.entry_id)
    .limit(sa.bindparam("page", type_=sa.Integer))
)


@dataclass(frozen=True, slots=True)
class DuePage:
    """Entries as plain values, what is due first at the head, and where to go on; `next` is None at the end."""

    due: list[dict[str, Any]]
    next: str | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"due": self.due, "next": self.next}


def list_due(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    *,
    within: object = None,
    limit: object = None,
    after: object = None,
    clock: Clock = utc_now,
) -> DuePage:
    """
    A page of what is due, within the caller's tiers.

    Each has `why`: `overdue` (its review was due), `due` (it is within that time), `expiring` (it expires within that
    time), `expired` (it has, and the sweep has not put that on the record yet), `wrong`, `stale` (somebody who was told
    it has said so, and it was neither corrected, disputed nor verified since).

    Args:
        within: `7d` unless given: a number of hours, days or weeks.
        after: the `next` of the page before.
    """
    require(principal, "recall")
    now = clock()
    soon = now + _span(DEFAULT_WITHIN if within is None else within)
    size = _size(limit)
    after_due, after_id = _after(after)
    params = {"tenant_id": tenant_id, "tiers": list(visible_tiers(policy, principal)), "now": now, "soon": soon}
    params |= {"after_due": after_due, "after_id": after_id, "page": size + 1}
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_DUE, params)
    last = rows[size - 1] if len(rows) > size else None
    cursor = f"{utc_text(last['due_at'])}_{last['entry_id']}" if last else None
    return DuePage([_shown(row, now, soon) for row in rows[:size]], cursor)


def verify_rows(
    rows: Iterable[object], verify: Callable[[UUID, str, int | None], Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """
    Verify entry after entry; one result for each row, in order, whatever became of those before it.

    A row is `{entry_id, reason, days?}`, or the error that reading it gave.
    """
    for number, row in enumerate(rows, start=1):
        entry_id = row.get("entry_id") if isinstance(row, dict) else None
        told = {"row": number, "entry_id": entry_id if isinstance(entry_id, str) else None}
        try:
            if isinstance(row, GrandboError):
                raise row
            acknowledged = verify(*_checked_row(row))
        except GrandboError as error:
            yield told | {"ok": False, "error": {"code": error.code, "message": error.message}}
        else:
            yield told | {"ok": True, **acknowledged}


def _checked_row(row: object) -> tuple[UUID, str, int | None]:
    if not isinstance(row, dict):
        raise InvalidInput("A row is an object with entry_id and reason.")
    for name in row:
        if name not in ("entry_id", "reason", "days"):
            raise InvalidInput(f"{name[:100]}: there is no such field; known are entry_id, reason, days.", field=name)
    try:
        entry_id = UUID(row["entry_id"])
    except (KeyError, ValueError, TypeError, AttributeError):
        raise NotFound from None
    return entry_id, row.get("reason", ""), row.get("days")


def _shown(row: Row, now: datetime, soon: datetime) -> dict[str, Any]:
    signs = {
        "expired": row["expires_at"] <= now,
        "overdue": row["expires_at"] > now and row["review_at"] < now,
        "due": row["expires_at"] > now and now <= row["review_at"] < soon,
        "expiring": now < row["expires_at"] < soon,
        **{verdict: verdict in (row["verdicts"] or ()) for verdict in ("wrong", "stale")},
    }
    same = ("revision", "kind", "title", "service", "owner", "visibility")
    times = ("verified_at", "review_at", "expires_at", "due_at")
    return {
        "entry_id": str(row["entry_id"]),
        **{name: row[name] for name in same},
        **{name: utc_text(row[name]) if row[name] else None for name in times},
        "why": [name for name, holds in signs.items() if holds],
    }


def _span(within: object) -> timedelta:
    found = _WITHIN.fullmatch(within) if isinstance(within, str) else None
    if found is None:
        raise InvalidInput("within: give hours, days or weeks, such as 48h, 7d or 2w.", field="within")
    return timedelta(hours=int(found.group(1)) * _HOURS[found.group(2)])


def _size(limit: object) -> int:
    if limit is None:
        return DEFAULT_PAGE
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"limit: it must be a whole number from 1 to {MAX_PAGE}.", field="limit")
    return limit


def _after(after: object) -> tuple[datetime, UUID]:
    if after is None:
        return _FIRST
    found = _CURSOR.fullmatch(after) if isinstance(after, str) else None
    try:
        if found is None:
            raise ValueError
        return from_utc_text(found.group(1)), UUID(found.group(2))
    except ValueError:
        raise InvalidInput("after: it must be the `next` of the page before.", field="after") from None

"""How often something was seen: incidents that an entry came from or that support it, by entry and by month."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput, NotFound
from grandbo.events.models import Policy
from grandbo.memory.policy import require, visible_tiers
from grandbo.recall.question import DEFAULT_STATUSES
from grandbo.recall.scope import Scope, Shape, in_scope, visible
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import entries, revisions
from grandbo.text import check_text
from grandbo.types import Principal, utc_text

MOST_ENTRIES = 50
MOST_MONTHS = 24

_RECORDED = sa.and_(revisions.c.event_type == "entry_recorded", revisions.c.incident_id.is_not(None))
_AT = sa.case(
    (_RECORDED, sa.func.coalesce(revisions.c.occurred_at, revisions.c.changed_at)), else_=revisions.c.changed_at
)


@dataclass(frozen=True, slots=True)
class Recurrences:
    """Entries by how often they were seen, and months by how often anything was; the newest month first."""

    entries: tuple[dict[str, Any], ...]
    months: tuple[dict[str, Any], ...]
    has_more: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"entries": list(self.entries), "months": list(self.months), "has_more": self.has_more}


def list_recurrences(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    now: datetime,
    *,
    entry_id: UUID | None = None,
    service: str | None = None,
) -> Recurrences:
    """
    Count the incidents of one entry, or of every entry of a service, that the caller sees and that is in date.

    Raises:
        InvalidInput: neither or both are given.
        NotFound: there is no such entry in scope.
    """
    require(principal, "recall")
    if (entry_id is None) == (service is None):
        raise InvalidInput("entry_id: give an entry or a service, one of the two.", field="entry_id")
    if service is not None:
        check_text(service, "service", limit=200, single_line=True)
    tiers = visible_tiers(policy, principal)
    scope = Scope(tenant_id, tiers, DEFAULT_STATUSES, now, service=service)
    by_entry, by_month = _statements(scope.shape, one_entry=entry_id is not None)
    params = {**scope.params(), "entry_id": entry_id}
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        transaction.read_as(tiers, DEFAULT_STATUSES, now)
        found, months = transaction.batch([(by_entry, params), (by_month, params)])
    if entry_id is not None and not found:
        raise NotFound
    return Recurrences(
        tuple(_entry(row) for row in found[:MOST_ENTRIES]),
        tuple({"month": row["month"], "seen": row["seen"]} for row in months),
        len(found) > MOST_ENTRIES,
    )


def _statements(shape: Shape, *, one_entry: bool) -> tuple[sa.Select[Any], sa.Select[Any]]:
    eligible = sa.select(
        entries.c.entry_id, entries.c.title, entries.c.kind, entries.c.service, entries.c.revision
    ).where(in_scope(entries, shape))
    if one_entry:
        eligible = eligible.where(entries.c.entry_id == sa.bindparam("entry_id", type_=sa.Uuid))
    scope = eligible.cte("scope")
    sighting = (
        sa.select(revisions.c.entry_id, _AT.label("at"))
        .where(visible(revisions), sa.or_(_RECORDED, revisions.c.event_type == "entry_corroborated"))
        .cte("sighting")
    )
    seen = sa.func.count(sighting.c.at).label("seen")
    counted = (
        sa.select(
            scope, seen, sa.func.min(sighting.c.at).label("first_at"), sa.func.max(sighting.c.at).label("last_at")
        )
        .select_from(scope.outerjoin(sighting, sighting.c.entry_id == scope.c.entry_id))
        .group_by(*scope.c)
        .order_by(seen.desc(), sa.desc("last_at"), scope.c.entry_id)
        .limit(MOST_ENTRIES + 1)
    )
    if not one_entry:
        counted = counted.having(sa.func.count(sighting.c.at) > 0)
    month = sa.func.to_char(sighting.c.at, "YYYY-MM").label("month")
    by_month = (
        sa.select(month, seen)
        .select_from(scope.join(sighting, sighting.c.entry_id == scope.c.entry_id))
        .group_by(month)
        .order_by(month.desc())
        .limit(MOST_MONTHS)
    )
    return counted, by_month


def _entry(row: Row) -> dict[str, Any]:
    return {
        "entry_id": str(row["entry_id"]),
        "revision": row["revision"],
        "kind": row["kind"],
        "title": row["title"],
        "service": row["service"],
        "seen": row["seen"],
        "first_at": utc_text(row["first_at"]) if row["first_at"] else None,
        "last_at": utc_text(row["last_at"]) if row["last_at"] else None,
    }

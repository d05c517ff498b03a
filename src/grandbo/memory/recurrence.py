"""
Recurrence: how often what was learned has happened again.

An occurrence is an incident: the one that taught an entry, and each that supported it since, on the day on which it
happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.dialects.postgresql import JSONPATH

from grandbo.errors import NotFound
from grandbo.events.models import EntryCorroborated, EntryRecorded, Policy
from grandbo.finding_limits import NAME_LIMIT
from grandbo.memory.policy import require, visible_tiers
from grandbo.storage.database import Database
from grandbo.storage.tables import entries, events
from grandbo.storage.tenancy import of_tenant
from grandbo.text import check_text
from grandbo.types import Principal, utc_text

ENTRIES_LIMIT = 50

_entry = sa.bindparam("entry_id", type_=sa.Uuid)
_service = sa.bindparam("service", type_=sa.Text)
_taught = sa.and_(events.c.event_type == EntryRecorded.EVENT_TYPE, entries.c.incident_source.is_not(None))
_FOLLOW_UPS = sa.literal_column("""'$[*] ? (@.type == "follow_up")'""", JSONPATH)
_open_follow_ups = sa.func.jsonb_array_length(sa.func.jsonb_path_query_array(entries.c.evidence, _FOLLOW_UPS))
_occurrence = (
    sa.select(
        entries.c.entry_id,
        entries.c.title,
        entries.c.service,
        _open_follow_ups.label("open_follow_ups"),
        events.c.occurred_at,
        sa.func.to_char(events.c.occurred_at, "YYYY-MM").label("month"),
    )
    .join(events, events.c.stream_id == entries.c.entry_id)
    .where(
        of_tenant(entries),
        of_tenant(events),
        entries.c.visibility == sa.any_(sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))),
        entries.c.status == "published",
        sa.or_(_entry.is_(None), entries.c.entry_id == _entry),
        sa.or_(_service.is_(None), entries.c.service == _service),
        sa.or_(_taught, events.c.event_type == EntryCorroborated.EVENT_TYPE),
    )
    .cte("occurrence")
)
_count, _last = sa.func.count().label("occurrences"), sa.func.max(_occurrence.c.occurred_at).label("last")
_of_entry = tuple(_occurrence.c[name] for name in ("entry_id", "title", "service", "open_follow_ups"))
# One that happened once has not recurred; asked for by name it is counted all the same.
_BY_ENTRY = (
    sa.select(*_of_entry, _count, _last)
    .group_by(*_of_entry)
    .having(sa.or_(sa.func.count() > 1, _entry.is_not(None)))
    .order_by(_count.desc(), _last.desc(), _occurrence.c.entry_id)
    .limit(ENTRIES_LIMIT)
)
_BY_SERVICE = (
    sa.select(_occurrence.c.service, _count, sa.func.count(_occurrence.c.entry_id.distinct()).label("entries"), _last)
    .group_by(_occurrence.c.service)
    .order_by(_count.desc(), _occurrence.c.service)
)
_BY_MONTH = sa.select(_occurrence.c.month, _count, _last).group_by(_occurrence.c.month).order_by(_occurrence.c.month)
_SEEN = sa.select(entries.c.entry_id).where(
    of_tenant(entries),
    entries.c.entry_id == _entry,
    entries.c.visibility == sa.any_(sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))),
)


def recurrences(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    *,
    entry_id: UUID | None = None,
    service: str | None = None,
) -> dict[str, Any]:
    """
    Occurrences by entry (the 50 most frequent of those that recurred), by service and by month of UTC.

    Counted are published entries within the caller's tiers. Raises `NotFound` for an entry that is not his to see.
    """
    require(principal, "recall")
    if service is not None:
        check_text(service, "service", limit=NAME_LIMIT, single_line=True)
    tiers = list(visible_tiers(policy, principal))
    params = {"tenant_id": tenant_id, "tiers": tiers, "entry_id": entry_id, "service": service}
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        if entry_id is not None and not transaction.execute(_SEEN, params):
            raise NotFound
        found = transaction.batch([(query, params) for query in (_BY_ENTRY, _BY_SERVICE, _BY_MONTH)])
    names = ("entries", "services", "months")
    return {name: [_plain(row) for row in rows] for name, rows in zip(names, found, strict=True)}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    plain = {name: str(value) if isinstance(value, UUID) else value for name, value in row.items()}
    return plain | {"last": utc_text(row["last"])}


def recurrence_of(service: str, near: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of entries near something of a service, those of it whose follow-ups are open: it recurs before that."""
    return [
        {"entry_id": item["entry_id"], "title": item["title"], "open_follow_ups": item["open_follow_ups"]}
        for item in near
        if item["open_follow_ups"] and service and item["service"] == service
    ]

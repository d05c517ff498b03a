"""The incidents that deliveries told of, read: what each is known by now, and what the memory was told of it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput, NotFound
from grandbo.memory.inbox import shown
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import inbox, incidents
from grandbo.storage.tenancy import of_tenant
from grandbo.types import from_utc_text, utc_text

DEFAULT_PAGE = 50
MAX_PAGE = 500
DELIVERIES_SHOWN = 100

_CURSOR = re.compile(r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z)_([a-z0-9-]{1,40})_(.{1,300})", re.DOTALL)
_LAST = (datetime(9999, 1, 1, tzinfo=UTC), "", "")
_key = sa.tuple_(incidents.c.changed_at, incidents.c.source, incidents.c.incident_id)
_PAGE = (
    sa.select(incidents)
    .where(
        of_tenant(incidents),
        _key
        < sa.tuple_(
            sa.bindparam("after_at", type_=sa.DateTime(timezone=True)),
            sa.bindparam("after_source", type_=sa.Text),
            sa.bindparam("after_id", type_=sa.Text),
        ),
    )
    .order_by(incidents.c.changed_at.desc(), incidents.c.source.desc(), incidents.c.incident_id.desc())
    .limit(sa.bindparam("page", type_=sa.Integer))
)
_source, _incident = (sa.bindparam(name, type_=sa.Text) for name in ("source", "incident_id"))
_ONE = sa.select(incidents).where(
    of_tenant(incidents), incidents.c.source == _source, incidents.c.incident_id == _incident
)
_DELIVERIES = (
    sa.select(*(column for column in inbox.c if column.name != "body"), inbox.c.body.is_not(None).label("has_body"))
    .where(of_tenant(inbox), inbox.c.source == _source, _incident == sa.any_(inbox.c.incident_ids))
    .order_by(inbox.c.delivery_id.desc())
    .limit(DELIVERIES_SHOWN)
)


def list_incidents(
    database: Database, tenant_id: UUID, *, limit: int | None = None, after: str | None = None
) -> dict[str, Any]:
    """A page of incidents, the last changed first: `{incidents, next}`; `after` is the `next` of the page before."""
    size = DEFAULT_PAGE if limit is None else limit
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAX_PAGE:
        raise InvalidInput(f"limit: it must be a whole number from 1 to {MAX_PAGE}.", field="limit")
    at, source, incident_id = _after(after)
    params = {"tenant_id": tenant_id, "after_at": at, "after_source": source, "after_id": incident_id}
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_PAGE, {**params, "page": size + 1})
    last = rows[size - 1] if len(rows) > size else None
    cursor = f"{utc_text(last['changed_at'])}_{last['source']}_{last['incident_id']}" if last else None
    return {"incidents": [_record(row) for row in rows[:size]], "next": cursor}


def show_incident(database: Database, tenant_id: UUID, source: str, incident_id: str) -> dict[str, Any]:
    """One incident with what its source said of it, and the last deliveries that told it. Raises `NotFound`."""
    params = {"tenant_id": tenant_id, "source": source, "incident_id": incident_id}
    with database.transaction("writer", tenant_id, read_only=True, snapshot=True) as transaction:
        rows, told = transaction.batch([(_ONE, params), (_DELIVERIES, params)])
    if not rows:
        raise NotFound("No delivery has told of such an incident in this tenant.")
    deliveries = [shown(row, has_body=row["has_body"]) for row in told]
    return _record(rows[0]) | {"said": rows[0]["said"], "deliveries": deliveries}


def _record(row: Row) -> dict[str, Any]:
    said = row["said"]
    return {
        "source": row["source"],
        "incident_id": row["incident_id"],
        "title": said.get("title", ""),
        "service": said.get("service", ""),
        "opened": said.get("opened"),
        "resolved": said.get("resolved"),
        "is_private": row["is_private"],
        "outcome": row["outcome"],
        "candidate_id": str(row["candidate_id"]) if row["candidate_id"] else None,
        "entry_id": str(row["entry_id"]) if row["entry_id"] else None,
        "changed_at": utc_text(row["changed_at"]),
    }


def _after(given: object) -> tuple[datetime, str, str]:
    if given is None:
        return _LAST
    match = _CURSOR.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise InvalidInput("after: it must be the `next` of the page before.", field="after")
    return from_utc_text(match[1]), match[2], match[3]

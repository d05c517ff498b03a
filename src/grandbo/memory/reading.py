"""Reading one entry and its history: what an administrator sees, within his tiers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import NotFound
from grandbo.events import models
from grandbo.events.models import Policy
from grandbo.events.registry import parse_body
from grandbo.memory.policy import require, visible_tiers
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import STATE_COLUMNS, entries, events, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Principal, utc_text

_entry = sa.bindparam("entry_id", type_=sa.Uuid)
_ENTRY = sa.select(entries).where(of_tenant(entries), entries.c.entry_id == _entry)
_REVISIONS = (
    sa.select(revisions, events.c.schema_version, events.c.body.label("event_body"))
    .join(events, sa.and_(events.c.tenant_id == revisions.c.tenant_id, events.c.position == revisions.c.from_position))
    .where(of_tenant(revisions), of_tenant(events), revisions.c.entry_id == _entry)
    .order_by(revisions.c.revision)
)
_HIDDEN = {"claim_digest", "text_digest"}


def show_entry(
    database: Database, tenant_id: UUID, principal: Principal, policy: Policy, entry_id: UUID
) -> dict[str, Any]:
    """The entry as it stands, as plain values. Raises `NotFound`, for one above the caller's tiers too."""
    require(principal, "recall")
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_ENTRY, {"tenant_id": tenant_id, "entry_id": entry_id})
    if not rows or rows[0]["visibility"] not in visible_tiers(policy, principal):
        raise NotFound
    row = rows[0]
    head = {"entry_id": str(entry_id), "revision": row["revision"], "position": row["position"]}
    return head | plain_state(row)


def entry_history(
    database: Database, tenant_id: UUID, principal: Principal, policy: Policy, entry_id: UUID
) -> list[dict[str, Any]]:
    """
    Every revision with its event, its author and its reason, oldest first.

    Raises `NotFound` where the entry is not there or stands above the caller's tiers now. Revisions from when it stood
    above them are left out.
    """
    require(principal, "recall")
    tiers = visible_tiers(policy, principal)
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        rows = transaction.execute(_REVISIONS, {"tenant_id": tenant_id, "entry_id": entry_id})
    if not rows or rows[-1]["visibility"] not in tiers:
        raise NotFound
    return [_revision(row) for row in rows if row["visibility"] in tiers]


def plain_state(row: Row) -> dict[str, Any]:
    """The state columns of a row as plain values."""
    return {name: _plain(row[name]) for name in STATE_COLUMNS if name not in _HIDDEN}


def _revision(row: Row) -> dict[str, Any]:
    return {
        "entry_id": str(row["entry_id"]),
        "revision": row["revision"],
        "position": row["from_position"],
        "event_type": row["event_type"],
        "principal": row["principal"],
        "at": utc_text(row["changed_at"]),
        "reason": _reason(row),
        "state": plain_state(row),
    }


def _reason(row: Row) -> str | None:
    if row["event_body"] is None:
        return None
    data = parse_body(row["event_type"], row["schema_version"], row["event_body"], position=row["from_position"])
    return data.reason if isinstance(data, models.EntryChanged) else None


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    return utc_text(value) if hasattr(value, "astimezone") else value

"""
The inbox as the worker has it: what is due, one after the other, to its end.

A delivery that was received and is due *is* the to-do list. It is claimed for a while and not taken away, so that a
worker that dies leaves it there; each claim counts as an attempt, so that one that kills workers comes to rest as dead.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.memory.inbox import DeliveryState
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import inbox
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, utc_now

CLAIMED_FOR = timedelta(minutes=1)
ROWS_KEPT = timedelta(days=365)

_Time = sa.DateTime(timezone=True)
_Texts = pg.ARRAY(sa.Text)
_now = sa.bindparam("now", type_=_Time)
_delivery = sa.bindparam("which", type_=sa.Uuid)
_is_it = sa.and_(of_tenant(inbox), inbox.c.delivery_id == _delivery)
_due = inbox.alias("due")
_next_due = (
    sa.select(_due.c.delivery_id)
    .where(of_tenant(_due), _due.c.state == "received", _due.c.next_attempt_at <= _now)
    .order_by(_due.c.received_at, _due.c.delivery_id)
    .limit(1)
    .with_for_update(skip_locked=True)
    .scalar_subquery()
)
_CLAIM = (
    sa.update(inbox)
    .where(of_tenant(inbox), inbox.c.state == "received", inbox.c.delivery_id == _next_due)
    .values(attempts=inbox.c.attempts + 1, next_attempt_at=sa.bindparam("until", type_=_Time))
    .returning(inbox)
)
_NAME_INCIDENTS = (
    sa.update(inbox)
    .where(_is_it, inbox.c.state == "received")
    .values(incident_ids=sa.bindparam("named", type_=_Texts))
    .returning(inbox.c.delivery_id)
)
_EARLIER = (
    sa.select(inbox.c.next_attempt_at)
    .where(
        of_tenant(inbox),
        inbox.c.state == "received",
        inbox.c.source == sa.bindparam("of_source", type_=sa.Text),
        inbox.c.incident_ids.overlap(sa.bindparam("named", type_=_Texts)),
        sa.tuple_(inbox.c.received_at, inbox.c.delivery_id)
        < sa.tuple_(sa.bindparam("came", type_=_Time), sa.bindparam("which", type_=sa.Uuid)),
    )
    .order_by(inbox.c.received_at)
    .limit(1)
)
_FINISH = (
    sa.update(inbox)
    .where(_is_it, inbox.c.state == "received")
    .values(
        state=sa.bindparam("to_state", type_=sa.Text),
        body=sa.case((sa.bindparam("keep_body", type_=sa.Boolean), inbox.c.body), else_=None),
        error_code=sa.bindparam("code", type_=sa.Text),
        note=sa.bindparam("why", type_=sa.Text),
        outcomes=sa.bindparam("came_of_it", type_=pg.JSONB),
        done_at=_now,
    )
)
_POSTPONE = (
    sa.update(inbox)
    .where(_is_it, inbox.c.state == "received")
    .values(
        attempts=sa.bindparam("tried", type_=sa.Integer),
        next_attempt_at=sa.bindparam("until", type_=_Time),
        error_code=sa.bindparam("code", type_=sa.Text),
        note=sa.bindparam("why", type_=sa.Text),
    )
)
_EMPTY = (
    sa.update(inbox)
    .where(
        of_tenant(inbox),
        inbox.c.done_at < sa.bindparam("since", type_=_Time),
        sa.or_(inbox.c.state == "mapped", inbox.c.state == "ignored"),
        inbox.c.body.is_not(None),
    )
    .values(body=None)
    .returning(inbox.c.delivery_id)
)
_FORGET = (
    sa.delete(inbox)
    .where(of_tenant(inbox), inbox.c.done_at < sa.bindparam("long_ago", type_=_Time), inbox.c.body.is_(None))
    .returning(inbox.c.delivery_id)
)


def claim(database: Database, tenant_id: UUID, *, clock: Clock = utc_now) -> Row | None:
    """The delivery that is due longest, for a minute this worker's own; None where none is due."""
    now = clock()
    with database.transaction("writer", tenant_id) as transaction:
        rows = transaction.execute(_CLAIM, {"tenant_id": tenant_id, "now": now, "until": now + CLAIMED_FOR})
    return rows[0] if rows else None


def name_incidents(database: Database, row: Row, incident_ids: list[str]) -> datetime | None:
    """Note what a delivery is about; gives when one before it, about the same, is tried again: it waits for that."""
    named = {"tenant_id": row["tenant_id"], "which": row["delivery_id"], "named": incident_ids}
    with database.transaction("writer", row["tenant_id"]) as transaction:
        earlier = transaction.batch(
            [
                (_NAME_INCIDENTS, named),
                (_EARLIER, {**named, "of_source": row["source"], "came": row["received_at"]}),
            ]
        )[1]
    return earlier[0]["next_attempt_at"] if earlier else None


def finish(
    database: Database,
    row: Row,
    state: DeliveryState,
    *,
    code: str | None = None,
    why: str = "",
    outcomes: list[dict[str, Any]] | None = None,
    keep_body: bool = True,
    clock: Clock = utc_now,
) -> None:
    """Put a delivery away."""
    done = {"to_state": state, "code": code, "why": why, "came_of_it": outcomes or [], "keep_body": keep_body}
    with database.transaction("writer", row["tenant_id"]) as transaction:
        transaction.execute(
            _FINISH, {"tenant_id": row["tenant_id"], "which": row["delivery_id"], "now": clock(), **done}
        )


def postpone(database: Database, row: Row, until: datetime, *, attempts: int, code: str, why: str) -> None:
    """Try it again later."""
    later = {"until": until, "tried": attempts, "code": code, "why": why}
    with database.transaction("writer", row["tenant_id"]) as transaction:
        transaction.execute(_POSTPONE, {"tenant_id": row["tenant_id"], "which": row["delivery_id"], **later})


def prune_inbox(database: Database, tenant_id: UUID, days: int, *, clock: Clock = utc_now) -> int:
    """Drop the bodies of what was done so many days ago, and a year later the rows; gives how many."""
    now = clock()
    key = {"tenant_id": tenant_id}
    steps = [(_EMPTY, {**key, "since": now - timedelta(days=days)}), (_FORGET, {**key, "long_ago": now - ROWS_KEPT})]
    with database.transaction("writer", tenant_id) as transaction:
        return sum(len(rows) for rows in transaction.batch(steps))

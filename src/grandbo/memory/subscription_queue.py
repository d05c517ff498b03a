"""
Subscriptions as the worker has them: which is due, what it is told next, how far it has been told.

Each has one place in the log, and an event goes out only when the one before it was taken: so the order is that of
positions. It is claimed for a while and not taken away, so that a worker that dies leaves it there; whatever it had
told without noting it is told once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.log import READ_HEAD, head_of
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import candidates, entries, events, heads, revisions, subscriptions
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, new_id, utc_now

CLAIMED_FOR = timedelta(minutes=2)
BATCH = 50

_Time = sa.DateTime(timezone=True)
_Texts = pg.ARRAY(sa.Text)
_now = sa.bindparam("now", type_=_Time)
_due = subscriptions.alias("due")
_next_due = (
    sa.select(_due.c.subscription_id)
    .where(
        of_tenant(_due),
        _due.c.state == "active",
        _due.c.next_attempt_at <= _now,
        sa.or_(_due.c.claimed_until.is_(None), _due.c.claimed_until <= _now),
        _due.c.position < sa.select(heads.c.position).where(of_tenant(heads)).scalar_subquery(),
    )
    .order_by(_due.c.next_attempt_at, _due.c.subscription_id)
    .limit(1)
    .with_for_update(skip_locked=True)
    .scalar_subquery()
)
_CLAIM = (
    sa.update(subscriptions)
    .where(of_tenant(subscriptions), subscriptions.c.subscription_id == _next_due)
    .values(claim=sa.bindparam("mine", type_=sa.Uuid), claimed_until=sa.bindparam("until", type_=_Time))
    .returning(subscriptions)
)
_still_mine = sa.and_(
    of_tenant(subscriptions),
    subscriptions.c.subscription_id == sa.bindparam("which", type_=sa.Uuid),
    subscriptions.c.claim == sa.bindparam("mine", type_=sa.Uuid),
)
_returned = subscriptions.c.subscription_id
_ADVANCE = (
    sa.update(subscriptions)
    .where(_still_mine)
    .values(
        position=sa.bindparam("told_to", type_=sa.BigInteger),
        attempts=0,
        error_code=None,
        note="",
        delivered_at=sa.func.coalesce(sa.bindparam("told_at", type_=_Time), subscriptions.c.delivered_at),
        claimed_until=sa.bindparam("until", type_=_Time),
    )
    .returning(_returned)
)
# Behind those that are due as long: the next one that this tenant's worker takes is another.
_RELEASE = (
    sa.update(subscriptions)
    .where(_still_mine)
    .values(claim=None, claimed_until=None, next_attempt_at=_now)
    .returning(_returned)
)
_FAIL = (
    sa.update(subscriptions)
    .where(_still_mine)
    .values(
        state=sa.bindparam("to_state", type_=sa.Text),
        attempts=subscriptions.c.attempts + 1,
        next_attempt_at=sa.bindparam("again_at", type_=_Time),
        error_code=sa.bindparam("code", type_=sa.Text),
        note=sa.bindparam("why", type_=sa.Text),
        claim=None,
        claimed_until=None,
    )
    .returning(_returned)
)

_tiers = sa.any_(sa.bindparam("in_tiers", type_=_Texts))
_then = sa.and_(
    revisions.c.tenant_id == events.c.tenant_id,
    revisions.c.entry_id == events.c.stream_id,
    revisions.c.from_position <= events.c.position,
    sa.or_(revisions.c.to_position.is_(None), revisions.c.to_position > events.c.position),
)
_entry = sa.and_(entries.c.tenant_id == events.c.tenant_id, entries.c.entry_id == events.c.stream_id)
_candidate = sa.and_(candidates.c.tenant_id == events.c.tenant_id, candidates.c.candidate_id == events.c.stream_id)
_other_side = entries.alias("other_side")
_hidden_side = sa.exists().where(
    of_tenant(_other_side),
    _other_side.c.entry_id.in_([candidates.c.into_entry, candidates.c.disputes]),
    _other_side.c.visibility != sa.all_(sa.bindparam("in_tiers", type_=_Texts)),
)
# An entry has to stand in the tiers now, and to have stood there when it happened; one that was erased is neither.
_may_learn = sa.or_(
    sa.and_(entries.c.visibility == _tiers, revisions.c.visibility == _tiers, entries.c.kind != "personal"),
    sa.and_(candidates.c.visibility == _tiers, candidates.c.kind != "personal", sa.not_(_hidden_side)),
    sa.and_(sa.bindparam("sees_all", type_=sa.Boolean), events.c.event_type == "entry_erased"),
)
_NEXT = (
    sa.select(
        events.c.position,
        events.c.event_id,
        events.c.event_type,
        events.c.stream_id,
        events.c.stream_version,
        events.c.principal,
        events.c.occurred_at,
        events.c.recorded_at,
        events.c.hash,
        revisions.c.revision,
        revisions.c.status,
        sa.func.coalesce(revisions.c.kind, candidates.c.kind).label("kind"),
        sa.func.coalesce(revisions.c.visibility, candidates.c.visibility).label("visibility"),
    )
    .select_from(events.outerjoin(entries, _entry).outerjoin(revisions, _then).outerjoin(candidates, _candidate))
    .where(
        of_tenant(events),
        events.c.position > sa.bindparam("behind", type_=sa.BigInteger),
        events.c.position <= sa.bindparam("head", type_=sa.BigInteger),
        events.c.event_type == sa.any_(sa.bindparam("types", type_=_Texts)),
        events.c.subject_id.is_(None),
        _may_learn,
    )
    .order_by(events.c.position)
    .limit(BATCH)
)


def claim_subscription(database: Database, tenant_id: UUID, *, clock: Clock = utc_now) -> Row | None:
    """One that is due and behind, for two minutes this worker's own; None where there is none."""
    now = clock()
    params = {"tenant_id": tenant_id, "now": now, "until": now + CLAIMED_FOR, "mine": new_id()}
    with database.transaction("writer", tenant_id) as transaction:
        rows = transaction.execute(_CLAIM, params)
    return rows[0] if rows else None


def next_events(database: Database, row: Row, all_tiers: Sequence[str]) -> tuple[list[Row], int]:
    """
    What a subscription is told next, in the order of positions, and up to which position that is all.

    Args:
        all_tiers: of the tenant. Who sees all of them learns of erasures too, by the id alone.
    """
    with database.transaction("auditor", row["tenant_id"], read_only=True, snapshot=True) as transaction:
        head = head_of(transaction.execute(READ_HEAD, {"tenant_id": row["tenant_id"]})).position
        found = transaction.execute(
            _NEXT,
            {
                "tenant_id": row["tenant_id"],
                "behind": row["position"],
                "head": head,
                "types": row["event_types"],
                "in_tiers": row["tiers"],
                "sees_all": set(all_tiers) <= set(row["tiers"]),
            },
        )
    return found, head if len(found) < BATCH else int(found[-1]["position"])


def advance(
    database: Database, row: Row, position: int, *, told_at: datetime | None = None, clock: Clock = utc_now
) -> bool:
    """Note that it was told up to here; False where the claim is another's by now, or nobody's."""
    params = {**_key(row), "told_to": position, "told_at": told_at, "until": clock() + CLAIMED_FOR}
    with database.transaction("writer", row["tenant_id"]) as transaction:
        return bool(transaction.execute(_ADVANCE, params))


def release(database: Database, row: Row, *, clock: Clock = utc_now) -> None:
    """Leave it to whoever comes next."""
    with database.transaction("writer", row["tenant_id"]) as transaction:
        transaction.execute(_RELEASE, {**_key(row), "now": clock()})


def fail(database: Database, row: Row, again_at: datetime, *, code: str, why: str, is_dead: bool) -> None:
    """Count a failed attempt: it is tried again then, or waits for a person."""
    params = {"again_at": again_at, "code": code, "why": why, "to_state": "dead" if is_dead else "active"}
    with database.transaction("writer", row["tenant_id"]) as transaction:
        transaction.execute(_FAIL, {**_key(row), **params})


def _key(row: Row) -> dict[str, Any]:
    return {"tenant_id": row["tenant_id"], "which": row["subscription_id"], "mine": row["claim"]}

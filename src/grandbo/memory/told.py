"""
Who was told what: the receipts of answers that held an entry, and what their principals recorded afterwards.

Only receipts that were made for tiers within the caller's are there for him, and only entries in his tiers.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.models import EntryCorroborated, EntryRecorded, Policy
from grandbo.storage.tables import entries, receipt_entries, receipts, revisions
from grandbo.storage.tenancy import of_tenant

_Uuids = pg.ARRAY(sa.Uuid)
_Texts = pg.ARRAY(sa.Text)

_tiers = sa.func.coalesce(receipts.c.parameters["tiers"], sa.bindparam("all_tiers", type_=pg.JSONB))
# The receipt was made for tiers that the caller sees, all of them.
WITHIN_TIERS: sa.ColumnElement[bool] = _tiers.contained_by(sa.bindparam("own_tiers", type_=pg.JSONB))

_SERVED = sa.and_(
    of_tenant(receipt_entries),
    of_tenant(receipts),
    receipts.c.receipt_id == receipt_entries.c.receipt_id,
    WITHIN_TIERS,
    receipt_entries.c.entry_id == sa.any_(sa.bindparam("served", type_=_Uuids)),
)
_incident = receipts.c.parameters["incident"]
_has_incident = sa.func.coalesce(sa.func.jsonb_typeof(_incident), "null") == "object"
_DIGITS = 19
# What was answered of the past was answered by a log that reached further: no later event could be known to the asker.
_asked_at = sa.func.coalesce(
    sa.cast(receipts.c.parameters["as_of"]["seen_at"].astext, sa.BigInteger), receipts.c.position
)

COUNT_RECEIPTS = sa.select(sa.func.count(receipt_entries.c.receipt_id.distinct()).label("total")).where(_SERVED)
RECEIPTS = (
    sa.select(
        receipts.c.receipt_id,
        receipts.c.principal,
        receipts.c.made_at,
        receipts.c.position,
        _incident.label("incident"),
        sa.func.array_agg(pg.aggregate_order_by(receipt_entries.c.entry_id, receipt_entries.c.entry_id)).label(
            "entries"
        ),
    )
    .where(_SERVED)
    .group_by(receipts.c.tenant_id, receipts.c.receipt_id)
    .order_by(receipts.c.receipt_id.desc())
    .limit(sa.bindparam("page", type_=sa.Integer))
)


# Read by its key before anything is joined: as a filter, a long array would be searched through for every row.
_serving = (
    sa.select(receipt_entries.c.entry_id, receipt_entries.c.receipt_id)
    .where(of_tenant(receipt_entries), receipt_entries.c.entry_id == sa.any_(sa.bindparam("served", type_=_Uuids)))
    .cte("serving")
    .prefix_with("MATERIALIZED")
)


def _asked(when: sa.ColumnElement[bool]) -> sa.CTE:
    """Receipts that served any of these, each looked into once however many of them it served."""
    # Position and id as one text: the least of them is the first telling, and needs no sorting of all.
    telling = sa.func.lpad(sa.cast(_asked_at, sa.Text), _DIGITS, "0").op("||")(sa.cast(receipts.c.receipt_id, sa.Text))
    return (
        sa.select(
            receipts.c.receipt_id,
            receipts.c.principal,
            _incident["source"].astext.label("source"),
            _incident["id"].astext.label("id"),
            telling.label("telling"),
            # A value and no condition: the planner would take what a document holds for rare, and join row by row.
            sa.and_(WITHIN_TIERS, when).label("counts"),
        )
        .where(of_tenant(receipts), receipts.c.receipt_id.in_(sa.select(_serving.c.receipt_id)))
        .cte("asked")
        .prefix_with("MATERIALIZED")
    )


def _position_of(telling: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    return sa.cast(sa.func.left(telling, _DIGITS), sa.BigInteger)


def _receipt_of(telling: sa.ColumnElement[Any]) -> sa.ColumnElement[UUID]:
    return sa.cast(sa.func.substr(telling, _DIGITS + 1), sa.Uuid)


_authored = sa.select(revisions.c.entry_id, revisions.c.principal, revisions.c.from_position).where(
    of_tenant(revisions),
    of_tenant(entries),
    entries.c.entry_id == revisions.c.entry_id,
    entries.c.visibility == sa.any_(sa.bindparam("tiers", type_=_Texts)),
)
_recorded = _authored.where(revisions.c.event_type == EntryRecorded.EVENT_TYPE)
_supported = _authored.where(revisions.c.event_type == EntryCorroborated.EVENT_TYPE)
_support = sa.func.jsonb_array_elements(entries.c.supported_by).table_valued(
    sa.column("value", pg.JSONB), name="support"
)
# The last incident of a revision that a support made is the one that supported it then.
_last = revisions.c.supported_by[-1]
# Who recorded or supported what, where in the log, for which incidents.
_acts = (
    sa.union_all(
        _recorded.add_columns(entries.c.incident_source.label("source"), entries.c.incident_id.label("id")),
        _recorded.add_columns(_support.c.value["source"].astext, _support.c.value["id"].astext).select_from(
            entries, _support
        ),
        _supported.add_columns(_last["source"].astext, _last["id"].astext),
    )
    .cte("acts")
    .prefix_with("MATERIALIZED")
)

_for_incident = _asked(_has_incident)
_told = (
    sa.select(
        _serving.c.entry_id.label("served"),
        _for_incident.c.principal,
        _for_incident.c.source,
        _for_incident.c.id,
        sa.func.min(_for_incident.c.telling).label("telling"),
    )
    .where(_serving.c.receipt_id == _for_incident.c.receipt_id, _for_incident.c.counts)
    .group_by(_serving.c.entry_id, _for_incident.c.principal, _for_incident.c.source, _for_incident.c.id)
    .cte("told")
)
# One row for each pair of an entry and what its author had been told before, with the first receipt that says so.
RECORDED_AFTER = (
    sa.select(_acts.c.entry_id, _told.c.served, _receipt_of(sa.func.min(_told.c.telling)).label("receipt_id"))
    .where(
        _acts.c.principal == _told.c.principal,
        _acts.c.source == _told.c.source,
        _acts.c.id == _told.c.id,
        _acts.c.from_position > _position_of(_told.c.telling),
    )
    .group_by(_acts.c.entry_id, _told.c.served)
    .order_by(_acts.c.entry_id, _told.c.served)
)

_for_none = _asked(sa.not_(_has_incident))
_told_for_none = (
    sa.select(_for_none.c.principal, sa.func.min(_for_none.c.telling).label("telling"))
    .where(_for_none.c.counts)
    .group_by(_for_none.c.principal)
    .cte("told_for_none")
)
_maybe = (
    _authored.with_only_columns(
        revisions.c.entry_id,
        entries.c.title,
        revisions.c.principal,
        _receipt_of(_told_for_none.c.telling).label("receipt_id"),
    )
    .where(
        sa.or_(
            revisions.c.event_type == EntryRecorded.EVENT_TYPE,
            revisions.c.event_type == EntryCorroborated.EVENT_TYPE,
        ),
        revisions.c.principal == _told_for_none.c.principal,
        revisions.c.from_position > _position_of(_told_for_none.c.telling),
        revisions.c.entry_id != sa.all_(sa.bindparam("served", type_=_Uuids)),
    )
    .ext(pg.distinct_on(revisions.c.entry_id))
    .order_by(revisions.c.entry_id, revisions.c.from_position)
)
COUNT_POSSIBLY_AFFECTED = sa.select(sa.func.count().label("total")).select_from(_maybe.cte("maybe"))
POSSIBLY_AFFECTED = _maybe.limit(sa.bindparam("page", type_=sa.Integer))


def tier_params(tenant_id: UUID, policy: Policy, own: tuple[str, ...]) -> dict[str, Any]:
    """Values for what `WITHIN_TIERS` and the tenant's predicate leave open."""
    return {"tenant_id": tenant_id, "all_tiers": list(policy.tiers), "own_tiers": list(own)}

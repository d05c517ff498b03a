"""The row of a candidate, as commands and reviewers read it, and whose it is to see."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.models import Policy
from grandbo.memory.policy import may
from grandbo.storage.database import Row
from grandbo.storage.tables import candidates, entries, events, subjects
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Principal

# Of a dispute: the tiers of its two sides. Who does not see both must not learn from it that the other is there.
_pair_tiers = (
    sa.select(sa.func.array_agg(entries.c.visibility))
    .where(
        of_tenant(entries),
        candidates.c.disputes.is_not(None),
        sa.or_(entries.c.entry_id == candidates.c.into_entry, entries.c.entry_id == candidates.c.disputes),
    )
    .correlate(candidates)
    .scalar_subquery()
)
# Of what is personal: whose it is.
_is_its_subject = sa.and_(
    of_tenant(subjects), candidates.c.kind == "personal", subjects.c.subject_id == events.c.subject_id
)
_owners = sa.select(subjects.c.principals).where(_is_its_subject).correlate(candidates, events).scalar_subquery()
_owner = sa.func.unnest(subjects.c.principals).table_valued(sa.column("ref", sa.Text), name="owner").render_derived()
# How many people of its own could decide on it: who proposed it could not.
_people = (
    sa.select(sa.func.count())
    .select_from(subjects.join(_owner, sa.true()))
    .where(_is_its_subject, _owner.c.ref.startswith("human:"), _owner.c.ref != candidates.c.proposed_by)
    .correlate(candidates, events)
    .scalar_subquery()
)
_last_event = sa.and_(events.c.tenant_id == candidates.c.tenant_id, events.c.position == candidates.c.position)
CANDIDATE = (
    sa.select(
        candidates,
        events.c.hash,
        events.c.subject_id,
        _pair_tiers.label("pair_tiers"),
        _owners.label("owners"),
        _people.label("people"),
    )
    .join(events, _last_event)
    .where(
        of_tenant(candidates),
        of_tenant(events),
        candidates.c.candidate_id == sa.bindparam("candidate_id", type_=sa.Uuid),
    )
)

# A dispute shows itself to who sees both of its entries.
IS_HIDDEN_PAIR = sa.exists(
    sa.select(sa.literal_column("1")).where(
        of_tenant(entries),
        candidates.c.disputes.is_not(None),
        sa.or_(entries.c.entry_id == candidates.c.into_entry, entries.c.entry_id == candidates.c.disputes),
        entries.c.visibility != sa.all_(sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))),
    )
)

_tiers = sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))
# Where too few of its own people are there to decide, what is personal is left to who administers.
QUEUED = (
    sa.select(candidates, events.c.subject_id)
    .join(events, _last_event)
    .where(
        of_tenant(candidates),
        of_tenant(events),
        sa.or_(
            candidates.c.visibility == sa.any_(_tiers),
            candidates.c.proposed_by == sa.bindparam("own", type_=sa.Text),
            sa.and_(candidates.c.kind == "personal", _people < sa.bindparam("deciders", type_=sa.Integer)),
        ),
        sa.not_(IS_HIDDEN_PAIR),
    )
)


def deciders_wanted(policy: Policy, principal: Principal) -> int:
    """With fewer people of its own than these, what is personal is this principal's to decide on; 0: never."""
    if principal.type != "human" or not may(principal, "administer"):
        return 0
    return 2 if "personal" in policy.second_approval_kinds else 1


def is_seen(row: Row, principal: Principal, tiers: Collection[str], deciders: int) -> bool:
    """Whether the candidate of this row of `CANDIDATE` is the principal's to see."""
    is_left = row["kind"] == "personal" and row["people"] < deciders
    is_shown = row["visibility"] in tiers or row["proposed_by"] == principal.ref or is_left
    return is_shown and set(row["pair_tiers"] or ()) <= set(tiers)

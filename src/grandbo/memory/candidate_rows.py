"""The row of a candidate, as commands and reviewers read it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.storage.tables import candidates, entries, events
from grandbo.storage.tenancy import of_tenant

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
CANDIDATE = (
    sa.select(candidates, events.c.hash, _pair_tiers.label("pair_tiers"))
    .join(events, sa.and_(events.c.tenant_id == candidates.c.tenant_id, events.c.position == candidates.c.position))
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

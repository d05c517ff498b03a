"""How a large scope is scanned is policy: in any of before as it was, by the first set beyond 10,000 entries."""

from __future__ import annotations

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

AS_BEFORE = '{"exact_up_to": 10000, "scan": 1}'


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        # A projection, so it may be brought to what the newer form of the same events gives. Row-level security holds
        # for the owner too, and no tenant is bound here.
        op.execute(f"ALTER TABLE {schema}.org_memory_policies NO FORCE ROW LEVEL SECURITY")
        op.execute(f"UPDATE {schema}.org_memory_policies SET policy = policy || '{AS_BEFORE}'::jsonb")
        op.execute(f"ALTER TABLE {schema}.org_memory_policies FORCE ROW LEVEL SECURITY")

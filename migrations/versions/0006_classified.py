"""
What entries count as, besides kind and tier: namespace, owner, applicability. What a policy may say besides.

No entry of before has any of it, and the constants here are what a rebuild of such an entry gives.
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Ranges of versions as three arrays of one length: a system, its first version, the first version beyond.
COLUMNS = """
ALTER TABLE {schema}.{table}
  ADD COLUMN namespace text NOT NULL DEFAULT '',
  ADD COLUMN owner text,
  ADD COLUMN applicability text[] NOT NULL DEFAULT '{{}}',
  ADD COLUMN applies_systems text[] NOT NULL DEFAULT '{{}}',
  ADD COLUMN applies_from bytea[] NOT NULL DEFAULT '{{}}',
  ADD COLUMN applies_until bytea[] NOT NULL DEFAULT '{{}}',
  ADD CONSTRAINT {table}_applies_check CHECK (
    cardinality(applies_systems) = cardinality(applies_from)
    AND cardinality(applies_systems) = cardinality(applies_until))
"""
# From here on every writer states them: a forgotten one must fail and not be made up.
NO_DEFAULTS = """
ALTER TABLE {schema}.{table}
  ALTER COLUMN namespace DROP DEFAULT, ALTER COLUMN applicability DROP DEFAULT,
  ALTER COLUMN applies_systems DROP DEFAULT, ALTER COLUMN applies_from DROP DEFAULT,
  ALTER COLUMN applies_until DROP DEFAULT
"""
POLICY = (
    '{"stamps": [], "floor": 0, "second_approval_kinds": [], "second_approval_tiers": [], "pending_candidates": 200,'
    ' "screening": {"secrets": "redact", "instructions": "quarantine", "smuggled": "quarantine", "hidden": "redact",'
    ' "entropy": "quarantine", "personal": "flag", "hosts": "flag", "mixed_script": "flag", "size": "flag"}}'
)


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        for table in ("org_memory_entries", "org_memory_revisions"):
            op.execute(COLUMNS.format(schema=schema, table=table))
            op.execute(NO_DEFAULTS.format(schema=schema, table=table))
        # A projection, so it may be brought to what the newer form of the same events gives. Row-level security holds
        # for the owner too, and no tenant is bound here.
        op.execute(f"ALTER TABLE {schema}.org_memory_policies NO FORCE ROW LEVEL SECURITY")
        op.execute(
            f"UPDATE {schema}.org_memory_policies SET policy = policy || '{POLICY}'::jsonb"
            " || jsonb_build_object('review_days', policy -> 'expiry_days')"
        )
        op.execute(f"ALTER TABLE {schema}.org_memory_policies FORCE ROW LEVEL SECURITY")

"""
Care over time: disputes that wait for a person, which expiries the sweep has noted, which entries were compared.
"""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import CARE_POLICIES, wall_statements

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

CHECKS = """
CREATE TABLE grandbo.org_memory_contradiction_checks (
  tenant_id uuid NOT NULL,
  entry_id uuid NOT NULL,
  version int NOT NULL,
  revision int NOT NULL,
  CONSTRAINT org_memory_contradiction_checks_key PRIMARY KEY (tenant_id, entry_id));
GRANT SELECT, INSERT, UPDATE ON grandbo.org_memory_contradiction_checks TO grandbo_writer;
"""


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        op.execute(f"ALTER TABLE {schema}.org_memory_entries ADD COLUMN expiry_noted timestamptz")
        op.execute(
            f"ALTER TABLE {schema}.org_memory_candidates ADD COLUMN disputes uuid, ADD COLUMN other_revision int"
        )
        op.execute(
            f"CREATE INDEX org_memory_candidates_disputes ON {schema}.org_memory_candidates"
            " (tenant_id, into_entry, disputes) WHERE disputes IS NOT NULL"
        )
    op.execute(CHECKS)
    for statement in wall_statements("grandbo", CARE_POLICIES):
        op.execute(statement)

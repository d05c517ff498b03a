"""Typed links between entries, over time."""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import LINK_POLICIES, scratch_policies, wall_statements

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE {schema}.org_memory_links (
  tenant_id uuid NOT NULL,
  from_entry uuid NOT NULL,
  link_type text NOT NULL CONSTRAINT org_memory_links_link_type_check CHECK (link_type IN
    ('caused_by', 'duplicates', 'contradicts', 'supersedes', 'mitigated_by', 'relates_to')),
  to_entry uuid NOT NULL,
  from_position bigint NOT NULL,
  to_position bigint,
  principal text NOT NULL,
  reason text NOT NULL,
  linked_at timestamptz NOT NULL,
  CONSTRAINT org_memory_links_key PRIMARY KEY (tenant_id, from_entry, link_type, to_entry, from_position));
CREATE INDEX org_memory_links_back ON {schema}.org_memory_links (tenant_id, to_entry);
"""


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        op.execute(TABLE.format(schema=schema))
    for statement in wall_statements("grandbo", LINK_POLICIES):
        op.execute(statement)
    for statement in wall_statements("grandbo_scratch", scratch_policies(LINK_POLICIES)):
        op.execute(statement)
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo.org_memory_links TO grandbo_writer, grandbo_projector")
    op.execute("GRANT SELECT ON grandbo.org_memory_links TO grandbo_auditor")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo_scratch.org_memory_links TO grandbo_projector")

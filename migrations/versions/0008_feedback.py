"""What became of an answer: the verdicts of those who were told, over time."""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import FEEDBACK_POLICIES, scratch_policies, wall_statements

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE {schema}.org_memory_feedback (
  tenant_id uuid NOT NULL,
  feedback_id uuid NOT NULL,
  from_position bigint NOT NULL,
  to_position bigint,
  receipt_id uuid NOT NULL,
  entry_id uuid NOT NULL,
  revision int NOT NULL,
  principal text NOT NULL,
  verdict text NOT NULL CONSTRAINT org_memory_feedback_verdict_check CHECK (verdict IN
    ('helped', 'irrelevant', 'wrong', 'stale')),
  note text,
  given_at timestamptz NOT NULL,
  CONSTRAINT org_memory_feedback_key PRIMARY KEY (tenant_id, feedback_id, from_position));
CREATE INDEX org_memory_feedback_entry ON {schema}.org_memory_feedback (tenant_id, entry_id)
  WHERE to_position IS NULL;
"""


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        op.execute(TABLE.format(schema=schema))
    for statement in wall_statements("grandbo", FEEDBACK_POLICIES):
        op.execute(statement)
    for statement in wall_statements("grandbo_scratch", scratch_policies(FEEDBACK_POLICIES)):
        op.execute(statement)
    table = "org_memory_feedback"
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo.{table} TO grandbo_writer, grandbo_projector")
    op.execute(f"GRANT SELECT ON grandbo.{table} TO grandbo_auditor")
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo_scratch.{table} TO grandbo_projector")

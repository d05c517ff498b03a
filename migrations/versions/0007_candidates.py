"""Candidates: what waits for a person before it may be recalled."""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import CANDIDATE_POLICIES, scratch_policies, wall_statements

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE {schema}.org_memory_candidates (
  tenant_id uuid NOT NULL,
  candidate_id uuid NOT NULL,
  version int NOT NULL,
  position bigint NOT NULL,
  status text NOT NULL CONSTRAINT org_memory_candidates_status_check
    CHECK (status IN ('pending', 'approved', 'rejected', 'withdrawn')),
  kind text NOT NULL,
  title text NOT NULL,
  visibility text NOT NULL CONSTRAINT org_memory_candidates_visibility_check CHECK (visibility <> ''),
  claim_digest bytea NOT NULL,
  incident_source text,
  incident_id text,
  content jsonb NOT NULL,
  flags text[] NOT NULL,
  risk int NOT NULL CONSTRAINT org_memory_candidates_risk_check CHECK (risk BETWEEN 0 AND 100),
  into_entry uuid,
  author_type text NOT NULL CONSTRAINT org_memory_candidates_author_type_check
    CHECK (author_type IN ('human', 'agent', 'hook', 'system')),
  proposed_by text NOT NULL,
  proposal_reason text NOT NULL,
  approved_by text[] NOT NULL,
  decided_by text,
  decision_reason text,
  outcome text,
  entry_id uuid,
  entry_revision int,
  proposed_at timestamptz NOT NULL,
  changed_at timestamptz NOT NULL,
  CONSTRAINT org_memory_candidates_key PRIMARY KEY (tenant_id, candidate_id));
CREATE INDEX org_memory_candidates_queue ON {schema}.org_memory_candidates
  (tenant_id, status, risk DESC, position);
CREATE INDEX org_memory_candidates_proposer ON {schema}.org_memory_candidates (tenant_id, proposed_by)
  WHERE status = 'pending';
"""


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        op.execute(TABLE.format(schema=schema))
    for statement in wall_statements("grandbo", CANDIDATE_POLICIES):
        op.execute(statement)
    for statement in wall_statements("grandbo_scratch", scratch_policies(CANDIDATE_POLICIES)):
        op.execute(statement)
    op.execute(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo.org_memory_candidates TO grandbo_writer, grandbo_projector"
    )
    op.execute("GRANT SELECT ON grandbo.org_memory_candidates TO grandbo_auditor")
    op.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo_scratch.org_memory_candidates TO grandbo_projector")

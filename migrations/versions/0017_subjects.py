"""Subjects, the pepper of their references, what waits to be confirmed, erasures of subjects, the policy on people."""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import (
    CONFIRMATION_POLICIES,
    PEPPER_POLICIES,
    SUBJECT_POLICIES,
    scratch_policies,
    wall_statements,
)

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

# A tombstone says that there was one, of which kind, and when it went; it has neither reference nor principals.
SUBJECTS = """
CREATE TABLE {schema}.org_memory_subjects (
  tenant_id uuid NOT NULL,
  subject_id uuid NOT NULL,
  kind text NOT NULL CONSTRAINT org_memory_subjects_kind_check CHECK (kind IN ('person', 'workspace')),
  state text NOT NULL CONSTRAINT org_memory_subjects_state_check CHECK (state IN ('active', 'erased')),
  position bigint NOT NULL,
  reference bytea,
  principals text[] NOT NULL,
  registered_at timestamptz,
  held_by text,
  held_at timestamptz,
  hold_reason text,
  erased_at timestamptz,
  CONSTRAINT org_memory_subjects_key PRIMARY KEY (tenant_id, subject_id),
  CONSTRAINT org_memory_subjects_erased_check CHECK (
    state <> 'erased' OR (reference IS NULL AND cardinality(principals) = 0 AND hold_reason IS NULL)))
"""
TABLES = """
CREATE TABLE grandbo.org_memory_subject_peppers (
  tenant_id uuid NOT NULL,
  kek_epoch int NOT NULL,
  wrapped bytea NOT NULL,
  CONSTRAINT org_memory_subject_peppers_key PRIMARY KEY (tenant_id));
CREATE TABLE grandbo.org_memory_confirmations (
  tenant_id uuid NOT NULL,
  confirmation_id uuid NOT NULL,
  subject_id uuid NOT NULL,
  sealed bytea NOT NULL,
  asked_by text NOT NULL,
  asked_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT org_memory_confirmations_key PRIMARY KEY (tenant_id, confirmation_id));
CREATE INDEX org_memory_confirmations_subject ON grandbo.org_memory_confirmations (tenant_id, subject_id);
GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo.org_memory_subjects TO grandbo_writer, grandbo_projector;
GRANT SELECT ON grandbo.org_memory_subjects TO grandbo_auditor;
GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo_scratch.org_memory_subjects TO grandbo_projector;
GRANT SELECT, INSERT, UPDATE ON grandbo.org_memory_subject_peppers TO grandbo_keyholder;
GRANT SELECT, INSERT, DELETE ON grandbo.org_memory_confirmations TO grandbo_writer;
GRANT DELETE ON grandbo.org_memory_contradiction_checks TO grandbo_writer;
ALTER TABLE grandbo.org_memory_erasures ALTER COLUMN entry_id DROP NOT NULL, ADD COLUMN subject_id uuid,
  ADD CONSTRAINT org_memory_erasures_what_check CHECK ((entry_id IS NULL) <> (subject_id IS NULL)),
  -- An entry takes two people; whether a subject does is the tenant's policy.
  DROP CONSTRAINT org_memory_erasures_two_people,
  ADD CONSTRAINT org_memory_erasures_two_people
    CHECK (confirmed_by IS NULL OR confirmed_by <> requested_by OR subject_id IS NOT NULL);
"""
# What the newer form of the same events gives.
PEOPLE = (
    '{"people": {"quota": 200, "per_answer": 5, "shared_with": [], "second_person": false,'
    ' "workspace_unconfirmed": false, "episodes": false}}'
)


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        op.execute(SUBJECTS.format(schema=schema))
        # A projection, so it may be brought to what the newer form of the same events gives. Row-level security holds
        # for the owner too, and no tenant is bound here.
        op.execute(f"ALTER TABLE {schema}.org_memory_policies NO FORCE ROW LEVEL SECURITY")
        op.execute(f"UPDATE {schema}.org_memory_policies SET policy = policy || '{PEOPLE}'::jsonb")
        op.execute(f"ALTER TABLE {schema}.org_memory_policies FORCE ROW LEVEL SECURITY")
    op.execute(TABLES)
    for policies in (SUBJECT_POLICIES, PEPPER_POLICIES, CONFIRMATION_POLICIES):
        for statement in wall_statements("grandbo", policies):
            op.execute(statement)
    for statement in wall_statements("grandbo_scratch", scratch_policies(SUBJECT_POLICIES)):
        op.execute(statement)

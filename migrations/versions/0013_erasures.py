"""Erasures: who asked, who confirmed, what went, and the certificate; and what is taken out of receipts."""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import ERASURE_POLICIES, wall_statements

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE grandbo.org_memory_erasures (
  tenant_id uuid NOT NULL,
  erasure_id uuid NOT NULL,
  entry_id uuid NOT NULL,
  reason text NOT NULL CONSTRAINT org_memory_erasures_reason_check
    CHECK (reason IN ('personal_data', 'secret', 'legal', 'request')),
  keeps_current boolean NOT NULL,
  requested_by text NOT NULL,
  requested_at timestamptz NOT NULL,
  confirmed_by text,
  erased_at timestamptz,
  position bigint,
  hash bytea,
  outcome jsonb,
  certificate text,
  CONSTRAINT org_memory_erasures_key PRIMARY KEY (tenant_id, erasure_id),
  -- Two people: the one who asks cannot be the one who lets it happen.
  CONSTRAINT org_memory_erasures_two_people CHECK (confirmed_by IS NULL OR confirmed_by <> requested_by));
GRANT SELECT, INSERT, DELETE,
  UPDATE (confirmed_by, erased_at, position, hash, outcome, certificate)
  ON grandbo.org_memory_erasures TO grandbo_writer;
GRANT SELECT ON grandbo.org_memory_erasures TO grandbo_auditor;
-- A receipt keeps that something was served, and no longer what.
GRANT UPDATE (matches) ON grandbo.org_memory_receipts TO grandbo_writer;
GRANT DELETE ON grandbo.org_memory_receipt_entries TO grandbo_writer;
"""


def upgrade() -> None:
    op.execute(TABLE)
    for statement in wall_statements("grandbo", ERASURE_POLICIES):
        op.execute(statement)

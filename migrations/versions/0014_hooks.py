"""Ways in: hooks with their secrets, the inbox of what they delivered, and what is known of each incident."""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import HOOK_POLICIES, wall_statements

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

HOOKS = """
CREATE TABLE grandbo.org_memory_hooks (
  tenant_id uuid NOT NULL,
  hook_id text NOT NULL CONSTRAINT org_memory_hooks_id_check CHECK (hook_id ~ '^[0-9a-f]{48}$'),
  source text NOT NULL,
  name text NOT NULL,
  principal_id uuid NOT NULL,
  direct boolean NOT NULL,
  takes_private boolean NOT NULL,
  secret bytea NOT NULL,
  previous_secret bytea,
  rotated_at timestamptz,
  created_at timestamptz NOT NULL,
  CONSTRAINT org_memory_hooks_key PRIMARY KEY (tenant_id, hook_id));
GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo.org_memory_hooks TO grandbo_writer;
"""

INBOX = """
CREATE TABLE grandbo.org_memory_inbox (
  tenant_id uuid NOT NULL,
  delivery_id uuid NOT NULL,
  hook_id text NOT NULL,
  source text NOT NULL,
  delivery_key bytea NOT NULL CONSTRAINT org_memory_inbox_delivery_key_check CHECK (length(delivery_key) = 32),
  received_at timestamptz NOT NULL,
  verified_by text NOT NULL,
  headers jsonb NOT NULL,
  body bytea,
  body_bytes int NOT NULL,
  state text NOT NULL CONSTRAINT org_memory_inbox_state_check
    CHECK (state IN ('received', 'mapped', 'ignored', 'dead', 'dropped')),
  attempts int NOT NULL,
  next_attempt_at timestamptz NOT NULL,
  incident_ids text[] NOT NULL,
  error_code text,
  note text NOT NULL,
  outcomes jsonb NOT NULL,
  done_at timestamptz,
  CONSTRAINT org_memory_inbox_body_check CHECK (body IS NOT NULL OR state <> 'received'),
  CONSTRAINT org_memory_inbox_key PRIMARY KEY (tenant_id, delivery_id),
  CONSTRAINT org_memory_inbox_once UNIQUE (tenant_id, hook_id, delivery_key));
CREATE INDEX org_memory_inbox_due ON grandbo.org_memory_inbox (tenant_id, next_attempt_at) WHERE state = 'received';
CREATE INDEX org_memory_inbox_bodies ON grandbo.org_memory_inbox (tenant_id, done_at)
  WHERE done_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo.org_memory_inbox TO grandbo_writer;
"""

INCIDENTS = """
CREATE TABLE grandbo.org_memory_incidents (
  tenant_id uuid NOT NULL,
  source text NOT NULL,
  incident_id text NOT NULL CONSTRAINT org_memory_incidents_id_check CHECK (length(incident_id) BETWEEN 1 AND 200),
  version int NOT NULL,
  said jsonb NOT NULL,
  is_private boolean NOT NULL,
  applied jsonb,
  candidate_id uuid,
  entry_id uuid,
  outcome text NOT NULL,
  changed_at timestamptz NOT NULL,
  CONSTRAINT org_memory_incidents_key PRIMARY KEY (tenant_id, source, incident_id));
GRANT SELECT, INSERT, UPDATE ON grandbo.org_memory_incidents TO grandbo_writer;
"""


def upgrade() -> None:
    for table in (HOOKS, INBOX, INCIDENTS):
        op.execute(table)
    for statement in wall_statements("grandbo", HOOK_POLICIES):
        op.execute(statement)

"""What the service needs beside the log: principals, API keys, embedding attempts, receipts. Never rebuilt."""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import OPERATIONAL_POLICIES, wall_statements

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE grandbo.org_memory_principals (
  tenant_id uuid NOT NULL,
  principal_id uuid NOT NULL,
  type text NOT NULL CONSTRAINT org_memory_principals_type_check CHECK (type IN ('human', 'agent', 'hook', 'system')),
  name text NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT org_memory_principals_key PRIMARY KEY (tenant_id, principal_id),
  CONSTRAINT org_memory_principals_name_key UNIQUE (tenant_id, type, name));

CREATE TABLE grandbo.org_memory_api_keys (
  tenant_id uuid NOT NULL,
  key_id text NOT NULL,
  secret_digest bytea NOT NULL
    CONSTRAINT org_memory_api_keys_secret_digest_check CHECK (octet_length(secret_digest) = 32),
  principal_id uuid NOT NULL,
  roles text[] NOT NULL,
  created_at timestamptz NOT NULL,
  revoked_at timestamptz,
  CONSTRAINT org_memory_api_keys_key PRIMARY KEY (tenant_id, key_id),
  CONSTRAINT org_memory_api_keys_principal_fkey FOREIGN KEY (tenant_id, principal_id)
    REFERENCES grandbo.org_memory_principals (tenant_id, principal_id));

CREATE TABLE grandbo.org_memory_embedding_attempts (
  tenant_id uuid NOT NULL,
  stamp text NOT NULL,
  entry_id uuid NOT NULL,
  text_digest bytea NOT NULL,
  attempts int NOT NULL,
  next_attempt_at timestamptz NOT NULL,
  dead boolean NOT NULL,
  last_error text NOT NULL,
  CONSTRAINT org_memory_embedding_attempts_key PRIMARY KEY (tenant_id, stamp, entry_id));

CREATE TABLE grandbo.org_memory_receipt_keys (
  tenant_id uuid NOT NULL,
  epoch int NOT NULL,
  key bytea NOT NULL CONSTRAINT org_memory_receipt_keys_key_check CHECK (octet_length(key) = 32),
  created_at timestamptz NOT NULL,
  CONSTRAINT org_memory_receipt_keys_key PRIMARY KEY (tenant_id, epoch));

CREATE TABLE grandbo.org_memory_receipts (
  tenant_id uuid NOT NULL,
  receipt_id uuid NOT NULL,
  position bigint NOT NULL,
  instant timestamptz NOT NULL,
  principal text NOT NULL,
  key_epoch int NOT NULL,
  topic_hmac bytea NOT NULL,
  parameters jsonb NOT NULL,
  searched jsonb NOT NULL,
  matches jsonb NOT NULL,
  made_at timestamptz NOT NULL,
  CONSTRAINT org_memory_receipts_key PRIMARY KEY (tenant_id, receipt_id));

GRANT SELECT, INSERT ON grandbo.org_memory_principals TO grandbo_writer;
GRANT SELECT, INSERT, UPDATE (revoked_at) ON grandbo.org_memory_api_keys TO grandbo_writer;
GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo.org_memory_embedding_attempts TO grandbo_writer;
GRANT SELECT, INSERT ON grandbo.org_memory_receipt_keys TO grandbo_writer;
GRANT SELECT, INSERT ON grandbo.org_memory_receipts TO grandbo_writer;
GRANT SELECT ON grandbo.org_memory_receipts TO grandbo_auditor;
"""


def upgrade() -> None:
    op.execute(TABLES)
    for statement in wall_statements("grandbo", OPERATIONAL_POLICIES):
        op.execute(statement)

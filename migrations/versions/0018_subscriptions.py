"""Ways out: subscriptions, which are told of events in the order of their positions."""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import SUBSCRIPTION_POLICIES, wall_statements

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

SUBSCRIPTIONS = """
CREATE TABLE grandbo.org_memory_subscriptions (
  tenant_id uuid NOT NULL,
  subscription_id uuid NOT NULL,
  name text NOT NULL,
  url text NOT NULL CONSTRAINT org_memory_subscriptions_url_check CHECK (url ~ '^https?://'),
  event_types text[] NOT NULL,
  tiers text[] NOT NULL,
  secret bytea NOT NULL,
  previous_secret bytea,
  rotated_at timestamptz,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL,
  state text NOT NULL CONSTRAINT org_memory_subscriptions_state_check CHECK (state IN ('active', 'paused', 'dead')),
  position bigint NOT NULL CONSTRAINT org_memory_subscriptions_position_check CHECK (position >= 0),
  attempts int NOT NULL,
  next_attempt_at timestamptz NOT NULL,
  error_code text,
  note text NOT NULL,
  delivered_at timestamptz,
  claim uuid,
  claimed_until timestamptz,
  CONSTRAINT org_memory_subscriptions_key PRIMARY KEY (tenant_id, subscription_id));
GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo.org_memory_subscriptions TO grandbo_writer;
"""


def upgrade() -> None:
    op.execute(SUBSCRIPTIONS)
    for statement in wall_statements("grandbo", SUBSCRIPTION_POLICIES):
        op.execute(statement)

"""Keys that end by themselves, and keys that only read."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# Keys that are there go on without an end and write as their roles allow.
COLUMNS = """
ALTER TABLE grandbo.org_memory_api_keys
  ADD COLUMN expires_at timestamptz,
  ADD COLUMN read_only boolean NOT NULL DEFAULT false;
"""


def upgrade() -> None:
    op.execute(COLUMNS)

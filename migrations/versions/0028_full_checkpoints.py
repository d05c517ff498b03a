"""
A checkpoint that states the digest of the projections beside a quick one of the same size.

Whether a note states it is read off the note itself. The table is append-only; what is generated is no change of a row.
"""

from __future__ import annotations

from alembic import op

revision = "0028"
down_revision = "0025"
branch_labels = None
depends_on = None

FULL = """
ALTER TABLE grandbo.org_memory_checkpoints
  ADD COLUMN is_full boolean NOT NULL GENERATED ALWAYS AS (position(E'\\nprojections ' in note) > 0) STORED;
ALTER TABLE grandbo.org_memory_checkpoints DROP CONSTRAINT org_memory_checkpoints_key;
ALTER TABLE grandbo.org_memory_checkpoints ADD CONSTRAINT org_memory_checkpoints_key
  PRIMARY KEY (tenant_id, size, is_full);
"""


def upgrade() -> None:
    op.execute(FULL)

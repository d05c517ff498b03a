"""Working notes of an investigation: never part of the memory, and gone with their investigation."""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import NOTE_POLICIES, wall_statements

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE grandbo.org_memory_notes (
  tenant_id uuid NOT NULL,
  investigation_id text NOT NULL CONSTRAINT org_memory_notes_investigation_check
    CHECK (length(investigation_id) BETWEEN 1 AND 128),
  note_id uuid NOT NULL,
  role text NOT NULL CONSTRAINT org_memory_notes_role_check CHECK (role IN ('note', 'user', 'assistant', 'tool')),
  author text NOT NULL,
  tiers text[] NOT NULL,
  text text NOT NULL,
  noted_at timestamptz NOT NULL,
  CONSTRAINT org_memory_notes_key PRIMARY KEY (tenant_id, investigation_id, note_id));
GRANT SELECT, INSERT, DELETE ON grandbo.org_memory_notes TO grandbo_writer;
"""


def upgrade() -> None:
    op.execute(TABLE)
    for statement in wall_statements("grandbo", NOTE_POLICIES):
        op.execute(statement)

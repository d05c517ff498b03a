"""Deliveries about somebody: whom a person has named, for the delivery and for all that is told of its incident."""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE grandbo.org_memory_inbox ADD COLUMN subject_id uuid;
ALTER TABLE grandbo.org_memory_incidents ADD COLUMN subject_id uuid;
"""


def upgrade() -> None:
    op.execute(COLUMNS)

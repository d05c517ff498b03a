"""How long an answer took stands on its receipt."""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Receipts of before do not know it.
    op.execute("ALTER TABLE grandbo.org_memory_receipts ADD COLUMN took_us int")

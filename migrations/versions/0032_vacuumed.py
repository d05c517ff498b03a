"""
What recall reads is vacuumed soon after it is filled.

Until a vacuum has seen a page, an index over it answers nothing by itself: each row is asked for again in its table. By
PostgreSQL's own thresholds that waits for a thousand insertions and a fifth of the table; a memory of some hundred
entries, fresh from an import, would never see one.
"""

from __future__ import annotations

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

READ_BY_RECALL = ("entries", "revisions", "terms", "embeddings")


def upgrade() -> None:
    for name in READ_BY_RECALL:
        op.execute(
            f"ALTER TABLE grandbo.org_memory_{name} SET "
            "(autovacuum_vacuum_insert_threshold = 100, autovacuum_vacuum_insert_scale_factor = 0.05)"
        )

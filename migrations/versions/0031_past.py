"""
Indexes over the past: recall as of a moment reads no vector that is not near, and no text that is not shown.

What stands still is in one index, what was closed is in another by when: of a moment, the rows that were closed before
it are not read. The scope, and the signature, stand in them, so they answer alone.
"""

from __future__ import annotations

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

SCOPE = "entry_id, status, visibility, kind, service, valid_from, expires_at"
INDEXES = """
DROP INDEX {schema}.org_memory_embeddings_live;
CREATE INDEX org_memory_embeddings_live ON {schema}.org_memory_embeddings
  (tenant_id, stamp, status, visibility, valid_from, expires_at, kind, service, from_position)
  INCLUDE (entry_id, window_no, signature) WHERE to_position IS NULL;
CREATE INDEX org_memory_embeddings_closed ON {schema}.org_memory_embeddings
  (tenant_id, stamp, to_position, from_position)
  INCLUDE (entry_id, window_no, signature) WHERE to_position IS NOT NULL;
DROP INDEX {schema}.org_memory_revisions_held;
CREATE INDEX org_memory_revisions_live ON {schema}.org_memory_revisions
  (tenant_id, from_position) INCLUDE ({scope}) WHERE to_position IS NULL;
CREATE INDEX org_memory_revisions_closed ON {schema}.org_memory_revisions
  (tenant_id, to_position, from_position) INCLUDE ({scope}) WHERE to_position IS NOT NULL;
"""


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        op.execute(INDEXES.format(schema=schema, scope=SCOPE))

"""A signature beside each vector: what a large memory is scanned by before the nearest are measured."""

from __future__ import annotations

from alembic import op

revision = "0022"
down_revision = "0020"
branch_labels = None
depends_on = None

QUARTILE = "array_fill((0.6745 / sqrt(vector_dims(vector)))::real, ARRAY[vector_dims(vector)])::vector"
# The column's type is altered to itself so that the table is written
# once, whoever's rows they are, and no row is left behind by an update.
ADDED = """
ALTER TABLE {schema}.org_memory_embeddings ADD COLUMN signature bit varying;
ALTER TABLE {schema}.org_memory_embeddings
  ALTER COLUMN signature TYPE bit varying USING
    binary_quantize(vector) || binary_quantize(vector - {quartile}) || binary_quantize(vector + {quartile}),
  ALTER COLUMN signature SET NOT NULL,
  ALTER COLUMN signature SET STORAGE PLAIN;
"""
# The scope first, as before, and now all that is asked of a row before its vector is: an index answers it alone.
INDEX = """
DROP INDEX {schema}.org_memory_embeddings_live;
CREATE INDEX org_memory_embeddings_live ON {schema}.org_memory_embeddings
  (tenant_id, stamp, status, visibility, valid_from, expires_at, kind, service)
  INCLUDE (entry_id, window_no, signature) WHERE to_position IS NULL;
"""


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        op.execute(ADDED.format(schema=schema, quartile=QUARTILE))
        op.execute(INDEX.format(schema=schema))

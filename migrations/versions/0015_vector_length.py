"""Vectors are stored as long as their space is, no longer all of 1,024 numbers: a shorter model's are read sooner."""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

# A stamp ends in `/dimensions/recipe`. What is cut off are zeros, appended when the vector was stored. In one command,
# so that the table is written anew with the new type and still with nothing of it out of line.
CUT = r"""
ALTER TABLE {schema}.org_memory_embeddings
  ALTER COLUMN vector TYPE vector
    USING subvector(vector, 1, (ceil(substring(stamp FROM '/([0-9]+)/[^/]*$')::numeric / 64) * 64)::int),
  ALTER COLUMN vector SET STORAGE PLAIN;
"""


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        op.execute(CUT.format(schema=schema))

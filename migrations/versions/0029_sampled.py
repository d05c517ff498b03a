"""An index over a sample of the postings: how frequent a term is in a large memory is counted there."""

from __future__ import annotations

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

# One entry in sixteen, by its id: no column, so no row is written again and no digest of rows changes. Only what stands
# now: equal keys are then kept once, and an entry of the index takes a few bytes.
INDEX = """
CREATE INDEX org_memory_terms_sampled ON {schema}.org_memory_terms (tenant_id, visibility, term)
  WHERE to_position IS NULL AND get_byte(uuid_send(entry_id), 15) < 16
"""


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        op.execute(INDEX.format(schema=schema))

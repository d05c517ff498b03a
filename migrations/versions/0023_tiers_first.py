"""
Tiers first: what is read for somebody lies apart from what is above his tiers, and takes no longer beside it.

With the tier after the term or the entry, the rows of all tiers lie side by side, and the server reads
past the hidden ones before it leaves them out: how long that takes told that they are there.
"""

from __future__ import annotations

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

TIERS_FIRST = """
ALTER TABLE {schema}.org_memory_terms DROP CONSTRAINT org_memory_terms_key;
ALTER TABLE {schema}.org_memory_terms ADD CONSTRAINT org_memory_terms_key
  PRIMARY KEY (tenant_id, visibility, term, entry_id, from_position) INCLUDE (to_position, weight);
CREATE INDEX org_memory_entries_pages ON {schema}.org_memory_entries (tenant_id, visibility, entry_id);
"""


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        op.execute(TIERS_FIRST.format(schema=schema))

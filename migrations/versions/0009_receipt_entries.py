"""Which receipts served an entry, as an index that does not have to look into every receipt."""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import RECEIPT_ENTRY_POLICIES, wall_statements

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE grandbo.org_memory_receipt_entries (
  tenant_id uuid NOT NULL,
  entry_id uuid NOT NULL,
  receipt_id uuid NOT NULL,
  revision int NOT NULL,
  CONSTRAINT org_memory_receipt_entries_key PRIMARY KEY (tenant_id, entry_id, receipt_id),
  CONSTRAINT org_memory_receipt_entries_receipt_fkey FOREIGN KEY (tenant_id, receipt_id)
    REFERENCES grandbo.org_memory_receipts (tenant_id, receipt_id));
GRANT SELECT, INSERT ON grandbo.org_memory_receipt_entries TO grandbo_writer;
GRANT SELECT ON grandbo.org_memory_receipt_entries TO grandbo_auditor;
"""

# The owner is bound by the walls too, and no tenant is bound here: for the reading alone they do not bind the owner.
BACK_FILL = """
ALTER TABLE grandbo.org_memory_receipts NO FORCE ROW LEVEL SECURITY;
INSERT INTO grandbo.org_memory_receipt_entries (tenant_id, entry_id, receipt_id, revision)
SELECT r.tenant_id, (m ->> 'entry_id')::uuid, r.receipt_id, (m ->> 'revision')::int
FROM grandbo.org_memory_receipts r, jsonb_array_elements(r.matches) m
ON CONFLICT DO NOTHING;
ALTER TABLE grandbo.org_memory_receipts FORCE ROW LEVEL SECURITY;
"""


def upgrade() -> None:
    op.execute(TABLE)
    op.execute(BACK_FILL)
    for statement in wall_statements("grandbo", RECEIPT_ENTRY_POLICIES):
        op.execute(statement)

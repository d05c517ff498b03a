"""What the lifecycle of an entry adds to its state: the other side of a dispute, and what took its place."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        for table in ("org_memory_entries", "org_memory_revisions"):
            op.execute(f"ALTER TABLE {schema}.{table} ADD COLUMN disputed_with uuid, ADD COLUMN superseded_by uuid")
        # What changes an entry changes its vectors' scope, in whatever space they are.
        op.execute(
            f"CREATE INDEX org_memory_embeddings_entry ON {schema}.org_memory_embeddings (tenant_id, entry_id)"
            " WHERE to_position IS NULL"
        )
        # As of a moment, a revision is found by its entry and the positions between which it held.
        op.execute(
            f"CREATE INDEX org_memory_revisions_held ON {schema}.org_memory_revisions"
            " (tenant_id, from_position, to_position)"
        )

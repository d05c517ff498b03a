"""Redactions: single revisions of an entry are erased, and what is left of them goes on."""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

# Which revisions were asked for; and, as numbers and names of fields alone, where the same words stand besides.
COLUMNS = """
ALTER TABLE grandbo.org_memory_erasures
  ADD COLUMN revisions int[],
  ADD COLUMN still_in jsonb;
GRANT UPDATE (still_in) ON grandbo.org_memory_erasures TO grandbo_writer;
"""

# Its narrow owner is set by the bootstrap step that follows the migrations, as that of the function beside it.
FUNCTION = """
CREATE FUNCTION grandbo.remove_bodies_at(p_position bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE e record; n bigint;
BEGIN
  -- the appended erasure event is the only authority: it names positions, which must be of its own stream
  SELECT tenant_id, position, stream_id, convert_from(body, 'UTF8')::jsonb AS doc INTO e
    FROM grandbo.org_memory_events
   WHERE tenant_id = grandbo.current_tenant() AND position = p_position AND event_type = 'entry_erased';
  IF NOT FOUND THEN
    RAISE EXCEPTION 'position % is not an entry_erased event of the bound tenant', p_position USING ERRCODE = 'GB003';
  END IF;
  UPDATE grandbo.org_memory_events v SET body = NULL, salt = NULL
   WHERE v.tenant_id = e.tenant_id AND v.stream_id = e.stream_id AND v.position < e.position AND v.body IS NOT NULL
     AND v.event_type NOT IN ('entry_erased', 'subject_erased')
     AND v.position IN (SELECT p::bigint FROM jsonb_array_elements_text(coalesce(e.doc -> 'positions', '[]')) p);
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;
REVOKE ALL ON FUNCTION grandbo.remove_bodies_at(bigint) FROM PUBLIC;
"""


def upgrade() -> None:
    op.execute(COLUMNS)
    op.execute(FUNCTION)

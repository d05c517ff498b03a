"""The projections, twice: live in `grandbo`, and empty in `grandbo_scratch`, where a rebuild is checked."""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import PROJECTION_POLICIES, scratch_policies, wall_statements

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STATE = """
  kind text NOT NULL CONSTRAINT {table}_kind_check
    CHECK (kind IN ('finding', 'runbook', 'reference', 'decision', 'ruled_out', 'personal', 'episode', 'note')),
  status text NOT NULL CONSTRAINT {table}_status_check
    CHECK (status IN ('published', 'archived', 'superseded', 'quarantined')),
  title text NOT NULL,
  summary text NOT NULL,
  body text NOT NULL,
  service text NOT NULL,
  tags text[] NOT NULL CONSTRAINT {table}_tags_check CHECK (cardinality(tags) <= 16),
  visibility text NOT NULL CONSTRAINT {table}_visibility_check CHECK (visibility <> ''),
  confidence_bp int NOT NULL CONSTRAINT {table}_confidence_bp_check CHECK (confidence_bp BETWEEN 0 AND 10000),
  author_type text NOT NULL CONSTRAINT {table}_author_type_check
    CHECK (author_type IN ('human', 'agent', 'hook', 'system')),
  evidence jsonb NOT NULL,
  incident_source text,
  incident_id text,
  external_id text,
  claim_digest bytea NOT NULL,
  text_digest bytea NOT NULL,
  occurred_at timestamptz,
  occurred_precision text,
  ended_at timestamptz,
  valid_from timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  verified_at timestamptz,
  review_at timestamptz NOT NULL,
  disputed boolean NOT NULL,
  supported_by jsonb NOT NULL,
  recorded_at timestamptz NOT NULL,
  changed_at timestamptz NOT NULL,
"""

# Postings are most of what a write costs, so they have one index: it answers recall by itself, and the postings of an
# entry are found through it with the terms that the entry's row lists.
# The index over live vectors has the whole scope: what row-level security and the statement ask of each row is then
# answered by the index, at a fraction of what it costs as a filter over the rows.
# The vector is stored PLAIN, in a narrow table of its own: out of line, as a wide column is by default, an exact scan
# of 5,000 is five to six times slower.
TABLES = """
CREATE TABLE {schema}.org_memory_policies (
  tenant_id uuid NOT NULL,
  from_position bigint NOT NULL,
  to_position bigint,
  name text NOT NULL,
  policy jsonb NOT NULL,
  changed_at timestamptz NOT NULL,
  CONSTRAINT org_memory_policies_key PRIMARY KEY (tenant_id, from_position));

CREATE TABLE {schema}.org_memory_entries (
  tenant_id uuid NOT NULL,
  entry_id uuid NOT NULL,
  revision int NOT NULL,
  position bigint NOT NULL,
  terms text[] NOT NULL,
  {entry_state}
  CONSTRAINT org_memory_entries_key PRIMARY KEY (tenant_id, entry_id));
CREATE INDEX org_memory_entries_scope ON {schema}.org_memory_entries
  (tenant_id, status, visibility, valid_from, expires_at, kind, service, entry_id);
CREATE INDEX org_memory_entries_claim ON {schema}.org_memory_entries (tenant_id, claim_digest);

CREATE TABLE {schema}.org_memory_revisions (
  tenant_id uuid NOT NULL,
  entry_id uuid NOT NULL,
  revision int NOT NULL,
  from_position bigint NOT NULL,
  to_position bigint,
  event_type text NOT NULL,
  principal text NOT NULL,
  {revision_state}
  CONSTRAINT org_memory_revisions_key PRIMARY KEY (tenant_id, entry_id, revision));

CREATE TABLE {schema}.org_memory_terms (
  tenant_id uuid NOT NULL,
  term text NOT NULL,
  entry_id uuid NOT NULL,
  from_position bigint NOT NULL,
  to_position bigint,
  weight int NOT NULL,
  visibility text NOT NULL,
  CONSTRAINT org_memory_terms_key PRIMARY KEY (tenant_id, term, entry_id, from_position)
    INCLUDE (to_position, weight, visibility));

CREATE TABLE {schema}.org_memory_embeddings (
  tenant_id uuid NOT NULL,
  stamp text NOT NULL,
  entry_id uuid NOT NULL,
  window_no int NOT NULL,
  from_position bigint NOT NULL,
  to_position bigint,
  text_digest bytea NOT NULL,
  window_start int NOT NULL,
  window_end int NOT NULL,
  status text NOT NULL,
  visibility text NOT NULL,
  kind text NOT NULL,
  service text NOT NULL,
  valid_from timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  vector vector(1024) NOT NULL,
  CONSTRAINT org_memory_embeddings_key PRIMARY KEY (tenant_id, stamp, entry_id, window_no, from_position));
ALTER TABLE {schema}.org_memory_embeddings ALTER COLUMN vector SET STORAGE PLAIN;
CREATE INDEX org_memory_embeddings_live ON {schema}.org_memory_embeddings
  (tenant_id, stamp, status, visibility, valid_from, expires_at, kind, service) WHERE to_position IS NULL;
"""

GRANTS = """
GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo.org_memory_policies, grandbo.org_memory_entries,
  grandbo.org_memory_revisions, grandbo.org_memory_terms, grandbo.org_memory_embeddings
  TO grandbo_writer, grandbo_projector;
GRANT SELECT ON grandbo.org_memory_policies, grandbo.org_memory_entries, grandbo.org_memory_revisions,
  grandbo.org_memory_terms, grandbo.org_memory_embeddings TO grandbo_auditor;
GRANT SELECT ON grandbo.org_memory_entries, grandbo.org_memory_revisions, grandbo.org_memory_terms,
  grandbo.org_memory_embeddings TO grandbo_reader;
GRANT USAGE ON SCHEMA grandbo_scratch TO grandbo_projector;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA grandbo_scratch TO grandbo_projector;
"""


def upgrade() -> None:
    for schema in ("grandbo", "grandbo_scratch"):
        op.execute(
            TABLES.format(
                schema=schema,
                entry_state=STATE.format(table="org_memory_entries"),
                revision_state=STATE.format(table="org_memory_revisions"),
            )
        )
    for statement in wall_statements("grandbo", PROJECTION_POLICIES):
        op.execute(statement)
    for statement in wall_statements("grandbo_scratch", scratch_policies(PROJECTION_POLICIES)):
        op.execute(statement)
    op.execute(GRANTS)

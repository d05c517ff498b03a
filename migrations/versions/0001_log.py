"""The log: tenants, heads, events, checkpoints, subject keys; the declared chain; append-only; erasure functions."""

from __future__ import annotations

from alembic import op

from grandbo.storage.walls import LOG_POLICIES, wall_statements

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ALL_ROLES = (
    "grandbo_writer, grandbo_reader, grandbo_projector, grandbo_auditor, grandbo_notary, grandbo_keyholder, "
    "grandbo_eraser"
)

# STABLE, never IMMUTABLE: an IMMUTABLE one is folded into a prepared plan and then serves one tenant's rows to another.
# nullif, because a setting that was SET LOCAL once reads '' afterwards, not NULL.
FUNCTIONS = f"""
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
GRANT USAGE ON SCHEMA grandbo TO {ALL_ROLES};

CREATE FUNCTION grandbo.current_tenant() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT nullif(pg_catalog.current_setting('grandbo.tenant_id', true), '')::uuid $$;
CREATE FUNCTION grandbo.current_tiers() RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT coalesce(nullif(pg_catalog.current_setting('grandbo.tiers', true), '')::text[], '{{}}') $$;
CREATE FUNCTION grandbo.current_statuses() RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT coalesce(nullif(pg_catalog.current_setting('grandbo.statuses', true), '')::text[], '{{published}}') $$;
CREATE FUNCTION grandbo.current_instant() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
  AS $$ SELECT coalesce(nullif(pg_catalog.current_setting('grandbo.valid_at', true), '')::timestamptz,
                        pg_catalog.now()) $$;
REVOKE ALL ON FUNCTION grandbo.current_tenant(), grandbo.current_tiers(), grandbo.current_statuses(),
  grandbo.current_instant() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION grandbo.current_tenant(), grandbo.current_tiers(), grandbo.current_statuses(),
  grandbo.current_instant() TO {ALL_ROLES};
"""

# IS TRUE: a CHECK that comes out NULL passes, and it does so where the envelope lacks the key that is compared.
TABLES = """
-- the one table without a policy: ids only, so that workers can walk the tenants
CREATE TABLE grandbo.org_memory_tenants (tenant_id uuid CONSTRAINT org_memory_tenants_key PRIMARY KEY);
GRANT SELECT, INSERT ON grandbo.org_memory_tenants TO grandbo_writer;
GRANT SELECT ON grandbo.org_memory_tenants TO grandbo_projector, grandbo_notary, grandbo_auditor;

CREATE TABLE grandbo.org_memory_events (
  tenant_id uuid NOT NULL,
  position bigint NOT NULL CONSTRAINT org_memory_events_position_check CHECK (position > 0),
  event_id uuid NOT NULL,
  stream_id uuid NOT NULL,
  stream_version int NOT NULL CONSTRAINT org_memory_events_stream_version_check CHECK (stream_version > 0),
  event_type text NOT NULL CONSTRAINT org_memory_events_event_type_check CHECK (event_type ~ '^[a-z][a-z0-9_]{0,62}$'),
  schema_version int NOT NULL CONSTRAINT org_memory_events_schema_version_check CHECK (schema_version > 0),
  principal text NOT NULL
    CONSTRAINT org_memory_events_principal_check CHECK (principal ~ '^(human|agent|hook|system):[0-9a-f-]{36}$'),
  subject_id uuid,
  command_id uuid NOT NULL,
  command_index int NOT NULL CONSTRAINT org_memory_events_command_index_check CHECK (command_index >= 0),
  correlation_id uuid,
  causation_id uuid,
  occurred_at timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL,
  envelope text NOT NULL,
  body bytea,
  salt bytea,
  prev_position bigint GENERATED ALWAYS AS (nullif(position - 1, 0)) STORED,
  prev_hash bytea NOT NULL,
  hash bytea NOT NULL,
  CONSTRAINT org_memory_events_key PRIMARY KEY (tenant_id, position),
  CONSTRAINT org_memory_events_event_key UNIQUE (tenant_id, event_id),
  CONSTRAINT org_memory_events_stream_key UNIQUE (tenant_id, stream_id, stream_version),
  CONSTRAINT org_memory_events_command_key UNIQUE (tenant_id, command_id, command_index),
  CONSTRAINT org_memory_events_link_key UNIQUE (tenant_id, position, hash),
  CONSTRAINT org_memory_events_continues FOREIGN KEY (tenant_id, prev_position, prev_hash)
    REFERENCES grandbo.org_memory_events (tenant_id, position, hash),
  CONSTRAINT org_memory_events_genesis
    CHECK (position > 1 OR prev_hash = sha256(convert_to('grandbo/v1/genesis/' || tenant_id, 'UTF8'))),
  CONSTRAINT org_memory_events_sealed
    CHECK (hash = sha256('\\x02'::bytea || int8send(position) || prev_hash
                         || sha256('\\x00'::bytea || convert_to(envelope, 'UTF8')))),
  CONSTRAINT org_memory_events_envelope
    CHECK (((envelope::jsonb) @> jsonb_build_object(
             'v', 1, 'tenant_id', tenant_id::text, 'position', position, 'event_id', event_id::text,
             'stream_id', stream_id::text, 'stream_version', stream_version, 'event_type', event_type,
             'schema_version', schema_version, 'principal', principal, 'subject_id', subject_id::text,
             'command_id', command_id::text, 'command_index', command_index,
             'correlation_id', correlation_id::text, 'causation_id', causation_id::text)
           AND ((envelope::jsonb) ->> 'occurred_at')::timestamptz = occurred_at
           AND ((envelope::jsonb) ->> 'recorded_at')::timestamptz = recorded_at) IS TRUE),
  CONSTRAINT org_memory_events_removed CHECK ((body IS NULL) = (salt IS NULL)),
  CONSTRAINT org_memory_events_commitment
    CHECK (body IS NULL OR salt IS NULL OR (octet_length(salt) = 32
           AND encode(sha256('\\x03'::bytea || salt || body), 'hex') = (envelope::jsonb) ->> 'commitment') IS TRUE),
  CONSTRAINT org_memory_events_plain
    CHECK (subject_id IS NOT NULL OR body IS NULL OR convert_from(body, 'UTF8')::jsonb IS NOT NULL),
  CONSTRAINT org_memory_events_erasure
    CHECK (subject_id IS NULL OR event_type NOT IN ('entry_erased', 'subject_erased')));
CREATE INDEX org_memory_events_subject ON grandbo.org_memory_events (tenant_id, subject_id)
  WHERE subject_id IS NOT NULL;

-- fillfactor: the head is updated by every write and by nothing else; half-empty pages keep those updates HOT
CREATE TABLE grandbo.org_memory_heads (
  tenant_id uuid NOT NULL CONSTRAINT org_memory_heads_key PRIMARY KEY,
  position bigint NOT NULL DEFAULT 0 CONSTRAINT org_memory_heads_position_check CHECK (position >= 0),
  hash bytea NOT NULL,
  recorded_at timestamptz NOT NULL DEFAULT '1970-01-01Z',
  at_position bigint GENERATED ALWAYS AS (nullif(position, 0)) STORED,
  CONSTRAINT org_memory_heads_genesis
    CHECK (position > 0 OR hash = sha256(convert_to('grandbo/v1/genesis/' || tenant_id, 'UTF8'))),
  CONSTRAINT org_memory_heads_event FOREIGN KEY (tenant_id, at_position, hash)
    REFERENCES grandbo.org_memory_events (tenant_id, position, hash)) WITH (fillfactor = 50);

CREATE TABLE grandbo.org_memory_checkpoints (
  tenant_id uuid NOT NULL,
  size bigint NOT NULL CONSTRAINT org_memory_checkpoints_size_check CHECK (size > 0),
  root bytea NOT NULL CONSTRAINT org_memory_checkpoints_root_check CHECK (octet_length(root) = 32),
  note text NOT NULL,
  made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT org_memory_checkpoints_key PRIMARY KEY (tenant_id, size));

CREATE TABLE grandbo.org_memory_subject_keys (
  tenant_id uuid NOT NULL,
  subject_id uuid NOT NULL,
  subject_ref bytea NOT NULL,
  kek_epoch int NOT NULL,
  wrapped_dek bytea NOT NULL,
  CONSTRAINT org_memory_subject_keys_key PRIMARY KEY (tenant_id, subject_id),
  CONSTRAINT org_memory_subject_keys_ref_key UNIQUE (tenant_id, subject_ref));
"""

GRANTS = """
GRANT SELECT ON grandbo.org_memory_heads TO grandbo_writer, grandbo_projector, grandbo_auditor, grandbo_notary;
GRANT INSERT, UPDATE ON grandbo.org_memory_heads TO grandbo_writer;
GRANT SELECT ON grandbo.org_memory_events
  TO grandbo_writer, grandbo_projector, grandbo_auditor, grandbo_notary, grandbo_eraser;
GRANT INSERT ON grandbo.org_memory_events TO grandbo_writer;
GRANT UPDATE (body, salt) ON grandbo.org_memory_events TO grandbo_eraser;
GRANT SELECT ON grandbo.org_memory_checkpoints TO grandbo_writer, grandbo_auditor;
GRANT SELECT, INSERT ON grandbo.org_memory_checkpoints TO grandbo_notary;
GRANT SELECT, INSERT, UPDATE, DELETE ON grandbo.org_memory_subject_keys TO grandbo_keyholder;
GRANT SELECT (tenant_id, subject_id), DELETE ON grandbo.org_memory_subject_keys TO grandbo_eraser;
"""

# ENABLE ALWAYS: an ordinary trigger is skipped under session_replication_role = replica.
APPEND_ONLY = """
CREATE FUNCTION grandbo.forbid_change() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION '% is append-only (% refused)', TG_TABLE_NAME, TG_OP USING ERRCODE = 'GB002';
END $$;
-- The one exception: the eraser sets body and salt to NULL and touches nothing else. A BEFORE trigger sees stored
-- generated columns of NEW as NULL, so prev_position is left out of the comparison.
CREATE FUNCTION grandbo.guard_event() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND current_user = 'grandbo_eraser' THEN
    IF TG_LEVEL = 'STATEMENT' THEN RETURN NULL; END IF;
    IF NEW.body IS NULL AND NEW.salt IS NULL
       AND to_jsonb(NEW) - '{body,salt,prev_position}'::text[] = to_jsonb(OLD) - '{body,salt,prev_position}'::text[]
    THEN RETURN NEW; END IF;
  END IF;
  RAISE EXCEPTION '% is append-only (% refused)', TG_TABLE_NAME, TG_OP USING ERRCODE = 'GB002';
END $$;
CREATE TRIGGER no_row_change BEFORE UPDATE OR DELETE ON grandbo.org_memory_events
  FOR EACH ROW EXECUTE FUNCTION grandbo.guard_event();
CREATE TRIGGER no_stmt_change BEFORE UPDATE OR DELETE OR TRUNCATE ON grandbo.org_memory_events
  FOR EACH STATEMENT EXECUTE FUNCTION grandbo.guard_event();
CREATE TRIGGER no_row_change BEFORE UPDATE OR DELETE ON grandbo.org_memory_checkpoints
  FOR EACH ROW EXECUTE FUNCTION grandbo.forbid_change();
CREATE TRIGGER no_stmt_change BEFORE UPDATE OR DELETE OR TRUNCATE ON grandbo.org_memory_checkpoints
  FOR EACH STATEMENT EXECUTE FUNCTION grandbo.forbid_change();
ALTER TABLE grandbo.org_memory_events ENABLE ALWAYS TRIGGER no_row_change;
ALTER TABLE grandbo.org_memory_events ENABLE ALWAYS TRIGGER no_stmt_change;
ALTER TABLE grandbo.org_memory_checkpoints ENABLE ALWAYS TRIGGER no_row_change;
ALTER TABLE grandbo.org_memory_checkpoints ENABLE ALWAYS TRIGGER no_stmt_change;
"""

# Their narrow owner is set by the bootstrap step that follows the migrations: the owner may not give them away itself.
ERASURE = """
CREATE FUNCTION grandbo.remove_bodies(p_position bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE e record; n bigint;
BEGIN
  -- the appended erasure event is the only authority: it names the streams; a subject's bodies follow from its id
  SELECT tenant_id, position, stream_id, event_type, convert_from(body, 'UTF8')::jsonb AS doc INTO e
    FROM grandbo.org_memory_events
   WHERE tenant_id = grandbo.current_tenant() AND position = p_position
     AND event_type IN ('entry_erased', 'subject_erased');
  IF NOT FOUND THEN
    RAISE EXCEPTION 'position % is not an erasure event of the bound tenant', p_position USING ERRCODE = 'GB003';
  END IF;
  UPDATE grandbo.org_memory_events v SET body = NULL, salt = NULL
   WHERE v.tenant_id = e.tenant_id AND v.position < e.position AND v.body IS NOT NULL
     AND v.event_type NOT IN ('entry_erased', 'subject_erased')
     AND (v.stream_id IN (SELECT s::uuid FROM jsonb_array_elements_text(e.doc -> 'streams') s)
          OR (e.event_type = 'subject_erased' AND v.subject_id = e.stream_id));
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;
CREATE FUNCTION grandbo.destroy_key(p_position bigint) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE e record;
BEGIN
  SELECT tenant_id, stream_id INTO e FROM grandbo.org_memory_events
   WHERE tenant_id = grandbo.current_tenant() AND position = p_position AND event_type = 'subject_erased';
  IF NOT FOUND THEN
    RAISE EXCEPTION 'position % is not a subject_erased event of the bound tenant', p_position USING ERRCODE = 'GB003';
  END IF;
  DELETE FROM grandbo.org_memory_subject_keys WHERE tenant_id = e.tenant_id AND subject_id = e.stream_id;
  RETURN FOUND;
END $$;
REVOKE ALL ON FUNCTION grandbo.remove_bodies(bigint), grandbo.destroy_key(bigint), grandbo.forbid_change(),
  grandbo.guard_event() FROM PUBLIC;
"""


def upgrade() -> None:
    for script in (FUNCTIONS, TABLES):
        op.execute(script)
    for statement in wall_statements("grandbo", LOG_POLICIES):
        op.execute(statement)
    for script in (GRANTS, APPEND_ONLY, ERASURE):
        op.execute(script)

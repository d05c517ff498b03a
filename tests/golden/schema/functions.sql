-- owner grandbo_owner
CREATE OR REPLACE FUNCTION grandbo.current_instant()
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ SELECT coalesce(nullif(pg_catalog.current_setting('grandbo.valid_at', true), '')::timestamptz,
                        pg_catalog.now()) $function$

-- owner grandbo_owner
CREATE OR REPLACE FUNCTION grandbo.current_statuses()
 RETURNS text[]
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ SELECT coalesce(nullif(pg_catalog.current_setting('grandbo.statuses', true), '')::text[], '{published}') $function$

-- owner grandbo_owner
CREATE OR REPLACE FUNCTION grandbo.current_tenant()
 RETURNS uuid
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ SELECT nullif(pg_catalog.current_setting('grandbo.tenant_id', true), '')::uuid $function$

-- owner grandbo_owner
CREATE OR REPLACE FUNCTION grandbo.current_tiers()
 RETURNS text[]
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$ SELECT coalesce(nullif(pg_catalog.current_setting('grandbo.tiers', true), '')::text[], '{}') $function$

-- owner grandbo_eraser
CREATE OR REPLACE FUNCTION grandbo.destroy_key(p_position bigint)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE e record;
BEGIN
  SELECT tenant_id, stream_id INTO e FROM grandbo.org_memory_events
   WHERE tenant_id = grandbo.current_tenant() AND position = p_position AND event_type = 'subject_erased';
  IF NOT FOUND THEN
    RAISE EXCEPTION 'position % is not a subject_erased event of the bound tenant', p_position USING ERRCODE = 'GB003';
  END IF;
  DELETE FROM grandbo.org_memory_subject_keys WHERE tenant_id = e.tenant_id AND subject_id = e.stream_id;
  RETURN FOUND;
END $function$

-- owner grandbo_owner
CREATE OR REPLACE FUNCTION grandbo.forbid_change()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
BEGIN
  RAISE EXCEPTION '% is append-only (% refused)', TG_TABLE_NAME, TG_OP USING ERRCODE = 'GB002';
END $function$

-- owner grandbo_owner
CREATE OR REPLACE FUNCTION grandbo.guard_event()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
BEGIN
  IF TG_OP = 'UPDATE' AND current_user = 'grandbo_eraser' THEN
    IF TG_LEVEL = 'STATEMENT' THEN RETURN NULL; END IF;
    IF NEW.body IS NULL AND NEW.salt IS NULL
       AND to_jsonb(NEW) - '{body,salt,prev_position}'::text[] = to_jsonb(OLD) - '{body,salt,prev_position}'::text[]
    THEN RETURN NEW; END IF;
  END IF;
  RAISE EXCEPTION '% is append-only (% refused)', TG_TABLE_NAME, TG_OP USING ERRCODE = 'GB002';
END $function$

-- owner grandbo_eraser
CREATE OR REPLACE FUNCTION grandbo.remove_bodies(p_position bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
END $function$

-- owner grandbo_eraser
CREATE OR REPLACE FUNCTION grandbo.remove_bodies_at(p_position bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
END $function$

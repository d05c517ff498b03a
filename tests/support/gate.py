"""
The release gate: every row it returns is a blocker.

It reads the catalogue alone and shares no code with what built the schema. What a complete policy looks like is
written down here a second time, as SQL; the server is asked how it prints that, because it prints every policy the
same way. All of it runs under `search_path = pg_catalog`: the server leaves out the schema of whatever is on the path,
so that a policy calling another schema's `current_tenant()` would look right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql

Connection = psycopg.Connection[tuple[object, ...]]

_OWN: LiteralString = "tenant_id = (SELECT grandbo.current_tenant())"
_TIERS: LiteralString = "visibility = ANY (((SELECT grandbo.current_tiers()))::text[])"
_LIVE: LiteralString = (
    "status = ANY (((SELECT grandbo.current_statuses()))::text[])"
    " AND valid_from <= (SELECT grandbo.current_instant()) AND expires_at > (SELECT grandbo.current_instant())"
)
PREDICATES: dict[str, LiteralString] = {
    "tenant": _OWN,
    "tiers": _OWN + " AND " + _TIERS,
    "live": _OWN + " AND " + _TIERS + " AND " + _LIVE,
}

_COMMON: LiteralString = """
WITH t AS (
  SELECT c.oid, c.relname, c.relowner, c.relrowsecurity, c.relforcerowsecurity
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p')
    AND c.relname NOT IN ('org_memory_tenants', 'alembic_version')),
f AS (
  SELECT p.* FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = %(schema)s),
p AS (
  SELECT t.relname, p.polname, p.polpermissive, p.polcmd, p.polroles,
         pg_get_expr(p.polqual, p.polrelid) AS q, pg_get_expr(p.polwithcheck, p.polrelid) AS w
  FROM pg_policy p JOIN t ON t.oid = p.polrelid),
x AS (SELECT %(tenant)s::text AS tenant, %(tiers)s::text AS tiers, %(live)s::text AS live),
app AS (
  SELECT oid, rolname FROM pg_roles
  WHERE rolname IN ('grandbo_writer', 'grandbo_reader', 'grandbo_projector', 'grandbo_auditor', 'grandbo_notary',
                    'grandbo_keyholder')),
ours AS (SELECT * FROM pg_roles WHERE rolname LIKE 'grandbo\\_%%'),
acl AS (
  SELECT c.relname, c.relkind, a.grantee, coalesce(r.rolname, 'PUBLIC') AS who, a.privilege_type AS privilege
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
  LEFT JOIN pg_roles r ON r.oid = a.grantee
  WHERE n.nspname = %(schema)s
  UNION ALL
  SELECT c.relname || '.' || t.attname, c.relkind, a.grantee, coalesce(r.rolname, 'PUBLIC'), a.privilege_type
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute t ON t.attrelid = c.oid,
       aclexplode(t.attacl) a
  LEFT JOIN pg_roles r ON r.oid = a.grantee
  WHERE n.nspname = %(schema)s)
"""

# Rules that hold in every schema with tenant tables. Each gives one text column: what breaks it.
_SCHEMA_RULES: dict[LiteralString, LiteralString] = {
    "no_tenant_id": """
        SELECT relname FROM t WHERE NOT EXISTS (
          SELECT 1 FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attname = 'tenant_id' AND a.attnotnull
            AND a.atttypid = 'uuid'::regtype)""",
    "rls_off": "SELECT relname FROM t WHERE NOT relrowsecurity",
    "rls_not_forced": "SELECT relname FROM t WHERE NOT relforcerowsecurity",
    "no_tenant_wall": """
        SELECT relname FROM t WHERE NOT EXISTS (
          SELECT 1 FROM p, x WHERE p.relname = t.relname AND NOT polpermissive AND polcmd = '*' AND polroles = '{0}'
            AND q = x.tenant AND w = x.tenant)""",
    "policy_incomplete": """
        SELECT relname || ' ' || polname FROM p, x
        WHERE polpermissive
          AND (q NOT IN (x.tenant, x.tiers, x.live) OR w NOT IN (x.tenant, x.tiers, x.live)
               OR (q IS NULL AND w IS NULL) OR (q IS NULL AND polcmd <> 'a')
               OR (w IS NULL AND polcmd NOT IN ('r', 'd')))""",
    "policy_for_public": "SELECT relname || ' ' || polname FROM p WHERE polpermissive AND 0 = ANY (polroles)",
    "reader_sees_past_its_tiers": """
        SELECT relname || ' ' || polname FROM p, x
        WHERE polpermissive AND 'grandbo_reader'::regrole::oid = ANY (polroles)
          AND NOT (polcmd = 'r' AND polroles = ARRAY['grandbo_reader'::regrole::oid] AND q IN (x.tiers, x.live))""",
    "reader_sees_past_validity": """
        SELECT relname || ' ' || polname FROM p, x
        WHERE polpermissive AND 'grandbo_reader'::regrole::oid = ANY (polroles) AND relname <> 'org_memory_revisions'
          AND q <> x.live
          AND EXISTS (SELECT 1 FROM t JOIN pg_attribute a ON a.attrelid = t.oid
                      WHERE t.relname = p.relname AND a.attname = 'expires_at')""",
    "index_without_tenant_first": """
        SELECT i.indexrelid::regclass::text FROM pg_index i JOIN t ON t.oid = i.indrelid
        WHERE NOT EXISTS (SELECT 1 FROM pg_attribute a
                          WHERE a.attrelid = t.oid AND a.attname = 'tenant_id' AND a.attnum = i.indkey[0])""",
    "no_primary_key": """
        SELECT relname FROM t WHERE NOT EXISTS (
          SELECT 1 FROM pg_constraint k WHERE k.conrelid = t.oid AND k.contype = 'p')""",
    "fk_without_tenant_first": """
        SELECT conname FROM pg_constraint k JOIN t ON t.oid = k.conrelid
        WHERE k.contype = 'f' AND NOT EXISTS (
          SELECT 1 FROM pg_attribute a
          WHERE a.attrelid = t.oid AND a.attname = 'tenant_id' AND a.attnum = k.conkey[1])""",
    "fk_trigger_off": """
        SELECT g.tgrelid::regclass::text || ' ' || g.tgname FROM pg_trigger g JOIN t ON t.oid = g.tgrelid
        WHERE g.tgisinternal AND g.tgenabled <> 'O'""",
    "matview": "SELECT matviewname FROM pg_matviews WHERE schemaname = %(schema)s",
    "view_not_security_invoker": """
        SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %(schema)s AND c.relkind = 'v'
          AND NOT coalesce(c.reloptions::text ~ 'security_invoker=(true|on|1)', false)""",
    "definer_without_safe_path": """
        SELECT proname FROM f WHERE prosecdef
          AND NOT coalesce(array_to_string(proconfig, ';') ~ 'search_path=pg_catalog(, *grandbo)*, *pg_temp$', false)
        """,
    "definer_with_wide_owner": """
        SELECT proname FROM f JOIN pg_roles r ON r.oid = f.proowner
        WHERE prosecdef AND r.rolname <> 'grandbo_eraser'""",
    "fn_executable_by_public": r"SELECT proname FROM f WHERE proacl IS NULL OR proacl::text ~ '[{,]=X'",
    "immutable_reads_setting": """
        SELECT proname FROM f WHERE provolatile = 'i' AND prosrc ILIKE '%%current_setting%%'""",
    "app_role_owns": """
        SELECT relname FROM t JOIN pg_roles r ON r.oid = t.relowner WHERE r.rolname <> 'grandbo_owner'""",
    "truncate_grant": "SELECT relname || ' ' || who FROM acl WHERE privilege = 'TRUNCATE' AND who <> 'grandbo_owner'",
    "public_grant": "SELECT relname || ' ' || privilege FROM acl WHERE grantee = 0",
    "sequence_in_tenant_schema": """
        SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %(schema)s AND c.relkind = 'S'""",
    "enum_column": """
        SELECT t.relname || '.' || a.attname FROM t JOIN pg_attribute a ON a.attrelid = t.oid
        JOIN pg_type ty ON ty.oid = a.atttypid WHERE ty.typtype = 'e'""",
    "ann_index": """
        SELECT i.indexrelid::regclass::text FROM pg_index i JOIN t ON t.oid = i.indrelid
        JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am am ON am.oid = ic.relam
        WHERE am.amname IN ('hnsw', 'ivfflat')""",
    # A projection is a function of the log: a default, a generated value or a trigger is a second source of truth.
    "projection_makes_its_own_values": """
        SELECT t.relname || '.' || a.attname FROM t JOIN pg_attribute a ON a.attrelid = t.oid
        WHERE t.relname = ANY (%(projections)s) AND a.attnum > 0
          AND (a.atthasdef OR a.attidentity <> '' OR a.attgenerated <> '')
        UNION ALL
        SELECT t.relname || ' ' || g.tgname FROM t JOIN pg_trigger g ON g.tgrelid = t.oid
        WHERE t.relname = ANY (%(projections)s) AND NOT g.tgisinternal""",
    "vector_not_plain": """
        SELECT t.relname FROM t JOIN pg_attribute a ON a.attrelid = t.oid
        WHERE a.attname = 'vector' AND a.attstorage <> 'p'""",
    "projection_missing": """
        SELECT name FROM unnest(%(projections)s::text[]) name WHERE name NOT IN (SELECT relname FROM t)""",
    "create_on_schema": """
        SELECT rolname FROM app WHERE has_schema_privilege(oid, %(schema)s, 'CREATE')""",
}

# Rules about the log, the roles and the database: they are asked once.
_LOG_RULES: dict[LiteralString, LiteralString] = {
    "unwalled_table_has_more_than_ids": """
        SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = 'grandbo.org_memory_tenants'::regclass AND a.attnum > 0 AND NOT a.attisdropped
          AND a.attname <> 'tenant_id'""",
    "chain_constraint_missing": """
        SELECT c.n FROM (VALUES
          ('org_memory_events_key'), ('org_memory_events_event_key'), ('org_memory_events_stream_key'),
          ('org_memory_events_command_key'), ('org_memory_events_link_key'), ('org_memory_events_continues'),
          ('org_memory_events_genesis'), ('org_memory_events_sealed'), ('org_memory_events_envelope'),
          ('org_memory_events_removed'), ('org_memory_events_commitment'), ('org_memory_events_plain'),
          ('org_memory_events_erasure'), ('org_memory_heads_genesis'), ('org_memory_heads_event')) c(n)
        WHERE NOT EXISTS (
          SELECT 1 FROM pg_constraint k JOIN t ON t.oid = k.conrelid
          WHERE k.conname = c.n AND k.convalidated AND NOT k.condeferrable
            AND coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true))""",
    "log_trigger_weak": """
        SELECT x.tab || ' ' || x.trg FROM (VALUES
          ('org_memory_events', 'no_row_change', 27, 'guard_event'),
          ('org_memory_events', 'no_stmt_change', 58, 'guard_event'),
          ('org_memory_checkpoints', 'no_row_change', 27, 'forbid_change'),
          ('org_memory_checkpoints', 'no_stmt_change', 58, 'forbid_change')) x(tab, trg, kind, fn)
        WHERE NOT EXISTS (
          SELECT 1 FROM pg_trigger g
          WHERE g.tgrelid = ('grandbo.' || x.tab)::regclass AND g.tgname = x.trg AND g.tgenabled = 'A'
            AND g.tgtype = x.kind AND g.tgqual IS NULL AND cardinality(g.tgattr::int2[]) = 0
            AND g.tgfoid = ('grandbo.' || x.fn || '()')::regprocedure)""",
    "log_mutable_grant": """
        SELECT r.rolname || ' ' || p.priv
        FROM ours r, (VALUES ('UPDATE'), ('DELETE'), ('TRUNCATE'), ('TRIGGER'), ('REFERENCES')) p(priv)
        WHERE r.rolname <> 'grandbo_owner' AND NOT r.rolsuper
          AND has_table_privilege(r.oid, 'grandbo.org_memory_events', p.priv)""",
    "log_mutable_column_grant": """
        SELECT r.rolname || ' ' || a.attname FROM ours r, pg_attribute a
        WHERE r.rolname <> 'grandbo_owner' AND NOT r.rolsuper
          AND a.attrelid = 'grandbo.org_memory_events'::regclass AND a.attnum > 0 AND NOT a.attisdropped
          AND has_column_privilege(r.oid, a.attrelid, a.attnum, 'UPDATE')
          AND NOT (r.rolname = 'grandbo_eraser' AND a.attname IN ('body', 'salt'))""",
    "reader_sees_the_log": """
        SELECT 'org_memory_' || s.n FROM (VALUES ('events'), ('heads'), ('checkpoints'), ('subject_keys')) s(n)
        WHERE has_any_column_privilege('grandbo_reader', 'grandbo.org_memory_' || s.n, 'SELECT')""",
    "leakproof_user_fn": """
        SELECT p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE p.proleakproof AND n.nspname <> 'pg_catalog'""",
    "catalog_fn_made_leakproof": """
        SELECT p.proname FROM pg_proc p
        WHERE p.proleakproof AND p.oid IN ('ts_match_vq(tsvector,tsquery)'::regprocedure,
          'arrayoverlap(anyarray,anyarray)'::regprocedure, 'textlike(text,text)'::regprocedure)""",
    "role_can_bypass": """
        SELECT rolname FROM ours WHERE rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication""",
    "owner_can_log_in": "SELECT rolname FROM ours WHERE rolcanlogin AND rolname IN ('grandbo_owner', 'grandbo_eraser')",
    "member_of_privileged_role": """
        SELECT m.rolname || ' in ' || g.rolname FROM pg_auth_members am
        JOIN pg_roles g ON g.oid = am.roleid JOIN pg_roles m ON m.oid = am.member
        WHERE g.rolname IN ('grandbo_owner', 'grandbo_eraser', 'grandbo_keyholder', 'grandbo_notary')
          AND NOT m.rolsuper
          AND NOT (g.rolname = 'grandbo_owner' AND m.rolname = 'grandbo_migrator')
          AND NOT (m.rolname = 'grandbo_service' AND g.rolname IN ('grandbo_notary', 'grandbo_keyholder'))""",
    # The service has nothing under its own name: it must take a role of one purpose first.
    "service_inherits": """
        SELECT r.rolname || ' ' || g.rolname FROM ours r, ours g
        WHERE r.rolname IN ('grandbo_service', 'grandbo_migrator') AND g.oid <> r.oid
          AND pg_has_role(r.oid, g.oid, 'USAGE')""",
    "service_has_grants": "SELECT relname || ' ' || privilege FROM acl WHERE who = 'grandbo_service'",
    "erasure_fn_executable": """
        SELECT r.rolname || ' ' || x.fn FROM app r, (VALUES
          ('remove_bodies', 'grandbo_keyholder'), ('remove_bodies_at', 'grandbo_keyholder'),
          ('destroy_key', 'grandbo_writer')) x(fn, caller)
        WHERE r.rolname <> x.caller AND has_function_privilege(r.oid, 'grandbo.' || x.fn || '(bigint)', 'EXECUTE')""",
    "role_or_db_default_for_app_setting": r"""
        SELECT setconfig::text FROM pg_db_role_setting WHERE setconfig::text ~ 'grandbo\.|row_security'""",
    "create_or_temp": """
        SELECT rolname FROM app
        WHERE has_database_privilege(oid, current_database(), 'TEMP')
           OR has_database_privilege(oid, current_database(), 'CREATE')
           OR has_schema_privilege(oid, 'public', 'CREATE')
           OR has_schema_privilege(oid, 'extensions', 'CREATE')""",
}

PROJECTIONS = (
    "org_memory_policies",
    "org_memory_entries",
    "org_memory_revisions",
    "org_memory_terms",
    "org_memory_embeddings",
    "org_memory_links",
    "org_memory_candidates",
    "org_memory_feedback",
    "org_memory_subjects",
)


@dataclass(frozen=True, slots=True, order=True)
class Blocker:
    """A rule that is broken, where, and by what."""

    schema: str
    rule: str
    what: str


def blockers(conn: Connection) -> list[Blocker]:
    """Everything that forbids a release of this database, as the connection's transaction sees it."""
    found: list[Blocker] = []
    with conn.transaction(force_rollback=True):
        conn.execute("SET LOCAL search_path = pg_catalog")
        params = {**_printed(conn), "projections": list(PROJECTIONS)}
        for schema, rules in (("grandbo", _SCHEMA_RULES | _LOG_RULES), ("grandbo_scratch", _SCHEMA_RULES)):
            rows = conn.execute(_query(rules), {**params, "schema": schema}).fetchall()
            found += [Blocker(schema, str(rule), str(what)) for rule, what in rows]
    return sorted(found)


def rule_names() -> frozenset[str]:
    """Names of all rules."""
    return frozenset(_SCHEMA_RULES) | frozenset(_LOG_RULES)


def _query(rules: dict[LiteralString, LiteralString]) -> sql.Composed:
    parts = [
        sql.SQL("SELECT {}::text AS rule, what::text FROM ({}) AS found(what)").format(sql.Literal(name), sql.SQL(body))
        for name, body in rules.items()
    ]
    return sql.SQL("{}{}").format(sql.SQL(_COMMON), sql.SQL("\nUNION ALL\n").join(parts))


def _printed(conn: Connection) -> dict[str, str]:
    """How this server prints the complete predicates."""
    conn.execute(
        "CREATE TEMP TABLE gate_probe (tenant_id uuid, visibility text, status text, valid_from timestamptz,"
        " expires_at timestamptz)"
    )
    for name, predicate in PREDICATES.items():
        conn.execute(
            sql.SQL("CREATE POLICY {} ON gate_probe USING ({})").format(sql.Identifier(name), sql.SQL(predicate))
        )
    rows = conn.execute(
        "SELECT polname, pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polrelid = 'pg_temp.gate_probe'::regclass"
    ).fetchall()
    return {str(name): str(text) for name, text in rows}

"""The catalogue of the migrated database: what protects it is there, complete, and missed when it is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.storage.tables import OPERATIONAL, PROJECTIONS, SCHEMA, SCRATCH_SCHEMA, metadata
from tests.support import gate
from tests.support.postgres import TestDatabase, TestServer
from tests.support.snapshots import check_snapshot

Connection = psycopg.Connection[tuple[object, ...]]

_OWN: LiteralString = gate.PREDICATES["tenant"]
_TIERS: LiteralString = gate.PREDICATES["tiers"]
_LIVE: LiteralString = gate.PREDICATES["live"]

# A fault that someone could make in a migration or at a console, and the rule that has to see it.
FAULTS: tuple[tuple[str, LiteralString, str], ...] = (
    ("wall dropped", "DROP POLICY tenant_wall ON grandbo.org_memory_entries", "no_tenant_wall"),
    (
        "wall permissive",
        "DROP POLICY tenant_wall ON grandbo.org_memory_entries; CREATE POLICY tenant_wall ON"
        f" grandbo.org_memory_entries USING ({_OWN}) WITH CHECK ({_OWN})",
        "no_tenant_wall",
    ),
    (
        "wall for one role",
        "ALTER POLICY tenant_wall ON grandbo.org_memory_events TO grandbo_writer",
        "no_tenant_wall",
    ),
    (
        "wall without check",
        "DROP POLICY tenant_wall ON grandbo.org_memory_terms; CREATE POLICY tenant_wall ON grandbo.org_memory_terms"
        f" AS RESTRICTIVE USING ({_OWN})",
        "no_tenant_wall",
    ),
    ("wall is true", "ALTER POLICY tenant_wall ON grandbo.org_memory_heads USING (true)", "no_tenant_wall"),
    (
        "wall or true",
        f"ALTER POLICY tenant_wall ON grandbo.org_memory_heads USING ({_OWN} OR true)",
        "no_tenant_wall",
    ),
    (
        "wall calls another schema's function",
        "CREATE FUNCTION public.current_tenant() RETURNS uuid LANGUAGE sql STABLE AS $$ SELECT NULL::uuid $$;"
        " ALTER POLICY tenant_wall ON grandbo.org_memory_entries USING (tenant_id = (SELECT public.current_tenant()))",
        "no_tenant_wall",
    ),
    ("policy true", "ALTER POLICY entry_see ON grandbo.org_memory_entries USING (true)", "policy_incomplete"),
    (
        "policy or true",
        f"ALTER POLICY log_read ON grandbo.org_memory_events USING ({_OWN} OR true)",
        "policy_incomplete",
    ),
    (
        "policy added later",
        "CREATE POLICY careless ON grandbo.org_memory_events FOR SELECT TO grandbo_auditor USING (true)",
        "policy_incomplete",
    ),
    (
        "check is true",
        "ALTER POLICY log_append ON grandbo.org_memory_events WITH CHECK (true)",
        "policy_incomplete",
    ),
    (
        "policy without check",
        "DROP POLICY entry_write ON grandbo.org_memory_entries; CREATE POLICY entry_write ON"
        f" grandbo.org_memory_entries FOR ALL TO grandbo_writer USING ({_OWN})",
        "policy_incomplete",
    ),
    (
        "receipts of all tenants",
        "ALTER POLICY receipt_see ON grandbo.org_memory_receipts USING (tenant_id IS NOT NULL)",
        "policy_incomplete",
    ),
    ("policy for everyone", "ALTER POLICY entry_see ON grandbo.org_memory_entries TO PUBLIC", "policy_for_public"),
    (
        "reader without tiers",
        f"ALTER POLICY term_read ON grandbo.org_memory_terms USING ({_OWN})",
        "reader_sees_past_its_tiers",
    ),
    (
        "reader in another policy",
        "ALTER POLICY revision_see ON grandbo.org_memory_revisions TO grandbo_auditor, grandbo_reader",
        "reader_sees_past_its_tiers",
    ),
    (
        "reader without validity",
        f"ALTER POLICY embedding_read ON grandbo.org_memory_embeddings USING ({_TIERS})",
        "reader_sees_past_validity",
    ),
    ("RLS off", "ALTER TABLE grandbo.org_memory_api_keys DISABLE ROW LEVEL SECURITY", "rls_off"),
    ("RLS not forced", "ALTER TABLE grandbo.org_memory_events NO FORCE ROW LEVEL SECURITY", "rls_not_forced"),
    ("scratch RLS off", "ALTER TABLE grandbo_scratch.org_memory_terms DISABLE ROW LEVEL SECURITY", "rls_off"),
    (
        "a new table without anything",
        "SET LOCAL ROLE grandbo_owner; CREATE TABLE grandbo.notes (tenant_id uuid NOT NULL, id uuid PRIMARY KEY)",
        "index_without_tenant_first",
    ),
    (
        "a new table without a tenant",
        "SET LOCAL ROLE grandbo_owner; CREATE TABLE grandbo.notes (id uuid PRIMARY KEY)",
        "no_tenant_id",
    ),
    (
        "a table without a key",
        "SET LOCAL ROLE grandbo_owner; CREATE TABLE grandbo.notes (tenant_id uuid NOT NULL)",
        "no_primary_key",
    ),
    (
        "unique across tenants",
        "CREATE UNIQUE INDEX across ON grandbo.org_memory_events (event_id)",
        "index_without_tenant_first",
    ),
    (
        "index across tenants",
        "CREATE INDEX across ON grandbo.org_memory_entries (external_id)",
        "index_without_tenant_first",
    ),
    (
        "foreign key across tenants",
        "ALTER TABLE grandbo.org_memory_entries ADD CONSTRAINT lone FOREIGN KEY (tenant_id, entry_id) REFERENCES"
        " grandbo.org_memory_entries; ALTER TABLE grandbo.org_memory_entries ADD UNIQUE (entry_id);"
        " ALTER TABLE grandbo.org_memory_terms ADD CONSTRAINT across FOREIGN KEY (entry_id) REFERENCES"
        " grandbo.org_memory_entries (entry_id)",
        "fk_without_tenant_first",
    ),
    *(
        (
            f"{name} dropped",
            f"ALTER TABLE grandbo.{table} DROP CONSTRAINT {table}_{name} CASCADE",
            "chain_constraint_missing",
        )
        for table, names in (
            (
                "org_memory_events",
                (
                    "key",
                    "event_key",
                    "stream_key",
                    "command_key",
                    "link_key",
                    "continues",
                    "genesis",
                    "sealed",
                    "envelope",
                    "removed",
                    "commitment",
                    "plain",
                    "erasure",
                ),
            ),
            ("org_memory_heads", ("genesis", "event")),
        )
        for name in names
    ),
    (
        "constraint not validated",
        "ALTER TABLE grandbo.org_memory_events DROP CONSTRAINT org_memory_events_sealed, ADD CONSTRAINT"
        " org_memory_events_sealed CHECK (true) NOT VALID",
        "chain_constraint_missing",
    ),
    (
        "chain deferrable",
        "ALTER TABLE grandbo.org_memory_events ALTER CONSTRAINT org_memory_events_continues DEFERRABLE",
        "chain_constraint_missing",
    ),
    ("foreign key triggers off", "ALTER TABLE grandbo.org_memory_events DISABLE TRIGGER ALL", "fk_trigger_off"),
    ("trigger off", "ALTER TABLE grandbo.org_memory_events DISABLE TRIGGER no_row_change", "log_trigger_weak"),
    ("trigger ordinary", "ALTER TABLE grandbo.org_memory_events ENABLE TRIGGER no_stmt_change", "log_trigger_weak"),
    ("trigger dropped", "DROP TRIGGER no_stmt_change ON grandbo.org_memory_checkpoints", "log_trigger_weak"),
    (
        "trigger with a condition",
        "DROP TRIGGER no_row_change ON grandbo.org_memory_checkpoints; CREATE TRIGGER no_row_change BEFORE UPDATE OR"
        " DELETE ON grandbo.org_memory_checkpoints FOR EACH ROW WHEN (OLD.size > 5) EXECUTE FUNCTION"
        " grandbo.forbid_change(); ALTER TABLE grandbo.org_memory_checkpoints ENABLE ALWAYS TRIGGER no_row_change",
        "log_trigger_weak",
    ),
    (
        "trigger on some columns",
        "DROP TRIGGER no_row_change ON grandbo.org_memory_events; CREATE TRIGGER no_row_change BEFORE UPDATE OF hash"
        " OR DELETE ON grandbo.org_memory_events FOR EACH ROW EXECUTE FUNCTION grandbo.guard_event();"
        " ALTER TABLE grandbo.org_memory_events ENABLE ALWAYS TRIGGER no_row_change",
        "log_trigger_weak",
    ),
    (
        "materialised view",
        "CREATE MATERIALIZED VIEW grandbo.everything AS SELECT * FROM grandbo.org_memory_entries",
        "matview",
    ),
    (
        "view of the owner",
        "SET LOCAL ROLE grandbo_owner; CREATE VIEW grandbo.everything AS SELECT * FROM grandbo.org_memory_entries",
        "view_not_security_invoker",
    ),
    (
        "definer without a path",
        "ALTER FUNCTION grandbo.remove_bodies(bigint) RESET search_path",
        "definer_without_safe_path",
    ),
    (
        "definer with an open path",
        "ALTER FUNCTION grandbo.destroy_key(bigint) SET search_path = grandbo",
        "definer_without_safe_path",
    ),
    (
        "definer of the owner",
        "ALTER FUNCTION grandbo.remove_bodies(bigint) OWNER TO grandbo_owner",
        "definer_with_wide_owner",
    ),
    ("tenant function immutable", "ALTER FUNCTION grandbo.current_tenant() IMMUTABLE", "immutable_reads_setting"),
    (
        "function for everyone",
        "GRANT EXECUTE ON FUNCTION grandbo.remove_bodies(bigint) TO PUBLIC",
        "fn_executable_by_public",
    ),
    (
        "writer removes bodies",
        "GRANT EXECUTE ON FUNCTION grandbo.remove_bodies(bigint) TO grandbo_writer",
        "erasure_fn_executable",
    ),
    ("leakproof claimed", "ALTER FUNCTION grandbo.current_tenant() LEAKPROOF", "leakproof_user_fn"),
    (
        "leakproof catalogue",
        "ALTER FUNCTION pg_catalog.arrayoverlap(anyarray, anyarray) LEAKPROOF",
        "catalog_fn_made_leakproof",
    ),
    ("reader bypasses", "ALTER ROLE grandbo_reader BYPASSRLS", "role_can_bypass"),
    ("writer is a superuser", "ALTER ROLE grandbo_writer SUPERUSER", "role_can_bypass"),
    ("service creates roles", "ALTER ROLE grandbo_service CREATEROLE", "role_can_bypass"),
    ("owner logs in", "ALTER ROLE grandbo_owner LOGIN", "owner_can_log_in"),
    ("writer owns a table", "ALTER TABLE grandbo.org_memory_terms OWNER TO grandbo_writer", "app_role_owns"),
    ("service may become the owner", "GRANT grandbo_owner TO grandbo_service", "member_of_privileged_role"),
    ("keyholder may erase", "GRANT grandbo_eraser TO grandbo_keyholder", "member_of_privileged_role"),
    (
        "service inherits",
        "ALTER ROLE grandbo_service INHERIT; REVOKE grandbo_writer FROM grandbo_service;"
        " GRANT grandbo_writer TO grandbo_service",
        "service_inherits",
    ),
    ("service reads by itself", "GRANT SELECT ON grandbo.org_memory_entries TO grandbo_service", "service_has_grants"),
    ("log update granted", "GRANT UPDATE ON grandbo.org_memory_events TO grandbo_writer", "log_mutable_grant"),
    ("log delete granted", "GRANT DELETE ON grandbo.org_memory_events TO grandbo_auditor", "log_mutable_grant"),
    (
        "log column granted",
        "GRANT UPDATE (recorded_at) ON grandbo.org_memory_events TO grandbo_projector",
        "log_mutable_column_grant",
    ),
    (
        "eraser may edit hashes",
        "GRANT UPDATE (hash) ON grandbo.org_memory_events TO grandbo_eraser",
        "log_mutable_column_grant",
    ),
    ("reader reads the log", "GRANT SELECT ON grandbo.org_memory_events TO grandbo_reader", "reader_sees_the_log"),
    (
        "reader reads one column of the log",
        "GRANT SELECT (body) ON grandbo.org_memory_events TO grandbo_reader",
        "reader_sees_the_log",
    ),
    ("truncate granted", "GRANT TRUNCATE ON grandbo.org_memory_entries TO grandbo_writer", "truncate_grant"),
    ("public grant", "GRANT SELECT ON grandbo.org_memory_entries TO PUBLIC", "public_grant"),
    ("public column grant", "GRANT SELECT (title) ON grandbo.org_memory_entries TO PUBLIC", "public_grant"),
    (
        "role carries a tenant",
        "ALTER ROLE grandbo_reader SET grandbo.tenant_id = '00000000-0000-4000-8000-000000000001'",
        "role_or_db_default_for_app_setting",
    ),
    ("role without RLS", "ALTER ROLE grandbo_auditor SET row_security = off", "role_or_db_default_for_app_setting"),
    ("writer creates in the schema", "GRANT CREATE ON SCHEMA grandbo TO grandbo_writer", "create_on_schema"),
    ("public schema open", "GRANT CREATE ON SCHEMA public TO PUBLIC", "create_or_temp"),
    ("sequence", "CREATE SEQUENCE grandbo.numbers", "sequence_in_tenant_schema"),
    (
        "enum",
        "CREATE TYPE grandbo.mood AS ENUM ('ok'); ALTER TABLE grandbo.org_memory_entries ADD COLUMN mood grandbo.mood",
        "enum_column",
    ),
    (
        "approximate index",
        "CREATE INDEX near ON grandbo.org_memory_embeddings"
        " USING hnsw ((vector::extensions.vector(1024)) extensions.vector_cosine_ops)",
        "ann_index",
    ),
    (
        "projection with a clock",
        "ALTER TABLE grandbo.org_memory_entries ALTER COLUMN changed_at SET DEFAULT now()",
        "projection_makes_its_own_values",
    ),
    (
        "projection with a counter",
        "ALTER TABLE grandbo_scratch.org_memory_terms ADD COLUMN n bigint GENERATED ALWAYS AS IDENTITY",
        "projection_makes_its_own_values",
    ),
    (
        "projection with a trigger",
        "CREATE TRIGGER t BEFORE INSERT ON grandbo.org_memory_terms FOR EACH ROW EXECUTE FUNCTION"
        " grandbo.forbid_change()",
        "projection_makes_its_own_values",
    ),
    (
        "vector out of line",
        "ALTER TABLE grandbo.org_memory_embeddings ALTER COLUMN vector SET STORAGE EXTERNAL",
        "vector_not_plain",
    ),
    (
        "unwalled names",
        "ALTER TABLE grandbo.org_memory_tenants ADD COLUMN name text",
        "unwalled_table_has_more_than_ids",
    ),
    ("projection gone", "DROP TABLE grandbo_scratch.org_memory_policies", "projection_missing"),
)


@pytest.fixture(scope="module")
def admin(server: TestServer) -> Iterator[Connection]:
    """A superuser on a database of its own; every test rolls back what it does."""
    with server.clone() as database, psycopg.connect(database.admin, autocommit=True) as conn:
        yield conn


class TestGate:
    def test_the_migrated_database_passes(self, database: TestDatabase) -> None:
        """No rule finds anything in the schema as the migrations make it, nor in the scratch schema."""
        with psycopg.connect(database.admin) as conn:
            found = gate.blockers(conn)

        assert [] == found

    @pytest.mark.parametrize(("fault", "rule"), [pytest.param(fault, rule, id=name) for name, fault, rule in FAULTS])
    def test_every_fault_is_caught(self, admin: Connection, fault: LiteralString, rule: str) -> None:
        """A fault made on purpose is reported under the rule it breaks."""
        with admin.transaction(force_rollback=True):
            admin.execute(fault)
            admin.execute("RESET ROLE")
            found = {blocker.rule for blocker in gate.blockers(admin)}

        assert rule in found

    def test_no_rule_is_idle(self) -> None:
        """Every rule is shown to catch something: one that never fires would look like protection."""
        assert gate.rule_names() == {rule for _, _, rule in FAULTS}


class TestDeclaredSchema:
    def test_constraints_say_what_they_said(self, admin: Connection) -> None:
        """A check that kept its name but was weakened is a difference here."""
        rows = admin.execute(
            "SELECT format(E'%s.%s\\n    %s', k.conrelid::regclass, k.conname, pg_get_constraintdef(k.oid))"
            " FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace"
            " WHERE n.nspname = 'grandbo' AND k.contype IN ('c', 'f', 'p', 'u')"
            " AND k.conrelid::regclass::text <> 'grandbo.alembic_version'"
            ' ORDER BY k.conrelid::regclass::text COLLATE "C", k.conname'
        ).fetchall()

        check_snapshot(
            "schema/constraints.txt",
            "".join(f"{row[0]}\n" for row in rows),
            hint="a constraint changed; if that is meant, it needs a migration and a look at what it still refuses",
        )

    def test_functions_say_what_they_said(self, admin: Connection) -> None:
        """The functions that policies, triggers and erasure rest on are word for word those that were reviewed."""
        rows = admin.execute(
            "SELECT format(E'-- owner %s\\n%s', p.proowner::regrole, pg_get_functiondef(p.oid))"
            " FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'grandbo'"
            " ORDER BY p.proname"
        ).fetchall()

        check_snapshot(
            "schema/functions.sql",
            "\n".join(str(row[0]) for row in rows),
            hint="a function changed; if that is meant, it needs a migration and a review",
        )

    def test_each_role_may_do_exactly_this(self, admin: Connection) -> None:
        """The grants on tables, columns, functions and schemas are those of the committed matrix, no more, no fewer."""
        rows = admin.execute(
            """
            SELECT line FROM (
              SELECT format('%s: %s on %s.%s', coalesce(r.rolname, 'PUBLIC'),
                            string_agg(a.privilege_type, ', ' ORDER BY a.privilege_type), n.nspname, c.relname) AS line
              FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
              LEFT JOIN pg_roles r ON r.oid = a.grantee
              WHERE n.nspname IN ('grandbo', 'grandbo_scratch') AND a.grantee <> c.relowner
              GROUP BY r.rolname, n.nspname, c.relname
              UNION ALL
              SELECT format('%s: %s (%s) on %s.%s', coalesce(r.rolname, 'PUBLIC'), a.privilege_type,
                            string_agg(t.attname, ', ' ORDER BY t.attnum), n.nspname, c.relname)
              FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute t ON t.attrelid = c.oid,
                   aclexplode(t.attacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
              WHERE n.nspname IN ('grandbo', 'grandbo_scratch')
              GROUP BY r.rolname, a.privilege_type, n.nspname, c.relname
              UNION ALL
              SELECT format('%s: %s on function %s.%s', coalesce(r.rolname, 'PUBLIC'), a.privilege_type, n.nspname,
                            p.proname)
              FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace,
                   aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
              LEFT JOIN pg_roles r ON r.oid = a.grantee
              WHERE n.nspname IN ('grandbo', 'grandbo_scratch') AND a.grantee <> p.proowner
              UNION ALL
              SELECT format('%s: %s on schema %s', coalesce(r.rolname, 'PUBLIC'),
                            string_agg(a.privilege_type, ', ' ORDER BY a.privilege_type), n.nspname)
              FROM pg_namespace n, aclexplode(n.nspacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
              WHERE n.nspname IN ('grandbo', 'grandbo_scratch', 'public', 'extensions') AND a.grantee <> n.nspowner
              GROUP BY r.rolname, n.nspname) AS grants
            ORDER BY line COLLATE "C"
            """
        ).fetchall()

        check_snapshot(
            "schema/grants.txt",
            "".join(f"{row[0]}\n" for row in rows),
            hint="a role may do something else than before; if that is meant, review it",
        )

    def test_policies_say_what_they_said(self, admin: Connection) -> None:
        """The policies, as the server prints them, are those of the committed snapshot."""
        with admin.transaction(force_rollback=True):
            admin.execute("SET LOCAL search_path = pg_catalog")
            rows = admin.execute(
                """
                SELECT format(E'%s.%s %s %s %s to %s\n    using %s\n    check %s', schemaname, tablename, policyname,
                              lower(permissive), cmd, array_to_string(roles, ', '), coalesce(qual, '-'),
                              coalesce(with_check, '-'))
                FROM pg_policies WHERE schemaname IN ('grandbo', 'grandbo_scratch')
                ORDER BY schemaname, tablename, policyname
                """
            ).fetchall()

        check_snapshot(
            "schema/policies.txt",
            "".join(f"{row[0]}\n" for row in rows),
            hint="a policy changed; if that is meant, it needs a migration that renders it again, and a review",
        )


class TestTables:
    @pytest.mark.parametrize("schema", [SCHEMA, SCRATCH_SCHEMA])
    def test_statements_and_database_mean_the_same_tables(self, admin: Connection, schema: str) -> None:
        """Names, types, nullability, order and primary keys of the columns are equal on both sides."""
        tables = metadata.sorted_tables if schema == SCHEMA else PROJECTIONS

        for table in sorted(tables, key=lambda table: table.name):
            assert _migrated(admin, schema, table.name) == _declared(table), table.name

    @pytest.mark.parametrize("name", ["entries", "revisions", "terms", "embeddings"])
    def test_what_recall_reads_is_vacuumed_soon_after_an_import(self, admin: Connection, name: str) -> None:
        """By the server's own thresholds a memory of some hundred entries would never be."""
        rows = admin.execute(
            "SELECT unnest(reloptions) FROM pg_class WHERE oid = %s::regclass", (f"{SCHEMA}.org_memory_{name}",)
        ).fetchall()

        said = {str(row[0]) for row in rows}
        assert {"autovacuum_vacuum_insert_threshold=100", "autovacuum_vacuum_insert_scale_factor=0.05"} <= said

    def test_no_table_is_unknown_to_either_side(self, admin: Connection) -> None:
        """What the statements do not know of is Alembic's version."""
        rows = admin.execute(
            "SELECT format('%s.%s', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname IN ('grandbo', 'grandbo_scratch') AND c.relkind NOT IN ('i', 'c', 't')"
        ).fetchall()
        known = {f"{SCHEMA}.{table.name}" for table in metadata.sorted_tables}
        known |= {f"{SCRATCH_SCHEMA}.{table.name}" for table in PROJECTIONS}
        beside = {f"{SCHEMA}.alembic_version"}

        assert known | beside == {str(row[0]) for row in rows}

    def test_every_table_has_its_place(self) -> None:
        """Each table is the log's, the keyholder's, a projection or operational: a rebuild must know which."""
        log = {"org_memory_tenants", "org_memory_heads", "org_memory_events", "org_memory_checkpoints"}
        keys = {"org_memory_subject_keys", "org_memory_subject_peppers"}
        placed = log | keys | {table.name for table in (*PROJECTIONS, *OPERATIONAL)}

        assert {table.name for table in metadata.sorted_tables} == placed
        assert set(gate.PROJECTIONS) == {table.name for table in PROJECTIONS}


def _declared(table: sa.Table) -> list[tuple[str, str, bool, bool]]:
    dialect = pg.dialect()  # type: ignore[no-untyped-call]
    return [
        (column.name, str(column.type.compile(dialect)).lower(), bool(column.nullable), bool(column.primary_key))
        for column in table.columns
    ]


def _migrated(conn: Connection, schema: str, table: str) -> list[tuple[str, str, bool, bool]]:
    with conn.transaction(force_rollback=True):
        conn.execute("SET LOCAL search_path = extensions, pg_catalog")
        rows = conn.execute(
            """
            SELECT a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
                   coalesce(a.attnum = ANY (k.conkey), false)
            FROM pg_attribute a
            LEFT JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'p'
            WHERE a.attrelid = format('%%I.%%I', %s::text, %s::text)::regclass AND a.attnum > 0 AND NOT a.attisdropped
            ORDER BY a.attnum
            """,
            (schema, table),
        ).fetchall()
    return [(str(name), str(kind), bool(nullable), bool(key)) for name, kind, nullable, key in rows]

"""
Spreading the tables over a Citus cluster: by tenant, all of them together, so that one tenant is on one node.

Policies are rendered in their second form, which a distributed server takes; then each table is distributed, those that
others refer to first. What is done already is left alone: it can be run again, and after each migration has to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from graphlib import TopologicalSorter

import psycopg
from psycopg import sql

from grandbo.errors import DatabaseUnavailable, NotDistributable
from grandbo.storage import migrate
from grandbo.storage.walls import WALLED, unwall_statements, wall_statements

Connection = psycopg.Connection[tuple[object, ...]]

_COLOCATED_WITH = "grandbo.org_memory_events"
# They refuse changes of the log; a foreign key, a check or another row is not theirs to look at.
_KNOWN_TRIGGERS = ("forbid_change", "guard_event")

_TENANT_TABLES = """
SELECT c.oid, n.nspname || '.' || c.relname
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
WHERE n.nspname IN ('grandbo', 'grandbo_scratch') AND c.relkind IN ('r', 'p') AND c.relname <> 'org_memory_tenants'
ORDER BY 2
"""
_WITHOUT_TENANT = """
SELECT i.indexrelid::regclass::text
FROM pg_index i
WHERE i.indrelid = %s AND (i.indisunique OR i.indisexclusion)
  AND NOT EXISTS (SELECT 1 FROM pg_attribute a
                  WHERE a.attrelid = i.indrelid AND a.attname = 'tenant_id' AND a.attnum = ANY (i.indkey))
"""
_FOREIGN_KEYS = """
SELECT con.conname, n.nspname || '.' || c.relname,
       EXISTS (SELECT 1 FROM unnest(con.conkey, con.confkey) AS k (here, there)
               JOIN pg_attribute a ON a.attrelid = con.conrelid AND a.attnum = k.here AND a.attname = 'tenant_id'
               JOIN pg_attribute b ON b.attrelid = con.confrelid AND b.attnum = k.there AND b.attname = 'tenant_id')
FROM pg_constraint con
JOIN pg_class c ON c.oid = con.confrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE con.conrelid = %s AND con.contype = 'f'
ORDER BY 1
"""
_TRIGGERS = """
SELECT t.tgname, p.proname FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
WHERE t.tgrelid = %s AND NOT t.tgisinternal ORDER BY 1
"""
_DEFAULTS = """
SELECT a.attname, pg_get_expr(d.adbin, d.adrelid)
FROM pg_attrdef d
JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
WHERE d.adrelid = %s AND (pg_get_expr(d.adbin, d.adrelid) LIKE '%%nextval%%' OR a.attidentity <> '')
ORDER BY 1
"""
_FUNCTIONS = """
SELECT p.oid::regprocedure::text
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'grandbo' ORDER BY 1
"""


def misfits(conn: Connection) -> list[str]:
    """
    What a distributed server would refuse, or answer across tenants; empty where everything fits.

    Every key and foreign key has to have the tenant, no default may draw from a sequence, no trigger but those that
    refuse, and no table may be without policies in the second form.
    """
    found = []
    tables = _tables(conn)
    known = {f"{schema}.{table}" for schema, policies in WALLED.items() for table in policies}
    found += [f"{name}: there are no policies for it to be distributed with" for name in tables if name not in known]
    for name, oid in tables.items():
        found += [f"{name}: the key {row[0]} lacks tenant_id" for row in conn.execute(_WITHOUT_TENANT, (oid,))]
        for constraint, target, has_tenant in conn.execute(_FOREIGN_KEYS, (oid,)):
            if not has_tenant or target not in tables:
                found.append(f"{name}: the foreign key {constraint} leads out of its tenant")
        found += [
            f"{name}: the trigger {row[0]} does more than refuse"
            for row in conn.execute(_TRIGGERS, (oid,))
            if row[1] not in _KNOWN_TRIGGERS
        ]
        found += [f"{name}: the column {row[0]} draws from a sequence" for row in conn.execute(_DEFAULTS, (oid,))]
    for statement in _policies():
        if "RESTRICTIVE" in statement or "SELECT grandbo." in statement:
            found.append(f"refused form: {statement}")
    return found


def statements(conn: Connection, *, done: Sequence[str] = ()) -> Iterator[str]:
    """The statements that distribute, in their order, but for the tables that are distributed already."""
    database = sql.Identifier(conn.info.dbname).as_string(conn)
    # SET LOCAL has to reach the node where a tenant is: role, tenant and tiers are bound by it.
    yield f"ALTER DATABASE {database} SET citus.propagate_set_commands = 'local'"
    yield f"ALTER DATABASE {database} SET citus.enable_unsafe_triggers = 'on'"
    yield "SET citus.enable_unsafe_triggers = 'on'"
    # Together: a table must not be left without its policies by what breaks off.
    yield "; ".join(["BEGIN", *_policies(), "COMMIT"])
    yield from (f"SELECT create_distributed_function('{row[0]}')" for row in conn.execute(_FUNCTIONS).fetchall())
    for name in _in_order(conn):
        if name not in done:
            beside = "none" if name == _COLOCATED_WITH else _COLOCATED_WITH
            yield f"SELECT create_distributed_table('{name}', 'tenant_id', colocate_with => '{beside}')"


def planned(admin_conninfo: str) -> list[str]:
    """
    What would be run, whether or not there is a Citus by now.

    Raises:
        NotDistributable: something does not fit. DatabaseBehind, DatabaseNewer, DatabaseUnavailable.
    """
    with _connected(admin_conninfo) as conn:
        return list(statements(conn))


def distribute(admin_conninfo: str) -> list[str]:
    """
    Distribute the tables of a migrated database; give the statements that ran.

    Raises:
        NotDistributable: there is no Citus in this database, or something does not fit; nothing was changed.
        DatabaseBehind, DatabaseNewer, DatabaseUnavailable.
    """
    with _connected(admin_conninfo) as conn:
        if conn.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchone() is None:
            raise NotDistributable(
                "There is no Citus in this database. Install it on every node, CREATE EXTENSION citus here and there, "
                "add the nodes with citus_add_node, and run this again."
            )
        done = [str(row[0]) for row in conn.execute("SELECT logicalrelid::regclass::text FROM pg_dist_partition")]
        ran = list(statements(conn, done=done))
        for statement in ran:
            conn.execute(statement.encode())
        return ran


@contextmanager
def _connected(admin_conninfo: str) -> Iterator[Connection]:
    try:
        conn = psycopg.connect(admin_conninfo, autocommit=True, connect_timeout=10)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"The database cannot be reached: {str(error).splitlines()[0]}") from None
    with conn:
        migrate.check_revision(migrate.current_revision(conn))
        if found := misfits(conn):
            raise NotDistributable("The schema does not fit a distributed server: " + "; ".join(found))
        yield conn


def _policies() -> Iterator[str]:
    for schema, policies in WALLED.items():
        yield from unwall_statements(schema, policies)
        yield from wall_statements(schema, policies, distributed=True)


def _tables(conn: Connection) -> dict[str, int]:
    return {str(row[1]): int(str(row[0])) for row in conn.execute(_TENANT_TABLES).fetchall()}


def _in_order(conn: Connection) -> list[str]:
    """Each table after those that it refers to."""
    tables = _tables(conn)
    refers: Mapping[str, set[str]] = {
        name: {str(row[1]) for row in conn.execute(_FOREIGN_KEYS, (oid,))} - {name} for name, oid in tables.items()
    }
    first = TopologicalSorter({name: sorted(others) for name, others in refers.items()})
    ordered = [name for name in first.static_order() if name in tables]
    return sorted(ordered, key=lambda name: name != _COLOCATED_WITH)

"""Looking at a server from outside, as `grandbo doctor` does: it must answer where opening the memory would refuse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg

from grandbo.errors import DatabaseUnavailable
from grandbo.settings import Settings
from grandbo.storage import migrate
from grandbo.storage.embedded import EmbeddedServer
from grandbo.storage.opening import DATABASE_NAME, prepare_embedded
from grandbo.storage.tables import SCHEMA, SCRATCH_SCHEMA

# The one table that belongs to no tenant: ids only.
TENANT_LIST = "org_memory_tenants"

_FACTS = """
SELECT current_setting('server_version_num')::int AS version_num,
       current_setting('server_version') AS version,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector_version,
       rolname AS login, rolsuper AS is_superuser, rolbypassrls AS bypasses_rls,
       EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = %(schema)s AND pg_has_role(c.relowner, 'MEMBER')) AS owns_tables,
       current_setting('autovacuum')::bool AND current_setting('track_counts')::bool AS vacuums
FROM pg_roles WHERE rolname = current_user
"""

_UNWALLED = """
SELECT n.nspname || '.' || c.relname
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
WHERE n.nspname = ANY (%(schemas)s) AND c.relkind IN ('r', 'p') AND c.relname <> %(tenant_list)s
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity AND EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid))
ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a login is told about its server and about itself."""

    version_num: int
    version: str
    vector_version: str | None
    login: str
    is_superuser: bool
    bypasses_rls: bool
    owns_tables: bool
    vacuums: bool
    revision: str | None
    unwalled_tables: tuple[str, ...]
    clock_ahead: timedelta
    """How far the database's clock is ahead of ours; less than what the round trip could explain counts as nothing."""


def inspect_server(conninfo: str) -> ServerFacts:
    """Connect as the service would, and look; raises `DatabaseUnavailable`."""
    with _connected(conninfo) as conn:
        row = conn.execute(_FACTS, {"schema": SCHEMA}).fetchone()
        assert row is not None
        schemas = {"schemas": [SCHEMA, SCRATCH_SCHEMA], "tenant_list": TENANT_LIST}
        unwalled = tuple(str(found[0]) for found in conn.execute(_UNWALLED, schemas))
        version_num, version, vector_version, login, is_superuser, bypasses_rls, owns_tables, vacuums = row
        return ServerFacts(
            version_num=int(str(version_num)),
            version=str(version),
            vector_version=None if vector_version is None else str(vector_version),
            login=str(login),
            is_superuser=bool(is_superuser),
            bypasses_rls=bool(bypasses_rls),
            owns_tables=bool(owns_tables),
            vacuums=bool(vacuums),
            revision=migrate.service_revision(conn),
            unwalled_tables=unwalled,
            clock_ahead=_clock_ahead(conn),
        )


@contextmanager
def reachable_conninfo(settings: Settings) -> Iterator[str]:
    """The service's conninfo, with the embedded server running meanwhile where no database is named."""
    if settings.database_url is not None:
        yield settings.database_url.get_secret_value()
        return
    with EmbeddedServer(settings.home) as server:
        yield prepare_embedded(server, settings.home)


def migrate_embedded(settings: Settings) -> tuple[str | None, str]:
    """Migrate the embedded server's database; give the revision before and after."""
    with EmbeddedServer(settings.home) as server:
        try:
            with psycopg.connect(server.conninfo(DATABASE_NAME), autocommit=True) as conn:
                before = migrate.current_revision(conn)
        except psycopg.OperationalError:
            before = None  # a home that was never opened has no database yet
        prepare_embedded(server, settings.home)
    return before, migrate.head_revision()


@contextmanager
def _connected(conninfo: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    try:
        conn = psycopg.connect(conninfo, autocommit=True, connect_timeout=10)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"The database cannot be reached: {str(error).splitlines()[0]}") from None
    with conn:
        yield conn


def _clock_ahead(conn: psycopg.Connection[tuple[object, ...]]) -> timedelta:
    before = datetime.now(UTC)
    row = conn.execute("SELECT clock_timestamp()").fetchone()
    after = datetime.now(UTC)
    assert row is not None
    assert isinstance(row[0], datetime)
    if row[0] < before:
        return row[0] - before
    return row[0] - after if row[0] > after else timedelta(0)

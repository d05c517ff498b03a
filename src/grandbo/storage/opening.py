"""From settings to an open database: one's own server, or the embedded one with everything that it needs."""

from __future__ import annotations

import math
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import psycopg
import structlog
from psycopg import errors
from psycopg.conninfo import make_conninfo

from grandbo.errors import DatabaseBehind, DatabaseUnavailable, DatabaseUnsafe
from grandbo.settings import Settings
from grandbo.storage import migrate
from grandbo.storage.bootstrap import SERVICE_ROLE
from grandbo.storage.database import Database
from grandbo.storage.embedded import EmbeddedServer

DATABASE_NAME = "grandbo"
# Longer than this no recall waits for a replica: the primary is there.
_REPLICA_SECONDS = 1.0

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class OpenDatabase:
    """A database that is migrated and safe to serve from, and the embedded server behind it if there is one."""

    database: Database
    server: EmbeddedServer | None
    replica: Database | None = None

    def close(self) -> None:
        """Close the pools, then let the embedded server go."""
        self.database.close()
        if self.replica is not None:
            self.replica.close()
        if self.server is not None:
            self.server.close()


def open_database(settings: Settings) -> OpenDatabase:
    """
    Open what the settings name, and refuse to serve what would not be safe.

    The embedded server is private to its home, so it is migrated on the way; one's own server is migrated by
    `grandbo migrate` alone.

    Raises:
        DatabaseUnsafe, DatabaseBehind, DatabaseNewer, DatabaseUnavailable, EmbeddedServerError.
    """
    if settings.database_url is None:
        server = EmbeddedServer(settings.home).start()
        try:
            conninfo = prepare_embedded(server, settings.home)
            server.watch()
            replica = _replica(settings)
            return OpenDatabase(_checked(conninfo, settings), server, replica)
        except BaseException:
            server.close()
            raise
    replica = _replica(settings)
    return OpenDatabase(_checked(settings.database_url.get_secret_value(), settings), None, replica)


def prepare_embedded(server: EmbeddedServer, home: Path) -> str:
    """Create the database, the service's login and the schema where they are missing; give the service's conninfo."""
    _create_database(server.conninfo())
    service = server.conninfo(DATABASE_NAME, user=SERVICE_ROLE, password=_service_password(home))
    admin = server.conninfo(DATABASE_NAME)
    with psycopg.connect(admin, autocommit=True) as conn:
        is_current = migrate.current_revision(conn) == migrate.head_revision()
    if not is_current or not _can_connect(service):
        migrate.migrate(admin, service_conninfo=service)
    return service


def check_login(conninfo: str) -> None:
    """
    Refuse a login that row-level security does not bind, and a schema that does not fit this code.

    Raises:
        DatabaseUnsafe, DatabaseBehind, DatabaseNewer, DatabaseUnavailable.
    """
    try:
        with psycopg.connect(conninfo, autocommit=True, connect_timeout=10) as conn:
            row = conn.execute(
                "SELECT rolsuper, rolbypassrls, EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n"
                " ON n.oid = c.relnamespace WHERE n.nspname = 'grandbo' AND pg_has_role(c.relowner, 'MEMBER'))"
                " FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            assert row is not None
            for is_so, what in zip(
                row, ("is a superuser", "has BYPASSRLS", "owns Grandbo's tables or may become their owner"), strict=True
            ):
                if is_so:
                    raise DatabaseUnsafe(
                        f"The login of GRANDBO_DATABASE_URL {what}, so row-level security does not bind it. Connect as "
                        f"{SERVICE_ROLE}; `grandbo migrate` with GRANDBO_ADMIN_DATABASE_URL sets that login up."
                    )
            migrate.check_revision(migrate.service_revision(conn))
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"The database cannot be reached: {str(error).splitlines()[0]}") from None


def _checked(conninfo: str, settings: Settings) -> Database:
    check_login(conninfo)
    database = _pool(conninfo, settings)
    database.open()
    return database


def _replica(settings: Settings) -> Database | None:
    """The pool of the replica. It need not be there: recall does without until it is."""
    if settings.replica_url is None:
        return None
    conninfo = settings.replica_url.get_secret_value()
    try:
        check_login(conninfo)
    except (DatabaseUnavailable, DatabaseBehind) as error:
        log.warning("replica_unavailable", code=error.code)
    database = _pool(conninfo, settings, most_seconds=_REPLICA_SECONDS)
    database.open()
    return database


def _pool(conninfo: str, settings: Settings, *, most_seconds: float = math.inf) -> Database:
    return Database(
        make_conninfo(conninfo, connect_timeout=10),
        pool_size=settings.pool_size,
        pool_timeout=min(settings.pool_timeout, most_seconds),
        lock_timeout_ms=settings.lock_timeout_ms,
    )


def _create_database(admin: str) -> None:
    with psycopg.connect(admin, autocommit=True) as conn:
        if conn.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE_NAME,)).fetchone():
            return
        try:
            conn.execute("CREATE DATABASE grandbo")
        except (errors.DuplicateDatabase, errors.UniqueViolation):
            # Another process that started on the same home a moment ago made it.
            return


def _can_connect(conninfo: str) -> bool:
    try:
        psycopg.connect(conninfo).close()
    except psycopg.OperationalError:
        return False
    return True


def _service_password(home: Path) -> str:
    """The service's password, made once; O_EXCL lets exactly one of several starters make it."""
    path = home / "service.pw"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _written(path)
    with os.fdopen(descriptor, "w") as file:
        password = secrets.token_urlsafe(24)
        file.write(password)
    return password


def _written(path: Path) -> str:
    password = path.read_text()
    if password:
        return password
    # Killed between creating and writing: an empty file is nobody's password; replace it by a whole one.
    password = secrets.token_urlsafe(24)
    whole = path.with_suffix(".new")
    with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(password)
    whole.replace(path)
    return password

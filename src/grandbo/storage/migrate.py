"""The migrations' runner: Alembic under an advisory lock, and the check that code and database fit each other."""

from __future__ import annotations

from pathlib import Path

import psycopg
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

import grandbo
from grandbo.errors import ConfigurationError, DatabaseBehind, DatabaseNewer, DatabaseUnavailable
from grandbo.storage import bootstrap

# One key for every Grandbo that starts on this database: the second waits, then finds nothing left to do.
_LOCK_KEY = 0x6772616E
MINIMUM_SERVER = 150000


def migrations_folder() -> Path:
    """The migrations in the wheel, or in the checkout that an editable install points at."""
    package = Path(grandbo.__file__).parent
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parent.parent / "migrations"


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    return config


def head_revision() -> str:
    """The newest migration that this code knows."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def check_revision(current: str | None) -> None:
    """
    Hold the database's revision against the code's.

    Raises:
        DatabaseBehind: `grandbo migrate` has to run first.
        DatabaseNewer: the database was migrated by a newer Grandbo.
    """
    if current == head_revision():
        return
    if current is None:
        raise DatabaseBehind("The database has no Grandbo schema yet; run `grandbo migrate`.")
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if current not in known:
        raise DatabaseNewer(found=current, known=head_revision())
    raise DatabaseBehind(found=current, wanted=head_revision())


def migrate(admin_conninfo: str, *, service_conninfo: str | None = None) -> tuple[str | None, str]:
    """
    Bootstrap and migrate; safe when several processes do it at once.

    Args:
        admin_conninfo: a login that may create roles and extensions.
        service_conninfo: what the service will connect with; its role is created and given its password.

    Returns:
        The revision before and after.
    """
    try:
        conn = psycopg.connect(admin_conninfo, autocommit=True, connect_timeout=10)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"The database cannot be reached: {str(error).splitlines()[0]}") from None
    with conn:
        if conn.info.server_version < MINIMUM_SERVER:
            raise ConfigurationError(f"The server is PostgreSQL {conn.info.server_version // 10000}; 15 is needed.")
        conn.execute("SELECT pg_advisory_lock(%s)", (_LOCK_KEY,))
        try:
            before = current_revision(conn)
            login, password = _service(service_conninfo)
            if before is not None:
                _refuse_newer(before)
            bootstrap.prepare(conn, service_login=login, service_password=password)
            if before != head_revision():
                _upgrade(admin_conninfo)
            bootstrap.finish(conn)
            return before, head_revision()
        finally:
            conn.execute("SELECT pg_advisory_unlock(%s)", (_LOCK_KEY,))


def current_revision(conn: psycopg.Connection[tuple[object, ...]]) -> str | None:
    """The database's revision; None where Grandbo never was."""
    if conn.execute("SELECT to_regclass('grandbo.alembic_version')").fetchone() == (None,):
        return None
    row = conn.execute("SELECT version_num FROM grandbo.alembic_version").fetchone()
    return None if row is None else str(row[0])


def service_revision(conn: psycopg.Connection[tuple[object, ...]]) -> str | None:
    """The revision as the service's login sees it; None where it may see none."""
    # The service reads nothing under its own name; the version is readable for the roles that it may assume.
    with conn.transaction():
        try:
            conn.execute("SET LOCAL ROLE grandbo_reader")
        except (errors.InvalidParameterValue, errors.InsufficientPrivilege):
            return None
        return current_revision(conn)


def _refuse_newer(current: str) -> None:
    try:
        check_revision(current)
    except DatabaseBehind:
        return


def _service(service_conninfo: str | None) -> tuple[str, str | None]:
    if service_conninfo is None:
        return bootstrap.SERVICE_ROLE, None
    parts = conninfo_to_dict(service_conninfo)
    password = parts.get("password")
    return str(parts.get("user") or bootstrap.SERVICE_ROLE), None if password is None else str(password)


def _upgrade(admin_conninfo: str) -> None:
    engine = sa.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(admin_conninfo), poolclass=sa.pool.NullPool
    )
    config = _config()
    try:
        with engine.connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except CommandError as error:
        raise ConfigurationError(f"The migrations cannot run: {error}") from error
    finally:
        engine.dispose()

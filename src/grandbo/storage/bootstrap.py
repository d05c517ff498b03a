"""
Roles, extension and schemas: what only an administrator of the server may do. Run by `grandbo migrate`, re-runnable.

It stands outside the migrations because `vector` is not a trusted extension and because roles belong to the whole
server, not to one database.
"""

from __future__ import annotations

import structlog
from psycopg import Connection, errors, sql

from grandbo.errors import ConfigurationError

log = structlog.get_logger(__name__)

APP_ROLES = (
    "grandbo_writer",
    "grandbo_reader",
    "grandbo_projector",
    "grandbo_auditor",
    "grandbo_notary",
    "grandbo_keyholder",
)
SERVICE_ROLE = "grandbo_service"

_ROLES = {
    "grandbo_owner": "NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB",
    "grandbo_eraser": "NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB",
    "grandbo_migrator": "LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB NOINHERIT",
    **dict.fromkeys(APP_ROLES, "LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB"),
    SERVICE_ROLE: "LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB NOINHERIT",
}

# A vector of 1024 dimensions and scans of some thousand rows: parallel workers and JIT cost more than they give.
_SERVICE_DEFAULTS = {
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "idle_in_transaction_session_timeout": "60s",
}

_MINIMUM_VECTOR = (0, 8)


def prepare(conn: Connection[tuple[object, ...]], *, service_login: str, service_password: str | None) -> None:
    """
    Create what is missing: roles, extension, schemas, grants on the database.

    Args:
        conn: an administrator's connection in autocommit mode.
        service_login: the role that the service connects as; created when absent.
        service_password: set on that role when given.

    Raises:
        ConfigurationError: pgvector is not installed on the server, too old, or the login may not create roles.
    """
    try:
        for role, attributes in _ROLES.items():
            _create_role(conn, role, attributes)
        _create_role(conn, service_login, _ROLES[SERVICE_ROLE])
        conn.execute("GRANT grandbo_owner TO grandbo_migrator")
        for role in APP_ROLES:
            conn.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), sql.Identifier(service_login)))
        if service_password is not None:
            _set_password(conn, service_login, service_password)
        for name, value in _SERVICE_DEFAULTS.items():
            conn.execute(
                sql.SQL("ALTER ROLE {} SET {} = {}").format(
                    sql.Identifier(service_login), sql.Identifier(name), sql.Literal(value)
                )
            )
        _prepare_database(conn, service_login)
    except errors.InsufficientPrivilege as error:
        raise ConfigurationError(
            "This login may not create roles, schemas or extensions; set GRANDBO_ADMIN_DATABASE_URL to one that may "
            f"({error.diag.message_primary})."
        ) from None


_ERASURE_FUNCTIONS = {
    "remove_bodies": "grandbo_keyholder",
    "remove_bodies_at": "grandbo_keyholder",
    "destroy_key": "grandbo_writer",
}


def finish(conn: Connection[tuple[object, ...]]) -> None:
    """After the migrations: give the erasure functions to their narrow owner, let the app roles read the version."""
    readers = sql.SQL(", ").join(map(sql.Identifier, APP_ROLES))
    conn.execute(sql.SQL("GRANT SELECT ON grandbo.alembic_version TO {}").format(readers))
    # A new owner must be able to create in the schema for the moment in which it takes the functions over.
    with conn.transaction():
        conn.execute("GRANT CREATE ON SCHEMA grandbo TO grandbo_eraser")
        for function, caller in _ERASURE_FUNCTIONS.items():
            name = sql.Identifier("grandbo", function)
            conn.execute(sql.SQL("ALTER FUNCTION {}(bigint) OWNER TO grandbo_eraser").format(name))
            conn.execute(sql.SQL("REVOKE ALL ON FUNCTION {}(bigint) FROM PUBLIC").format(name))
            conn.execute(sql.SQL("GRANT EXECUTE ON FUNCTION {}(bigint) TO {}").format(name, sql.Identifier(caller)))
        conn.execute("REVOKE CREATE ON SCHEMA grandbo FROM grandbo_eraser")


def _create_role(conn: Connection[tuple[object, ...]], role: str, attributes: str) -> None:
    exists = conn.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    if exists:
        return
    try:
        conn.execute(sql.SQL("CREATE ROLE {} {}").format(sql.Identifier(role), sql.SQL(attributes)))
    except (errors.DuplicateObject, errors.UniqueViolation):
        # Roles belong to the server: a bootstrap of another database of it may have been a moment faster.
        log.info("role_exists", role=role)


def _set_password(conn: Connection[tuple[object, ...]], role: str, password: str) -> None:
    # Encrypted here, so that the statement log of the server never holds the password itself.
    verifier = conn.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    try:
        conn.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(verifier)))
    except errors.InternalError as error:
        # "tuple concurrently updated": another starter has just set the same password.
        log.info("role_updated_elsewhere", role=role, sqlstate=error.sqlstate)


def _prepare_database(conn: Connection[tuple[object, ...]], service_login: str) -> None:
    row = conn.execute("SELECT current_database()").fetchone()
    database = sql.Identifier(str(row[0])) if row else sql.Identifier("postgres")
    members = sql.SQL(", ").join(map(sql.Identifier, (*APP_ROLES, "grandbo_migrator", service_login)))
    schema_users = sql.SQL(", ").join(
        map(sql.Identifier, (*APP_ROLES, "grandbo_owner", "grandbo_eraser", service_login))
    )
    conn.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
    conn.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, members))
    conn.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    _hide_statements_of_others(conn)
    vector_schema = sql.Identifier(_ensure_vector(conn))
    conn.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(vector_schema, schema_users))
    for schema in ("grandbo", "grandbo_scratch"):
        conn.execute(
            sql.SQL("CREATE SCHEMA IF NOT EXISTS {} AUTHORIZATION grandbo_owner").format(sql.Identifier(schema))
        )
    conn.execute(sql.SQL("ALTER DATABASE {} SET search_path = grandbo, {}").format(database, vector_schema))


def _hide_statements_of_others(conn: Connection[tuple[object, ...]]) -> None:
    """Sessions of one role can read each other's SQL text in pg_stat_activity; close that where we are allowed to."""
    try:
        conn.execute("REVOKE SELECT ON pg_catalog.pg_stat_activity FROM PUBLIC")
        conn.execute("REVOKE EXECUTE ON FUNCTION pg_catalog.pg_stat_get_activity(int) FROM PUBLIC")
    except errors.InsufficientPrivilege:
        log.warning("activity_view_left_open", hint="a superuser can revoke SELECT on pg_stat_activity from PUBLIC")


def _ensure_vector(conn: Connection[tuple[object, ...]]) -> str:
    """Install pgvector in a schema of its own unless it is there already; give the schema's name."""
    conn.execute("CREATE SCHEMA IF NOT EXISTS extensions")
    try:
        conn.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA extensions")
    except (errors.UndefinedFile, errors.FeatureNotSupported):
        raise ConfigurationError("The server has no pgvector; install pgvector 0.8 or newer on it.") from None
    row = conn.execute(
        "SELECT n.nspname, e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
        " WHERE e.extname = 'vector'"
    ).fetchone()
    assert row is not None
    schema, version = str(row[0]), str(row[1])
    if tuple(int(part) for part in version.split(".")[:2]) < _MINIMUM_VECTOR:
        raise ConfigurationError(f"The server has pgvector {version}; Grandbo needs 0.8 or newer.")
    return schema

"""
The pool and the transaction: every statement of Grandbo runs through `Transaction`.

A transaction begins with one round trip that assumes a role of one purpose and binds the tenant with SET LOCAL. Both
end with the transaction, so a pooled connection carries nothing over, also behind PgBouncer in transaction mode.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import psycopg
from pgvector.psycopg import register_vector
from psycopg import Connection, RawCursor, RawServerCursor, errors
from psycopg.rows import DictRow, dict_row
from psycopg.types.array import ListBinaryDumper
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from grandbo.errors import (
    CommandReused,
    Conflict,
    DatabaseBehind,
    DatabaseUnavailable,
    GrandboError,
    TenantBusy,
    TenantExists,
    Unavailable,
)
from grandbo.storage.compiling import Column, Executable, compile_statement
from grandbo.storage.keyring import OpenedKeys
from grandbo.storage.tables import SCHEMA
from grandbo.types import utc_text

Role = Literal["writer", "reader", "projector", "auditor", "notary", "keyholder"]
Row = DictRow
Step = tuple[Executable, Mapping[str, Any]]

# A tier or a status is printed into SET LOCAL, which takes no bind parameters; the grammar leaves nothing to quote.
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")

_STATEMENT_TIMEOUT_MS: dict[Role, int] = {
    "reader": 2_000,
    "writer": 5_000,
    "auditor": 0,
    "notary": 0,
    "projector": 0,
    "keyholder": 0,
}

_START_SECONDS = 10.0

_CONSTRAINT_ERRORS: dict[str, type[GrandboError]] = {
    "org_memory_events_command_key": CommandReused,
    "org_memory_events_stream_key": Conflict,
    "org_memory_tenants_key": TenantExists,
}


class _Expected(logging.Filter):
    """Drops the driver's remark that a pipeline ended in the error that is being raised anyway."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith("error ignored terminating")


logging.getLogger("psycopg").addFilter(_Expected())


class Transaction:
    """One open transaction, bound to one tenant and one role."""

    def __init__(self, conn: Connection[Row], schema: str = SCHEMA) -> None:
        self._conn = conn
        self._schema = schema
        self.is_open = True
        # The last position that it appended.
        self.reached: int | None = None

    def execute(self, statement: Executable, params: Mapping[str, Any] | None = None) -> list[Row]:
        """Run one statement; give its rows."""
        return _rows(self._send(statement, params or {}))

    def batch(self, steps: Iterable[Step], *, commit: bool = False, as_role: Role | None = None) -> list[list[Row]]:
        """
        Run several statements in one round trip, in order; with `commit` the COMMIT travels along.

        Each is sent as soon as `steps` gives it: the server works on one while the next is still being made. With
        `as_role` they run, and the transaction goes on, as another role.
        """
        with self._conn.pipeline():
            if as_role is not None:
                self.assume(as_role)
            cursors = [self._send(statement, params) for statement, params in steps]
            if commit:
                self._conn.execute("COMMIT")
        if commit:
            self.is_open = False
        return [_rows(cursor) for cursor in cursors]

    def execute_as(self, role: Role, statement: Executable, params: Mapping[str, Any], *, back: Role) -> list[Row]:
        """Run one statement as another role, and go on as `back`; one round trip."""
        with self._conn.pipeline():
            self.assume(role)
            cursor = self._send(statement, params)
            self.assume(back)
        return _rows(cursor)

    def read_as(self, tiers: Sequence[str], statuses: Sequence[str], instant: datetime) -> None:
        """Go on as the reader, who sees these tiers and statuses and what is valid at the instant."""
        self._conn.execute(
            f"SET LOCAL ROLE grandbo_reader; SET LOCAL grandbo.tiers = '{_array(tiers)}'; "
            f"SET LOCAL grandbo.statuses = '{_array(statuses)}'; SET LOCAL grandbo.valid_at = '{utc_text(instant)}'; "
            # Planned once: planning anew costs a tenth of a recall, and finds the same plan for every topic.
            "SET LOCAL plan_cache_mode = force_generic_plan; "
            f"SET LOCAL statement_timeout = {_STATEMENT_TIMEOUT_MS['reader']}",
            prepare=False,
        )

    def assume(self, role: Role) -> None:
        """Go on as another role of the same tenant."""
        self._conn.execute(f"SET LOCAL ROLE grandbo_{role}")  # role is one of six names

    def limit(self, milliseconds: int) -> None:
        """Let no statement of the rest of this transaction take longer."""
        self._conn.execute(f"SET LOCAL statement_timeout = {int(milliseconds)}")

    def fix_output(self) -> None:
        """Make the text form of a row the same on every server and for every login: digests are taken of it."""
        self._conn.execute(
            "SET LOCAL timezone = 'UTC'; SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL bytea_output = 'hex'; "
            "SET LOCAL extra_float_digits = 1",
            prepare=False,
        )

    def rollback(self) -> None:
        """Undo everything and end the transaction."""
        # The driver's own rollback forgets what it prepared: a statement whose preparation failed in a pipeline
        # would otherwise be asked for by its name for as long as the connection lives.
        self._conn.rollback()
        self.is_open = False

    def at_schema(self, schema: str) -> Transaction:
        """The same transaction, with the tables of another schema."""
        return Transaction(self._conn, schema)

    def stream(self, statement: Executable, params: Mapping[str, Any], *, size: int = 1_000) -> Iterator[Row]:
        """Read a long result through a server-side cursor, `size` rows at a time."""
        compiled = compile_statement(statement, self._schema)
        with self._conn.cursor(name="grandbo_stream") as cursor:
            cursor.itersize = size
            cursor.execute(compiled.sql, compiled.bind(params), binary=True)
            yield from cursor

    def _send(self, statement: Executable, params: Mapping[str, Any]) -> psycopg.Cursor[Row]:
        compiled = compile_statement(statement, self._schema)
        # Binary: ids and times of an answer take a third less to read than their text.
        prepare = False if compiled.of_many else None
        return self._conn.execute(compiled.sql, compiled.bind(params), prepare=prepare, binary=True)


class Positions:
    """The last position of each tenant that was committed here; of very many tenants those of the last."""

    _MOST = 10_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[UUID, int] = OrderedDict()

    def note(self, tenant_id: UUID, position: int) -> None:
        """Remember that a tenant's log has come this far."""
        with self._lock:
            self._known[tenant_id] = max(position, self._known.get(tenant_id, 0))
            self._known.move_to_end(tenant_id)
            if len(self._known) > self._MOST:
                self._known.popitem(last=False)

    def of(self, tenant_id: UUID) -> int:
        """How far a tenant's log has come at least."""
        with self._lock:
            return self._known.get(tenant_id, 0)


class Database:
    """A pool on one database, through one login that may assume the app roles and nothing else."""

    def __init__(self, conninfo: str, *, pool_size: int = 8, pool_timeout: float = 10.0, lock_timeout_ms: int = 5_000):
        self._lock_timeout_ms = lock_timeout_ms
        # Set by whoever opens it: the keys of subjects that this process can open.
        self.keys = OpenedKeys(None)
        self.acknowledged = Positions()
        self._pool_timeout = pool_timeout
        self._attempts = pool_size + 1
        self.pool: ConnectionPool[Connection[Row]] = ConnectionPool(
            conninfo,
            kwargs={
                "autocommit": True,
                "row_factory": dict_row,
                "cursor_factory": RawCursor,
                "application_name": "grandbo",
            },
            min_size=1,
            max_size=pool_size,
            timeout=pool_timeout,
            reconnect_timeout=pool_timeout,
            configure=_configure,
            open=False,
            name="grandbo",
        )

    def open(self) -> None:
        """Start the pool; the first connection is made in the background."""
        self.pool.open()

    def wait(self) -> None:
        """Wait for the first connection: a start may take longer than a request waits. Raises `Unavailable`."""
        with _translated_errors():
            self.pool.wait(max(self._pool_timeout, _START_SECONDS))

    def close(self) -> None:
        """Close all connections; running transactions are rolled back by the server."""
        self.pool.close(timeout=5)

    @contextlib.contextmanager
    def transaction(
        self, role: Role, tenant_id: UUID | None, *, read_only: bool = False, snapshot: bool = False
    ) -> Iterator[Transaction]:
        """
        Open a transaction as `role`, bound to the tenant; commit at the end, roll back on any error.

        Args:
            tenant_id: None only for the list of tenants, the one table that belongs to no tenant.
            snapshot: REPEATABLE READ, so that several statements see one moment.

        Raises:
            DatabaseUnavailable: no server, or it went away; nothing was stored unless the error came at COMMIT, and
                repeating the same command is safe in both cases.
            TenantBusy: the head lock was not free in time.
        """
        begin = self._begin(role, tenant_id, read_only, snapshot)
        with _translated_errors():
            conn = self._checkout(begin)
            try:
                transaction = Transaction(conn)
                try:
                    yield transaction
                except BaseException as error:
                    _undo(transaction, conn, error)
                    raise
                if transaction.is_open:
                    conn.execute("COMMIT")
                if tenant_id is not None and transaction.reached is not None:
                    self.acknowledged.note(tenant_id, transaction.reached)
            finally:
                self.pool.putconn(conn)

    def _checkout(self, begin: str) -> Connection[Row]:
        """Take a connection that works: after a restart of the server each pooled one fails once, at its first use."""
        failure: psycopg.Error | None = None
        for _ in range(self._attempts):
            conn = self.pool.getconn(self._pool_timeout)
            try:
                conn.execute(begin, prepare=False)  # built from checked parts only
            except psycopg.OperationalError as error:
                failure = error
                conn.close()
                self.pool.putconn(conn)
            except BaseException:
                conn.close()
                self.pool.putconn(conn)
                raise
            else:
                return conn
        assert failure is not None
        raise failure

    def _begin(self, role: Role, tenant_id: UUID | None, read_only: bool, snapshot: bool) -> str:
        parts = [
            "BEGIN" + (" ISOLATION LEVEL REPEATABLE READ" if snapshot else "") + (" READ ONLY" if read_only else ""),
            f"SET LOCAL ROLE grandbo_{role}",
            f"SET LOCAL statement_timeout = {_STATEMENT_TIMEOUT_MS[role]}",
            # In another zone the first day of year 1, or the last of 9999, is no time that Python can read back.
            "SET LOCAL timezone = 'UTC'",
        ]
        if not read_only:
            parts.append(f"SET LOCAL lock_timeout = {self._lock_timeout_ms}")
        if tenant_id is not None:
            # Parsed and printed back: what stands between the quotes can only be a UUID.
            parts.append(f"SET LOCAL grandbo.tenant_id = '{UUID(str(tenant_id))}'")
        return "; ".join(parts)


def _undo(transaction: Transaction, conn: Connection[Row], error: BaseException) -> None:
    """Roll back; what cannot be relied on to do so is closed, which comes to the same."""
    if _end_behind(error) is not None:
        # Wherever a Ctrl-C found it: the driver may be among statements that were sent at once, and stays there.
        conn.close()
    elif transaction.is_open and not conn.closed:
        try:
            transaction.rollback()
        except psycopg.Error:
            conn.close()


def _configure(conn: Connection[Row]) -> None:
    conn.server_cursor_factory = RawServerCursor
    if _is_pooled(conn):
        # The next transaction may run on another server process, which knows nothing of what this one prepared.
        conn.prepare_threshold = None
    conn.adapters.register_dumper(Column, ListBinaryDumper)
    try:
        register_vector(conn)
    except psycopg.ProgrammingError as error:
        raise DatabaseBehind("The database has no vector type in reach; run `grandbo migrate`.") from error


def _rows(cursor: psycopg.Cursor[Row]) -> list[Row]:
    # Not `description`: it is made anew, column by column, each time it is asked for.
    return [] if cursor.rownumber is None else cursor.fetchall()


def _is_pooled(conn: Connection[Row]) -> bool:
    """Whether a pooler such as PgBouncer stands in between: it names another process than the one that answers."""
    row = conn.execute("SELECT pg_backend_pid() AS pid").fetchone()
    return row is None or row["pid"] != conn.info.backend_pid


def _array(names: Sequence[str]) -> str:
    for name in names:
        if not name or not _NAME_CHARACTERS.issuperset(name):
            raise ValueError(f"not a tier or status name: {name!r}")
    return "{" + ",".join(names) + "}"


@contextlib.contextmanager
def _translated_errors() -> Iterator[None]:
    """Wrap the driver's errors once, here; constraint violations are told apart by the constraint's name."""
    try:
        yield
    except errors.UniqueViolation as error:
        known = _CONSTRAINT_ERRORS.get(error.diag.constraint_name or "")
        if known is None:
            raise
        raise known() from error
    except errors.LockNotAvailable as error:
        raise TenantBusy from error
    except errors.QueryCanceled as error:
        raise Unavailable("The database took too long over this; try again, or ask for less.") from error
    except (PoolTimeout, PoolClosed) as error:
        raise Unavailable("No database connection became free in time; try again.") from error
    except (errors.UndefinedTable, errors.InvalidSchemaName) as error:
        raise DatabaseBehind from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        if (ended := _end_behind(error)) is not None:
            raise ended from None
        raise DatabaseUnavailable from error


def _end_behind(error: BaseException | None) -> BaseException | None:
    """The Ctrl-C, or the call for an end, that this is or in whose handling the driver failed: nobody goes on then."""
    while error is not None and not isinstance(error, (KeyboardInterrupt, SystemExit)):
        error = error.__context__
    return error

"""The chain that the schema declares: whatever is sealed wrong is refused, by the constraint that says so."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
import rfc8785
from psycopg import errors

from grandbo.events import chain
from tests.support import vectors
from tests.support.chains import (
    Connection,
    LogRow,
    acting_as,
    chain_of,
    insert_row,
    move_head,
    next_row,
    sealed,
    with_envelope,
    write_log,
)
from tests.support.postgres import TestDatabase, TestServer

LENGTH = 4

# From the last two rows of a log to a row that is wrong.
Fault = Callable[[LogRow, LogRow], LogRow]


@pytest.fixture(scope="module")
def cloned(server: TestServer) -> Iterator[TestDatabase]:
    """A database of its own: what is written by hand stays out of the shared one."""
    with server.clone() as database:
        yield database


@pytest.fixture(scope="module")
def service(cloned: TestDatabase) -> Iterator[Connection]:
    """The service's connection, bound by every wall."""
    with psycopg.connect(cloned.service, autocommit=True) as conn:
        yield conn


@pytest.fixture
def tenant_id() -> UUID:
    """A tenant of the test's own."""
    return uuid.uuid4()


@pytest.fixture
def rows(service: Connection, tenant_id: UUID) -> list[LogRow]:
    """A correct log of four events, stored."""
    made = chain_of(tenant_id, LENGTH)
    with acting_as(service, "grandbo_writer", tenant_id):
        write_log(service, made)
    return made


def _differing(column: str, value: Any) -> Fault:
    """A correct row whose column was changed afterwards, so that the envelope says something else."""
    return lambda _, last: {**next_row(last["tenant_id"], last), column: value}


def _reworded(**changes: Any) -> Fault:
    """A row whose envelope says something else, and whose hash fits that envelope."""

    def fault(_: LogRow, last: LogRow) -> LogRow:
        row = next_row(last["tenant_id"], last)
        return with_envelope(row, rfc8785.dumps({**json.loads(row["envelope"]), **changes}).decode())

    return fault


def _next(**changes: Any) -> Fault:
    return lambda _, last: {**next_row(last["tenant_id"], last), **changes}


def _resealed(**changes: Any) -> Fault:
    return lambda _, last: next_row(last["tenant_id"], last, **changes)


FAULTS: tuple[tuple[str, Fault, str], ...] = (
    ("wrong hash", _next(hash=bytes(32)), "sealed"),
    ("empty hash", _next(hash=b""), "sealed"),
    ("fork", _resealed(prev_hash=bytes(32)), "continues"),
    ("fork from the event before", lambda before, last: next_row(last["tenant_id"], last, prev_hash=before["hash"]),
     "continues"),
    ("gap", lambda _, last: next_row(last["tenant_id"], last, position=last["position"] + 2), "continues"),
    ("position taken", lambda before, last: next_row(last["tenant_id"], before), "key"),
    (
        "second beginning",
        lambda _, last: next_row(last["tenant_id"], last, position=1),
        "genesis",
    ),
    ("first again", lambda _, last: next_row(last["tenant_id"]), "key"),
    ("position zero", lambda _, last: next_row(last["tenant_id"], last, position=0), "genesis"),
    ("event id again", lambda _, last: next_row(last["tenant_id"], last, event_id=last["event_id"]), "event_key"),
    ("stream version again", lambda _, last: next_row(last["tenant_id"], last, stream_id=last["stream_id"]),
     "stream_key"),
    ("command again", lambda _, last: next_row(last["tenant_id"], last, command_id=last["command_id"]), "command_key"),
    ("column event_id", _differing("event_id", uuid.uuid4()), "envelope"),
    ("column stream_id", _differing("stream_id", uuid.uuid4()), "envelope"),
    ("column stream_version", _differing("stream_version", 2), "envelope"),
    ("column event_type", _differing("event_type", "entry_archived"), "envelope"),
    ("column schema_version", _differing("schema_version", 2), "envelope"),
    ("column principal", _differing("principal", f"system:{uuid.uuid4()}"), "envelope"),
    ("column subject_id", _differing("subject_id", uuid.uuid4()), "envelope"),
    ("column command_id", _differing("command_id", uuid.uuid4()), "envelope"),
    ("column command_index", _differing("command_index", 1), "envelope"),
    ("column correlation_id", _differing("correlation_id", uuid.uuid4()), "envelope"),
    ("column causation_id", _differing("causation_id", uuid.uuid4()), "envelope"),
    ("column occurred_at", lambda _, last: {**next_row(last["tenant_id"], last),
     "occurred_at": last["occurred_at"] + timedelta(microseconds=1)}, "envelope"),
    ("column recorded_at", lambda _, last: {**next_row(last["tenant_id"], last),
     "recorded_at": last["recorded_at"] + timedelta(microseconds=1)}, "envelope"),
    ("envelope of another position", _reworded(position=3), "envelope"),
    ("envelope of another tenant", _reworded(tenant_id=str(uuid.uuid4())), "envelope"),
    ("envelope of another version", _reworded(v=2), "envelope"),
    *(
        (f"envelope without {key}", lambda _, last, key=key: _without(next_row(last["tenant_id"], last), key), rule)
        for key, rule in (("subject_id", "envelope"), ("occurred_at", "envelope"), ("recorded_at", "envelope"),
                          ("v", "envelope"), ("commitment", "commitment"))
    ),
    ("body that was not committed to", _next(body=b"{}"), "commitment"),
    ("salt that was not committed to", _next(salt=bytes(32)), "commitment"),
    ("short salt", _resealed(salt=bytes(31)), "commitment"),
    ("body without salt", _next(salt=None), "removed"),
    ("salt without body", _next(body=None), "removed"),
    ("erasure under a subject's key", _resealed(event_type="entry_erased", subject_id=uuid.uuid4()), "erasure"),
    ("event type with capitals", _resealed(event_type="EntryRecorded"), "event_type_check"),
    ("principal by name", _resealed(principal="human:zoe"), "principal_check"),
    ("stream version zero", _resealed(stream_version=0), "stream_version_check"),
    ("schema version zero", _resealed(schema_version=0), "schema_version_check"),
    ("negative command index", _resealed(command_index=-1), "command_index_check"),
)  # fmt: skip


def _without(row: LogRow, key: str) -> LogRow:
    document = json.loads(row["envelope"])
    del document[key]
    return with_envelope(row, rfc8785.dumps(document).decode())


def _constraint(error: psycopg.Error) -> str:
    return (error.diag.constraint_name or "").removeprefix("org_memory_")


class TestFixedVectors:
    def test_the_schema_takes_the_three_rows(self, service: Connection) -> None:
        """The published rows, ciphertext included, pass every constraint; the schema computes the same hashes."""
        made = vectors.rows()

        with acting_as(service, "grandbo_writer", vectors.TENANT):
            write_log(service, made)
            stored = service.execute("SELECT encode(hash, 'hex') FROM grandbo.org_memory_events ORDER BY position")

            assert list(vectors.HASHES) == [row[0] for row in stored.fetchall()]


class TestWriter:
    @pytest.mark.parametrize(
        ("fault", "constraint"), [pytest.param(fault, constraint, id=name) for name, fault, constraint in FAULTS]
    )
    def test_a_wrong_row_is_refused(
        self, service: Connection, rows: list[LogRow], fault: Fault, constraint: str
    ) -> None:
        """The constraint that is broken refuses the row, and its name says what is wrong."""
        row = fault(rows[-2], rows[-1])

        with (
            pytest.raises(psycopg.IntegrityError) as refused,
            acting_as(service, "grandbo_writer", rows[0]["tenant_id"]),
        ):
            insert_row(service, row)

        assert f"events_{constraint}" == _constraint(refused.value)

    @pytest.mark.parametrize(
        ("body", "sqlstate"),
        [
            pytest.param(b"not JSON", "22P02", id="not JSON"),
            pytest.param(b"\xff\xfe", "22021", id="not UTF-8"),
            pytest.param(b'"\x00"', "22021", id="a NUL"),
        ],
    )
    def test_plaintext_is_json(self, service: Connection, rows: list[LogRow], body: bytes, sqlstate: str) -> None:
        """A body that no subject's key covers must be JSON, or nobody could read it again."""
        row = next_row(rows[0]["tenant_id"], rows[-1], body=body)

        with pytest.raises(psycopg.DataError) as refused, acting_as(service, "grandbo_writer", row["tenant_id"]):
            insert_row(service, row)

        assert sqlstate == refused.value.sqlstate

    def test_a_correct_row_is_taken(self, service: Connection, rows: list[LogRow]) -> None:
        """What refuses the faults lets the next correct event through."""
        row = next_row(rows[0]["tenant_id"], rows[-1])

        with acting_as(service, "grandbo_writer", row["tenant_id"]):
            insert_row(service, row)
            move_head(service, row["tenant_id"], row["position"], row["hash"])

    def test_another_tenant_cannot_be_written_to(self, service: Connection, rows: list[LogRow]) -> None:
        """A row that continues another tenant's log is refused by the wall before any constraint is asked."""
        row = next_row(rows[0]["tenant_id"], rows[-1])

        with pytest.raises(errors.InsufficientPrivilege), acting_as(service, "grandbo_writer", uuid.uuid4()):
            insert_row(service, row)


class TestHead:
    @pytest.mark.parametrize(
        ("position", "hash_of", "constraint"),
        [
            pytest.param(LENGTH, None, "heads_event", id="wrong hash"),
            pytest.param(LENGTH + 1, LENGTH, "heads_event", id="past the log"),
            pytest.param(LENGTH, LENGTH - 1, "heads_event", id="hash of the event before"),
            pytest.param(0, LENGTH, "heads_genesis", id="no beginning"),
            pytest.param(-1, LENGTH, "heads_genesis", id="negative"),
        ],
    )
    def test_it_names_an_event(
        self, service: Connection, rows: list[LogRow], position: int, hash_of: int | None, constraint: str
    ) -> None:
        """The head can only name an event that is there, with its hash."""
        tenant_id = rows[0]["tenant_id"]
        hash_ = bytes(32) if hash_of is None else rows[hash_of - 1]["hash"]

        with pytest.raises(psycopg.IntegrityError) as refused, acting_as(service, "grandbo_writer", tenant_id):
            move_head(service, tenant_id, position, hash_)

        assert constraint == _constraint(refused.value)

    def test_set_back_it_forks_nothing(self, service: Connection, rows: list[LogRow]) -> None:
        """A head that was set back lets nobody append there: the position is taken."""
        tenant_id, before = rows[0]["tenant_id"], rows[-2]

        with acting_as(service, "grandbo_writer", tenant_id):
            move_head(service, tenant_id, before["position"], before["hash"])
            with pytest.raises(errors.UniqueViolation) as refused, service.transaction():
                insert_row(service, next_row(tenant_id, before))

        assert "events_key" == _constraint(refused.value)

    def test_a_first_head_starts_at_genesis(self, service: Connection, tenant_id: UUID) -> None:
        """A tenant's head begins with the tenant's own genesis hash."""
        with pytest.raises(errors.CheckViolation) as refused, acting_as(service, "grandbo_writer", tenant_id):
            service.execute(
                "INSERT INTO grandbo.org_memory_heads (tenant_id, hash) VALUES (%s, %s)",
                (tenant_id, chain.genesis(uuid.uuid4())),
            )

        assert "heads_genesis" == _constraint(refused.value)


class TestOwnerWithoutTriggers:
    """The owner can switch the append-only triggers and its own row-level security off. The chain still refuses."""

    @pytest.fixture
    def owner(self, cloned: TestDatabase, rows: list[LogRow]) -> Iterator[Connection]:
        """The owner, in a transaction in which nothing but the declared constraints is left."""
        with psycopg.connect(cloned.admin) as conn:
            conn.execute("SET ROLE grandbo_owner")
            for table in ("org_memory_events", "org_memory_heads"):
                conn.execute(f"ALTER TABLE grandbo.{table} NO FORCE ROW LEVEL SECURITY")
            for trigger in ("no_row_change", "no_stmt_change"):
                conn.execute(f"ALTER TABLE grandbo.org_memory_events DISABLE TRIGGER {trigger}")
            yield conn
            conn.rollback()

    @pytest.mark.parametrize(
        ("change", "constraint"),
        [
            pytest.param({"principal": f"human:{uuid.uuid4()}"}, "events_envelope", id="a column"),
            pytest.param({"envelope": "{}"}, "events_commitment", id="the envelope"),
            pytest.param({"body": b"{}"}, "events_commitment", id="the body"),
            pytest.param({"hash": bytes(32)}, "events_sealed", id="the hash"),
            pytest.param({"prev_hash": bytes(32)}, "events_sealed", id="the hash before"),
        ],
    )
    def test_an_edit_is_refused(
        self, owner: Connection, rows: list[LogRow], change: dict[str, Any], constraint: str
    ) -> None:
        """An edit in the middle breaks a check of its own row."""
        with pytest.raises(psycopg.IntegrityError) as refused:
            _update(owner, rows[1], change)

        assert constraint == _constraint(refused.value)

    def test_a_consistent_edit_is_refused(self, owner: Connection, rows: list[LogRow]) -> None:
        """An edit that recomputes its hash breaks the link of the event after it."""
        new = sealed(rows[1], event_type="entry_archived")
        change = {name: new[name] for name in ("event_type", "envelope", "hash")}

        with pytest.raises(errors.ForeignKeyViolation) as refused:
            _update(owner, rows[1], change)

        assert "events_continues" == _constraint(refused.value)

    @pytest.mark.parametrize(
        ("which", "constraint"),
        [
            pytest.param(0, "events_continues", id="first"),
            pytest.param(1, "events_continues", id="middle"),
            pytest.param(LENGTH - 1, "heads_event", id="last"),
        ],
    )
    def test_a_deletion_is_refused(self, owner: Connection, rows: list[LogRow], which: int, constraint: str) -> None:
        """No event can go: the next one continues it, and the head names the last."""
        row = rows[which]

        with pytest.raises(errors.ForeignKeyViolation) as refused:
            owner.execute(
                "DELETE FROM grandbo.org_memory_events WHERE tenant_id = %s AND position = %s",
                (row["tenant_id"], row["position"]),
            )

        assert constraint == _constraint(refused.value)

    def test_a_consistent_edit_of_the_last_event_is_refused(self, owner: Connection, rows: list[LogRow]) -> None:
        """Nothing continues the last event yet, but the head names its hash."""
        new = sealed(rows[-1], event_type="entry_archived")
        change = {name: new[name] for name in ("event_type", "envelope", "hash")}

        with pytest.raises(errors.ForeignKeyViolation) as refused:
            _update(owner, rows[-1], change)

        assert "heads_event" == _constraint(refused.value)

    def test_the_keys_of_the_chain_cannot_be_switched_off(self, owner: Connection, rows: list[LogRow]) -> None:
        """The triggers behind foreign keys are the system's: only a superuser could disable them."""
        with pytest.raises(errors.InsufficientPrivilege):
            owner.execute("ALTER TABLE grandbo.org_memory_events DISABLE TRIGGER ALL")


def _update(conn: Connection, row: LogRow, change: dict[str, Any]) -> None:
    assignments = ", ".join(f"{name} = %({name})s" for name in change)
    cursor = conn.execute(
        f"UPDATE grandbo.org_memory_events SET {assignments} WHERE tenant_id = %(t)s AND position = %(p)s",
        {**change, "t": row["tenant_id"], "p": row["position"]},
    )
    assert 1 == cursor.rowcount

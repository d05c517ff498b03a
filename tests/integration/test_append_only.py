"""The log only grows: grants, policies and triggers each refuse a change, and erasure is the one exception."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any, LiteralString
from uuid import UUID

import psycopg
import pytest
import rfc8785
from psycopg import errors, sql

from grandbo.events.verify import verify_rows
from tests.support.chains import (
    COLUMNS,
    Connection,
    LogRow,
    acting_as,
    chain_of,
    insert_row,
    move_head,
    next_row,
    write_log,
)
from tests.support.postgres import TestDatabase, TestServer

EVENTS = "org_memory_events"
CHECKPOINTS = "org_memory_checkpoints"
ROLES = ("writer", "reader", "projector", "auditor", "notary", "keyholder", "service")

REMOVERS: tuple[LiteralString, ...] = ("remove_bodies", "remove_bodies_at")
# Everything that changes, removes or locks rows of a table with a `tenant_id`.
CHANGES: dict[str, LiteralString] = {
    "update": "UPDATE grandbo.{table} SET tenant_id = tenant_id",
    "delete": "DELETE FROM grandbo.{table}",
    "truncate": "TRUNCATE grandbo.{table} CASCADE",
    "merge update": "MERGE INTO grandbo.{table} t USING (VALUES (1)) v(n) ON true"
    " WHEN MATCHED THEN UPDATE SET tenant_id = t.tenant_id",
    "merge delete": "MERGE INTO grandbo.{table} t USING (VALUES (1)) v(n) ON true WHEN MATCHED THEN DELETE",
    "upsert": "INSERT INTO grandbo.{table} ({columns}) SELECT {columns} FROM grandbo.{table}"
    " ON CONFLICT (tenant_id, {key}) DO UPDATE SET tenant_id = EXCLUDED.tenant_id",
}
LOCKS: dict[str, LiteralString] = {
    "for update": "SELECT FROM grandbo.{table} FOR UPDATE",
    "for no key update": "SELECT FROM grandbo.{table} FOR NO KEY UPDATE",
    "for share": "SELECT FROM grandbo.{table} FOR SHARE",
    "for key share": "SELECT FROM grandbo.{table} FOR KEY SHARE",
}
_KEYS = {EVENTS: ("position",), CHECKPOINTS: ("size", "is_full")}
_COLUMNS = {EVENTS: COLUMNS, CHECKPOINTS: ("tenant_id", "size", "root", "note")}


def _changing(name: str, table: str) -> sql.Composed:
    return sql.SQL((CHANGES | LOCKS)[name]).format(
        table=sql.Identifier(table),
        columns=sql.SQL(", ").join(map(sql.Identifier, _COLUMNS[table])),
        key=sql.SQL(", ").join(map(sql.Identifier, _KEYS[table])),
    )


@pytest.fixture(scope="module")
def cloned(server: TestServer) -> Iterator[TestDatabase]:
    """A database of its own, for a superuser to try its worst on."""
    with server.clone() as database:
        yield database


@pytest.fixture(scope="module")
def admin(cloned: TestDatabase) -> Iterator[Connection]:
    """A superuser's connection; it becomes any role."""
    with psycopg.connect(cloned.admin, autocommit=True) as conn:
        yield conn


@pytest.fixture
def rows(admin: Connection) -> list[LogRow]:
    """A log of four events with a checkpoint over it."""
    made = chain_of(uuid.uuid4(), 4)
    tenant_id = made[0]["tenant_id"]
    with acting_as(admin, "grandbo_writer", tenant_id):
        write_log(admin, made)
    with acting_as(admin, "grandbo_notary", tenant_id):
        admin.execute(
            "INSERT INTO grandbo.org_memory_checkpoints (tenant_id, size, root, note) VALUES (%s, 4, %s, 'note')",
            (tenant_id, bytes(32)),
        )
    return made


class TestGrants:
    @pytest.mark.parametrize("role", ROLES)
    @pytest.mark.parametrize("change", [*CHANGES, *LOCKS])
    @pytest.mark.parametrize("table", [EVENTS, CHECKPOINTS])
    def test_no_role_may_change_the_log(
        self, admin: Connection, rows: list[LogRow], role: str, change: str, table: str
    ) -> None:
        """Every verb that changes or locks a row is refused to every role before it looks at a row."""
        with (
            pytest.raises(errors.InsufficientPrivilege),
            acting_as(admin, f"grandbo_{role}", rows[0]["tenant_id"]),
        ):
            admin.execute(_changing(change, table))

    def test_the_login_by_itself_may_not_even_read(self, cloned: TestDatabase) -> None:
        """The service has to take a role of one purpose first."""
        with psycopg.connect(cloned.service) as conn, pytest.raises(errors.InsufficientPrivilege):
            conn.execute("SELECT FROM grandbo.org_memory_events")

    @pytest.mark.parametrize("role", ["grandbo_owner", "grandbo_eraser", "grandbo_migrator", "postgres"])
    def test_the_login_cannot_become_more(self, cloned: TestDatabase, role: str) -> None:
        """The service cannot take the role of the owner or of the eraser."""
        with psycopg.connect(cloned.service) as conn, pytest.raises(errors.InsufficientPrivilege):
            conn.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))


class TestPolicies:
    @pytest.mark.parametrize("change", ["update", "delete"])
    def test_a_grant_by_mistake_changes_nothing(self, admin: Connection, rows: list[LogRow], change: str) -> None:
        """With the grant given and the triggers gone, no policy lets the writer at a stored row."""
        tenant_id = rows[0]["tenant_id"]
        with admin.transaction(force_rollback=True):
            admin.execute("GRANT UPDATE, DELETE ON grandbo.org_memory_events TO grandbo_writer")
            admin.execute("ALTER TABLE grandbo.org_memory_events DISABLE TRIGGER USER")
            with acting_as(admin, "grandbo_writer", tenant_id):
                changed = admin.execute(_changing(change, EVENTS)).rowcount

        assert 0 == changed


class TestTriggers:
    @pytest.mark.parametrize("change", CHANGES)
    @pytest.mark.parametrize("table", [EVENTS, CHECKPOINTS])
    @pytest.mark.parametrize("mode", ["origin", "replica", "local"])
    def test_a_superuser_is_refused(
        self, admin: Connection, rows: list[LogRow], change: str, table: str, mode: LiteralString
    ) -> None:
        """No grant and no policy binds a superuser; the triggers do, also in the mode that skips ordinary ones."""
        with admin.transaction(force_rollback=True):
            admin.execute(f"SET LOCAL session_replication_role = {mode}")

            assert "GB002" == _sqlstate(admin, _changing(change, table))

    @pytest.mark.parametrize("change", CHANGES)
    @pytest.mark.parametrize("table", [EVENTS, CHECKPOINTS])
    def test_the_owner_is_refused(self, admin: Connection, rows: list[LogRow], change: str, table: str) -> None:
        """Owning the table is no way in, not even after the owner has stopped forcing row-level security on itself."""
        with admin.transaction(force_rollback=True):
            admin.execute("SET LOCAL ROLE grandbo_owner")
            admin.execute(sql.SQL("ALTER TABLE grandbo.{} NO FORCE ROW LEVEL SECURITY").format(sql.Identifier(table)))

            assert "GB002" == _sqlstate(admin, _changing(change, table))

    def test_a_grant_by_mistake_is_loud(self, admin: Connection, rows: list[LogRow]) -> None:
        """With the grant given, the writer's update is an error, not a silent zero rows."""
        with admin.transaction(force_rollback=True):
            admin.execute("GRANT UPDATE ON grandbo.org_memory_events TO grandbo_writer")
            with acting_as(admin, "grandbo_writer", rows[0]["tenant_id"]):
                assert "GB002" == _sqlstate(admin, _changing("update", EVENTS))


class TestEraser:
    @pytest.mark.parametrize(
        "assignment",
        [
            "body = 'x', salt = NULL",
            "body = NULL, salt = decode(repeat('00', 32), 'hex')",
            "body = NULL",
            "salt = NULL",
            "body = body",
        ],
    )
    def test_it_may_only_remove(self, admin: Connection, rows: list[LogRow], assignment: LiteralString) -> None:
        """Body and salt can only go, and only together."""
        with (
            pytest.raises(psycopg.DatabaseError) as refused,
            acting_as(admin, "grandbo_eraser", rows[0]["tenant_id"]),
        ):
            admin.execute(f"UPDATE grandbo.org_memory_events SET {assignment} WHERE position = 1")

        assert "GB002" == refused.value.sqlstate

    @pytest.mark.parametrize("column", ["hash", "prev_hash", "envelope", "recorded_at", "event_type", "position"])
    def test_it_may_touch_no_other_column(self, admin: Connection, rows: list[LogRow], column: LiteralString) -> None:
        """What proves that the event happened is not the eraser's to change."""
        with pytest.raises(errors.InsufficientPrivilege), acting_as(admin, "grandbo_eraser", rows[0]["tenant_id"]):
            admin.execute(f"UPDATE grandbo.org_memory_events SET {column} = {column}, body = NULL, salt = NULL")

    def test_it_deletes_nothing(self, admin: Connection, rows: list[LogRow]) -> None:
        """Erasing a text is not deleting the event."""
        with pytest.raises(errors.InsufficientPrivilege), acting_as(admin, "grandbo_eraser", rows[0]["tenant_id"]):
            admin.execute("DELETE FROM grandbo.org_memory_events")

    def test_another_tenant_is_out_of_its_reach(self, admin: Connection, rows: list[LogRow]) -> None:
        """Bound to one tenant it finds no row of another."""
        with acting_as(admin, "grandbo_eraser", uuid.uuid4()):
            changed = admin.execute("UPDATE grandbo.org_memory_events SET body = NULL, salt = NULL").rowcount

        assert 0 == changed


class TestRemoveBodies:
    def test_only_what_the_erasure_event_names_goes(self, admin: Connection, rows: list[LogRow]) -> None:
        """The bodies of the named streams before the event go, all others stay, and the log still verifies."""
        erasure = _append(
            admin, rows, event_type="entry_erased", body=_body(streams=[rows[1]["stream_id"], rows[2]["stream_id"]])
        )
        later = _append(admin, [*rows, erasure], stream_id=rows[1]["stream_id"], stream_version=2)

        assert 2 == _remove_bodies(admin, erasure)
        assert 0 == _remove_bodies(admin, erasure)

        stored = _stored(admin, erasure["tenant_id"])
        assert [1, 4, 5, later["position"]] == [row["position"] for row in stored if row["body"] is not None]
        assert verify_rows(erasure["tenant_id"], stored)[1] is None

    def test_a_subjects_bodies_follow_from_its_id(self, admin: Connection, rows: list[LogRow]) -> None:
        """Erasing a subject removes every body under its key, in whatever stream, and no one else's."""
        subject, other = uuid.uuid4(), uuid.uuid4()
        theirs = _append(admin, rows, subject_id=subject, body=b"\x01ciphertext")
        others = _append(admin, [*rows, theirs], subject_id=other, body=b"\x01ciphertext")
        erasure = _append(
            admin,
            [*rows, theirs, others],
            event_type="subject_erased",
            stream_id=subject,
            body=_body(streams=[]),
        )

        assert 1 == _remove_bodies(admin, erasure)

        stored = _stored(admin, erasure["tenant_id"])
        assert [theirs["position"]] == [row["position"] for row in stored if row["body"] is None]
        assert verify_rows(erasure["tenant_id"], stored)[1] is None

    def test_single_positions_go_of_the_events_own_stream_alone(self, admin: Connection, rows: list[LogRow]) -> None:
        """Those that it names before it; another stream's, an erasure's, and what comes later stay."""
        again = _append(admin, rows, stream_id=rows[1]["stream_id"], stream_version=2)
        named = [rows[0]["position"], rows[1]["position"], again["position"] + 2]
        erasure = _append(
            admin,
            [*rows, again],
            event_type="entry_erased",
            stream_id=rows[1]["stream_id"],
            stream_version=3,
            body=_body(streams=[], positions=named),
        )
        later = _append(admin, [*rows, again, erasure], stream_id=rows[1]["stream_id"], stream_version=4)

        assert 0 == _remove_bodies(admin, erasure)
        assert 1 == _remove_bodies(admin, erasure, "remove_bodies_at")
        assert 0 == _remove_bodies(admin, erasure, "remove_bodies_at")

        stored = _stored(admin, erasure["tenant_id"])
        assert [rows[1]["position"]] == [row["position"] for row in stored if row["body"] is None]
        assert later["position"] == stored[-1]["position"]
        assert verify_rows(erasure["tenant_id"], stored)[1] is None

    def test_a_body_that_no_position_names_is_missed(self, admin: Connection, rows: list[LogRow]) -> None:
        """The log does not verify where more went than the erasure names."""
        erasure = _append(
            admin,
            rows,
            event_type="entry_erased",
            stream_id=rows[1]["stream_id"],
            stream_version=2,
            body=_body(streams=[], positions=[rows[0]["position"]]),
        )
        stored = [dict(row) for row in _stored(admin, erasure["tenant_id"])]
        for row in stored[:2]:
            row["body"] = row["salt"] = None

        fault = verify_rows(erasure["tenant_id"], stored)[1]
        assert fault is not None
        assert (1, "body missing without an erasure event") == (fault.position, fault.what)

    @pytest.mark.parametrize("function", REMOVERS)
    @pytest.mark.parametrize("position", [1, 99])
    def test_without_an_erasure_event_nothing_goes(
        self, admin: Connection, rows: list[LogRow], position: int, function: LiteralString
    ) -> None:
        """An ordinary event, or none, is no authority."""
        assert "GB003" == _refusal(admin, "grandbo_keyholder", rows[0]["tenant_id"], function, position)

    def test_another_tenants_erasure_is_no_authority(self, admin: Connection, rows: list[LogRow]) -> None:
        """The event must be the bound tenant's own."""
        erasure = _append(admin, rows, event_type="entry_erased", body=_body(streams=[rows[0]["stream_id"]]))

        for function in REMOVERS:
            assert "GB003" == _refusal(admin, "grandbo_keyholder", uuid.uuid4(), function, erasure["position"])
            assert "GB003" == _refusal(admin, "grandbo_keyholder", None, function, erasure["position"])

    @pytest.mark.parametrize("role", [role for role in ROLES if role != "keyholder"])
    def test_only_the_keyholder_removes(self, admin: Connection, rows: list[LogRow], role: str) -> None:
        """Who appends the erasure event is not who removes the bytes."""
        for function in REMOVERS:
            assert "42501" == _refusal(admin, f"grandbo_{role}", rows[0]["tenant_id"], function, 1)

    def test_a_temporary_table_does_not_stand_in_for_the_log(self, admin: Connection, rows: list[LogRow]) -> None:
        """The functions look nowhere but where the log is, whatever the caller's path says."""
        tenant_id = rows[0]["tenant_id"]
        with admin.transaction(force_rollback=True):
            admin.execute("CREATE TEMP TABLE org_memory_events AS TABLE grandbo.org_memory_events")
            admin.execute("UPDATE pg_temp.org_memory_events SET event_type = 'entry_erased'")
            admin.execute("GRANT ALL ON pg_temp.org_memory_events TO PUBLIC")
            admin.execute("SET LOCAL search_path = pg_temp, grandbo")

            assert "GB003" == _refusal(admin, "grandbo_keyholder", tenant_id, "remove_bodies", 1)


class TestDestroyKey:
    def test_forgetting_destroys_that_key_alone(self, admin: Connection, rows: list[LogRow]) -> None:
        """The erased subject's key goes in the writer's own transaction, other subjects keep theirs."""
        tenant_id, subject, other = rows[0]["tenant_id"], uuid.uuid4(), uuid.uuid4()
        with acting_as(admin, "grandbo_keyholder", tenant_id):
            for each in (subject, other):
                _keep_key(admin, tenant_id, each)
        erasure = _append(admin, rows, event_type="subject_erased", stream_id=subject, body=_body(streams=[]))

        with acting_as(admin, "grandbo_writer", tenant_id):
            gone = admin.execute("SELECT grandbo.destroy_key(%s)", (erasure["position"],)).fetchone()
            again = admin.execute("SELECT grandbo.destroy_key(%s)", (erasure["position"],)).fetchone()
        with acting_as(admin, "grandbo_keyholder", tenant_id):
            left = admin.execute("SELECT subject_id FROM grandbo.org_memory_subject_keys").fetchall()

        assert ((True,), (False,), [(other,)]) == (gone, again, left)

    def test_an_entrys_erasure_is_no_authority_over_keys(self, admin: Connection, rows: list[LogRow]) -> None:
        """Only the erasure of a subject destroys a key."""
        erasure = _append(admin, rows, event_type="entry_erased", body=_body(streams=[]))

        assert "GB003" == _refusal(admin, "grandbo_writer", erasure["tenant_id"], "destroy_key", erasure["position"])

    @pytest.mark.parametrize("role", [role for role in ROLES if role != "keyholder"])
    def test_keys_are_the_keyholders(self, admin: Connection, rows: list[LogRow], role: str) -> None:
        """No other role reads a wrapped key."""
        with pytest.raises(errors.InsufficientPrivilege), acting_as(admin, f"grandbo_{role}", rows[0]["tenant_id"]):
            admin.execute("SELECT wrapped_dek FROM grandbo.org_memory_subject_keys")


def _body(*, streams: list[UUID], positions: Sequence[int] = ()) -> bytes:
    said: dict[str, Any] = {"reason": "request", "streams": [str(stream) for stream in streams]}
    return rfc8785.dumps(said | ({"positions": list(positions)} if positions else {}))


def _append(conn: Connection, rows: list[LogRow], **changes: object) -> LogRow:
    row = next_row(rows[0]["tenant_id"], rows[-1], **changes)
    with acting_as(conn, "grandbo_writer", row["tenant_id"]):
        insert_row(conn, row)
        move_head(conn, row["tenant_id"], row["position"], row["hash"])
    return row


def _remove_bodies(conn: Connection, erasure: LogRow, function: LiteralString = "remove_bodies") -> object:
    with acting_as(conn, "grandbo_keyholder", erasure["tenant_id"]):
        found = conn.execute(f"SELECT grandbo.{function}(%s)", (erasure["position"],)).fetchone()
    assert found is not None
    return found[0]


def _refusal(conn: Connection, role: str, tenant_id: UUID | None, function: LiteralString, position: int) -> str | None:
    with pytest.raises(psycopg.DatabaseError) as refused, acting_as(conn, role, tenant_id):
        conn.execute(f"SELECT grandbo.{function}(%s)", (position,))
    return refused.value.sqlstate


def _sqlstate(conn: Connection, statement: sql.Composed) -> str | None:
    with pytest.raises(psycopg.DatabaseError) as refused, conn.transaction():
        conn.execute(statement)
    return refused.value.sqlstate


def _stored(conn: Connection, tenant_id: UUID) -> list[LogRow]:
    with conn.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        cursor.execute("SELECT * FROM grandbo.org_memory_events WHERE tenant_id = %s ORDER BY position", (tenant_id,))
        return cursor.fetchall()


def _keep_key(conn: Connection, tenant_id: UUID, subject_id: UUID) -> None:
    conn.execute(
        "INSERT INTO grandbo.org_memory_subject_keys VALUES (%s, %s, %s, 1, %s)",
        (tenant_id, subject_id, subject_id.bytes, bytes(40)),
    )

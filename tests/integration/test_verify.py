"""Verification: every tampering is found at its position, nothing honest is accused, and two implementations agree."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from scripts import verify_log

from grandbo.events.verify import verify_rows
from grandbo.library import Grandbo, TenantMemory
from tests.support import vectors
from tests.support.chains import COLUMNS, Connection, LogRow, acting_as, insert_row, next_row, sealed
from tests.support.factories import make_finding
from tests.support.postgres import TestServer
from tests.support.providers import words_embedder
from tests.support.tamper import (
    disarm,
    export_lines,
    mutant,
    random_log,
    stored_rows,
    tampered,
    with_columns_of_envelope,
)

SCRIPT = Path(verify_log.__file__)
MUTANTS = 1_500
HONEST = 150


class TamperedDatabase:
    """A memory whose database has lost every protection, and two tenants with a log each."""

    def __init__(self, grandbo: Grandbo, conn: Connection) -> None:
        self.conn = conn
        self.mine = _filled(grandbo, "tampered")
        self.other = _filled(grandbo, "another")
        disarm(conn)
        self.rows = stored_rows(conn, self.mine.tenant_id)
        self.other_rows = stored_rows(conn, self.other.tenant_id)

    def fault_after(self, change: Callable[[Connection], None]) -> int | None:
        """The position that verification names once the change is made."""
        with tampered(self.conn, change):
            bad = self.mine.verify().first_bad
        return None if bad is None else bad.position

    def set(self, position: int, **columns: object) -> Callable[[Connection], None]:
        """An edit of columns of one of my events."""

        def change(conn: Connection) -> None:
            assignments = ", ".join(f"{name} = %({name})s" for name in columns)
            cursor = conn.execute(
                f"UPDATE grandbo.org_memory_events SET {assignments} WHERE tenant_id = %(t)s AND position = %(p)s",
                {**columns, "t": self.mine.tenant_id, "p": position},
            )
            assert 1 == cursor.rowcount

        return change

    def replace(self, position: int, row: LogRow) -> Callable[[Connection], None]:
        """Another row in place of one of mine."""

        def change(conn: Connection) -> None:
            self.delete(position)(conn)
            insert_row(conn, row)

        return change

    def delete(self, *positions: int) -> Callable[[Connection], None]:
        """Events of mine that are no longer there."""

        def change(conn: Connection) -> None:
            conn.execute(
                "DELETE FROM grandbo.org_memory_events WHERE tenant_id = %s AND position = ANY (%s)",
                (self.mine.tenant_id, list(positions)),
            )

        return change

    def head(self, position: int, hash_: bytes) -> Callable[[Connection], None]:
        """My head, moved."""

        def change(conn: Connection) -> None:
            conn.execute(
                "UPDATE grandbo.org_memory_heads SET position = %s, hash = %s WHERE tenant_id = %s",
                (position, hash_, self.mine.tenant_id),
            )

        return change


def _filled(grandbo: Grandbo, name: str) -> TenantMemory:
    grandbo.create_tenant(name)
    memory = grandbo.tenant(name, principal="human:auditor")
    memory.record_finding(make_finding())
    memory.record_finding(make_finding())
    finding = make_finding(incident={"source": "pager", "id": "FIRST"})
    memory.record_finding(finding)
    memory.record_finding({**finding, "incident": {"source": "pager", "id": "SECOND"}})
    memory.embed()
    return memory


@pytest.fixture(scope="module")
def broken(server: TestServer) -> Iterator[TamperedDatabase]:
    """A database of its own without any protection."""
    with (
        server.clone() as database,
        Grandbo.open(settings=database.settings(), embedder=words_embedder()) as grandbo,
        psycopg.connect(database.admin, autocommit=True) as conn,
    ):
        yield TamperedDatabase(grandbo, conn)


def _other_value(row: LogRow, column: str) -> object:
    value = row[column]
    match value:
        case UUID():
            return uuid.uuid4()
        case bytes():
            return bytes([value[0] ^ 1]) + value[1:]
        case int():
            return value + 1
        case str():
            other = "1" if value[-1] == "0" else "0"
            return value.replace("1", "2", 1) if column == "envelope" else f"{value[:-1]}{other}"
        case None:
            return uuid.uuid4()
        case _:
            return value.replace(microsecond=(value.microsecond + 1) % 1_000_000)


class TestTamperedDatabase:
    def test_the_untouched_log_verifies(self, broken: TamperedDatabase) -> None:
        """Without constraints, an honest log is still an honest log."""
        verification = broken.mine.verify()

        assert (None, len(broken.rows), len(broken.rows)) == (
            verification.first_bad,
            verification.events,
            verification.head,
        )

    @pytest.mark.parametrize("column", [name for name in COLUMNS if name not in ("tenant_id", "position")])
    @pytest.mark.parametrize("position", [1, 3, -1])
    def test_an_edit_of_a_column(self, broken: TamperedDatabase, column: str, position: int) -> None:
        """An edit of any column is found at the event that was edited: first, middle or last."""
        row = broken.rows[position - 1 if position > 0 else position]

        assert row["position"] == broken.fault_after(broken.set(row["position"], **{column: _other_value(row, column)}))

    @pytest.mark.parametrize("position", [1, 3])
    def test_a_body_that_nobody_erased(self, broken: TamperedDatabase, position: int) -> None:
        """A body that is gone without an erasure event is found, whole or half."""
        assert position == broken.fault_after(broken.set(position, body=None, salt=None))
        assert position == broken.fault_after(broken.set(position, body=None))
        assert position == broken.fault_after(broken.set(position, salt=None))

    def test_a_body_with_its_salt_exchanged(self, broken: TamperedDatabase) -> None:
        """Body and salt of another event do not fit."""
        donor = broken.rows[2]

        assert 2 == broken.fault_after(broken.set(2, body=donor["body"], salt=donor["salt"]))

    def test_an_event_inserted(self, broken: TamperedDatabase) -> None:
        """An event beside another at one position is found behind it: whichever is read second stands in 4's place."""
        extra = next_row(broken.mine.tenant_id, broken.rows[1])

        assert 4 == broken.fault_after(lambda conn: insert_row(conn, extra))

    def test_an_event_appended_behind_the_heads_back(self, broken: TamperedDatabase) -> None:
        """A correct event that the head does not know of is found at its own position."""
        extra = next_row(broken.mine.tenant_id, broken.rows[-1])

        assert extra["position"] == broken.fault_after(lambda conn: insert_row(conn, extra))

    @pytest.mark.parametrize("position", [1, 3])
    def test_an_event_deleted(self, broken: TamperedDatabase, position: int) -> None:
        """A missing event is found where it should stand."""
        assert position == broken.fault_after(broken.delete(position))

    def test_two_events_swapped(self, broken: TamperedDatabase) -> None:
        """Events that changed places are found at the first of the two places."""
        second, third = broken.rows[1], broken.rows[2]

        def swap(conn: Connection) -> None:
            broken.delete(2, 3)(conn)
            insert_row(conn, {**third, "position": 2})
            insert_row(conn, {**second, "position": 3})

        assert 2 == broken.fault_after(swap)

    @pytest.mark.parametrize("lost", [1, 2])
    def test_the_tail_cut(self, broken: TamperedDatabase, lost: int) -> None:
        """The first position that the head knows of and that is gone is named."""
        positions = [row["position"] for row in broken.rows[-lost:]]

        assert positions[0] == broken.fault_after(broken.delete(*positions))

    def test_the_whole_log_gone(self, broken: TamperedDatabase) -> None:
        """Losing everything is found at position 1."""
        assert 1 == broken.fault_after(broken.delete(*(row["position"] for row in broken.rows)))

    def test_a_fork(self, broken: TamperedDatabase) -> None:
        """Another, correctly sealed event in a place is found where the chain no longer continues: right behind it."""
        fork = next_row(broken.mine.tenant_id, broken.rows[1])

        assert 4 == broken.fault_after(broken.replace(3, fork))

    def test_the_last_event_rewritten(self, broken: TamperedDatabase) -> None:
        """Another, correctly sealed event in the last place is not the one that the head names."""
        last = broken.rows[-1]
        fork = next_row(broken.mine.tenant_id, broken.rows[-2], stream_id=last["stream_id"], stream_version=2)

        assert last["position"] == broken.fault_after(broken.replace(last["position"], fork))

    @pytest.mark.parametrize("relabel", ["column", "sealed"])
    def test_an_event_of_another_tenant(self, broken: TamperedDatabase, relabel: str) -> None:
        """An event that was taken from another tenant's log is found, also when it was sealed anew for this one."""
        donor = broken.other_rows[2]
        mine = {"tenant_id": broken.mine.tenant_id}
        spliced = {**donor, **mine} if relabel == "column" else sealed(donor, **mine)

        assert 3 == broken.fault_after(broken.replace(3, spliced))

    def test_the_head_edited(self, broken: TamperedDatabase) -> None:
        """A head that names something else than the last event is found, whichever way it was moved."""
        last = broken.rows[-1]["position"]

        assert last == broken.fault_after(broken.head(last, bytes(32)))
        assert last + 1 == broken.fault_after(broken.head(last + 1, broken.rows[-1]["hash"]))
        assert 3 == broken.fault_after(broken.head(2, broken.rows[1]["hash"]))

    def test_the_head_gone(self, broken: TamperedDatabase) -> None:
        """A tenant whose head is missing does not verify."""

        def behead(conn: Connection) -> None:
            conn.execute("DELETE FROM grandbo.org_memory_heads")

        assert 0 == broken.fault_after(behead)

    def test_another_tenants_damage_is_not_mine(self, broken: TamperedDatabase) -> None:
        """A fault in one log says nothing about another."""

        def damage(conn: Connection) -> None:
            conn.execute(
                "UPDATE grandbo.org_memory_events SET hash = %s WHERE tenant_id = %s",
                (bytes(32), broken.other.tenant_id),
            )

        assert None is broken.fault_after(damage)


def _product(tenant_id: UUID, rows: list[LogRow]) -> int | None:
    fault = verify_rows(tenant_id, [with_columns_of_envelope(row) for row in rows])[1]
    return None if fault is None else fault.position


def _second(tenant_id: UUID, rows: list[LogRow], acknowledged: dict[int, str] | None = None) -> int | None:
    try:
        verify_log.verify_lines(export_lines(rows), str(tenant_id), acknowledged)
    except verify_log.Fault as fault:
        return fault.position
    return None


class TestTwoImplementations:
    def test_they_share_no_code(self) -> None:
        """The second one imports nothing of the first, and nothing but the standard library."""
        source = SCRIPT.read_text()

        assert set() == _imports(source) - set(sys.stdlib_module_names)

    def test_honest_logs_verify(self) -> None:
        """Neither accuses a log of several streams, subjects and erasures."""
        chance = random.Random(20_260_102)
        for _ in range(HONEST):
            tenant_id = uuid.UUID(int=chance.getrandbits(128), version=4)
            rows = random_log(chance, tenant_id, chance.randint(1, 12))

            assert (None, None) == (_product(tenant_id, rows), _second(tenant_id, rows))

    def test_they_name_the_same_position(self) -> None:
        """On every mutant of a log, both find nothing or both name the same first position."""
        chance = random.Random(8_420)
        found = 0
        for number in range(MUTANTS):
            tenant_id = uuid.UUID(int=chance.getrandbits(128), version=4)
            rows = mutant(chance, random_log(chance, tenant_id, chance.randint(1, 8)))
            product, second = _product(tenant_id, rows), _second(tenant_id, rows)
            found += product is not None

            assert product == second, f"mutant {number}: {export_lines(rows)}"
        # Some mutants are correct logs: an insider's perfect rewriting, a body that an erasure covers anyway.
        assert found > 0.75 * MUTANTS

    def test_an_acknowledgement_finds_the_perfect_rewriting(self) -> None:
        """What no check of the log alone can see, one kept acknowledgement shows."""
        honest = vectors.rows()
        acknowledged = {2: honest[1]["hash"].hex()}
        first = sealed(honest[0], body=b"{}")
        second = sealed(honest[1], prev_hash=first["hash"])
        rewritten = [first, second, sealed(honest[2], prev_hash=second["hash"])]

        assert None is _second(vectors.TENANT, rewritten)
        assert 2 == _second(vectors.TENANT, rewritten, acknowledged)
        assert None is _second(vectors.TENANT, honest, acknowledged)
        assert 2 == _second(vectors.TENANT, honest[:1], acknowledged)

    def test_the_fixed_vectors(self) -> None:
        """The published log verifies; without event 1's body too; without event 2's as well, it is found there."""
        rows = vectors.rows()
        without_first = [{**rows[0], "body": None, "salt": None}, *rows[1:]]
        without_both = [without_first[0], {**rows[1], "body": None, "salt": None}, rows[2]]

        for log, expected in ((rows, None), (without_first, None), (without_both, 2)):
            assert (expected, expected) == (_product(vectors.TENANT, log), _second(vectors.TENANT, log))

    def test_a_real_log(self, memory: TenantMemory, grandbo: Grandbo) -> None:
        """Both verify what the library wrote."""
        memory.record_finding(make_finding())
        memory.embed()
        with grandbo.database.pool.connection() as conn, acting_as(conn, "grandbo_auditor", memory.tenant_id):  # type: ignore[arg-type]
            rows = stored_rows(conn, memory.tenant_id)  # type: ignore[arg-type]

        assert 4 == len(rows)
        assert (None, None) == (_product(memory.tenant_id, rows), _second(memory.tenant_id, rows))


class TestCommandLine:
    @pytest.fixture
    def log(self, tmp_path: Path) -> Path:
        """The fixed vectors as an export."""
        path = tmp_path / "log.jsonl"
        path.write_text("".join(f"{line}\n" for line in export_lines(vectors.rows())))
        return path

    def test_exit_0_and_the_last_hash(self, log: Path) -> None:
        """It runs by itself, outside the package, and says what it verified."""
        ran = _run(log, "--ack", f"3:{vectors.HASHES[2]}")

        assert (0, f"verified  3 events, last hash {vectors.HASHES[2]}\n") == (ran.returncode, ran.stdout)

    def test_exit_1_and_the_position(self, log: Path) -> None:
        """A fault is named with its position."""
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        lines[1]["salt"] = "00" * 32
        log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

        ran = _run(log)

        assert (1, True) == (ran.returncode, ran.stdout.startswith("NOT VERIFIED  position 2: the body was altered"))

    @pytest.mark.parametrize(
        "content",
        [
            b"\xff\n",
            b"\n",
            b"[]\n",
            b"{}\n",
            b"[" * 100_000,
            b'{"envelope":"\\ud800","body":null,"salt":null,"prev_hash":"00","hash":"00"}',
            b'{"envelope":"{}","body":1,"salt":null,"prev_hash":"00","hash":"00"}',
            b'{"envelope":"{}","body":"A","salt":null,"prev_hash":"00","hash":"00"}',
            b'{"envelope":"{}","body":null,"salt":"zz","prev_hash":"00","hash":"00"}',
            b'{"envelope":"{}","body":null,"salt":null,"prev_hash":null,"hash":"00"}',
        ],
    )
    def test_garbage_is_a_fault_at_1(self, tmp_path: Path, content: bytes) -> None:
        """Whatever the file holds, the answer is a position, never a traceback."""
        path = tmp_path / "log.jsonl"
        path.write_bytes(content)

        assert 1 == verify_log.main([str(path), "--tenant", str(vectors.TENANT)])

    @pytest.mark.parametrize(
        "arguments",
        [
            ["log.jsonl"],
            ["log.jsonl", "--tenant", "acme"],
            ["log.jsonl", "--tenant", str(vectors.TENANT), "--ack", "3"],
            ["log.jsonl", "--tenant", str(vectors.TENANT), "--ack", "0:" + "0" * 64],
            ["absent.jsonl", "--tenant", str(vectors.TENANT)],
        ],
    )
    def test_exit_2_for_a_wrong_call(self, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        """A call that names no tenant, no log or half an acknowledgement is refused."""
        with pytest.raises(SystemExit) as ended:
            verify_log.main(arguments)

        assert 2 == ended.value.code
        assert "usage" in capsys.readouterr().err

    def test_two_writers_shown_two_logs(self, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Acknowledgements that contradict each other are a fault by themselves."""
        acks = ["--ack", f"2:{'0' * 64}", "--ack", f"2:{'1' * 64}"]

        assert 1 == verify_log.main([str(log), "--tenant", str(vectors.TENANT), *acks])
        assert "position 2" in capsys.readouterr().out


def _imports(source: str) -> set[str]:
    """Top-level modules that a source imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def _run(log: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(SCRIPT), str(log), "--tenant", str(vectors.TENANT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

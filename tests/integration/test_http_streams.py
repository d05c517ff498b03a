"""A stream of events that breaks off half-way: the caller can tell, nothing stays taken, and the log says so."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import structlog

from grandbo.events import listing
from grandbo.http import audit_routes
from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import RunningServer, bearer, make_token, raw_exchange, running_http
from tests.support.pool import assert_pool_is_idle
from tests.support.postgres import TestDatabase

WAITING = """
SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%org_memory_events%'
   AND application_name = 'grandbo' AND datname = current_database()
"""


class Half:
    """A gate behind the first piece of every stream."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()


@pytest.fixture
def half(monkeypatch: pytest.MonkeyPatch) -> Half:
    """Pieces of two lines, pages of two events, and a gate behind the first piece."""
    gate, cut = Half(), audit_routes._pieces

    def held(lines: Any) -> Iterator[str]:
        pieces = cut(lines)
        yield next(pieces)
        gate.reached.set()
        assert gate.opened.wait(30)
        yield from pieces

    monkeypatch.setattr(audit_routes, "LINES_AT_ONCE", 2)
    monkeypatch.setattr(listing, "PAGE", 2)
    monkeypatch.setattr(audit_routes, "_pieces", held)
    return gate


@pytest.fixture
def served(grandbo: Grandbo) -> Iterator[RunningServer]:
    """A server of its own: what it has logged is looked at."""
    with running_http(grandbo) as started:
        yield started


@pytest.fixture
def filled(memory: TenantMemory) -> TenantMemory:
    """A tenant of seven events."""
    for _ in range(6):
        memory.record_finding(make_finding())
    return memory


@contextmanager
def locked_log(database: TestDatabase) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Nobody reads the log until it is over."""
    with database.as_admin() as conn, conn.transaction():
        conn.execute("LOCK TABLE grandbo.org_memory_events IN ACCESS EXCLUSIVE MODE")
        yield conn


def end_reader(database: TestDatabase, how: str) -> None:
    """Cancel the statement that waits for the log, or end its connection, as a server that stops ends all of them."""
    deadline = time.monotonic() + 20
    with database.as_admin() as conn:
        while not (row := conn.execute(WAITING).fetchone()):
            assert time.monotonic() < deadline, "nobody waits for the log"
            threading.Event().wait(0.02)
        conn.execute(f"SELECT {how}(%s)".encode(), (row[0],))


def lines_of(logs: list[Any], event: str) -> list[dict[str, Any]]:
    """The lines of this name."""
    return [dict(line) for line in logs if line["event"] == event]


def until(logs: list[Any], event: str) -> list[dict[str, Any]]:
    """The lines of this name, once there is one."""
    deadline = time.monotonic() + 20
    while not (found := lines_of(logs, event)):
        assert time.monotonic() < deadline, f"{event} was not logged"
        threading.Event().wait(0.02)
    return found


class TestBrokenOff:
    @pytest.mark.parametrize("form", ["jsonl", "csv"])
    @pytest.mark.parametrize(
        ("how", "code"),
        [("pg_cancel_backend", "unavailable"), ("pg_terminate_backend", "database_unavailable")],
    )
    def test_the_caller_never_sees_a_whole_answer(
        self,
        served: RunningServer,
        grandbo: Grandbo,
        filled: TenantMemory,
        database: TestDatabase,
        half: Half,
        form: str,
        how: str,
        code: str,
    ) -> None:
        """The statement is cancelled, or the database goes away: the answer lacks its end; the pool is idle."""
        token = make_token(filled, "auditor")
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        with structlog.testing.capture_logs() as logs:
            connection.request("GET", f"/v1/events?format={form}", headers=bearer(token))
            answer = connection.getresponse()
            assert half.reached.wait(20)
            with locked_log(database):
                half.opened.set()
                end_reader(database, how)
                with pytest.raises(http.client.IncompleteRead) as broken:
                    answer.read()
            (served_line,) = until(logs, "request_served")
        connection.close()

        assert 200 == answer.status
        assert 2 == len(broken.value.partial.splitlines())
        assert [("warning", code)] == [
            (line["log_level"], line["code"]) for line in lines_of(logs, "answer_broken_off")
        ]
        assert (503, code) == (served_line["status"], served_line["error_code"])
        assert [] == lines_of(logs, "request_failed")
        assert_pool_is_idle(grandbo)
        whole = served.send("GET", f"/v1/events?format={form}", token=token).body.splitlines()
        assert 7 + (form == "csv") == len(whole)

    def test_a_client_that_leaves_holds_nothing(
        self, served: RunningServer, grandbo: Grandbo, filled: TenantMemory, half: Half
    ) -> None:
        """The rest is not read, its pool is idle, and it is told apart from who had it all."""
        token = make_token(filled, "auditor")
        request = f"GET /v1/events?format=jsonl HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        with structlog.testing.capture_logs() as logs:
            with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
                connection.sendall(request.encode())
                assert half.reached.wait(20)
                assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
            half.opened.set()
            (served_line,) = until(logs, "request_served")

        assert 499 == served_line["status"]
        assert [] == [line for line in logs if line["log_level"] in ("warning", "error", "critical")]
        assert_pool_is_idle(grandbo)

    def test_over_http_1_0_there_is_no_stream(self, served: RunningServer, filled: TenantMemory) -> None:
        """Its answers end with the connection: a part of one looks like all of it."""
        token = make_token(filled, "auditor")
        head = f"HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"

        refused = raw_exchange(served.port, f"GET /v1/events?format=csv {head}".encode(), end=False)
        page = raw_exchange(served.port, f"GET /v1/events {head}".encode(), end=False)

        assert refused.split(b"\r\n")[0].endswith(b"422 Unprocessable Entity")
        assert "format" == json.loads(refused.partition(b"\r\n\r\n")[2])["field"]
        assert 7 == len(json.loads(page.partition(b"\r\n\r\n")[2])["events"])

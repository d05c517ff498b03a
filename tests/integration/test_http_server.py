"""The real server on loopback: many at once, the database going away, the end of the process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from grandbo.errors import ConfigurationError
from grandbo.http import serve
from grandbo.http.server import listen
from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import Reply, RunningServer, ServedAt, make_token, port_of, raw_exchange, running_http
from tests.support.postgres import TestServer, run_home
from tests.support.providers import words_embedder

TOPIC = {"topic": "consumers lost their leases after the broker restarted"}


@pytest.fixture(scope="module")
def running(grandbo: Grandbo) -> Iterator[RunningServer]:
    """One server for the tests that leave it as they found it."""
    with running_http(grandbo) as started:
        yield started


def _until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline, what
        threading.Event().wait(0.02)


class TestManyAtOnce:
    def test_the_same_finding_a_hundred_times_at_once_is_one_event(
        self, running: RunningServer, memory: TenantMemory
    ) -> None:
        """One 201, ninety-nine replays, a hundred identical acknowledgements, one event in the log."""
        token = make_token(memory, "hook", kind="hook")
        finding = make_finding()
        together = threading.Barrier(100)

        def send(_number: int) -> tuple[int, bytes]:
            together.wait(30)
            reply = running.send("POST", "/v1/findings", token=token, body=finding)
            return reply.status, reply.body

        with ThreadPoolExecutor(100) as threads:
            replies = list(threads.map(send, range(100)))

        assert [200] * 99 + [201] == sorted(status for status, _ in replies)
        assert 1 == len({body for _, body in replies})
        assert 2 == memory.verify().head

    def test_two_tenants_at_once_never_see_each_other(
        self, running: RunningServer, memory: TenantMemory, other_memory: TenantMemory
    ) -> None:
        """Interleaved on one pool, every answer holds its own tenant's entries alone."""
        tokens = {tenant.tenant_id: make_token(tenant, "reviewer") for tenant in (memory, other_memory)}
        for tenant in (memory, other_memory):
            for _ in range(3):
                tenant.record_finding(make_finding(service=str(tenant.tenant_id)))

        def ask(number: int) -> bool:
            tenant = (memory, other_memory)[number % 2]
            matches = running.send("POST", "/v1/recall", token=tokens[tenant.tenant_id], body=TOPIC).json()["matches"]
            return [str(tenant.tenant_id)] * 3 == [match["service"] for match in matches]

        with ThreadPoolExecutor(12) as threads:
            assert all(threads.map(ask, range(120)))

    def test_no_connection_stays_out_after_any_outcome(
        self, grandbo: Grandbo, running: RunningServer, memory: TenantMemory
    ) -> None:
        """Answered, empty, refused, forbidden, unauthenticated, cut off: the pool is whole again."""
        token, poor = make_token(memory, "reviewer"), make_token(memory, "hook")
        head = f"POST /v1/findings HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        cut = f"{head}Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{{".encode()

        def outcome(number: int) -> int:
            match number % 6:
                case 0:
                    return running.send("POST", "/v1/findings", token=token, body=make_finding()).status
                case 1:
                    return running.send("POST", "/v1/recall", token=token, body=TOPIC).status
                case 2:
                    return running.send("POST", "/v1/recall", token=token, body={"topic": "slug"}).status
                case 3:
                    return running.send("POST", "/v1/recall", token=poor, body=TOPIC).status
                case 4:
                    return running.send("POST", "/v1/recall", body=TOPIC).status
                case _:
                    return len(raw_exchange(running.port, cut))

        with ThreadPoolExecutor(12) as threads:
            statuses = list(threads.map(outcome, range(90)))

        assert {0, 200, 201, 401, 403, 422} == set(statuses)
        grandbo.receipts.flush()

        def is_whole() -> bool:
            stats = grandbo.database.pool.get_stats()
            return stats["pool_size"] == stats["pool_available"]

        _until(is_whole, "a connection stayed out")


class TestDatabaseGone:
    def test_it_answers_503_and_recovers_by_itself(self, server: TestServer, tenant_name: str) -> None:
        """While it is away: 503, Retry-After, not ready, alive. When it is back: the same request is served."""
        finding = make_finding()
        with server.clone() as database:
            settings = database.settings(pool_timeout=0.5)
            with Grandbo.open(settings=settings, embedder=words_embedder()) as opened, running_http(opened) as running:
                opened.create_tenant(tenant_name)
                token = make_token(opened.tenant(tenant_name), "reviewer")
                first = running.send("POST", "/v1/findings", token=token, body=finding)

                _allow_connections(server, database.admin, allowed=False)
                away = [
                    running.send("POST", "/v1/findings", token=token, body=make_finding()),
                    running.send("POST", "/v1/recall", token=token, body=TOPIC),
                ]
                _until(lambda: running.send("GET", "/readyz").status == 503, "it still says that it is ready")
                alive, metrics = running.send("GET", "/livez").status, running.send("GET", "/metrics")
                _allow_connections(server, database.admin, allowed=True)

                _until(lambda: running.send("GET", "/readyz").status == 200, "it does not recover")
                again = running.send("POST", "/v1/findings", token=token, body=finding)
                recalled = running.send("POST", "/v1/recall", token=token, body=TOPIC).json()["matches"]

        assert 201 == first.status
        assert [503, 503] == [reply.status for reply in away]
        assert all(reply.headers["retry-after"] and reply.json()["code"] for reply in away)
        assert (200, 200) == (alive, metrics.status)
        assert b'grandbo_embedding_backlog{state="pending"} NaN' in metrics.body
        assert (200, first.body) == (again.status, again.body)
        assert [first.json()["entry_id"]] == [match["entry_id"] for match in recalled]

    def test_a_restart_of_the_database_between_requests_is_not_noticed(
        self, server: TestServer, tenant_name: str
    ) -> None:
        """All its connections are cut; the next request takes a new one."""
        with (
            server.clone() as database,
            Grandbo.open(settings=database.settings()) as opened,
            running_http(opened) as running,
        ):
            opened.create_tenant(tenant_name)
            token = make_token(opened.tenant(tenant_name), "reviewer")
            statuses = []
            for _ in range(3):
                statuses.append(running.send("POST", "/v1/findings", token=token, body=make_finding()).status)
                with database.as_admin() as admin:
                    _terminate(admin, database.admin)

        assert [201] * 3 == statuses


class TestTheEnd:
    def test_it_finishes_what_it_has_begun(self, server: TestServer, tenant_name: str) -> None:
        """A request in hand when the end begins is answered; meanwhile it is not ready; then nobody listens."""
        with server.clone() as database, Grandbo.open(settings=database.settings()) as opened:
            opened.create_tenant(tenant_name)
            memory = opened.tenant(tenant_name)
            token = make_token(memory, "hook")
            with running_http(opened) as running, database.as_admin() as blocker, ThreadPoolExecutor(1) as threads:
                blocker.autocommit = False
                blocker.execute("SELECT 1 FROM grandbo.org_memory_heads FOR UPDATE")
                reply = threads.submit(running.send, "POST", "/v1/findings", token=token, body=make_finding())
                _until(lambda: _waits_for_a_lock(database.admin), "the request did not begin")

                running.server.stop()
                ready = running.send("GET", "/readyz")
                blocker.rollback()

                assert 201 == reply.result(30).status
                assert (503, ["shutting_down"]) == (ready.status, ready.json()["reasons"])

            with pytest.raises(OSError, match="refused"):
                running.send("GET", "/livez")
            assert 2 == memory.verify().head

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_ends_the_process_with_code_0(
        self, server: TestServer, tenant_name: str, number: signal.Signals
    ) -> None:
        """And all that it ever wrote to stderr is JSON without a topic, a text, a name or a token."""
        with server.clone() as database:
            with Grandbo.open(settings=database.settings()) as opened:
                opened.create_tenant(tenant_name)
                memory = opened.tenant(tenant_name)
                token = make_token(memory, "reviewer")
            process = _start(database.service)
            try:
                replies, lines = _talk(process, token)
                process.send_signal(number)
                rest, log = process.communicate(timeout=60)
            finally:
                process.kill()
                process.wait()

        events = [json.loads(line) for line in log.splitlines()]
        served = [event for event in events if event["event"] == "request_served"]
        assert (0, ["closed"]) == (process.returncode, rest.split())
        assert lines[0].startswith("http://127.0.0.1:")
        assert [201, 200, 422, 404] == [reply.status for reply in replies]
        assert [("/v1/findings", 201), ("/v1/recall", 200), ("/v1/recall", 422), ("unmatched", 404)] == [
            (event["route"], event["status"]) for event in served
        ]
        for event in served[:2]:
            assert {"tenant_id", "principal", "request_id", "ms", "level", "timestamp"} <= set(event)
            assert str(memory.tenant_id) == event["tenant_id"]
            assert event["principal"].startswith("agent:")
        assert [reply.headers["x-request-id"] for reply in replies] == [event["request_id"] for event in served]
        assert ["http_stopped"] == [event["event"] for event in events if event["event"] == "http_stopped"]
        hidden = ("Zebrafish", "zebrafish", token, token.split("_", 2)[2], "key-", "secret-path")
        assert [] == [secret for secret in hidden if secret in log]

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
    def test_answers_leave_at_once(self, host: str) -> None:
        """A connection knows that it is TCP: asyncio delays answers by some 40 ms where it cannot read that."""
        with listen(host, 0) as listening, socket.create_connection(listening.getsockname()[:2]):
            accepted, _ = listening.accept()
            accepted.close()

        assert socket.IPPROTO_TCP == accepted.proto

    def test_an_address_of_another_machine_is_a_configuration_error(self, grandbo: Grandbo) -> None:
        """An address of another machine is told like one that is taken."""
        with pytest.raises(ConfigurationError, match=r"203\.0\.113\.1:8420"):
            serve(grandbo, host="203.0.113.1", port=8420)

    def test_an_address_in_use_is_a_configuration_error(self, grandbo: Grandbo) -> None:
        """It names address and settings, before anything is served."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]

            with pytest.raises(ConfigurationError, match=f"127.0.0.1:{port}.*GRANDBO_HTTP_PORT"):
                serve(grandbo, host="127.0.0.1", port=port)


_PROGRAM = """
import sys
from grandbo.http import serve
from grandbo.library import Grandbo
from grandbo.logs import configure_logs

configure_logs("INFO")
with Grandbo.open() as memory:
    serve(memory, host="127.0.0.1", port=0, on_ready=lambda url: print(url, flush=True))
print("closed", flush=True)
"""


def _start(database_url: str) -> subprocess.Popen[str]:
    ours = {"GRANDBO_DATABASE_URL": database_url, "GRANDBO_EMBEDDER": "none", "GRANDBO_HOME": str(run_home())}
    environment = {**os.environ, **ours}
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _talk(process: subprocess.Popen[str], token: str) -> tuple[list[Reply], list[str]]:
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    running = ServedAt(port_of(url))
    finding = make_finding(title="Zebrafish stopped swimming", summary="The zebrafish tank was cold.")
    return [
        running.send("POST", "/v1/findings", token=token, body=finding),
        running.send("POST", "/v1/recall", token=token, body={"topic": "zebrafish stopped swimming"}),
        running.send("POST", "/v1/recall", token=token, body={"topic": "zebrafish stop", "zebrafish": "Zebrafish"}),
        running.send("GET", "/secret-path?topic=zebrafish", token=token),
    ], [url]


def _allow_connections(server: TestServer, conninfo: str, *, allowed: bool) -> None:
    with psycopg.connect(server.server.conninfo(), autocommit=True) as admin:
        name = conninfo_to_dict(conninfo)["dbname"]
        admin.execute(
            sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(sql.Identifier(str(name)), sql.Literal(allowed))
        )
        if not allowed:
            _terminate(admin, conninfo)


def _terminate(admin: psycopg.Connection[Any], conninfo: str) -> None:
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
        [conninfo_to_dict(conninfo)["dbname"]],
    )


def _waits_for_a_lock(conninfo: str) -> bool:
    with psycopg.connect(conninfo, autocommit=True) as admin:
        row = admin.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ).fetchone()
        return row is not None and row[0] > 0

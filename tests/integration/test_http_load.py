"""More clients than connections, and clients that go away: each gets a defined answer, and the pool is whole again."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import Reply, RunningServer, make_token, running_http
from tests.support.postgres import TestDatabase
from tests.support.providers import words_embedder

CLIENTS = 200
TOPIC = {"topic": "consumers lost their leases after the broker restarted"}


@contextmanager
def _served(database: TestDatabase, **settings: object) -> Iterator[tuple[Grandbo, RunningServer]]:
    chosen = database.settings(**{"pool_size": 8, "rate_limit": "off", **settings})
    with Grandbo.open(settings=chosen, embedder=words_embedder()) as opened, running_http(opened) as server:
        yield opened, server


def _all_at_once(server: RunningServer, token: str) -> list[Reply]:
    together = threading.Barrier(CLIENTS)

    def ask(_number: int) -> Reply:
        together.wait(60)
        return server.send("POST", "/v1/recall", token=token, body=TOPIC)

    with ThreadPoolExecutor(CLIENTS) as threads:
        return list(threads.map(ask, range(CLIENTS)))


def _wait_until_idle(opened: Grandbo) -> None:
    opened.receipts.flush()
    deadline = time.monotonic() + 30
    while True:
        stats = opened.database.pool.get_stats()
        if stats["pool_size"] == stats["pool_available"] and not stats.get("requests_waiting", 0):
            return
        assert time.monotonic() < deadline, stats
        threading.Event().wait(0.02)


class TestMoreClientsThanConnections:
    @pytest.mark.parametrize("pool_timeout", [10.0, 0.001])
    def test_each_gets_an_answer_or_is_told_when_to_come_back(
        self, database: TestDatabase, memory: TenantMemory, pool_timeout: float
    ) -> None:
        """Two hundred on a pool of eight: answered, or 503 with Retry-After, however short a wait is allowed."""
        memory.record_finding(make_finding())
        with _served(database, pool_timeout=pool_timeout) as (opened, server):
            replies = _all_at_once(server, make_token(memory, "reviewer"))
            _wait_until_idle(opened)
            after = server.send("POST", "/v1/recall", token=make_token(memory, "reviewer"), body=TOPIC)

        counts = Counter(reply.status for reply in replies)
        assert {200, 503} >= counts.keys()
        assert CLIENTS == counts.total()
        assert all(int(reply.headers["retry-after"]) >= 1 for reply in replies if reply.status != 200)
        assert {"unavailable"} >= {reply.json()["code"] for reply in replies if reply.status == 503}
        assert 200 == after.status

    def test_the_limit_holds_whoever_comes_first(self, database: TestDatabase, memory: TenantMemory) -> None:
        """Of two hundred at once by one principal exactly as many get through as the limit says."""
        with _served(database, rate_limit="120/hour") as (opened, server):
            replies = _all_at_once(server, make_token(memory, "reviewer"))
            _wait_until_idle(opened)

        assert {200: 120, 429: 80} == Counter(reply.status for reply in replies)
        assert all(int(reply.headers["retry-after"]) >= 1 for reply in replies if reply.status == 429)


class TestClientsThatGoAway:
    def test_the_pool_is_whole_after_clients_that_leave_in_mid_answer(
        self, database: TestDatabase, memory: TenantMemory
    ) -> None:
        """Gone before the answer, in its middle, with a reset and without."""
        for _ in range(20):
            memory.record_finding(make_finding(body="The broker restarted. " * 400))
        token = make_token(memory, "reviewer")
        body = json.dumps(TOPIC).encode()
        head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\n"
        recall = (
            f"POST /v1/recall HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        listing = f"GET /v1/entries?limit=200 HTTP/1.1\r\n{head}\r\n".encode()
        with _served(database) as (opened, server):

            def leave(number: int) -> None:
                with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
                    if number % 2:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    connection.sendall(listing if number % 3 else recall.encode() + body)
                    if number % 4 > 1:
                        connection.recv(64)

            with ThreadPoolExecutor(20) as threads:
                list(threads.map(leave, range(120)))
            _wait_until_idle(opened)

            assert 200 == server.send("POST", "/v1/recall", token=token, body=TOPIC).status
            _wait_until_idle(opened)

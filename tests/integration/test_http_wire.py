"""What can go wrong with a body on its way: lengths that lie, none at all, pieces that do not come."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from grandbo.http import build_app
from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import BASE_URL, RunningServer, make_token, raw_exchange, running_http

TOPIC = {"topic": "consumers lost their leases after the broker restarted"}


@pytest.fixture(scope="module")
def running(grandbo: Grandbo) -> Iterator[RunningServer]:
    """One server for the tests that leave it as they found it."""
    with running_http(grandbo) as started:
        yield started


class TestOnTheWire:
    def test_a_length_that_is_too_long_is_refused_unread(self, running: RunningServer, memory: TenantMemory) -> None:
        """The declared length is enough to refuse; the body need not come."""
        token = make_token(memory, "reviewer")
        head = f"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"

        answer = raw_exchange(
            running.port,
            f"{head}Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n".encode(),
            end=False,
        )

        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b'"limit": 65536' in answer

    def test_a_body_without_a_length_is_counted(self, running: RunningServer, memory: TenantMemory) -> None:
        """A chunked body is refused as soon as it passes the limit."""
        token = make_token(memory, "reviewer")
        head = f"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
        chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"

        answer = raw_exchange(
            running.port,
            f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + chunk * 5,
            end=False,
        )

        assert answer.startswith(b"HTTP/1.1 413 ")

    def test_a_length_that_is_too_short_does_not_smuggle(self, running: RunningServer, memory: TenantMemory) -> None:
        """What lies beyond the declared length is no part of the body, and no request of its own either."""
        token = make_token(memory, "hook")
        body = json.dumps(make_finding()).encode()
        head = f"POST /v1/findings HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"

        answer = raw_exchange(
            running.port,
            f"{head}Content-Type: application/json\r\nContent-Length: 20\r\n\r\n".encode() + body + b"\r\n\r\n",
            end=False,
        )

        statuses = [line for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
        assert statuses[0].startswith(b"HTTP/1.1 400 ")
        assert all(status.startswith(b"HTTP/1.1 4") for status in statuses)
        assert 1 == memory.verify().head

    def test_a_client_that_leaves_in_mid_body_stores_nothing(
        self, running: RunningServer, memory: TenantMemory
    ) -> None:
        """Half a body is no finding, and the server goes on."""
        token = make_token(memory, "hook")
        head = f"POST /v1/findings HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"

        raw_exchange(
            running.port, f'{head}Content-Type: application/json\r\nContent-Length: 400\r\n\r\n{{"title"'.encode()
        )

        assert 200 == running.send("GET", "/readyz").status
        assert 1 == memory.verify().head

    def test_the_server_does_not_name_itself(self, running: RunningServer) -> None:
        """No version for those who look for one."""
        assert "server" not in running.send("GET", "/livez").headers

    def test_a_kept_connection_serves_on_after_a_refusal(self, running: RunningServer, memory: TenantMemory) -> None:
        """An error is an answer like another; the connection is good for the next request."""
        token = make_token(memory, "reviewer")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
        statuses = []

        for body in (b"{", json.dumps(TOPIC).encode(), b"[]", json.dumps(TOPIC).encode()):
            connection.request("POST", "/v1/recall", body, headers)
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        connection.close()

        assert [400, 200, 422, 200] == statuses


class TestUnfinishedBody:
    def test_a_body_that_does_not_come_is_given_up(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """408 once its time is over: who holds a connection open cannot hold it for ever."""
        app = build_app(grandbo, body_seconds=0.05)

        sent = _call(app, make_token(memory, "hook"), [{"type": "http.request", "body": b"{", "more_body": True}])

        assert (408, "body_timeout") == (sent[0]["status"], json.loads(sent[1]["body"])["code"])

    def test_a_client_that_left_is_no_failure_of_the_server(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Nobody is answered, and it is counted apart from the faults."""
        app = build_app(grandbo)
        pieces: list[dict[str, Any]] = [
            {"type": "http.request", "body": b"{", "more_body": True},
            {"type": "http.disconnect"},
        ]

        sent = _call(app, make_token(memory, "hook"), pieces)

        metrics = TestClient(app, base_url=BASE_URL).get("/metrics").text
        assert [] == sent
        assert 'grandbo_http_requests_total{method="POST",route="/v1/findings",status="499"} 1.0' in metrics


def _call(app: FastAPI, token: str, pieces: Sequence[dict[str, Any]]) -> list[Any]:
    """Call the application as a server would, with a body that comes in these pieces and then not at all."""
    headers = {"host": "localhost", "authorization": f"Bearer {token}", "content-type": "application/json"}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/findings",
        "raw_path": b"/v1/findings",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    coming = iter(pieces)
    sent: list[Any] = []

    async def receive() -> Any:
        return next(coming, None) or await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent

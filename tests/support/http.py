"""The HTTP edge under test: keys of each role, a client in process, and a real server in a thread."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

from grandbo.http.app import build_app
from grandbo.http.health import Readiness
from grandbo.http.server import HttpServer
from grandbo.library import Grandbo, TenantMemory
from grandbo.types import PrincipalType

BASE_URL = "http://127.0.0.1"


class Clock:
    """A monotonic clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def make_token(memory: TenantMemory, *roles: str, kind: PrincipalType = "agent") -> str:
    """A fresh key of the tenant with these roles."""
    return memory.create_key(f"key-{uuid.uuid4().hex[:8]}", kind, roles)[1]


def bearer(token: str) -> dict[str, str]:
    """The header that carries a token."""
    return {"Authorization": f"Bearer {token}"}


def client_of(
    grandbo: Grandbo, *, readiness: Readiness | None = None, token: str | None = None, fresh: bool = False
) -> TestClient:
    """
    A client that calls the application of a memory in process; what the application lets escape fails the test.

    Args:
        fresh: make a new one: for who starts and ends it, changes it, or reads what it has counted.
    """
    app = build_app(grandbo, readiness=readiness) if fresh or readiness else _app_of(grandbo)
    return TestClient(app, base_url=BASE_URL, headers=bearer(token) if token else {}, raise_server_exceptions=True)


@lru_cache(maxsize=2)
def _app_of(grandbo: Grandbo) -> FastAPI:
    """One for all tests of a memory: to make it takes longer than most of them."""
    return build_app(grandbo)


def post_raw(client: TestClient, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
    """
    Post what no client library would: bytes as they are; values with NaN and halves of surrogate pairs, as escapes.
    """
    content = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=True).encode("ascii")
    return client.post(path, content=content, headers={"Content-Type": "application/json", **(headers or {})})


@dataclass(frozen=True, slots=True)
class Reply:
    """What a raw connection got back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class ServedAt:
    """Something that serves at a loopback port."""

    port: int

    def send(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """One request on a connection of its own; a body that is not bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            given = {**(bearer(token) if token else {}), **({"Content-Type": "application/json"} if sent else {})}
            connection.request(method, path, sent, {**given, **(headers or {})})
            answer = connection.getresponse()
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()


@dataclass(frozen=True, slots=True)
class RunningServer(ServedAt):
    """A real server in this process."""

    server: HttpServer


def port_of(url: str) -> int:
    """The port of a base URL."""
    return int(url.rpartition(":")[2])


@contextmanager
def running_http(grandbo: Grandbo) -> Iterator[RunningServer]:
    """Serve in a thread, as `grandbo up` serves in the main one; ended as SIGTERM ends it."""
    listening = threading.Event()
    server = HttpServer(grandbo, host="127.0.0.1", port=0, on_ready=lambda _url: listening.set())
    thread = threading.Thread(target=server.run, name="test-http")
    thread.start()
    try:
        assert listening.wait(20)
        yield RunningServer(port_of(server.url), server)
    finally:
        server.stop()
        thread.join(40)
        assert not thread.is_alive()


def raw_exchange(port: int, request: bytes, *, end: bool = True) -> bytes:
    """Send bytes on a connection of their own and read until the server closes it; `end` closes our side first."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        if end:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
        return answer

"""
The outermost layer: request id, host check, the last resort for what nobody expected, one log line and one count.

It stands inside Starlette's own error layer, which would hand every exception to the server to print, message and all.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection
from typing import Any

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grandbo.http.errors import HostNotAllowed
from grandbo.http.metrics import Metrics
from grandbo.http.problems import broken_off, problem, unexpected
from grandbo.types import new_id

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
# A probe calls by the address of the moment, and learns nothing but whether the process is well.
PROBES = ("/livez", "/readyz", "/healthz")
UNMATCHED = "unmatched"
CLIENT_GONE = 499

_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")
_NOSNIFF = (b"x-content-type-options", b"nosniff")
# Unless an answer says how long it may be kept: the files that pages are made with do.
_NO_STORE = (b"cache-control", b"no-store")

log = structlog.get_logger(__name__)


class Edge:
    """Pure ASGI: wraps everything that the application does for one request."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, hosts: Collection[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        started = time.perf_counter()
        status = 0
        is_whole = False

        async def answered(message: Message) -> None:
            nonlocal status, is_whole
            is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode()), _NOSNIFF]
                is_kept = any(name.lower() == _NO_STORE[0] for name, _ in headers)
                message["headers"] = headers if is_kept else [*headers, _NO_STORE]
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                if self._is_foreign(scope):
                    await problem(HostNotAllowed(), request_id)(scope, receive, answered)
                else:
                    await self._app(scope, receive, answered)
                    status = status if is_whole else CLIENT_GONE
            except ClientDisconnect:
                status = CLIENT_GONE
            except Exception as error:  # the last resort: nothing may reach the server's own printer
                if status:
                    # A part of the answer is on its way already: the server can only break the connection, and does.
                    status = broken_off(error, request_id, state)
                    raise
                await unexpected(error, request_id)(scope, receive, answered)
            finally:
                self._note(scope, status, time.perf_counter() - started)

    def _is_foreign(self, scope: Scope) -> bool:
        if scope["path"] in PROBES:
            return False
        named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        match = _HOST.fullmatch(named[0]) if len(named) == 1 else None
        return match is None or match.group(1).lower() not in self._hosts

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNMATCHED)
        state: dict[str, Any] = scope["state"]
        self._metrics.request(scope["method"], route, status, seconds)
        log.log(
            logging.DEBUG if route in (*PROBES, "/metrics") else logging.INFO,
            "request_served",
            route=route,
            method=self._metrics.method(scope["method"]),
            status=status,
            ms=round(seconds * 1000, 1),
            **{name: state[name] for name in ("tenant_id", "principal", "error_code") if name in state},
        )


def _request_id(scope: Scope) -> str:
    given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-request-id"]
    return given[0] if len(given) == 1 and _SANE_ID.fullmatch(given[0]) else str(new_id())

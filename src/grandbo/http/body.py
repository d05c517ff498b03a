"""Bodies: counted while they stream in, read to the end in bounded time, taken for JSON only where they say so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from email.message import Message as Headers

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grandbo.errors import LimitExceeded
from grandbo.http.errors import BodyTimeout, UnsupportedMediaType

READ_SECONDS = 30.0


class BodyLimit:
    """
    Counts the bytes of each body as they arrive; goes on neither past the limit of its path nor for ever.

    What Content-Length says only serves to refuse earlier: it may be missing, or be wrong.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        default: int,
        limits: Mapping[str, int],
        below: Mapping[str, int],
        seconds: float = READ_SECONDS,
    ) -> None:
        """`limits`: of single paths; `below`: of all paths that begin so."""
        self._app = app
        self._default = default
        self._limits = limits
        self._below = below
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit_of(scope["path"])
        declared = _declared_length(scope)
        seen = 0
        deadline: float | None = None
        is_complete = False

        async def counted() -> Message:
            nonlocal seen, deadline, is_complete
            if is_complete:
                return await receive()
            if declared is not None and declared > limit:
                raise _too_large(limit, declared)
            deadline = deadline or asyncio.get_running_loop().time() + self._seconds
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise BodyTimeout from None
            seen += len(message.get("body", b""))
            is_complete = not message.get("more_body", False)
            if seen > limit:
                raise _too_large(limit, seen)
            return message

        await self._app(scope, counted, send)

    def _limit_of(self, path: str) -> int:
        found = (limit for prefix, limit in self._below.items() if path.startswith(prefix))
        return self._limits.get(path) or next(found, self._default)


async def read_raw_body(request: Request) -> bytes:
    """The bytes of a body, whatever it says it is. Raises `LimitExceeded`, `BodyTimeout`."""
    return await request.body()


async def read_json_body(request: Request) -> bytes:
    """
    The bytes of a body that says it is JSON.

    Raises:
        UnsupportedMediaType, LimitExceeded, BodyTimeout
    """
    _require_json(request)
    return await request.body()


def _require_json(request: Request) -> None:
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise UnsupportedMediaType
    stated = Headers()
    stated["content-type"] = request.headers.get("content-type", "")
    charset = stated.get_content_charset("utf-8")
    is_json = stated.get_content_type() == "application/json" or (
        stated.get_content_maintype() == "application" and stated.get_content_subtype().endswith("+json")
    )
    if not is_json or charset not in ("utf-8", "utf8", "us-ascii"):
        raise UnsupportedMediaType


def _declared_length(scope: Scope) -> int | None:
    values = [value for name, value in scope["headers"] if name == b"content-length"]
    return int(values[0]) if values and values[0].isdigit() else None


def _too_large(limit: int, length: int) -> LimitExceeded:
    return LimitExceeded(
        f"body: more than {limit} bytes; at most {limit} are allowed, nothing was stored.",
        field="body",
        limit=limit,
        length=length,
    )

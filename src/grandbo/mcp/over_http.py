"""Streamable HTTP: one stateless endpoint that answers with JSON, for callers with a bearer token."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import anyio.to_thread
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware, get_access_token
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import ConfigDict, Field
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.types import Receive, Scope, Send

from grandbo.errors import Unauthenticated
from grandbo.library import Grandbo, TenantMemory
from grandbo.mcp.server import build_server

PATH = "/mcp"


class Caller(AccessToken):
    """Who calls: the memory that the token opened, and not the token itself."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: TenantMemory = Field(exclude=True, repr=False)


class Verifier(TokenVerifier):
    """Opens the memory that a bearer token is for. Every kind of token is verified by the library, in one place."""

    def __init__(self, grandbo: Grandbo) -> None:
        self._grandbo = grandbo

    async def verify_token(self, token: str) -> Caller | None:
        """The caller; None for a token that is malformed, unknown or revoked."""
        try:
            memory = await anyio.to_thread.run_sync(self._grandbo.authenticate, token)
        except Unauthenticated:
            return None
        return Caller(token="", client_id=memory.principal.ref, scopes=sorted(memory.principal.roles), memory=memory)


class Endpoint:
    """The ASGI application at `/mcp`. `run` must be entered for as long as requests are served."""

    path = PATH

    def __init__(self, grandbo: Grandbo, *, read_only: bool) -> None:
        self._manager = StreamableHTTPSessionManager(
            build_server(_memory_of_token, read_only=read_only), json_response=True, stateless=True
        )
        self._app = AuthenticationMiddleware(
            AuthContextMiddleware(RequireAuthMiddleware(self._answer, [])), backend=BearerAuthBackend(Verifier(grandbo))
        )

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve until left; once in the life of an endpoint."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self  # what the edge names a request by, as it does for the framework's own routes
        await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        state: dict[str, Any] = scope.setdefault("state", {})
        memory = scope["user"].access_token.memory
        state["tenant_id"], state["principal"] = str(memory.tenant_id), memory.principal.ref
        await self._manager.handle_request(scope, receive, send)


def _memory_of_token() -> TenantMemory:
    caller = get_access_token()
    if not isinstance(caller, Caller):
        raise Unauthenticated
    return caller.memory

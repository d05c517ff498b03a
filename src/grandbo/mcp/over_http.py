"""Streamable HTTP: one stateless endpoint that answers with JSON, for callers with a bearer token."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

import anyio.to_thread
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware, get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import AnyHttpUrl, ConfigDict, Field
from starlette.authentication import AuthCredentials, AuthenticationBackend, BaseUser
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from grandbo.errors import Unauthenticated
from grandbo.library import TenantMemory
from grandbo.mcp.server import build_server

PATH = "/mcp"

Admit = Callable[[HTTPConnection, str], TenantMemory]


class Caller(AccessToken):
    """Who calls: the memory that the token opened, and not the token itself."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: TenantMemory = Field(exclude=True, repr=False)


class _Bearer(AuthenticationBackend):
    """Opens the memory that a request's bearer token is for; by the same way in as the rest of the service."""

    def __init__(self, admit: Admit) -> None:
        self._admit = admit

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, BaseUser] | None:
        """The caller; None for a token that is missing, malformed, unknown, expired or revoked."""
        scheme, _, token = conn.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        try:
            memory = await anyio.to_thread.run_sync(self._admit, conn, token)
        except Unauthenticated:
            return None
        scopes = sorted(memory.principal.roles)
        caller = Caller(token="", client_id=memory.principal.ref, scopes=scopes, memory=memory)
        return AuthCredentials(scopes), AuthenticatedUser(caller)


class Endpoint:
    """The ASGI application at `/mcp`. `run` must be entered for as long as requests are served."""

    path = PATH

    def __init__(self, admit: Admit, *, read_only: bool, metadata_url: str | None = None) -> None:
        """
        Args:
            admit: opens the memory that a request's token is for; raises what the service answers with.
            read_only: offer no tool that writes, whatever the caller's roles allow.
            metadata_url: where a caller without a token can read who issues them.
        """
        self._manager = StreamableHTTPSessionManager(
            build_server(_memory_of_token, read_only=read_only), json_response=True, stateless=True
        )
        url = AnyHttpUrl(metadata_url) if metadata_url else None
        self._app = AuthenticationMiddleware(
            AuthContextMiddleware(RequireAuthMiddleware(self._answer, [], url)), backend=_Bearer(admit)
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
        await self._manager.handle_request(scope, receive, send)


def _memory_of_token() -> TenantMemory:
    caller = get_access_token()
    if not isinstance(caller, Caller):
        raise Unauthenticated
    return caller.memory

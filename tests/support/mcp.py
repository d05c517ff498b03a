"""The MCP edge under test: the SDK's own client, in process, over HTTP and over stdio, of both generations."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from grandbo.library import TenantMemory
from grandbo.mcp.server import build_server
from tests.support.http import bearer

MODES = ("auto", "legacy")
T = TypeVar("T")
Talk = Callable[[Client], Awaitable[T]]


def talk(memory: TenantMemory, what: Talk[T], *, mode: str = "auto", read_only: bool = False) -> T:
    """A conversation with a server of this memory, in process."""

    async def run() -> T:
        async with Client(build_server(lambda: memory, read_only=read_only), mode=mode) as client:
            return await what(client)

    return anyio.run(run)


def call(memory: TenantMemory, tool: str, arguments: Mapping[str, Any], **options: Any) -> Any:
    """One call of a tool, in process."""
    return talk(memory, lambda client: client.call_tool(tool, dict(arguments)), **options)


def talk_http(port: int, token: str, what: Talk[T], *, mode: str = "auto") -> T:
    """A conversation with a running service."""

    async def run() -> T:
        async with httpx2.AsyncClient(headers=bearer(token), timeout=30) as http:
            transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                return await what(client)

    return anyio.run(run)


def talk_stdio(
    command: list[str], environment: Mapping[str, str], what: Talk[T], errors: Path, *, mode: str = "auto"
) -> T:
    """A conversation with a process of its own; what it writes to stderr goes to a file."""

    async def run() -> T:
        parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(environment))
        with errors.open("w") as written:
            async with Client(stdio_client(parameters, errlog=written), mode=mode) as client:
                return await what(client)

    return anyio.run(run)


def text_of(result: Any) -> str:
    """What a client hands the model: the text blocks, joined."""
    return " ".join(block.text for block in result.content)


def rpc(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """A request as it goes over the wire."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()


def refusal(memory: TenantMemory, what: Talk[Any], *, mode: str = "auto") -> str:
    """The message of the protocol error that a request ends in."""

    async def ask(client: Client) -> str:
        with pytest.raises(MCPError) as raised:
            await what(client)
        return raised.value.error.message

    return talk(memory, ask, mode=mode)

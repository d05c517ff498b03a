"""stdio: one client, one process, one memory."""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from grandbo.mcp.server import MemoryOf, build_server


def serve_stdio(memory_of: MemoryOf, *, read_only: bool) -> None:
    """Serve whoever holds the other end of stdin and stdout, until he closes it."""

    async def serve() -> None:
        server = build_server(memory_of, read_only=read_only)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)

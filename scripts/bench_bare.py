"""
The least that a door can cost: answers that are ready, behind the same framework, the same SDK and the same server.

    python -m scripts.bench_bare PORT FILE

FILE holds `{"recall": …, "tool": …}`: what `POST /v1/recall` and the tool's call are to answer, whatever is asked.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CallToolResult
from starlette.routing import Mount


def build(answers: dict[str, Any]) -> FastAPI:
    """No credential, no thread, no work: one ready answer by either door."""

    async def call_tool(_context: Any, _params: Any) -> CallToolResult:
        return CallToolResult.model_validate(answers["tool"])

    server: Server[Any] = Server("bare", on_call_tool=call_tool, get_tool_input_schema=lambda _name: {"type": "object"})
    server.middleware.clear()
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    @contextlib.asynccontextmanager
    async def running(_app: FastAPI) -> AsyncIterator[None]:
        async with manager.run():
            yield

    telemetry: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
    app = FastAPI(lifespan=running, telemetry=telemetry)

    @app.post("/v1/recall", response_class=JSONResponse)
    async def recall() -> JSONResponse:
        return JSONResponse(answers["recall"])

    app.router.routes.append(Mount("/mcp", manager.handle_request))
    return app


if __name__ == "__main__":
    ready = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    uvicorn.run(build(ready), host="127.0.0.1", port=int(sys.argv[1]), log_config=None, access_log=False, ws="none")

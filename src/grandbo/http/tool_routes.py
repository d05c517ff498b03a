"""`/v1/agent-tools`: the tools that the caller may use, as other protocols want them described."""

# Annotations are evaluated: FastAPI reads them, and some name what is local to the function that makes the routes.

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse, Response

from grandbo.http.memory_routes import caller_of
from grandbo.http.openapi import problems
from grandbo.library import Grandbo, TenantMemory
from grandbo.mcp.export import check_format, export_tools
from grandbo.mcp.tools import tools_for

_TOOLS = {
    "type": "object",
    "required": ["tools"],
    "properties": {"tools": {"type": "array", "items": {"type": "object"}}},
}


def tool_routes(grandbo: Grandbo) -> APIRouter:
    """The route of the tools."""
    routes = APIRouter(prefix="/v1")
    Caller = Annotated[TenantMemory, Depends(caller_of(grandbo))]

    @routes.get(
        "/agent-tools",
        operation_id="list_agent_tools",
        summary="The tools of agents, described",
        response_class=JSONResponse,
        responses={
            200: {"description": "The tools.", "content": {"application/json": {"schema": _TOOLS}}},
            **problems(401, 403, 421, 422, 503),
        },
    )
    def list_agent_tools(
        memory: Caller,
        wanted: Annotated[str | None, Query(alias="format", description="mcp, openai, anthropic or gemini.")] = None,
    ) -> Response:
        """Those that the caller may use."""
        offered = tools_for(memory.principal, read_only=grandbo.settings.mcp_read_only)
        return JSONResponse({"tools": export_tools(check_format(wanted), offered)})

    return routes

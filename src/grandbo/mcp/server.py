"""
The server: what the SDK asks for, translated into verbs of the library, each in a thread, for whoever is calling.

An error that a model can act on is an answer that says what to do; anything else is told without a word of its text.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import anyio.to_thread
import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    TextResourceContents,
)

import grandbo as package
from grandbo.errors import GrandboError
from grandbo.library import TenantMemory
from grandbo.logs import describe_exception
from grandbo.mcp.answers import ToolAnswer
from grandbo.mcp.parameters import input_schema, read_arguments
from grandbo.mcp.prompts import PROMPTS, prompt_result
from grandbo.mcp.resources import MIME_TYPE, TEMPLATES, read_resource
from grandbo.mcp.tools import TOOLS, ToolEntry, tools_for

FAULT = "This is a fault of the server, not of the call; its log says more."

log = structlog.get_logger(__name__)

_SCHEMAS = {tool.name: input_schema(tool.parameters) for tool in TOOLS}

MemoryOf = Callable[[], TenantMemory]
T = TypeVar("T")
_Context = ServerRequestContext[Any]


def build_server(memory_of: MemoryOf, *, read_only: bool = False) -> Server[Any]:
    """
    Build the server.

    Args:
        memory_of: the memory of whoever makes the call at hand; asked in the call's own context.
        read_only: offer no tool that writes, whatever the caller's roles allow.
    """
    handlers = _Handlers(memory_of, read_only)
    server: Server[Any] = Server(
        "grandbo",
        version=package.__version__,
        title="Grandbo",
        description="An organisation's memory of its incidents.",
        # Otherwise the SDK lists the tools before every call, to find the one that is called.
        get_tool_input_schema=_SCHEMAS.get,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
    # Nothing about a call leaves the process unless someone decides so.
    server.middleware.clear()
    return server


class _Handlers:
    """One method for each request of the protocol."""

    def __init__(self, memory_of: MemoryOf, read_only: bool) -> None:
        self._memory_of = memory_of
        self._read_only = read_only

    async def list_tools(self, _context: _Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        tools = await _asked(lambda: tools_for(self._memory_of().principal, read_only=self._read_only))
        return ListToolsResult(tools=[tool.described() for tool in tools])

    async def call_tool(self, _context: _Context, params: CallToolRequestParams) -> CallToolResult:
        started = time.perf_counter()
        try:
            answer = await anyio.to_thread.run_sync(lambda: self._call(params))
            result = CallToolResult(content=[_text(answer.text)], structured_content=answer.structured)
            outcome = "answered"
        except ToolError as error:
            result, outcome = _failed(str(error)), "invalid_arguments"
        except GrandboError as error:
            result, outcome = _failed(f"{error.code}: {error.message}"), error.code
        except Exception as error:  # noqa: BLE001  # the last resort: the text of what nobody expected stays here
            log.error("mcp_call_failed", **describe_exception(error))
            result, outcome = _failed(FAULT), "internal_error"
        log.info("mcp_tool_called", outcome=outcome, ms=round((time.perf_counter() - started) * 1000, 1))
        return result

    def _call(self, params: CallToolRequestParams) -> ToolAnswer:
        memory = self._memory_of()
        offered = tools_for(memory.principal, read_only=self._read_only)
        tool = next((tool for tool in offered if tool.name == params.name), None)
        if tool is None:
            raise ToolError(f"There is no such tool for you; there are: {_names(offered)}.")
        return tool.run(memory, read_arguments(tool.parameters, params.arguments or {}))

    async def list_resources(self, _context: _Context, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=[])

    async def list_resource_templates(
        self, _context: _Context, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=list(TEMPLATES))

    async def read_resource(self, _context: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        text = await _asked(lambda: read_resource(self._memory_of(), uri))
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text, mime_type=MIME_TYPE)])

    async def list_prompts(self, _context: _Context, _params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=[prompt.described() for prompt in PROMPTS])

    async def get_prompt(self, _context: _Context, params: GetPromptRequestParams) -> GetPromptResult:
        return await _asked(lambda: prompt_result(params.name, params.arguments or {}))


async def _asked(work: Callable[[], T]) -> T:
    """Do the work in a thread; what goes wrong becomes an error of the protocol."""
    try:
        return await anyio.to_thread.run_sync(work)
    except GrandboError as error:
        code = INVALID_PARAMS if error.http_status < 500 else INTERNAL_ERROR
        raise MCPError(code=code, message=f"{error.code}: {error.message}") from None
    except Exception as error:  # noqa: BLE001  # the last resort, as above
        log.error("mcp_call_failed", **describe_exception(error))
        raise MCPError(code=INTERNAL_ERROR, message=FAULT) from None


def _names(tools: list[ToolEntry]) -> str:
    return ", ".join(tool.name for tool in tools) or "none"


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[_text(text)], is_error=True)


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)

"""The tools as other protocols want them described, all from the one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from grandbo.errors import InvalidInput
from grandbo.mcp.tools import TOOLS, ToolEntry

Format = Literal["mcp", "openai", "anthropic", "gemini"]
FORMATS: tuple[Format, ...] = get_args(Format)


def check_format(given: object) -> Format:
    """The format that is asked for, `mcp` unless given. Raises `InvalidInput`."""
    chosen = next((known for known in FORMATS if known == (given or "mcp")), None)
    if chosen is None:
        raise InvalidInput(f"format: it must be one of {', '.join(FORMATS)}.", field="format")
    return chosen


def export_tools(chosen: Format, tools: Sequence[ToolEntry] = TOOLS) -> list[dict[str, Any]]:
    """
    Describe the tools.

    `mcp` is what `tools/list` gives. `openai` is for strict mode, where every property is required and what is optional
    may be null; the tools take null for omitted. `anthropic` and `gemini` take the plain schema, each under its key.
    """
    describe = {"mcp": _mcp, "openai": _openai, "anthropic": _anthropic, "gemini": _gemini}[chosen]
    return [describe(tool) for tool in tools]


def _mcp(tool: ToolEntry) -> dict[str, Any]:
    return tool.described().model_dump(mode="json", by_alias=True, exclude_none=True)


def _openai(tool: ToolEntry) -> dict[str, Any]:
    schema = tool.described().input_schema
    required = set(schema["required"])
    properties = {
        name: _without_default(item) if name in required else _or_null(item)
        for name, item in schema["properties"].items()
    }
    parameters = {**schema, "properties": properties, "required": list(properties)}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters, "strict": True}
    return {"type": "function", "function": function}


def _anthropic(tool: ToolEntry) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.described().input_schema}


def _gemini(tool: ToolEntry) -> dict[str, Any]:
    schema = tool.described().input_schema
    properties = {name: _without_default(item) for name, item in schema["properties"].items()}
    parameters = {"type": "object", "properties": properties, "required": schema["required"]}
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _without_default(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "default"}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {**_without_default(schema), "type": [schema["type"], "null"]}

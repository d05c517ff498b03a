"""
Parameters of tools: flat, scalar, forgiving where clients differ, strict where a mistake would go unnoticed.

Clients that read no more than type and description still know what is allowed: values and bounds stand in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: a text, or a whole number where it has bounds; without a default it is required."""

    name: str
    description: str
    default: str | int | None = None
    values: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None

    def schema(self) -> dict[str, Any]:
        """JSON Schema of scalar type, without unions and references."""
        parts = [self.description]
        if self.values:
            parts.append(f"One of: {', '.join(self.values)}.")
        if self.bounds:
            parts.append(f"From {self.bounds[0]} to {self.bounds[1]}.")
        schema: dict[str, Any] = {"type": "integer" if self.bounds else "string", "description": " ".join(parts)}
        if self.default is not None:
            schema["default"] = self.default
        return schema


def input_schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema() for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.default is None],
        "additionalProperties": False,
    }


def read_arguments(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """
    The arguments, each with a value; null, the text "null" and an empty text stand for an omitted one.

    Raises:
        ToolError: says what to send instead.
    """
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            raise ToolError(f"There is no argument {name[:60]!r}; this tool takes {', '.join(known)}.")
    return {name: _read(parameter, given.get(name)) for name, parameter in known.items()}


def read_versions(text: str) -> dict[str, str] | None:
    """`worker=5.2, broker=3` as a context; None where nothing is given. Raises `ToolError`."""
    pairs = [item.partition("=") for item in text.split(",") if item.strip()]
    if any(not equals for _, equals, _ in pairs):
        raise ToolError("versions: write system=version with commas, such as worker=5.2, broker=3.1.")
    return {system.strip(): version.strip() for system, _, version in pairs} or None


def _read(parameter: Parameter, value: Any) -> Any:
    if value is None or (isinstance(value, str) and value.strip() in ("", "null")):
        if parameter.default is None:
            raise ToolError(f"{parameter.name}: it is required. {parameter.description}")
        return parameter.default
    if parameter.bounds:
        return _number(parameter, value)
    if not isinstance(value, str):
        raise ToolError(f"{parameter.name}: it must be text, not {_kind(value)}.")
    if parameter.values and value not in parameter.values:
        raise ToolError(f"{parameter.name}: it must be one of {', '.join(parameter.values)}.")
    return value


def _number(parameter: Parameter, value: Any) -> int:
    assert parameter.bounds is not None
    least, most = parameter.bounds
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ToolError(f"{parameter.name}: it must be a whole number from {least} to {most}.")
    return value


def _kind(value: Any) -> str:
    return {bool: "true or false", dict: "an object", list: "a list"}.get(type(value), "a number")

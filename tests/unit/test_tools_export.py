"""The tools as other protocols want them described."""

from __future__ import annotations

from typing import Any

import pytest

from grandbo.errors import InvalidInput
from grandbo.mcp.export import FORMATS, Format, check_format, export_tools
from grandbo.mcp.parameters import read_arguments
from grandbo.mcp.tools import TOOLS
from tests.support.cli import Cli


def _schema(chosen: Format, tool: dict[str, Any]) -> dict[str, Any]:
    inner = tool.get("function", tool)
    schema: dict[str, Any] = inner[{"mcp": "inputSchema", "anthropic": "input_schema"}.get(chosen, "parameters")]
    return schema


@pytest.mark.parametrize("chosen", FORMATS)
class TestFormats:
    def test_every_tool_is_there_with_its_arguments(self, chosen: Format) -> None:
        """By name, in the order of the table, flat: no reference and no union of schemas."""
        described = export_tools(chosen)

        assert [tool.name for tool in TOOLS] == [tool.get("function", tool)["name"] for tool in described]
        for tool, entry in zip(described, TOOLS, strict=True):
            schema = _schema(chosen, tool)
            assert [parameter.name for parameter in entry.parameters] == list(schema["properties"])
            assert not {"$ref", "anyOf", "oneOf", "allOf", "$defs"} & set(str(schema).replace("'", " ").split())

    def test_what_it_asks_for_is_what_the_tool_takes(self, chosen: Format) -> None:
        """Arguments that fit the description are accepted, null where it allows null."""
        for tool, entry in zip(export_tools(chosen), TOOLS, strict=True):
            schema = _schema(chosen, tool)
            values = {parameter.name: (*parameter.values, "x")[0] for parameter in entry.parameters}
            given = {
                name: None if isinstance(schema["properties"][name]["type"], list) else values[name]
                for name in schema["required"]
            }
            assert values.keys() == read_arguments(entry.parameters, given).keys()


class TestStrictness:
    def test_openai_requires_every_property_and_allows_no_other(self) -> None:
        """What is optional may be null instead."""
        for tool, entry in zip(export_tools("openai"), TOOLS, strict=True):
            schema = _schema("openai", tool)
            optional = {parameter.name for parameter in entry.parameters if parameter.default is not None}
            assert (True, False) == (tool["function"]["strict"], schema["additionalProperties"])
            assert list(schema["properties"]) == schema["required"]
            assert optional == {name for name, item in schema["properties"].items() if "null" in item["type"]}

    def test_an_unknown_format_is_refused(self) -> None:
        """With those there are."""
        with pytest.raises(InvalidInput):
            check_format("yaml")

    def test_the_command_needs_no_memory(self) -> None:
        """It prints the same, one object a line with --json."""
        cli = Cli()

        assert export_tools("anthropic") == cli("tools", "export", "--format", "anthropic", "--json").documents
        assert 2 == cli("tools", "export", "--format", "yaml").code

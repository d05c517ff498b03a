"""The tools as clients see them: flat schemas, pinned; arguments as clients send them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any
from uuid import UUID

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from grandbo.mcp.entries import entry_id_of
from grandbo.mcp.parameters import Parameter, input_schema, read_arguments
from grandbo.mcp.prompts import PROMPTS
from grandbo.mcp.resources import TEMPLATES
from grandbo.mcp.tools import TOOLS, ToolEntry, tools_for
from grandbo.memory.policy import ROLE_ACTS, ROLES
from grandbo.types import Principal
from tests.support.snapshots import check_snapshot

_UNIONS = {"anyOf", "oneOf", "allOf", "$ref", "$defs", "not", "if", "enum", "const"}
_SCALARS = {"string", "integer", "number", "boolean"}


def lint(schema: dict[str, Any]) -> list[str]:
    """What some client would stumble over in the schema of a tool's arguments."""
    wrong = [f"{key} somewhere" for key in _keys(schema) if key in _UNIONS]
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        wrong.append("no object with properties")
    for name, described in schema.get("properties", {}).items():
        if described.get("type") not in list(_SCALARS):
            wrong.append(f"{name} is no scalar")
        if not described.get("description"):
            wrong.append(f"{name} is not described")
    return wrong


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)


def _principal(*roles: str) -> Principal:
    return Principal("agent", UUID(int=1), roles=frozenset(roles))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestTool:
    def test_its_schema_is_flat(self, tool: ToolEntry) -> None:
        """Scalars and descriptions alone: three families of clients break on anything else."""
        assert [] == lint(input_schema(tool.parameters))

    def test_its_output_is_an_object_without_unions(self, tool: ToolEntry) -> None:
        """Clients of either generation accept it."""
        schema = tool.described().output_schema or {}

        assert "object" == schema["type"]
        assert not _UNIONS & set(_keys(schema))

    def test_its_names_are_short(self, tool: ToolEntry) -> None:
        """At most 64 plain characters."""
        assert all(re.fullmatch("[a-z_]{1,64}", name) for name in [tool.name, *(one.name for one in tool.parameters)])

    def test_allowed_values_stand_in_the_description(self, tool: ToolEntry) -> None:
        """Some clients read no more than type and description."""
        for parameter in tool.parameters:
            described = parameter.schema()["description"]
            assert all(value in described for value in parameter.values)
            assert all(str(bound) in described for bound in parameter.bounds or ())

    def test_the_read_only_hint_is_true_of_what_does_not_write(self, tool: ToolEntry) -> None:
        """Clients allow such tools without asking."""
        annotations = tool.described().annotations

        assert annotations is not None
        assert annotations.read_only_hint is not tool.writes
        assert annotations.destructive_hint is False

    def test_every_optional_may_be_null(self, tool: ToolEntry) -> None:
        """As null, as the text "null", as an empty text, or left out: it is the default."""
        required = {one.name: (*one.values, "x")[0] for one in tool.parameters if one.default is None}
        defaults = {one.name: one.default for one in tool.parameters if one.default is not None}
        for nothing in (None, "null", "", " "):
            assert {**required, **defaults} == read_arguments(
                tool.parameters, {**required, **dict.fromkeys(defaults, nothing)}
            )
        assert {**required, **defaults} == read_arguments(tool.parameters, required)


class TestAllTools:
    def test_their_schemas_prompts_and_resources_are_pinned(self) -> None:
        """A change here is a change for every agent: it is made on purpose, and seen in review."""
        described = {
            "tools": [tool.described().model_dump(mode="json", by_alias=True, exclude_none=True) for tool in TOOLS],
            "prompts": [
                prompt.described().model_dump(mode="json", by_alias=True, exclude_none=True) | {"text": prompt.text}
                for prompt in PROMPTS
            ],
            "resource_templates": [
                template.model_dump(mode="json", by_alias=True, exclude_none=True) for template in TEMPLATES
            ],
        }

        check_snapshot(
            "mcp/surface.json",
            json.dumps(described, indent=2, ensure_ascii=False) + "\n",
            hint="what agents are told has changed; UPDATE_SNAPSHOTS=1 if that is meant",
        )

    def test_there_are_few(self) -> None:
        """Six at most for whatever roles a caller has, each name once."""
        assert len({tool.name for tool in TOOLS}) == len(TOOLS)
        for count in range(1, len(ROLES) + 1):
            for roles in combinations(ROLES, count):
                assert len(tools_for(_principal(*roles), read_only=False)) <= 6

    @pytest.mark.parametrize("role", ROLES)
    def test_a_role_is_offered_what_it_may_do(self, role: str) -> None:
        """And nothing else."""
        offered = tools_for(_principal(role), read_only=False)

        acts = ROLE_ACTS[role]
        assert [tool for tool in TOOLS if set(tool.acts) <= acts and tool.unless not in acts] == offered

    def test_who_works_for_one_person_has_things_remembered(self) -> None:
        """And proposes nothing to the organisation; who proposes has nothing remembered."""
        companion, investigator = (
            {tool.name for tool in tools_for(_principal(role), read_only=False)}
            for role in ("companion", "investigator")
        )

        assert {"remember_about_person", "remember_about_workspace"} == companion - investigator
        assert {"propose_memory", "note_working_memory"} == investigator - companion

    def test_without_a_role_nothing_is_offered(self) -> None:
        """Default deny."""
        assert [] == tools_for(_principal(), read_only=False)

    def test_read_only_wins_over_every_role(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A tool that writes is not there, though the role may use it."""
        writing = ToolEntry("write_it", "t", "d", (), {}, ("recall",), TOOLS[0].run, writes=True)
        monkeypatch.setattr("grandbo.mcp.tools.TOOLS", (*TOOLS, writing))

        assert writing in tools_for(_principal("admin"), read_only=False)
        assert [tool for tool in TOOLS if not tool.writes] == tools_for(_principal("admin"), read_only=True)


class TestArguments:
    PARAMETERS = (
        Parameter("text", "A text."),
        Parameter("word", "A word.", default="a", values=("a", "b")),
        Parameter("number", "A number.", default=5, bounds=(1, 20)),
    )

    @pytest.mark.parametrize(("sent", "meant"), [(7, 7), ("7", 7), (" 7 ", 7), (7.0, 7), (None, 5), (1, 1), (20, 20)])
    def test_a_number_is_read_as_clients_send_it(self, sent: Any, meant: int) -> None:
        """As a number, as its digits, or as a float without a fraction."""
        assert meant == read_arguments(self.PARAMETERS, {"text": "x", "number": sent})["number"]

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({}, "text: it is required. A text."),
            ({"text": None}, "text: it is required."),
            ({"text": "null"}, "text: it is required."),
            ({"text": 7}, "text: it must be text, not a number."),
            ({"text": True}, "text: it must be text, not true or false."),
            ({"text": ["x"]}, "text: it must be text, not a list."),
            ({"text": {"a": 1}}, "text: it must be text, not an object."),
            ({"text": "x", "word": "c"}, "word: it must be one of a, b."),
            ({"text": "x", "number": 0}, "number: it must be a whole number from 1 to 20."),
            ({"text": "x", "number": 21}, "from 1 to 20"),
            ({"text": "x", "number": True}, "from 1 to 20"),
            ({"text": "x", "number": 1.5}, "from 1 to 20"),
            ({"text": "x", "number": "five"}, "from 1 to 20"),
            ({"text": "x", "number": "9" * 5_000}, "from 1 to 20"),
            ({"text": "x", "number": "²"}, "from 1 to 20"),
            ({"text": "x", "number": float("nan")}, "from 1 to 20"),
            ({"text": "x", "tenant_id": "y"}, "There is no argument 'tenant_id'; this tool takes text, word, number."),
        ],
    )
    def test_what_does_not_fit_is_refused_with_what_would(self, given: dict[str, Any], said: str) -> None:
        """A model reads it and sends it right."""
        with pytest.raises(ToolError, match=re.escape(said)):
            read_arguments(self.PARAMETERS, given)


class TestEntryId:
    @pytest.mark.parametrize("tail", ["", "/3", "/3#0-412", "/3@812"])
    def test_a_citation_names_its_entry(self, tail: str) -> None:
        """An agent may hand in what the block gave it."""
        assert UUID(int=1) == entry_id_of(f" {UUID(int=1)}{tail} ")

    @pytest.mark.parametrize("text", ["7", "INC-7", "x" * 100_000, f"{UUID(int=1)}/x", "{" + str(UUID(int=1)) + "}"])
    def test_anything_else_is_refused(self, text: str) -> None:
        """With where to find one."""
        with pytest.raises(ToolError, match="query_org_memory gives the ids"):
            entry_id_of(text)


class TestLint:
    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "object"},
            {"type": "object", "properties": {"a": {"type": ["string", "null"], "description": "d"}}},
            {
                "type": "object",
                "properties": {"a": {"anyOf": [{"type": "string"}], "type": "string", "description": "d"}},
            },
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
            {"type": "object", "properties": {"a": {"type": "array", "description": "d"}}},
            {"type": "object", "properties": {"a": {"type": "string"}}},
            {"type": "string", "properties": {}},
        ],
    )
    def test_it_sees_what_it_is_there_for(self, schema: dict[str, Any]) -> None:
        """Each kind of trouble is reported."""
        assert [] != lint(schema)

"""`grandbo tools`: the tools of agents, described for who does not speak MCP."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import print_json, say

tools = typer.Typer(help="The tools of agents.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(tools, name="tools")


@command(tools, "export", example="grandbo tools export --format openai")
def export(
    call: Call,
    wanted: Annotated[str, typer.Option("--format", metavar="F", help="mcp, openai, anthropic or gemini.")] = "mcp",
) -> None:
    """Print the tools as this protocol wants them described; needs no memory."""
    from grandbo.mcp.export import check_format, export_tools

    described = export_tools(check_format(wanted))
    if call.json:
        for tool in described:
            print_json(tool)
    else:
        say(json.dumps(described, indent=2, ensure_ascii=False))

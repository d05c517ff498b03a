"""`grandbo mcp`: the memory for an agent on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from grandbo.cli.call import Call, command
from grandbo.errors import InvalidInput

if TYPE_CHECKING:
    from grandbo.library import Grandbo, TenantMemory
    from grandbo.settings import Settings

_NOBODY_NAMED = "human:local"
_DEFAULT_ROLES = ("investigator",)


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    command(app, "mcp", example="grandbo mcp --tenant acme")(mcp)


def mcp(
    call: Call,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer no tool that writes, whatever the role allows.")
    ] = False,
    roles: Annotated[
        list[str] | None, typer.Option("--role", metavar="R", help="What the agent may do; investigator unless given.")
    ] = None,
) -> None:
    """
    Speak MCP over stdio, for one agent.

    Acts with the key in GRANDBO_API_KEY where one is set, for the key's tenant and with its roles. Otherwise as the
    agent `--as NAME` in the tenant named, as an investigator unless --role says otherwise. Ends with its input.
    """
    settings = call.settings(serving=True)
    from grandbo.mcp.over_stdio import serve_stdio

    with call.open(settings) as grandbo:
        key = settings.api_key.get_secret_value() if settings.api_key else None
        if key is not None:
            # Once now, so that a wrong key is told at once; then at every call, so that a revoked one opens nothing.
            grandbo.authenticate(key)
            serve_stdio(lambda: grandbo.authenticate(key), read_only=read_only or settings.mcp_read_only)
            return
        memory = _named(call, settings, grandbo, tuple(roles or _DEFAULT_ROLES))
        serve_stdio(lambda: memory, read_only=read_only or settings.mcp_read_only)


def _named(call: Call, settings: Settings, grandbo: Grandbo, roles: tuple[str, ...]) -> TenantMemory:
    tenant = call.tenant or settings.tenant
    if not tenant:
        raise InvalidInput(
            "Which tenant? Give --tenant NAME, or set GRANDBO_TENANT or GRANDBO_API_KEY.", field="tenant"
        )
    name = "agent:local" if call.principal == _NOBODY_NAMED else call.principal
    return grandbo.tenant(tenant, principal=name if ":" in name else f"agent:{name}", roles=roles)

"""`grandbo tenant`."""

from __future__ import annotations

from typing import Annotated

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import print_json, print_table, say

tenant = typer.Typer(help="Tenants: each is one organisation, walled off from the others.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(tenant, name="tenant")


@command(tenant, "create", example="grandbo tenant create acme")
def create(
    call: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="1 to 64 letters, digits, spaces, `.`, `-`, `_`.")],
) -> None:
    """Make a tenant."""
    with call.open() as grandbo:
        made = grandbo.create_tenant(name)
    if call.json:
        print_json(made.as_dict())
    else:
        say(f"Made the tenant {made.name} ({made.tenant_id}).")


@command(tenant, "list")
def list_(call: Call) -> None:
    """List all tenants by name."""
    with call.open() as grandbo:
        found = grandbo.tenants()
    if call.json:
        for item in found:
            print_json(item.as_dict())
    else:
        print_table(("name", "tenant_id"), [(item.name, item.tenant_id) for item in found])

"""`grandbo key`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import print_json, print_table, say, tell

key = typer.Typer(help="API keys: bound to a tenant, a principal and roles.", no_args_is_help=True)

_Kind = Literal["human", "agent", "hook"]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(key, name="key")


@command(key, "create", example="grandbo key create --tenant acme --principal pager --type hook --role hook")
def create(
    call: Call,
    principal_name: Annotated[str, typer.Option("--principal", metavar="NAME", help="Who will hold the key.")],
    kind: Annotated[_Kind, typer.Option("--type", help="What the holder is.")],
    roles: Annotated[
        list[str],
        typer.Option(
            "--role", metavar="ROLE", help="admin, auditor, reviewer, investigator, companion, hook; repeatable."
        ),
    ],
    expires_in: Annotated[
        str | None, typer.Option("--expires-in", metavar="LIFE", help="How long it works: 12h, 90d, 4w.")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="It writes nothing, whatever its roles allow.")
    ] = False,
) -> None:
    """Make a key. Its secret is shown this once; only a digest is kept."""
    from grandbo.memory.principals import parse_life

    life = parse_life(expires_in) if expires_in is not None else None
    with call.memory() as memory:
        made, token = memory.create_key(principal_name, kind, tuple(roles), expires_in=life, read_only=read_only)
    if call.json:
        print_json(
            {
                "key_id": made.key_id,
                "secret": token,
                "principal": made.principal.name,
                "type": made.principal.type,
                "roles": sorted(made.principal.roles),
                "read_only": read_only,
                "expires_at": made.as_dict()["expires_at"],
            }
        )
    else:
        say(f"key_id  {made.key_id}", f"secret  {token}")
    tell("The secret is shown this once. Keep it like a password; `grandbo key revoke KEY_ID` ends it.")


@command(key, "list")
def list_(call: Call) -> None:
    """List the tenant's keys, revoked ones included, without their secrets."""
    with call.memory() as memory:
        listed = memory.keys()
    found = [item.as_dict() for item in listed]
    if call.json:
        for item in found:
            print_json(item)
        return
    rows = [
        (
            item["key_id"],
            f"{item['type']}:{item['principal']}",
            " ".join(item["roles"]),
            item["created_at"],
            item["revoked_at"],
            item["expires_at"],
            "reads" if item["read_only"] else "",
        )
        for item in found
    ]
    print_table(("key_id", "principal", "roles", "created_at", "revoked_at", "expires_at", "only"), rows)


@command(key, "revoke")
def revoke(call: Call, key_id: Annotated[str, typer.Argument(metavar="KEY_ID")]) -> None:
    """Revoke a key, at once and for good."""
    with call.memory() as memory:
        memory.revoke_key(key_id)
    if call.json:
        print_json({"key_id": key_id, "revoked": True})
    else:
        say(f"Revoked {key_id}.")

"""`grandbo subscription`: who outside is told of events."""

from __future__ import annotations

import sys
from typing import Annotated, Any
from uuid import UUID

import typer

from grandbo.cli.call import CHECK_FAILED, Call, command
from grandbo.cli.output import plain, print_json, print_table, say, tell
from grandbo.errors import NotFound

subscription = typer.Typer(help="Who outside is told of events, signed and in order.", no_args_is_help=True)

_Id = Annotated[str, typer.Argument(metavar="SUBSCRIPTION_ID")]
_SecretOption = Annotated[bool, typer.Option("--secret-stdin", help="Read the secret from stdin: `whsec_…`.")]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(subscription, name="subscription")


@command(subscription, "create", example="grandbo subscription create https://bus.example.com/in --name bus")
def create(
    call: Call,
    url: Annotated[str, typer.Argument(metavar="URL", help="Where it is sent to: a public address over TLS.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="For people.")],
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="EVENT", help="Of these events alone; else all of entries and candidates."),
    ] = None,
    tiers: Annotated[
        list[str] | None,
        typer.Option("--tier", metavar="TIER", help="It learns of what stands in these; else the default tier."),
    ] = None,
    start: Annotated[
        int | None, typer.Option("--from", metavar="P", help="The first position that is told; else from now on.")
    ] = None,
    secret_stdin: _SecretOption = False,
) -> None:
    """Have events sent to a URL. Its secret is shown this once; the receiver verifies with it."""
    with call.memory() as memory:
        made, secret = memory.create_subscription(
            url, name, event_types=types, tiers=tiers, start=start, secret=_secret(secret_stdin)
        )
    _show_made(call, made.as_dict(), secret)


@command(subscription, "list")
def list_(call: Call) -> None:
    """List the tenant's subscriptions, without their secrets, and where each stands."""
    with call.memory() as memory:
        found = [item.as_dict() for item in memory.subscriptions()]
    if call.json:
        for item in found:
            print_json(item)
        return
    columns = ("subscription_id", "name", "url", "tiers", "state", "position", "behind", "attempts", "error_code")
    print_table(columns, [tuple(_cell(item[name]) for name in columns) for item in found])


@command(subscription, "rotate", example="grandbo subscription rotate SUBSCRIPTION_ID --tenant acme")
def rotate(
    call: Call,
    subscription_id: _Id,
    secret_stdin: _SecretOption = False,
    drop_previous: Annotated[
        bool, typer.Option("--drop-previous", help="Sign with the new secret alone from now on.")
    ] = False,
) -> None:
    """Give it a new secret. Each delivery is signed with both, so that the receiver can be changed over."""
    with call.memory() as memory:
        rotated, secret = memory.rotate_subscription(
            _id_of(subscription_id), secret=_secret(secret_stdin), keep_previous=not drop_previous
        )
    _show_made(call, rotated.as_dict(), secret)


@command(subscription, "pause")
def pause(call: Call, subscription_id: _Id) -> None:
    """Tell it nothing until it is resumed."""
    with call.memory() as memory:
        _show(call, memory.pause_subscription(_id_of(subscription_id)).as_dict())


@command(subscription, "resume")
def resume(call: Call, subscription_id: _Id) -> None:
    """Go on where it stands, one that was given up too."""
    with call.memory() as memory:
        _show(call, memory.resume_subscription(_id_of(subscription_id)).as_dict())


@command(subscription, "replay", example="grandbo subscription replay SUBSCRIPTION_ID --from 812 --tenant acme")
def replay(
    call: Call,
    subscription_id: _Id,
    start: Annotated[int, typer.Option("--from", metavar="P", help="The first position that is told.")],
) -> None:
    """Tell it everything from a position on, again; or pass over an event that it cannot take."""
    with call.memory() as memory:
        _show(call, memory.replay_subscription(_id_of(subscription_id), start).as_dict())


@command(subscription, "remove")
def remove(call: Call, subscription_id: _Id) -> None:
    """Take it away with its secrets."""
    with call.memory() as memory:
        memory.remove_subscription(_id_of(subscription_id))
    if call.json:
        print_json({"subscription_id": subscription_id, "removed": True})
    else:
        say(f"Removed {subscription_id}.")


@command(subscription, "test", example="grandbo subscription test SUBSCRIPTION_ID --tenant acme")
def try_out(call: Call, subscription_id: _Id) -> None:
    """Send it a signed event that is none. Its place stays; exits with 1 when it was not taken."""
    with call.memory() as memory:
        told = memory.test_subscription(_id_of(subscription_id))
    if call.json:
        print_json(told)
    else:
        say(f"Taken, with status {told['status']}." if told["ok"] else f"[{told['error_code']}] {told['note']}")
    if not told["ok"]:
        raise typer.Exit(CHECK_FAILED)


@command(subscription, "deliver", example="grandbo subscription deliver --tenant acme")
def deliver(call: Call) -> None:
    """Tell all that is due now, in this process, without waiting for the worker."""
    with call.memory() as memory:
        told = memory.deliver_events()
    if call.json:
        print_json({"delivered": told.delivered, "failed": told.failed})
    else:
        say(f"{told.delivered} delivered, {told.failed} failed.")


def _id_of(given: str) -> UUID:
    """What is no id is as absent as one that is not there."""
    try:
        return UUID(given)
    except ValueError:
        raise NotFound("There is no such subscription in this tenant.") from None


def _secret(from_stdin: bool) -> str | None:
    """Never an argument: other users of the machine see those."""
    return sys.stdin.readline().strip() if from_stdin else None


def _cell(value: Any) -> Any:
    return " ".join(value) if isinstance(value, list) else value


def _show_made(call: Call, made: dict[str, Any], secret: str) -> None:
    if call.json:
        print_json({**made, "secret": secret})
    else:
        say(f"subscription_id  {made['subscription_id']}", f"tiers            {' '.join(made['tiers'])}")
        say(f"secret           {secret}")
    tell("The secret is shown this once: give it to the receiver, which verifies with it.")


def _show(call: Call, told: dict[str, Any]) -> None:
    if call.json:
        print_json(told)
    else:
        say(f"{plain(told['name'])} is {told['state']}, at position {told['position']}, {told['behind']} behind.")

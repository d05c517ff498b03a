"""`grandbo hook` and `grandbo inbox`: where tools deliver to, and what they delivered."""

from __future__ import annotations

import sys
from typing import Annotated, Any
from uuid import UUID

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import plain, print_json, print_table, say, tell, tell_more
from grandbo.cli.writing import read_document
from grandbo.errors import NotFound

hook = typer.Typer(help="Where tools deliver what happens to incidents.", no_args_is_help=True)
inbox = typer.Typer(help="What the hooks delivered, and what became of it.", no_args_is_help=True)

_HookId = Annotated[str, typer.Argument(metavar="HOOK_ID")]
_DeliveryId = Annotated[str, typer.Argument(metavar="DELIVERY_ID")]
_SecretOption = Annotated[
    bool, typer.Option("--secret-stdin", help="Read the secret from stdin, where the tool makes it.")
]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(hook, name="hook")
    app.add_typer(inbox, name="inbox")


@command(hook, "create", example="grandbo hook create pagerduty --name production --tenant acme")
def create(
    call: Call,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The tool, such as pagerduty, sentry, grandbo.")],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="For people; the source's unless given.")
    ] = None,
    direct: Annotated[
        bool, typer.Option("--direct", help="Record what it tells with a cause at once, without a person.")
    ] = False,
    takes_private: Annotated[
        bool, typer.Option("--takes-private", help="Remember what is restricted there, in the highest tier.")
    ] = False,
    secret_stdin: _SecretOption = False,
) -> None:
    """Make a hook. Its secret is shown this once; the tool signs with it."""
    settings = call.settings()
    with call.memory(settings) as memory:
        made, secret = memory.create_hook(
            source,
            source if name is None else name,
            direct=direct,
            takes_private=takes_private,
            secret=_secret(secret_stdin),
        )
    _show_made(call, made.as_dict(), secret, settings.public_url)


@command(hook, "list")
def list_(call: Call) -> None:
    """List the tenant's hooks, without their secrets."""
    with call.memory() as memory:
        found = [item.as_dict() for item in memory.hooks()]
    if call.json:
        for item in found:
            print_json(item)
        return
    rows = [
        (
            item["hook_id"],
            item["source"],
            item["name"],
            item["signature"],
            " ".join(name for name in ("direct", "takes_private") if item[name]),
            item["created_at"],
            item["rotated_at"],
        )
        for item in found
    ]
    print_table(("hook_id", "source", "name", "signature", "policy", "created_at", "rotated_at"), rows)


@command(hook, "rotate", example="grandbo hook rotate HOOK_ID --tenant acme")
def rotate(
    call: Call,
    hook_id: _HookId,
    secret_stdin: _SecretOption = False,
    drop_previous: Annotated[
        bool, typer.Option("--drop-previous", help="The secret before it opens nothing from now on.")
    ] = False,
) -> None:
    """Give a hook a new secret. The one before works on, so that the tool can be changed over."""
    settings = call.settings()
    with call.memory(settings) as memory:
        rotated, secret = memory.rotate_hook(hook_id, secret=_secret(secret_stdin), keep_previous=not drop_previous)
    _show_made(call, rotated.as_dict(), secret, settings.public_url)


@command(hook, "remove", example="grandbo hook remove HOOK_ID --tenant acme")
def remove(call: Call, hook_id: _HookId) -> None:
    """Take a hook away; what it delivered stays in the inbox."""
    with call.memory() as memory:
        memory.remove_hook(hook_id)
    if call.json:
        print_json({"hook_id": hook_id, "removed": True})
    else:
        say(f"Removed {hook_id}.")


@command(hook, "test", example="grandbo hook test HOOK_ID --payload closed.json --tenant acme")
def try_out(
    call: Call,
    hook_id: _HookId,
    payload: Annotated[
        str | None,
        typer.Option("--payload", metavar="FILE", help="What the tool would send; else a sample of its source."),
    ] = None,
) -> None:
    """Sign a delivery, verify it, and show what would be mapped. Nothing is written."""
    document = None if payload is None else read_document(payload)
    with call.memory() as memory:
        told = memory.test_hook(hook_id, document)
    if call.json:
        print_json(told)
        return
    say(f"verified by {told['verified_by']}")
    if told["ignored"]:
        say(f"ignored: {told['ignored']}")
    for draft in told["drafts"]:
        shown = draft["document"]
        say(
            f"{draft['event']} of {plain(draft['incident_id'])} becomes {draft['becomes']}",
            f"  {plain(shown['title'])}",
        )
    tell("Nothing was written.")


@command(inbox, "list", example="grandbo inbox list --state dead --tenant acme")
def list_inbox(
    call: Call,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="received, mapped, ignored, dead or dropped.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="1 to 500.")] = 50,
    after: Annotated[str | None, typer.Option("--after", metavar="DELIVERY_ID", help="Go on behind it.")] = None,
) -> None:
    """List what was delivered, newest first."""
    with call.memory() as memory:
        page = memory.inbox(state=state, limit=limit, after=after)
    if page["next"]:
        tell_more(page["next"], as_json=call.json)
    if call.json:
        for item in page["deliveries"]:
            print_json(item)
        return
    rows = [
        (
            item["delivery_id"],
            item["source"],
            item["received_at"],
            item["state"],
            item["attempts"],
            item["error_code"] or " ".join(dict.fromkeys(one["outcome"] for one in item["outcomes"])),
            item["note"],
        )
        for item in page["deliveries"]
    ]
    print_table(("delivery_id", "source", "received_at", "state", "attempts", "outcome", "note"), rows)


@command(inbox, "show")
def show(call: Call, delivery_id: _DeliveryId) -> None:
    """Show one delivery with its headers and its body."""
    with call.memory() as memory:
        found = memory.delivery(_id_of(delivery_id))
    if call.json:
        print_json(found)
        return
    for name, value in found.items():
        if name != "body":
            say(f"{name:16}{plain(str(value))}")
    say("", plain(found["body"] or "(the body is not kept any more)"))


@command(inbox, "retry", example="grandbo inbox retry DELIVERY_ID --now --tenant acme")
def retry(
    call: Call,
    delivery_id: _DeliveryId,
    now: Annotated[bool, typer.Option("--now", help="Map it in this process, without waiting for the worker.")] = False,
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="SUBJECT", help="Whom it is about: an id or a reference.")
    ] = None,
) -> None:
    """
    Map a delivery again, whatever became of it.

    One that speaks of somebody is dead with the code subject_missing until --subject says of whom.
    """
    with call.memory() as memory:
        told = memory.retry_delivery(_id_of(delivery_id), subject=subject)
        if now:
            memory.map_deliveries()
            told = memory.delivery(_id_of(delivery_id))
    _show_state(call, told)


@command(inbox, "drop")
def drop(call: Call, delivery_id: _DeliveryId) -> None:
    """Give a delivery up; its body goes, that it came stays known."""
    with call.memory() as memory:
        told = memory.drop_delivery(_id_of(delivery_id))
    _show_state(call, told)


def _id_of(given: str) -> UUID:
    """What is no id is as absent as one that is not there."""
    try:
        return UUID(given)
    except ValueError:
        raise NotFound("There is no such delivery in this tenant's inbox.") from None


def _secret(from_stdin: bool) -> str | None:
    """Never an argument: other users of the machine see those."""
    return sys.stdin.readline().strip() if from_stdin else None


def _show_made(call: Call, made: dict[str, Any], secret: str, public_url: str | None) -> None:
    url = (public_url or "http://127.0.0.1:8420").rstrip("/") + made["path"]
    if call.json:
        print_json({**made, "url": url, "secret": secret})
    else:
        say(f"hook_id  {made['hook_id']}", f"url      {url}", f"secret   {secret}")
    tell("The secret is shown this once: give it to the tool, which signs with it.")
    if not made["signed"]:
        tell("This tool does not sign: it sends the secret along, as a bearer token. Deliver over TLS alone.")


def _show_state(call: Call, told: dict[str, Any]) -> None:
    if call.json:
        print_json(told)
    else:
        say(f"{told['delivery_id']} is {told['state']}.")

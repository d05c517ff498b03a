"""`grandbo erasure`, `grandbo restore-check`: taking something out of the memory for good, and keeping it out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from grandbo.cli.call import CHECK_FAILED, Call, command
from grandbo.cli.entry_reading import entry
from grandbo.cli.output import print_json, print_table, say
from grandbo.errors import NotFound

if TYPE_CHECKING:
    from grandbo.memory.erasing import Erasure

erasure = typer.Typer(help="Erase an entry, or its past, for good: one asks, another confirms.", no_args_is_help=True)

_Entry = Annotated[str, typer.Argument(metavar="ENTRY", help="The id of the entry.")]
_Reason = Annotated[
    str, typer.Option("--reason", metavar="CODE", help="personal_data, secret, legal or request; never words.")
]
_Erasure = Annotated[str, typer.Argument(metavar="ERASURE", help="The id of the request.")]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(erasure, name="erasure")
    command(app, "restore-check", example="grandbo restore-check --apply")(restore_check)


@command(erasure, "request", example="grandbo erasure request ENTRY --reason personal_data --tenant acme")
def request(
    call: Call,
    entry_id: _Entry,
    reason: _Reason,
    keep_current: Annotated[
        bool, typer.Option("--keep-current", help="Erase its past alone; correct its text first.")
    ] = False,
) -> None:
    """Ask for an entry to be erased; a second person has to confirm it."""
    with call.memory() as memory:
        say_erasure(call, memory.request_erasure(_id(entry_id, "entry"), reason, keeps_current=keep_current))


@command(entry, "erase-revision", example="grandbo entry erase-revision ENTRY --reason personal_data --tenant acme")
def erase_revision(
    call: Call,
    entry_id: _Entry,
    reason: _Reason,
    revision: Annotated[
        list[int] | None,
        typer.Option("--revision", metavar="N", min=1, help="This one alone; repeatable. Else all but the present."),
    ] = None,
) -> None:
    """
    Ask for revisions of an entry to be erased, for what was found late in them; correct its text first.

    With --revision a tombstone stands in the place of each, the others stay, and the answer says in which some of
    the same words stand: name these too. Without it the whole past goes, and what it says now stays, as its next
    revision. A second person confirms it: grandbo erasure confirm.
    """
    with call.memory() as memory:
        named = revision or []
        asked = memory.request_erasure(_id(entry_id, "entry"), reason, keeps_current=not named, revisions=named)
        say_erasure(call, asked)


@command(erasure, "confirm", example="grandbo erasure confirm ERASURE --as human:kim --certificate erased.txt")
def confirm(
    call: Call,
    erasure_id: _Erasure,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="Write the certificate there.")
    ] = None,
) -> None:
    """
    Erase it, for good. Nobody confirms what he asked for.

    Prints what went, store by store. The certificate can be checked by anyone with scripts/verify_certificate.py.
    """
    with call.memory() as memory:
        done = memory.confirm_erasure(_id(erasure_id, "request"))
    if certificate is not None and done.certificate is not None:
        certificate.write_text(done.certificate, encoding="utf-8")
    say_erasure(call, done)


@command(erasure, "cancel")
def cancel(call: Call, erasure_id: _Erasure) -> None:
    """Take a request back that was not confirmed yet."""
    with call.memory() as memory:
        memory.cancel_erasure(_id(erasure_id, "request"))
    print_json({"erasure_id": erasure_id, "cancelled": True}) if call.json else say("Taken back.")


@command(erasure, "list")
def list_(
    call: Call,
    finish: Annotated[
        bool, typer.Option("--finish", help="First list and certify what was erased and is not yet.")
    ] = False,
) -> None:
    """List requests and what became of them."""
    with call.memory() as memory:
        if finish:
            memory.finish_erasures()
        found = [item.as_dict() for item in memory.erasures()]
    if call.json:
        for item in found:
            print_json(item)
    else:
        columns = ("erasure_id", "entry_id", "subject_id", "state", "reason", "requested_at", "erased_at", "position")
        print_table(columns, [[str(item[name] or "") for name in columns] for item in found])


def restore_check(
    call: Call,
    apply: Annotated[bool, typer.Option("--apply", help="Apply again what the database lacks.")] = False,
) -> None:
    """
    Hold the database against the erasure list: does it have again what was erased?

    To be run after every restore; until it is clean, nothing is served. Exits with 1 where something is missing.
    """
    from grandbo.library import Grandbo

    with Grandbo.open(settings=call.settings(), check_erasures=False) as grandbo:
        applied = grandbo.apply_erasures() if apply else []
        checked = grandbo.check_erasures()
    missing = [item for item in checked if item.state != "applied"]
    if call.json:
        print_json(
            {
                "ok": not missing,
                "listed": len(checked),
                "applied": [item.as_dict() for item in applied],
                "missing": [item.as_dict() for item in missing],
            }
        )
    else:
        say(f"{len(checked)} erasures listed, {len(applied)} applied again, {len(missing)} missing.")
    if missing:
        raise typer.Exit(CHECK_FAILED)


def say_erasure(call: Call, item: Erasure) -> None:
    """What became of a request, and what went from where."""
    document = item.as_dict()
    if call.json:
        print_json(document)
        return
    say(f"{document['state']}: {document['erasure_id']}")
    for found in item.still_in or ():
        say(f"  revision {found['revision']} holds some of the same words still: {', '.join(found['fields'])}")
    if item.outcome is not None:
        say(*(f"  {name:12} {count}" for name, count in item.outcome["rows_removed"].items()))
        say(f"  {'bodies':12} {item.outcome['bodies_removed']} of the log, by the event at {item.position}")


def _id(given: str, what: str) -> UUID:
    """What is no id is nothing that is there: the same answer as for one that is not."""
    try:
        return UUID(given)
    except ValueError:
        raise NotFound(f"There is no such {what} in this tenant.") from None

"""`grandbo entry show`, `entry history` and `grandbo state`: what is there, what was there, how it came to."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.entry_text import ERASED, difference_lines, entry_lines
from grandbo.cli.output import print_json, print_table, say, tell_more
from grandbo.errors import NotFound

entry = typer.Typer(help="One entry: what it says, how it came to, what is done to it.", no_args_is_help=True)

EntryId = Annotated[str, typer.Argument(metavar="ID", help="The id of the entry.")]
_AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="As it stood at this time; RFC 3339 with a zone.")
]
_AsOfPosition = Annotated[
    int | None, typer.Option("--as-of-position", metavar="P", help="As it stood at this position of the log.")
]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(entry, name="entry")
    command(app, "state", example="grandbo state --as-of 2026-01-02T02:10:00Z --status published --tenant acme")(state)


@command(entry, "show", example="grandbo entry show ID --as-of 2026-01-02T02:10:00Z --tenant acme")
def show(call: Call, entry_id: EntryId, as_of: _AsOf = None, as_of_position: _AsOfPosition = None) -> None:
    """Show an entry as it stands, or as it stood."""
    with call.memory() as memory:
        found = memory.show_entry(id_of(entry_id), as_of=as_of, as_of_position=as_of_position)
    if call.json:
        print_json(found)
    else:
        say(*entry_lines(found))


@command(entry, "history", example="grandbo entry history ID --diff 1 3 --tenant acme")
def history(
    call: Call,
    entry_id: EntryId,
    diff: Annotated[
        tuple[int, int] | None, typer.Option("--diff", metavar="A B", help="Only what is different from A to B.")
    ] = None,
) -> None:
    """
    Show every revision: what, who, when, why.

    With --diff it is the difference of two revisions, word by word: [-gone-] {+new+}.
    """
    from grandbo.memory.differences import compare_revisions

    found = id_of(entry_id)
    with call.memory() as memory:
        revisions = memory.history(found)
    if diff is not None:
        compared = compare_revisions(revisions, *diff)
        if call.json:
            print_json(compared.as_dict())
        else:
            lines = difference_lines(compared.changes)
            say(*(lines or [f"Revisions {diff[0]} and {diff[1]} say the same."]))
    elif call.json:
        for item in revisions:
            print_json(item)
    else:
        columns = ("revision", "at", "event_type", "principal", "reason", "position")
        rows = [{**item, "reason": ERASED if item["erased"] else item["reason"]} for item in revisions]
        print_table(columns, [[item[name] for name in columns] for item in rows])


def state(
    call: Call,
    as_of: _AsOf = None,
    as_of_position: _AsOfPosition = None,
    kinds: Annotated[list[str] | None, typer.Option("--kind", metavar="K", help="Only this kind; repeatable.")] = None,
    statuses: Annotated[
        list[str] | None, typer.Option("--status", metavar="S", help="Only this status; all unless given. Repeatable.")
    ] = None,
    service: Annotated[str | None, typer.Option("--service", metavar="S", help="Only this service.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="1 to 200; 50 unless given.")] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="CURSOR", help="Go on where a page ended; stderr says where.")
    ] = None,
) -> None:
    """
    List the entries of every status as they stand, or as they stood.

    In the order of their ids, a page at a time. Where there is more, the last line on stderr has the cursor for
    --after; with --json it is `{"next": CURSOR}`.
    """
    wanted: dict[str, Any] = {"kinds": kinds or None, "statuses": statuses or None, "service": service}
    with call.memory() as memory:
        page = memory.list_entries(**wanted, as_of=as_of, as_of_position=as_of_position, limit=limit, after=after)
    if call.json:
        for item in page.entries:
            print_json(item)
    else:
        columns = ("entry_id", "revision", "kind", "status", "visibility", "service", "title")
        print_table(columns, [[item[name] or ERASED * (name == "title") for name in columns] for item in page.entries])
    if page.next is not None:
        tell_more(page.next, as_json=call.json)


def id_of(given: str) -> UUID:
    """What is no id is no entry: the same answer as for one that is not there."""
    try:
        return UUID(given)
    except ValueError:
        raise NotFound from None

"""`grandbo screen`: the present screen over what is stored."""

from __future__ import annotations

import contextlib

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import print_json, say
from grandbo.cli.progress import Update, progress

screen = typer.Typer(help="What the screen finds in what is stored.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(screen, name="screen")


@command(screen, "rescan", example="grandbo screen rescan --tenant acme")
def rescan(call: Call) -> None:
    """
    Look at everything stored with the present screen, and propose what has to go.

    Nothing is changed: what is found becomes candidates, flagged `screen`, that a person merges or rejects. Run again,
    it proposes nothing that it proposed before.
    """
    updates: list[Update] = []
    with call.memory() as memory, contextlib.ExitStack() as stack:

        def tell(done: int, total: int) -> None:
            # How many there are is known once the first were looked at.
            if not updates:
                updates.append(stack.enter_context(progress("screened", total, shown=not call.json)))
            updates[0](done)

        found = memory.rescan(progress=tell)
    if call.json:
        print_json(found.as_dict())
        return
    say(f"Screen version {found.version}: {found.entries} entries and {found.candidates} candidates looked at.")
    for signal, count in sorted(found.found.items()):
        say(f"  {signal:16} {count}")
    say(f"Proposed {len(found.proposed)}, known from before {found.known}; `grandbo review list` shows the queue.")
    for what, items in (("Candidates to amend", found.candidates_found), ("Entries to look at", found.left)):
        if items:
            say(f"{what}: {', '.join(map(str, items))}")
    if found.over_quota:
        say(f"{found.over_quota} more wait for room in the queue: decide on some, then run this again.")

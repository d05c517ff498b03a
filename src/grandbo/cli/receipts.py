"""`grandbo receipt`: what was answered, to whom, and the proof that it would be answered again."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from grandbo.cli.call import CHECK_FAILED, Call, command
from grandbo.cli.entry_reading import entry as entries
from grandbo.cli.entry_text import change_lines
from grandbo.cli.output import plain, print_json, print_table, say, tell, tell_more
from grandbo.errors import NotFound
from grandbo.types import VERDICTS

receipt = typer.Typer(help="Past answers: who was told what, and replaying it.", no_args_is_help=True)

_Receipt = Annotated[str, typer.Argument(metavar="RECEIPT", help="The receipt_id of an answer.")]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(receipt, name="receipt")
    command(app, "feedback", example="grandbo feedback RECEIPT ENTRY helped --tenant acme")(feedback)
    command(entries, "feedback", example="grandbo entry feedback ID helped --receipt RECEIPT --tenant acme")(
        feedback_on_entry
    )


@command(receipt, "show", example="grandbo receipt show RECEIPT --tenant acme")
def show(call: Call, receipt_id: _Receipt) -> None:
    """Show a receipt: position, instant, principal, parameters, and what was returned. Never the topic."""
    wanted = _id(receipt_id)
    with call.memory() as memory:
        found = memory.receipt(wanted)
    if call.json:
        print_json(found)
        return
    say(*(f"{name:12}{found[name]}" for name in ("receipt_id", "made_at", "principal", "position", "instant")))
    say(f"{'asked':12}{_given(found['parameters'])}", f"{'searched':12}{_given(found['searched'])}")
    for place, match in enumerate(found["matches"], start=1):
        say(f"{place:>3}. {match['entry_id']}/{match['revision']}@{match['position']}  score {match['score']:.4f}")


@command(receipt, "list", example="grandbo receipt list --entry ENTRY --tenant acme")
def list_(
    call: Call,
    entry: Annotated[str | None, typer.Option("--entry", metavar="ID", help="Who was told this entry.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="1 to 500; 50 unless given.")] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="RECEIPT", help="Go on after the last one of a page.")
    ] = None,
) -> None:
    """List receipts, newest first."""
    from grandbo.recall.ledger import DEFAULT_PAGE

    entry_id = None if entry is None else _id(entry)
    last = None if after is None else _id(after)
    with call.memory() as memory:
        found = memory.receipts(entry_id=entry_id, limit=limit, after=last)
    if call.json:
        for item in found:
            print_json(item)
    else:
        names = ("receipt_id", "made_at", "principal", "position")
        rows = [(*(item[name] for name in names), len(item["matches"])) for item in found]
        print_table((*names, "matches"), rows)
    if found and len(found) == (limit or DEFAULT_PAGE):
        tell_more(found[-1]["receipt_id"], as_json=call.json)


@command(
    receipt, "replay", example='grandbo receipt replay RECEIPT --topic "consumers lost their leases" --tenant acme'
)
def replay(
    call: Call,
    receipt_id: _Receipt,
    topic: Annotated[str, typer.Option("--topic", metavar="TOPIC", help="The topic that was asked, as it was asked.")],
) -> None:
    """Ask the topic again at the receipt's position and instant. Exit code 1 when the answer is not equal."""
    wanted = _id(receipt_id)
    with call.memory() as memory:
        found = memory.replay_receipt(wanted, topic)
    if call.json:
        print_json(found.as_dict())
    else:
        say("equal" if found.equal else "NOT equal")
        say(*(f"  {item['what']}: then {item['then']}, now {item['now']}" for item in found.differences))
    if not found.equal:
        raise typer.Exit(CHECK_FAILED)


@command(receipt, "rotate-key", example="grandbo receipt rotate-key --tenant acme")
def rotate_key(call: Call) -> None:
    """Give receipts made from now on a new key. Receipts of older epochs still verify."""
    with call.memory() as memory:
        epoch = memory.rotate_receipt_key()
    if call.json:
        print_json({"key_epoch": epoch})
    else:
        say(f"key_epoch  {epoch}")
        tell("Receipts made before keep the key of their epoch.")


def feedback(
    call: Call,
    receipt_id: _Receipt,
    entry_id: Annotated[str, typer.Argument(metavar="ENTRY", help="Which entry of the answer.")],
    verdict: Annotated[str, typer.Argument(metavar="VERDICT", help=f"One of {', '.join(VERDICTS)}.")],
    note: Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Why; at most 1000 characters.")] = None,
) -> None:
    """Say what became of one entry of an answer. Another verdict takes the place of the one before."""
    answer, entry = _id(receipt_id), _id(entry_id)
    with call.memory() as memory:
        changed = memory.give_feedback(answer, entry, verdict, note=note)
    if call.json:
        print_json({**changed.acknowledgement.as_dict(), "appended": changed.appended})
    else:
        say(*change_lines(changed))


def feedback_on_entry(
    call: Call,
    entry_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the entry.")],
    verdict: Annotated[str, typer.Argument(metavar="VERDICT", help=f"One of {', '.join(VERDICTS)}.")],
    receipt_id: Annotated[str, typer.Option("--receipt", metavar="RECEIPT", help="The answer that it stood in.")],
    note: Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Why; at most 1000 characters.")] = None,
) -> None:
    """Say what became of the entry in an answer, as `grandbo feedback` does."""
    feedback(call, receipt_id, entry_id, verdict, note)


def _id(given: str) -> UUID:
    """What is no id is nothing that is there: the same answer as for one that is not."""
    try:
        return UUID(given)
    except ValueError:
        raise NotFound from None


def _given(values: dict[str, Any]) -> str:
    return plain(", ".join(f"{name} {value}" for name, value in values.items() if value not in (None, [], "")))

"""`grandbo due`, `recurrences`, `usage`: what wants looking after, what happens again, and how much is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from grandbo.cli.call import CHECK_FAILED, Call, command, group_command
from grandbo.cli.output import plain, print_json, print_table, say, tell
from grandbo.cli.writing import opened_input
from grandbo.errors import GrandboError, InvalidInput, NotFound

if TYPE_CHECKING:
    from typing import IO

due = typer.Typer(help="What is due: reviews, and what expires.")


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(due, name="due")
    command(app, "recurrences", example="grandbo recurrences --service checkout --tenant acme")(recurrences)
    command(app, "usage", example="grandbo usage --days 7 --tenant acme")(usage)


@group_command(due, example="grandbo due --within 7d --tenant acme")
def list_(
    call: Call,
    within: Annotated[str, typer.Option("--within", metavar="SPAN", help="Hours, days or weeks: 48h, 7d, 2w.")] = "7d",
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="1 to 500; 50 unless given.")] = None,
    after: Annotated[str | None, typer.Option("--after", metavar="CURSOR", help="Go on behind the last page.")] = None,
) -> None:
    """List what is due: overdue reviews, reviews and expiries that come up, expiries that nobody has noted."""
    with call.memory() as memory:
        page = memory.due(within=within, limit=limit, after=after)
    if call.json:
        for item in page.due:
            print_json(item)
    else:
        columns = ("entry_id", "due_at", "why", "kind", "owner", "title")
        print_table(columns, [[_cell(item[name]) for name in columns] for item in page.due])
    if page.next:
        tell(f"There is more: --after {page.next}")


@command(due, "verify", example="grandbo due verify checked.jsonl --tenant acme")
def verify(
    call: Call,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON Lines of {entry_id, reason, days?}.")],
) -> None:
    """
    Say of many entries that they were checked, each with its reason.

    A bad row does not stop the rest; where any failed, it exits with 1.
    """
    failed = 0
    with opened_input(file) as source, call.memory() as memory:
        for result in memory.verify_due(_rows(source)):
            failed += not result["ok"]
            print_json(result) if call.json else say(_result_line(result))
    if failed:
        raise typer.Exit(CHECK_FAILED)


@command(due, "sweep", example="grandbo due sweep --tenant acme")
def sweep(call: Call) -> None:
    """Put on the record what has expired since the last sweep; no answer waits for that."""
    with call.memory() as memory:
        noted = memory.sweep_expired()
    print_json({"noted": noted}) if call.json else say(f"{noted} expiries noted.")


def recurrences(
    call: Call,
    entry_id: Annotated[str | None, typer.Option("--entry", metavar="ID", help="Of this entry.")] = None,
    service: Annotated[str | None, typer.Option("--service", metavar="S", help="Of this service.")] = None,
) -> None:
    """Count how often what was learned has happened again: by entry, by service and by month."""
    found_id = None
    if entry_id is not None:
        try:
            found_id = UUID(entry_id)
        except ValueError:
            raise NotFound from None
    with call.memory() as memory:
        found = memory.recurrences(entry_id=found_id, service=service)
    if call.json:
        print_json(found)
        return
    for name, columns in _COLUMNS.items():
        print_table(columns, [[_cell(item[column]) for column in columns] for item in found[name]])


_COLUMNS = {
    "entries": ("entry_id", "occurrences", "last", "service", "title"),
    "services": ("service", "occurrences", "entries", "last"),
    "months": ("month", "occurrences"),
}


def usage(
    call: Call,
    days: Annotated[int | None, typer.Option("--days", metavar="N", help="1 to 366; 30 unless given.")] = None,
) -> None:
    """Count entries, candidates, recalls and what waits. Topics are kept nowhere, and are in no count."""
    with call.memory() as memory:
        found = memory.usage(days=days)
    print_json(found) if call.json else say(*_usage_lines(found))


def _rows(source: IO[bytes]) -> Iterator[object]:
    """The rows of a file; one that cannot be read is its error, for its own result to tell."""
    from grandbo.memory.importing import LINE_LIMIT_BYTES, parse_json, read_lines

    for line in read_lines(source):
        if not line.strip():
            continue
        try:
            if len(line) > LINE_LIMIT_BYTES:
                raise InvalidInput(f"The row has more than {LINE_LIMIT_BYTES} bytes.")
            row = parse_json(line)
        except GrandboError as error:
            row = error
        yield row


def _result_line(result: dict[str, Any]) -> str:
    where = f"{result['row']:>5}  {plain(result['entry_id'] or '-')[:36]}"
    if result["ok"]:
        return f"{where}  revision {result['revision']}"
    return f"{where}  {result['error']['code']}: {plain(result['error']['message'])}"


def _usage_lines(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['since'][:10]} to {found['until'][:10]}"
    yield from (f"  {item['kind']:12} {item['status']:12} {item['count']}" for item in found["entries"])
    yield "candidates  " + ", ".join(f"{count} {status}" for status, count in found["candidates"].items())
    yield f"recalls     {found['recalls_total']}"
    yield from (
        f"  {reason:24} {item['recalls']} ({item['rate_bp'] / 100:.1f} %)" for reason, item in found["empty"].items()
    )
    yield from (f"  {item['day']}  {item['recalls']}" for item in found["recalls"])
    if found["latency"]["recalls"]:
        half, most = (found["latency"][name] / 1_000 for name in ("p50_us", "p95_us"))
        yield f"latency     half within {half:.1f} ms, 95 % within {most:.1f} ms"
    if found["backlog"] is not None:
        yield f"backlog     {found['backlog']['pending']} pending, {found['backlog']['dead']} dead"


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return "" if value is None else plain(str(value))

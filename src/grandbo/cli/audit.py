"""`grandbo audit`: the log checked, listed, signed, and handed out."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from grandbo.cli.call import CHECK_FAILED, Call, command
from grandbo.cli.output import print_json, print_table, say, tell
from grandbo.cli.progress import progress
from grandbo.errors import InvalidInput

audit = typer.Typer(help="The log: whether it is what was written.", no_args_is_help=True)

TABLE = ("position", "recorded_at", "event_type", "actor", "stream_id", "stream_version")
TABLE_ROWS = 100


class Format(StrEnum):
    """How events are printed."""

    table = "table"
    jsonl = "jsonl"
    csv = "csv"


@command(audit, "verify", example="grandbo audit verify --json")
def verify(
    call: Call,
    start: Annotated[
        int, typer.Option("--from", metavar="POSITION", min=1, help="Check from here on; take what is before as it is.")
    ] = 1,
) -> None:
    """
    Check every event of a tenant's log, or of all tenants when none is named.

    Exits with 1 at the first position that is not what it must be, and says what is wrong there. Checkpoints are
    checked too where GRANDBO_HOME has the notary's key.
    """
    from grandbo.events.notes import known_public_key
    from grandbo.events.verify import verify_tenant
    from grandbo.storage.tenancy import all_tenants

    settings = call.settings()
    wanted = call.tenant or settings.tenant
    if start > 1 and not wanted:
        raise InvalidInput("--from is a position in one log: give --tenant NAME too.", field="from")
    key = known_public_key(settings.home)
    with call.open(settings) as grandbo:
        # A damaged tenant may have lost its name; the ids are what is walked.
        ids = [grandbo.tenant(wanted, principal=call.principal).tenant_id] if wanted else all_tenants(grandbo.database)
        with progress("Verifying", None, shown=not call.json) as update:
            found = [verify_tenant(grandbo.database, id_, start=start, public_key=key, progress=update) for id_ in ids]
    ok = all(item.first_bad is None for item in found)
    if call.json:
        print_json({"ok": ok, "tenants": [item.as_dict() for item in found]})
    for item in () if call.json else found:
        fault = item.first_bad
        state = "verifies" if fault is None else f"FAULT at position {fault.position}: {fault.what}"
        say(f"{item.tenant_id}  {item.events} events, head {item.head}: {state}")
    if not ok:
        raise typer.Exit(CHECK_FAILED)


@command(audit, "events", example="grandbo audit events --tenant acme --since 2026-01-01 --format csv")
def events(
    call: Call,
    actor: Annotated[str | None, typer.Option(metavar="NAME|TYPE:ID", help="Who did it.", show_default=False)] = None,
    event_type: Annotated[
        str | None, typer.Option("--type", metavar="EVENT", help="What was done.", show_default=False)
    ] = None,
    entry: Annotated[str | None, typer.Option(metavar="ID", help="To which entry.", show_default=False)] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Recorded then or later.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Recorded before then.")] = None,
    after: Annotated[int, typer.Option(metavar="POSITION", min=0, help="Go on behind this position.")] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"How many; {TABLE_ROWS} in a table, else all.", show_default=False)
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="--json is the same as jsonl.")] = Format.table,
    bodies: Annotated[bool, typer.Option("--bodies", help="Also what was written; not in a table.")] = False,
) -> None:
    """List events, oldest first: who did what, to which entry, when."""
    chosen = Format.jsonl if call.json else format_
    if bodies and chosen is Format.table:
        raise InvalidInput("--bodies does not fit into a table: add --format jsonl or csv.", field="bodies")
    if limit is None and chosen is Format.table:
        limit = TABLE_ROWS
    with call.memory() as memory:
        found = memory.events(
            actor=actor,
            event_type=event_type,
            entry_id=entry,
            since=since,
            until=until,
            after=after,
            limit=limit,
            bodies=bodies,
        )
        _print_events(chosen, found, bodies=bodies)


@command(audit, "checkpoint", example="grandbo audit checkpoint --tenant acme > acme.note")
def checkpoint(
    call: Call,
    quick: Annotated[bool, typer.Option("--quick", help="Without the projections' digest: no replay.")] = False,
) -> None:
    """
    Sign the log as it stands, and print the note: keep it where nobody who runs the database can change it.

    Where nothing was appended since the last one, that one is printed again; after a quick one, a full one is made.
    """
    with call.memory() as memory, progress("Checking", None, shown=not call.json) as update:
        signed = memory.checkpoint(projections=not quick, progress=update)
    if call.json:
        print_json(signed.as_dict())
    else:
        sys.stdout.write(signed.note)


@command(audit, "export", example="grandbo audit export ./acme-log --tenant acme")
def export(
    call: Call,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is empty or not there yet.")],
) -> None:
    """Write the log, its checkpoints and the public key as files; `scripts/verify_bundle.py DIR` checks them."""
    with call.memory() as memory, progress("Exporting", None, shown=not call.json) as update:
        bundle = memory.export(directory, progress=update)
    if call.json:
        print_json(bundle.as_dict())
        return
    counts = f"{bundle.manifest['events']} events, {bundle.manifest['checkpoints']} checkpoints"
    say(f"{bundle.directory}  {counts}, last hash {bundle.manifest['head']}")
    if not bundle.manifest["checkpoints"]:
        tell("Nothing is signed yet: `grandbo audit checkpoint` signs the log.")


@command(audit, "key", example="grandbo audit key --tenant acme")
def key(call: Call) -> None:
    """Print the public key that checks the tenant's checkpoints; made at first use."""
    with call.memory() as memory:
        described = memory.notary()
    if call.json:
        print_json(described)
    else:
        say(described["public_key"])


def _print_events(chosen: Format, found: Iterable[dict[str, Any]], *, bodies: bool) -> None:
    if chosen is Format.table:
        print_table(TABLE, ([event[name] or "" for name in TABLE] for event in found))
        return
    from grandbo.events.listing_lines import csv_lines, json_lines

    sys.stdout.writelines(csv_lines(found, bodies=bodies) if chosen is Format.csv else json_lines(found))

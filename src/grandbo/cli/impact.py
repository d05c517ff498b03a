"""`grandbo entry impact`, `grandbo source impact`: what rests on it, who was told, and putting all of it away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.entry_reading import entry
from grandbo.cli.output import plain, print_json, say
from grandbo.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from grandbo.memory.containment import Contained

source = typer.Typer(help="Where claims come from: what rests on a source.", no_args_is_help=True)

_Quarantine = Annotated[bool, typer.Option("--quarantine", help="Put all members away, in one command.")]
_Release = Annotated[bool, typer.Option("--release", help="Let out what --quarantine of the same put away.")]
_Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why; needed with --quarantine and --release.")
]


def register(app: typer.Typer) -> None:
    """Hang the commands in; `entry` hangs there already."""
    app.add_typer(source, name="source")


@command(entry, "impact", example='grandbo entry impact ID --quarantine --reason "the log was forged" --tenant acme')
def entry_impact(
    call: Call,
    entry_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the entry.")],
    quarantine: _Quarantine = False,
    release: _Release = False,
    reason: _Reason = None,
) -> None:
    """Show all that rests on an entry, why, and who was told any of it; or put all of it away."""
    try:
        found = UUID(entry_id)
    except ValueError:
        raise NotFound from None
    _impact(call, found, quarantine, release, reason)


@command(source, "impact", example="grandbo source impact https://logs.example.com/1 --tenant acme")
def source_impact(
    call: Call,
    uri: Annotated[str, typer.Argument(metavar="URI", help="Exactly as the evidence names it.")],
    quarantine: _Quarantine = False,
    release: _Release = False,
    reason: _Reason = None,
) -> None:
    """Show all that rests on a source, why, and who was told any of it; or put all of it away."""
    _impact(call, uri, quarantine, release, reason)


def _impact(call: Call, seed: UUID | str, quarantine: bool, release: bool, reason: str | None) -> None:
    if quarantine and release:
        raise InvalidInput("--quarantine and --release undo each other; give one of them.", field="release")
    is_change = quarantine or release
    if is_change and reason is None:
        raise InvalidInput("Say why with --reason.", field="reason")
    if not is_change and reason is not None:
        raise InvalidInput("--reason goes with --quarantine or --release.", field="reason")
    with call.memory() as memory:
        if not is_change:
            found = memory.entry_impact(seed) if isinstance(seed, UUID) else memory.source_impact(seed)
            print_json(found) if call.json else say(*_impact_lines(found))
            return
        act = memory.quarantine_impact if quarantine else memory.release_impact
        contained = act(seed, reason=reason or "")
    print_json(contained.as_dict()) if call.json else say(*_contained_lines(contained))


def _impact_lines(found: dict[str, Any]) -> Iterator[str]:
    for member in found["members"]:
        yield f"{member['entry_id']}/{member['revision']}@{member['position']}  {member['status']}"
        yield f"   {plain(member['title'])}"
        yield from (f"   {reason['because']}  {plain(reason['of'])}" for reason in member["reasons"])
    yield f"{len(found['members'])} entries rest on it, those that it begins at included."
    receipts, affected = found["receipts"], found["possibly_affected"]
    yield f"{receipts['total']} answers held any of them{_shown(receipts)}"
    for item in receipts["items"]:
        yield f"   {item['receipt_id']}  {item['made_at']}  {item['principal']}  {len(item['entries'])} of them"
    yield f"{affected['total']} entries by those who were told, for no incident that they named{_shown(affected)}"
    for item in affected["items"]:
        yield f"   {item['entry_id']}  {item['principal']}  {plain(item['title'])}"


def _shown(page: dict[str, Any]) -> str:
    if not page["items"]:
        return "."
    return f"; the first {len(page['items'])}:" if page["has_more"] else ":"


def _contained_lines(contained: Contained) -> Iterator[str]:
    if not contained.changed:
        yield "Nothing to change."
    for item in contained.changed:
        yield f"{item['entry_id']}/{item['revision']}@{item['position']}  {item['status']}"
    for entry_id in contained.left or ():
        yield f"{entry_id}  was in quarantine already, and is left so"

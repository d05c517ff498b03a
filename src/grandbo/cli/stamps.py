"""`grandbo stamp`: the spaces of vectors, and which of them recall uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from grandbo.memory.policies import PolicyInForce

stamp = typer.Typer(help="The spaces of vectors: how complete each is, and which recall uses.", no_args_is_help=True)

_Stamp = Annotated[str, typer.Argument(metavar="STAMP", help="As `stamp list` gives it.")]
_Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the history.")]
_Position = Annotated[
    int | None,
    typer.Option("--expected-position", metavar="P", min=1, help="The policy this was decided on; else whichever."),
]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(stamp, name="stamp")


@command(stamp, "list")
def list_(call: Call) -> None:
    """List the spaces: those in force first, the newest of them before the others."""
    with call.memory() as memory:
        found = [space.as_dict() for space in memory.stamps()]
    if call.json:
        for item in found:
            print_json(item)
        return
    columns = ("stamp", "place", "cutoff_bp", "is_own", "is_filling", "entries", "embedded", "pending", "dead")
    print_table(columns, [tuple(item[name] for name in columns) for item in found])


@command(stamp, "use", example='grandbo stamp use STAMP --reason "back to the model of before" --tenant acme')
def use(
    call: Call,
    stamp: _Stamp,
    reason: _Reason,
    cutoff_bp: Annotated[
        int | None, typer.Option("--cutoff-bp", metavar="BP", min=1, max=20_000, help="Largest distance of a match.")
    ] = None,
    expected_position: _Position = None,
) -> None:
    """
    Put a space into force, before the others.

    A worker does so by itself once every entry has its vectors in a space that is new; this brings one back, or gives
    it another cutoff.
    """
    with call.memory() as memory:
        _say(
            call,
            memory.use_stamp(stamp, reason=reason, cutoff_bp=cutoff_bp, expected_position=expected_position),
        )


@command(stamp, "retire", example='grandbo stamp retire STAMP --reason "no process uses it" --tenant acme')
def retire(call: Call, stamp: _Stamp, reason: _Reason, expected_position: _Position = None) -> None:
    """Take a space out of force, when no process embeds in it any more. Its vectors stay, for recall of the past."""
    with call.memory() as memory:
        _say(call, memory.retire_stamp(stamp, reason=reason, expected_position=expected_position))


def _say(call: Call, found: PolicyInForce) -> None:
    if call.json:
        print_json(found.as_dict())
        return
    say(f"In force since position {found.position}: {', '.join(item.stamp for item in found.policy.stamps)}.")

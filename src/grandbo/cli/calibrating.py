"""`grandbo calibrate`: where the cutoff of the space should stand, on the tenant's own memory."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import print_json, print_table, say, tell
from grandbo.cli.progress import progress


def register(app: typer.Typer) -> None:
    """Hang the command in."""
    command(app, "calibrate", example="grandbo calibrate --tenant acme")(calibrate)


def calibrate(
    call: Call,
    false_rate: Annotated[
        float, typer.Option("--false-rate", min=0.0, max=0.5, help="Share of unrelated topics that may be answered.")
    ] = 0.05,
    apply: Annotated[bool, typer.Option("--apply", help="Make the proposed cutoff the tenant's policy.")] = False,
) -> None:
    """
    Measure how far related and unrelated topics lie from what the tenant remembers, and propose the cutoff.

    Related is a sentence of an entry to that entry; unrelated are topics of other worlds and of none. Changes nothing
    without --apply, which is recorded as a change of policy.
    """
    from grandbo.evaluation import calibration

    with call.memory(call.settings(bulk=True)) as memory:
        with progress("Asking", None, shown=not call.json) as update:
            found = calibration.calibrate(memory, false_rate=false_rate, progress=lambda done, _total: update(done))
        if apply:
            found = calibration.apply(memory, found)
    told = found.as_dict()
    if call.json:
        print_json(told)
        return
    _show(told)
    if not apply:
        tell("Nothing was changed; --apply makes the proposed cutoff the policy.")


def _show(told: dict[str, Any]) -> None:
    say(f"space  {told['stamp']}", "")
    rows = [(name, *told[name].values()) for name in ("related", "neighbours", "unrelated")]
    print_table(("distances", "topics", "p05", "median", "p95"), rows)
    say("")
    rates = ("cutoff", "false_answer_rate", "lost_rate", "neighbour_answer_rate")
    print_table(("", *rates), [(name, *(told[name][rate] for rate in rates)) for name in ("in_force", "proposed")])
    low, high = told["proposed"]["false_answer_interval"]
    say(
        "",
        f"95 % interval of the proposed false answers: {low} to {high}. Of meaning alone: words have their own gate.",
    )
    if told["applied_at"] is not None:
        say(f"The cutoff {told['proposed']['cutoff']} is in force from position {told['applied_at']}.")

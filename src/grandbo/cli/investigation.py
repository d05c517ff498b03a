"""`grandbo note`, `grandbo context`: an investigation's own notes, and recall in layers that are kept apart."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import print_json, say
from grandbo.cli.reading import read_context
from grandbo.cli.writing import opened_input
from grandbo.errors import InvalidInput

note = typer.Typer(help="Working notes of one investigation; they go with it.", no_args_is_help=True)

_Investigation = Annotated[str, typer.Argument(metavar="INVESTIGATION", help="Any id; the first note begins it.")]
_Budget = Annotated[
    int | None, typer.Option("--budget", metavar="N", help="Tokens of the whole text; 2000 unless given.")
]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(note, name="note")
    example = 'grandbo context "consumers lost their leases after a restart" --layer findings --layer guidance'
    command(app, "context", example=example)(context)


@command(note, "add", example='grandbo note add INC-7 "the broker was restarted twice" --tenant acme')
def add(
    call: Call,
    investigation: _Investigation,
    text: Annotated[str, typer.Argument(metavar="TEXT|-", help="What to note, or `-` for standard input.")],
    role: Annotated[str | None, typer.Option("--role", metavar="R", help="note, user, assistant or tool.")] = None,
) -> None:
    """Note something down; it is no part of the memory and is recalled nowhere else."""
    if text == "-":
        with opened_input("-") as source:
            text = source.read().decode("utf-8", "strict")
    with call.memory() as memory:
        made = memory.note(investigation, text, role=role)
    if call.json:
        print_json(made.as_dict())
    else:
        say(f"Noted {made.note_id}")


@command(note, "window", example="grandbo note window INC-7 --budget 1000 --tenant acme")
def window(call: Call, investigation: _Investigation, budget: _Budget = None) -> None:
    """Print the last notes within a budget of tokens; the oldest are dropped first."""
    with call.memory() as memory:
        found = memory.context_window(investigation, budget=budget)
    if call.json:
        print_json(found.as_dict())
    else:
        say(found.text)


@command(note, "close")
def close(call: Call, investigation: _Investigation) -> None:
    """Forget an investigation's notes."""
    with call.memory() as memory:
        forgotten = memory.close_investigation(investigation)
    if call.json:
        print_json({"investigation_id": investigation, "forgotten": forgotten})
    else:
        say(f"Forgot {forgotten} notes.")


def context(
    call: Call,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="A sentence, as for recall.")],
    layers: Annotated[
        list[str] | None,
        typer.Option(
            "--layer", metavar="L", help="findings, guidance, reference, ruled_out, personal, notes; repeatable."
        ),
    ] = None,
    investigation: Annotated[str | None, typer.Option("--investigation", metavar="ID", help="Whose notes.")] = None,
    service: Annotated[str | None, typer.Option("--service", metavar="S", help="Only this service.")] = None,
    systems: Annotated[
        list[str] | None, typer.Option("--context", metavar="SYS=VERSION", help="A system you run; repeatable.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="Of each layer; 5 unless given.")] = None,
    budget: _Budget = None,
) -> None:
    """Recall by the standing of what is given: each layer under its own heading and within its own budget."""
    if layers and "notes" in layers and investigation is None:
        raise InvalidInput("notes: name the investigation with --investigation.", field="investigation_id")
    asked: dict[str, Any] = {"service": service, "limit": limit, "context": read_context(systems)}
    with call.memory() as memory:
        found = memory.recall_layers(topic, layers=layers, budget=budget, investigation_id=investigation, **asked)
    if call.json:
        print_json(found.as_dict())
    else:
        say(found.text)

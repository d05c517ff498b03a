"""`grandbo config show`."""

from __future__ import annotations

import typer
from pydantic import SecretStr

from grandbo.cli.call import Call, command
from grandbo.cli.output import print_json, print_table

config = typer.Typer(help="The settings.", no_args_is_help=True)

HIDDEN = "(set, hidden)"


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(config, name="config")


@command(config, "show", example="grandbo config show --json")
def show(call: Call) -> None:
    """Show every setting in force and where it comes from; secrets are hidden."""
    settings = call.settings()
    rows: list[tuple[str, object, str]] = []
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        shown = (
            HIDDEN if isinstance(value, SecretStr) else value if isinstance(value, int | float | None) else str(value)
        )
        rows.append(
            (f"GRANDBO_{name.upper()}", shown, "environment" if name in settings.model_fields_set else "default")
        )
    if call.json:
        print_json({variable: value for variable, value, _ in rows})
    else:
        print_table(("setting", "value", "from"), rows)

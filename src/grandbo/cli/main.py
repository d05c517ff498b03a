"""`grandbo`: the commands and how they hang together."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from grandbo import __version__
from grandbo.cli import (
    agents,
    calibrating,
    care,
    configuration,
    demo,
    doctor,
    documents,
    entries,
    erasing,
    evaluating,
    hooks,
    impact,
    investigation,
    keyring,
    keys,
    people,
    policy,
    proof,
    reading,
    receipts,
    review,
    running,
    screen,
    stamps,
    subscriptions,
    tenants,
    tools,
    writing,
)
from grandbo.cli.call import INTERRUPTED
from grandbo.cli.output import say

app = typer.Typer(
    name="grandbo",
    help="An organisation's memory of its incidents.",
    epilog="Start with `grandbo demo`, or with `grandbo tenant create NAME`. Settings: `grandbo config show`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Brackets in our help texts and in errors are brackets.
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"grandbo {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """An organisation's memory of its incidents."""


for _part in (
    running,
    agents,
    tools,
    tenants,
    policy,
    keys,
    keyring,
    hooks,
    subscriptions,
    writing,
    documents,
    reading,
    investigation,
    receipts,
    entries,
    erasing,
    people,
    evaluating,
    calibrating,
    stamps,
    impact,
    review,
    screen,
    care,
    proof,
    doctor,
    configuration,
    demo,
):
    _part.register(app)


def main() -> None:
    """The entry point. Output is UTF-8 whatever the locale says; what cannot be encoded is spelled out."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()

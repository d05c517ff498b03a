"""`grandbo keys`: what the keys of subjects are wrapped with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import print_json, say, tell
from grandbo.errors import InvalidInput

keys = typer.Typer(help="What the keys of subjects are wrapped with, for all tenants.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(keys, name="keys")


@command(keys, "show")
def show(call: Call) -> None:
    """Show the provider and its epochs; no key."""
    with call.open() as grandbo:
        document = grandbo.describe_keys()
    if call.json:
        print_json(document)
    else:
        say(*(f"{name:10} {value}" for name, value in document.items()))


@command(keys, "export", example="grandbo keys export /safe/grandbo-keyring.json")
def export(
    call: Call, file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that is not there yet.")]
) -> None:
    """
    Write the keyring to a file, for its owner alone.

    It opens everything that is sealed: keep it apart from the database's backups, and replace it after every rotation.
    """
    with call.open() as grandbo:
        text = grandbo.export_keys()
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidInput(f"{file} is there already; name another file.", field="file") from None
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}.", field="file") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as opened:
        opened.write(text)
    print_json({"file": str(file)}) if call.json else say(f"Written to {file}.")
    tell("Whoever has this file and a copy of the database can read what is remembered about people.")


@command(keys, "import", example="grandbo keys import /safe/grandbo-keyring.json")
def import_(call: Call, file: Annotated[Path, typer.Argument(metavar="FILE", help="What was exported.")]) -> None:
    """Bring an exported keyring back to where there is none; one that is there is never replaced."""
    try:
        text = file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"{file} cannot be read.", field="file") from None
    with call.open() as grandbo:
        grandbo.import_keys(text)
        document = grandbo.describe_keys()
    print_json(document) if call.json else say("Brought back.")


@command(keys, "rotate", example="grandbo keys rotate --destroy-old")
def rotate(
    call: Call,
    destroy_old: Annotated[
        bool,
        typer.Option("--destroy-old", help="Forget the epochs before: older copies of the database open no more."),
    ] = False,
) -> None:
    """
    Wrap every subject's key anew, in a new epoch. No event is touched.

    Broken off it is run again. After an erasure, `--destroy-old` makes old backups unreadable for who was forgotten,
    and for everyone else too: export the keyring and make a new backup afterwards.
    """
    with call.open() as grandbo:
        rotated = grandbo.rotate_keys(
            destroys_old=destroy_old, progress=lambda done, of: tell(f"{done} of {of} tenants") if of > 1 else None
        )
    if call.json:
        print_json(rotated.as_dict())
    else:
        say(f"Epoch {rotated.epoch}: {rotated.wrapped} keys wrapped anew, {len(rotated.destroyed)} epochs destroyed.")

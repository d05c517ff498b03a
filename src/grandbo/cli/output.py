"""Lines on stdout: JSON for programs, text for people. What was stored by others is shown, never obeyed."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def print_json(document: Any) -> None:
    """One document on one line."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")


def say(*lines: str) -> None:
    """Lines for people, on stdout."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


def tell(*lines: str) -> None:
    """Lines for people, on stderr: progress, warnings, next steps."""
    sys.stderr.writelines(f"{line}\n" for line in lines)
    sys.stderr.flush()


def tell_more(cursor: object, *, as_json: bool) -> None:
    """That the list goes on, and how, on stderr: a page is never taken for all there is."""
    tell(f'{{"next": "{cursor}"}}' if as_json else f"There is more: --after {cursor}")


def plain(text: str) -> str:
    """
    Stored text on one line, with characters that a terminal would act on or hide spelled out.

    A title may hold an escape sequence or turn the direction of writing; the reader must see that it does.
    """
    return "".join(
        " " if char in "\n\t" else f"\\u{{{ord(char):x}}}" if unicodedata.category(char) in _INVISIBLE else char
        for char in text
    )


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on a terminal; into a pipe the bare values, separated by tabs."""
    cells = [["" if value is None else plain(str(value)) for value in row] for row in rows]
    if not sys.stdout.isatty():
        say(*("\t".join(row) for row in cells))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in cells:
        # Text, not str: what looks like markup in a stored value must stay what it is.
        table.add_row(*(Text(cell) for cell in row))
    Console(file=sys.stdout).print(table)

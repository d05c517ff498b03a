"""Events as lines, for files, spreadsheets and programs: JSON Lines and CSV. Each line is made as it is asked for."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from grandbo.events.listing import COLUMNS

# A spreadsheet takes a cell that starts like this for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def json_lines(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One object a line."""
    for event in events:
        yield json.dumps(event, ensure_ascii=False) + "\n"


def csv_lines(events: Iterable[dict[str, Any]], *, bodies: bool) -> Iterator[str]:
    """
    A heading, then one row an event; `bodies` adds the two columns of what was written.

    A cell that a spreadsheet would take for a formula begins with an apostrophe.
    """
    columns = [*COLUMNS, *(("body_state", "body") if bodies else ())]
    row = io.StringIO()
    writer = csv.writer(row, lineterminator="\n")
    for cells in _rows(events, columns):
        writer.writerow(cells)
        yield row.getvalue()
        row.seek(0)
        row.truncate()


def _rows(events: Iterable[dict[str, Any]], columns: list[str]) -> Iterator[list[object]]:
    yield list(columns)
    for event in events:
        yield [_cell(event[name]) for name in columns]


def _cell(value: object) -> object:
    if isinstance(value, dict):
        value = json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value

"""Progress on stderr: a bar on a terminal, a line now and then where there is none."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from grandbo.cli.output import tell

Update = Callable[[int], None]
STEPS = 4


@contextlib.contextmanager
def progress(title: str, total: int | None, *, shown: bool = True) -> Iterator[Update]:
    """Give a function that takes how many are done so far; `shown` is off where a program reads along."""
    if not shown:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar(title, total) as update:
            yield update
    else:
        yield _lines(title, total)


@contextlib.contextmanager
def _bar(title: str, total: int | None) -> Iterator[Update]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task(title, total=total)
        yield lambda done: bars.update(task, completed=done)


def _lines(title: str, total: int | None) -> Update:
    """A log keeps every line, so there are few: one for each quarter."""
    quarter = -1

    def update(done: int) -> None:
        nonlocal quarter
        if total and (reached := done * STEPS // total) > quarter:
            quarter = reached
            tell(f"{title}: {done} of {total}")

    return update

"""
Processes that begin warm: each is forked from one that has Grandbo imported, and runs no thread of its own.

To import it takes longer than what most tests let a process do before it ends.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.support.forget_child"])


def run_warm(main: Callable[..., None], *arguments: str) -> tuple[int, str]:
    """Run a function in a process of its own, to its end; give its exit code, and what it complained of."""
    err, err_of_child = FORKED.Pipe(duplex=False)
    process = FORKED.Process(target=_begin, args=(err_of_child, main, arguments))
    process.start()
    err_of_child.close()
    process.join(60)
    code = process.exitcode
    assert code is not None, "it did not end"
    with err, os.fdopen(os.dup(err.fileno()), "r", encoding="utf-8") as complaints:
        return code, complaints.read()


def _begin(err: Connection, main: Callable[..., None], arguments: tuple[str, ...]) -> None:
    os.dup2(err.fileno(), 2)
    err.close()
    main(*arguments)

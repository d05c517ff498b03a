"""
Processes that begin warm: each is forked from one that has Grandbo imported, and runs no thread of its own.

To import it takes longer than what most tests let a process do before it is killed or ends.
"""

from __future__ import annotations

import io
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.support.crash_child", "tests.support.forget_child"])


class WarmProcess:
    """
    A function in a process of its own.

    Attributes:
        out, err: what it prints, as it prints it.
    """

    def __init__(self, main: Callable[..., None], *arguments: str) -> None:
        out, out_of_child = FORKED.Pipe(duplex=False)
        err, err_of_child = FORKED.Pipe(duplex=False)
        self._process = FORKED.Process(target=_begin, args=(out_of_child, err_of_child, main, arguments))
        self._process.start()
        for end in (out_of_child, err_of_child):
            end.close()
        self.out, self.err = _reader(out), _reader(err)

    def poll(self) -> int | None:
        """Its exit code, the number of a signal below zero; None while it lives."""
        return self._process.exitcode

    def kill(self) -> None:
        """kill -9, and wait for it to be dead."""
        self._process.kill()
        self.wait()

    def wait(self, seconds: float = 60.0) -> int:
        """Wait for its end; give its exit code."""
        self._process.join(seconds)
        code = self._process.exitcode
        assert code is not None, "it did not end"
        return code

    def close(self) -> None:
        """Close its pipes."""
        for pipe in (self.out, self.err):
            pipe.close()


def run_warm(main: Callable[..., None], *arguments: str) -> tuple[int, str]:
    """Run a function in a process of its own, to its end; give its exit code, and what it complained of."""
    process = WarmProcess(main, *arguments)
    try:
        return process.wait(), process.err.read()
    finally:
        process.close()


def _reader(end: Connection) -> io.TextIOWrapper:
    with end:
        return os.fdopen(os.dup(end.fileno()), "r", encoding="utf-8")


def _begin(out: Connection, err: Connection, main: Callable[..., None], arguments: tuple[str, ...]) -> None:
    for end, stream in ((out, 1), (err, 2)):
        os.dup2(end.fileno(), stream)
        end.close()
    main(*arguments)

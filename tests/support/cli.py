"""The command line for tests: in this process where only words matter, as a process of its own where exits do."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from typer.testing import CliRunner

from grandbo.cli.main import app
from tests.support.embedded import SOURCES
from tests.support.postgres import run_home


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON object on stdout."""
        return json.loads(self.out)

    @property
    def documents(self) -> list[Any]:
        """The JSON Lines on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> Any:
        """The JSON error on stderr."""
        return json.loads(self.err)["error"]


class Cli:
    """Calls `grandbo` with one environment; its home is that of the run, unless told otherwise."""

    def __init__(self, **variables: str) -> None:
        # Never the home of whoever runs the tests: on a bare machine it has no keyring for the keys in the database.
        home = {"GRANDBO_HOME": str(run_home())}
        self.variables = home | {name: value for name, value in variables.items() if value}

    def __call__(self, *arguments: object, stdin: str | bytes | None = None, **variables: str) -> Finished:
        """Run a command in this process."""
        with _restored_logging():
            result = CliRunner().invoke(
                app, [str(argument) for argument in arguments], input=stdin, env={**self.variables, **variables}
            )
        return Finished(result.exit_code, result.stdout, result.stderr)

    def process(self, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
        """Start a command as a process of its own; its streams are pipes."""
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "grandbo.cli.main", *map(str, arguments)],
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
            env=self.environment(),
        )

    def run(self, *arguments: object, stdin: bytes = b"") -> Finished:
        """Run a command as a process of its own, to its end."""
        process = self.process(*arguments)
        out, err = process.communicate(stdin, timeout=120)
        return Finished(process.returncode, out.decode(), err.decode())

    def environment(self) -> dict[str, str]:
        """The environment of a process: ours, without settings of ours."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GRANDBO_")}
        path = os.pathsep.join([str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])])
        return {**kept, "PYTHONPATH": path, **self.variables}


def write_lines(path: Path, rows: list[Mapping[str, Any]]) -> Path:
    """A JSON Lines file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@contextmanager
def _restored_logging() -> Iterator[None]:
    """A command configures the process that it runs in; here that is the tests' own."""
    config, root = structlog.get_config(), logging.getLogger()
    handlers, level, hook = list(root.handlers), root.level, threading.excepthook
    driver = logging.getLogger("psycopg")
    driver_level = driver.level
    with warnings.catch_warnings():
        try:
            yield
        finally:
            logging.captureWarnings(False)
            structlog.configure(**config)
            root.handlers[:], threading.excepthook = handlers, hook
            root.setLevel(level)
            driver.setLevel(driver_level)

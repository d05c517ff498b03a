"""The other side of the pipe: peers started, asked and stopped, each with a database of its own on one server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from scripts.peers.child import OURS
from scripts.peers.protocol import LIST

from grandbo.library import Grandbo
from grandbo.settings import Settings

ROOT = Path(__file__).parents[2]
THEIRS = ROOT / ".venv-peers" / "bin" / "python"


class PeerFailed(RuntimeError):
    """A peer did not do what it was asked; its own message follows."""


class Child:
    """A peer in its process."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self._process = process

    def __call__(self, do: str, **ask: Any) -> dict[str, Any]:
        """Ask, and wait for the answer; raises `PeerFailed`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps({"do": do, **ask}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise PeerFailed(f"{self.name} ended while it was asked to {do} (status {self._process.wait()}).")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerFailed(f"{self.name} could not {do}: {answer['error']}")
        return answer


class Ground:
    """One embedded server; what is on it goes with it."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._stack = ExitStack()
        settings = Settings.load(home=home, embedder="none", pool_size=2)
        self._grandbo = self._stack.enter_context(Grandbo.open(settings=settings, embedder=None))
        server = self._grandbo._opened.server
        assert server is not None
        self._server = server

    def __enter__(self) -> Ground:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def start(
        self, name: str, dimensions: int, *, place: str = "", listed: int = LIST, apart: bool = False
    ) -> tuple[Child, dict[str, str]]:
        """
        A peer on a new database, and the versions of its packages; it ends when the ground does.

        Args:
            place: sets apart what one peer keeps for two purposes.
            apart: whether it holds entries of several tenants.
        """
        if name in OURS:
            database = "grandbo"
        else:
            database = f"peer_{name}_{place}".replace("-", "_")
            with self.admin("postgres") as conn:
                conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
                for setting, value in (("jit", "off"), ("max_parallel_workers_per_gather", "0")):
                    conn.execute(
                        sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                            sql.Identifier(database), sql.Identifier(setting), sql.Literal(value)
                        )
                    )
        child = self._stack.enter_context(_process(name))
        folder = self._home if name in OURS else self._home.parent / database
        where = {
            "server": self._where(database),
            "folder": str(folder),
            "dimensions": dimensions,
            "listed": listed,
            "place": place,
            "apart": apart,
        }
        return child, child("open", where=where)["versions"]

    def settle(self) -> None:
        """Statistics and visibility maps fresh, and nothing left to be written back."""
        with self.admin("postgres") as conn:
            names = [row[0] for row in conn.execute("SELECT datname FROM pg_database WHERE datallowconn")]
        for name in names:
            with self.admin(name) as conn:
                conn.execute("VACUUM ANALYZE")
        with self.admin("postgres") as conn:
            conn.execute("CHECKPOINT")

    def expect_much(self) -> None:
        """No checkpoint for each gigabyte that is filled in; the server is thrown away."""
        with self.admin("postgres") as conn:
            conn.execute("ALTER SYSTEM SET max_wal_size = '8GB'")
            conn.execute("SELECT pg_reload_conf()")

    def gigabytes(self) -> float:
        """What all databases hold."""
        with self.admin("postgres") as conn:
            row = conn.execute("SELECT sum(pg_database_size(oid)) / 1e9 FROM pg_database").fetchone()
        assert row is not None
        return round(float(row[0]), 1)

    def version(self) -> str:
        """The server's, and pgvector's."""
        with self.admin("grandbo") as conn:
            row = conn.execute(
                "SELECT current_setting('server_version'), extversion FROM pg_extension WHERE extname = 'vector'"
            ).fetchone()
        assert row is not None
        return f"PostgreSQL {row[0]}, pgvector {row[1]}"

    def admin(self, database: str) -> psycopg.Connection[Any]:
        """A superuser's connection."""
        return psycopg.connect(self._server.conninfo(database), autocommit=True)

    def _where(self, database: str) -> dict[str, str]:
        given = conninfo_to_dict(self._server.conninfo(database))
        return {name: str(given[name]) for name in ("host", "port", "user", "password", "dbname")}


@contextmanager
def _process(name: str) -> Iterator[Child]:
    python = sys.executable if name in OURS else str(THEIRS)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("GRANDBO_", "PYTHON", "PG"))}
    process = subprocess.Popen(
        [python, "-m", "scripts.peers.child", name],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Child(name, process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

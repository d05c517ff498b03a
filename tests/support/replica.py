"""A real streaming replica of the server of the run, made with the binaries that the server itself runs on."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from grandbo.storage.embedded.install import find_install, reachable_install, run_as, server_account
from tests.support.postgres import TestDatabase


@dataclass(slots=True)
class Standby:
    """A hot standby: how the service connects to it, and whether it goes on with what the primary wrote."""

    service: str
    admin: str

    def pause(self) -> None:
        """Stay where it is by now, and answer with that."""
        self._run("SELECT pg_wal_replay_pause()")

    def go_on(self) -> None:
        """Catch up."""
        self._run("SELECT pg_wal_replay_resume()")

    def wait_for(self, primary: TestDatabase) -> None:
        """Until it has all that the primary has written by now."""
        with primary.as_admin() as conn:
            row = conn.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
        deadline = time.monotonic() + 30
        while self._run("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", row) is not True:
            assert time.monotonic() < deadline, "the replica does not catch up"
            time.sleep(0.02)

    def _run(self, query: str, params: Sequence[object] | None = None) -> object:
        with psycopg.connect(self.admin, autocommit=True) as conn:
            row = conn.execute(query, params).fetchone()
        return None if row is None else row[0]


@contextmanager
def standby(primary: TestDatabase) -> Iterator[Standby]:
    """Copy the primary, start the copy as its standby, and remove it afterwards."""
    account = server_account()
    with tempfile.TemporaryDirectory(prefix="grandbo-tests-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        programs = reachable_install(account, find_install(), folder / "bin") / "bin"
        data = folder / "server" / "data"
        data.parent.mkdir()
        if account:
            os.chown(data.parent, account.uid, account.gid)

        def run(program: str, *arguments: object) -> None:
            done = run_as(account, [programs / program, *map(str, arguments)], timeout=120)
            assert done.returncode == 0, done.stderr

        run("pg_basebackup", "-D", data, "-R", "-X", "stream", "-c", "fast", "-d", primary.admin)
        options = f"-c unix_socket_directories={data.parent} -c listen_addresses='' -c hot_standby=on"
        server = ("pg_ctl", "-D", data, "-w", "-t", 60, "-l", data.parent / "log", "-o", options)
        run(*server, "start")
        try:
            host = str(data.parent)
            yield Standby(make_conninfo(primary.service, host=host), make_conninfo(primary.admin, host=host))
        finally:
            run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")

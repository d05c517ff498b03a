"""A real PgBouncer in transaction mode, in front of the server of the run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from grandbo.storage.embedded.install import server_account
from tests.support.postgres import TestDatabase

PORT = "6543"


@contextmanager
def pooled(database: TestDatabase, *, server_connections: int) -> Iterator[str]:
    """What a service connects to, to reach the database through so few connections of the server."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program, "The tests need PgBouncer: requirements/debian.txt."
    with tempfile.TemporaryDirectory(prefix="grandbo-tests-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        ini = _configure(folder, database, server_connections)
        account = server_account()
        user, group = (account.uid, account.gid) if account else (None, None)
        if account:
            for path in (folder, *folder.iterdir()):
                os.chown(path, account.uid, account.gid)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [program, str(ini)],
                stdout=log,
                stderr=log,
                user=user,
                group=group,
                extra_groups=[] if account else None,
            )
        try:
            conninfo = make_conninfo(database.service, host=name, port=PORT)
            _wait(conninfo, process, folder / "log")
            yield conninfo
        finally:
            process.terminate()
            process.wait(20)


def _configure(folder: Path, database: TestDatabase, server_connections: int) -> Path:
    service = {key: str(value) for key, value in conninfo_to_dict(database.service).items()}
    users, ini = folder / "users.txt", folder / "pgbouncer.ini"
    users.write_text(f'"{service["user"]}" "{service["password"]}"\n')
    ini.write_text(
        f"""[databases]
{service["dbname"]} = host={service["host"]} port={service["port"]} dbname={service["dbname"]}
[pgbouncer]
listen_addr =
listen_port = {PORT}
unix_socket_dir = {folder}
auth_type = plain
auth_file = {users}
pool_mode = transaction
default_pool_size = {server_connections}
max_client_conn = 200
"""
    )
    for path in (users, ini):
        path.chmod(0o600)
    return ini


def _wait(conninfo: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(conninfo, connect_timeout=2).close()
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"PgBouncer did not start: {log.read_text()}") from error
            time.sleep(0.05)
        else:
            return

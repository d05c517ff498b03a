"""Real processes that use an embedded server, and ways to look at what is left of one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psycopg

from grandbo.errors import GrandboError
from grandbo.storage.embedded import EmbeddedServer, cluster, supervisor
from grandbo.storage.embedded.files import FileLock

SOURCES = Path(__file__).resolve().parents[2] / "src"


def wait_until(happened: Callable[[], object], seconds: float = 30.0) -> None:
    """Look again and again until it is true; an AssertionError after the deadline."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.01)


def open_folder() -> Path:
    """Make a temporary folder that any account can enter."""
    folder = Path(tempfile.mkdtemp(prefix="grandbo-test-"))
    folder.chmod(0o755)
    return folder


def is_gone(home: Path) -> bool:
    """Tell whether no process of the server lives."""
    lock = FileLock.try_acquire(home / supervisor.OWNER_LOCK)
    if lock is not None:
        lock.close()
    return lock is not None


def postmaster(home: Path) -> int:
    """Give the number of the server's main process."""
    pid = supervisor.postmaster_pid(home / supervisor.DATA)
    assert pid is not None
    return pid


def parent(pid: int) -> int:
    """Give the number of the process that started this one."""
    return int(subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout)


def kill_supervisor(home: Path) -> None:
    """Kill the server's supervisor like `kill -9`, and wait until it is dead."""
    os.kill(parent(postmaster(home)), signal.SIGKILL)

    def is_dead() -> bool:
        lock = FileLock.try_acquire(home / supervisor.SUPERVISOR_LOCK)
        if lock is not None:
            lock.close()
        return lock is not None

    wait_until(is_dead)


def remove(folder: Path, home: Path) -> None:
    """Kill what still runs in the home, and remove everything."""
    pid = supervisor.postmaster_pid(home / supervisor.DATA)
    if pid is not None and supervisor.serves_here(pid, home / supervisor.DATA):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGQUIT)
        wait_until(lambda: is_gone(home))
    endpoint = cluster.Endpoint.load(home)
    if endpoint is not None and "grandbo-" in Path(endpoint.host).name:
        shutil.rmtree(endpoint.host, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def query(server: EmbeddedServer, sql: str) -> list[tuple[Any, ...]]:
    """Run one statement as the superuser, in a connection of its own."""
    return _query(server.conninfo(), sql)


def _query(conninfo: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


class Member:
    """Another process that uses the server."""

    def __init__(
        self,
        home: Path,
        *,
        durable: bool = False,
        settings: Mapping[str, str] | None = None,
        python: str = sys.executable,
        uid: int | None = None,
        gid: int | None = None,
        paths: tuple[str, ...] = (),
    ) -> None:
        options = json.dumps({"durable": durable, "settings": dict(settings or {})})
        script = Path(paths[0], "member.py") if paths else Path(__file__)
        search = paths or (str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            [python, "-W", "error", str(script), str(home), options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            user=uid,
            group=gid,
            extra_groups=None if uid is None else [],
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(search), "PYTHONDONTWRITEBYTECODE": "1"},
        )

    def send(self, verb: str, *arguments: object) -> None:
        """Tell it to do something, without waiting for the answer."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps([verb, *arguments]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """Wait for the answer; an error is a dictionary."""
        assert self.process.stdout
        assert self.process.stderr
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def do(self, verb: str, *arguments: object) -> Any:
        """Tell it to do something and wait for the answer."""
        self.send(verb, *arguments)
        return self.answer()

    def kill(self) -> None:
        """Kill it like `kill -9`."""
        self.process.kill()
        self._end()

    def leave(self) -> None:
        """Let it end as a program ends that never calls `close`; it has nothing to complain about."""
        assert self.process.stdin
        self.process.stdin.close()
        assert self._end() == (0, "")

    def _end(self) -> tuple[int, str]:
        assert self.process.stderr
        complaints = self.process.stderr.read()
        code = self.process.wait(30)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        return code, complaints


def _do(server: EmbeddedServer, verb: str, arguments: list[Any]) -> Any:
    if verb == "start":
        return {"attached": server.start(*arguments).attached}
    if verb == "query":
        return query(server, arguments[0])
    if verb == "ensure":
        return server.ensure()
    if verb == "close":
        return server.close(wait=True)
    if verb == "come and go":
        for turn in range(arguments[0]):
            server.start(60)
            query(server, f"INSERT INTO visits VALUES ({os.getpid()}, {turn})")
            server.close(wait=turn % 2 == 0)
        return "done"
    raise ValueError(verb)


def _serve(home: str, options: str) -> None:
    server = EmbeddedServer(Path(home), **json.loads(options))
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        try:
            answer = _do(server, verb, arguments)
        except GrandboError as error:
            answer = error.as_dict()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])

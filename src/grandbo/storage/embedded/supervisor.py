"""
The process between Grandbo and its server: it starts postgres, and stops it when no process uses it any more.

It is run as a file by a bare interpreter (`python -I -S`), so it may import nothing but the standard library. It
outlives the process that started it, because others may have attached to the server since.

Signals do not make it stop the server: the processes that use it would lose it, and at a shutdown of the machine they
get the same signal, leave, and the server is stopped in good order then. To stop the server, stop what uses it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

DATA = "pg"
USERS_LOCK = "users.lock"  # shared: every process that uses the server; exclusive: the supervisor that stops it
OWNER_LOCK = "owner.lock"  # exclusive: whoever starts the server, then the supervisor and every process of postgres
SUPERVISOR_LOCK = "supervisor.lock"  # exclusive: the supervisor alone

FAST_SHUTDOWN_SECONDS = 50.0


def serves_here(pid: int, data: Path) -> bool:
    """Tell whether this process is a live server on this data directory, and not one that got its number later."""
    try:
        if sys.platform == "linux":
            found = _lives_in(pid, data)
        else:
            found = _is_listed_as_server(pid, data)
    except (OSError, IndexError):
        return False
    return found


def _lives_in(pid: int, data: Path) -> bool:
    state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()[0]
    # A killed postmaster stays a zombie for ever where process 1 does not reap, as in many containers.
    return state not in "ZX" and Path(f"/proc/{pid}/cwd").readlink() == data.resolve()


def _is_listed_as_server(pid: int, data: Path) -> bool:
    command = ["ps", "-o", "stat=,args=", "-p", str(pid)]
    listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return bool(listing) and listing[0] != "Z" and "postgres" in listing and str(data) in listing


def postmaster_pid(data: Path) -> int | None:
    """Read the number of the process that postmaster.pid names; it may be long dead."""
    try:
        first = (data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").split("\n", 1)[0]
        return abs(int(first)) or None
    except (OSError, ValueError):
        return None


def postmaster_is_ready(data: Path) -> bool:
    """Tell whether postmaster.pid says that connections are accepted; it may be the file of a dead server."""
    try:
        return (data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").split("\n")[7].strip() == "ready"
    except (OSError, IndexError):
        return False


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _stop_when_unused(home: Path, send: Callable[[int], None], gone: Callable[[float], bool]) -> None:
    # The descriptor is never closed: nobody may come to use a server that is being stopped.
    fcntl.flock(_open_lock(home / USERS_LOCK), fcntl.LOCK_EX)
    send(signal.SIGINT)
    if not gone(FAST_SHUTDOWN_SECONDS):
        send(signal.SIGQUIT)


def _supervise(home: Path, owner: int, uid: int, gid: int, command: list[str]) -> int:
    # Waits for a supervisor of the server before this one, which is on its way out.
    fcntl.flock(_open_lock(home / SUPERVISOR_LOCK), fcntl.LOCK_EX)
    drops = uid >= 0
    postgres = subprocess.Popen(
        command,
        pass_fds=(owner,),
        start_new_session=True,
        user=uid if drops else None,
        group=gid if drops else None,
        extra_groups=[] if drops else None,
    )

    def gone(seconds: float) -> bool:
        try:
            postgres.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    threading.Thread(target=_stop_when_unused, args=(home, postgres.send_signal, gone), daemon=True).start()
    return postgres.wait()


def _adopt(home: Path) -> int:
    """Look after a server whose supervisor was killed."""
    try:
        fcntl.flock(_open_lock(home / SUPERVISOR_LOCK), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0  # it has a supervisor
    data = home / DATA
    pid = postmaster_pid(data)
    if pid is None or not serves_here(pid, data):
        return 0

    def send(number: int) -> None:
        # Asked again right before: by now the number may be another program's.
        if serves_here(pid, data):
            os.kill(pid, number)

    def gone(seconds: float) -> bool:
        # Polled rather than waited for on owner.lock, which a process that starts the next server may get before us.
        deadline = time.monotonic() + seconds
        while serves_here(pid, data):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    threading.Thread(target=_stop_when_unused, args=(home, send, gone), daemon=True).start()
    gone(float("inf"))
    return 0


def main(arguments: list[str]) -> int:
    """Run `start HOME OWNER_FD UID GID POSTGRES...` or `adopt HOME`."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        # A handler, not SIG_IGN: postgres would inherit that.
        signal.signal(number, lambda *_: None)
    mode, home, *rest = arguments
    if mode == "adopt":
        return _adopt(Path(home))
    owner, uid, gid = (int(part) for part in rest[:3])
    return _supervise(Path(home), owner, uid, gid, rest[3:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Starting the supervisor, and the log that it and the server write."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from grandbo.storage.embedded import supervisor
from grandbo.storage.embedded.files import open_private_append
from grandbo.storage.embedded.install import clean_environment

LARGEST_LOG = 16 * 1024 * 1024


class ServerLog:
    """`postgres.log` in the home."""

    def __init__(self, home: Path) -> None:
        self.path = home / "postgres.log"

    def begin(self) -> int:
        """Give the length of what earlier servers wrote, after putting that aside if it has grown too long."""
        if not self.path.exists():
            return 0
        size = self.path.stat().st_size
        if size <= LARGEST_LOG:
            return size
        self.path.replace(self.path.with_name(self.path.name + ".1"))
        return 0

    def since(self, start: int) -> str:
        """Give the end of what this start has written; earlier lines may hold what clients sent."""
        with self.path.open("rb") as log:
            log.seek(start)
            return log.read().decode(errors="replace").strip()[-2000:]


def spawn_supervisor(
    home: Path, log: ServerLog, mode: str, *arguments: str, descriptors: tuple[int, ...] = ()
) -> subprocess.Popen[bytes]:
    """Start a supervisor that outlives us if others use the server then."""
    output = open_private_append(log.path)
    try:
        # It keeps our account, because the server's may be unable to run our interpreter; it has a session of its own,
        # so that Ctrl-C in our terminal does not reach it.
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, mode, str(home), *arguments],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            umask=0o077,
            env=clean_environment(),
            start_new_session=True,
        )
    finally:
        os.close(output)
    # Else it would be a zombie once it has ended, or a ResourceWarning when it outlives its object.
    threading.Thread(target=process.wait, name="embedded-server-reaper", daemon=True).start()
    return process

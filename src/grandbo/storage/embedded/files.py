"""Locks and private files: what the processes that share one server agree through."""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self


class FileLock:
    """
    An `flock`, held as long as any copy of its descriptor is open.

    The kernel frees it when the last such process is gone, `kill -9` included, so it is never stale.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def try_acquire(cls, path: Path, *, shared: bool = False, keep_in_forks: bool = True) -> Self | None:
        """Take the lock if that is possible at once; None if it is not."""
        lock = cls(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        try:
            fcntl.flock(lock.fileno(), (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        except BaseException:
            lock.close()
            raise
        if not keep_in_forks:
            _closed_in_forks.add(lock)
        return lock

    def fileno(self) -> int:
        """Give the descriptor, to pass it to a process that shall hold the lock as well."""
        if self._descriptor is None:
            raise ValueError("the lock has been given up")
        return self._descriptor

    def close(self) -> None:
        """Give up this copy; another process that has one still holds the lock."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


# A fork of the starter, made by another thread while it starts the server, would otherwise hold owner.lock for as long
# as the fork lives, and nobody could start the server again after a crash.
_closed_in_forks: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _close_in_fork() -> None:
    for lock in list(_closed_in_forks):
        lock.close()


os.register_at_fork(after_in_child=_close_in_fork)


def open_private_append(path: Path) -> int:
    """Open a file for appending that only its owner may read; a symbolic link in its place is refused."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def write_private(path: Path, text: str) -> None:
    """Replace a file at one stroke, readable by its owner only, and on the disk before this returns."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    new.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last; a file system that cannot do it for folders is left alone."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)

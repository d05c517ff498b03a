"""
`EmbeddedServer`: start the embedded PostgreSQL server, or attach to the one that another process started.

Three locks in the home decide everything; none of them can be stale, because the kernel frees them:

- `users.lock`, shared, is held by every process that uses the server. When the supervisor gets it exclusively, nobody
  uses the server any more, and it stops the server while holding it.
- `owner.lock` is inherited by the supervisor and by every process of the server. It is free exactly when no server of
  ours lives; whoever gets it may clear away what a crash left, and start one.
- `supervisor.lock` is held by the supervisor alone. Where it is free beside a live server, the supervisor was killed,
  and whoever notices starts one that adopts the server.

The home has to be on a local file system: such locks are not reliable on network file systems.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
from psycopg.conninfo import make_conninfo

from grandbo.errors import EmbeddedServerError
from grandbo.storage.embedded import cluster, supervisor
from grandbo.storage.embedded.cluster import Endpoint
from grandbo.storage.embedded.files import FileLock
from grandbo.storage.embedded.guardian import Guardian
from grandbo.storage.embedded.install import Account, find_install, reachable_install, server_account
from grandbo.storage.embedded.process import ServerLog, spawn_supervisor

START_SECONDS = 120.0
STOP_SECONDS = 70.0  # longer than the supervisor's fast shutdown and the immediate one after it


class EmbeddedServer:
    """
    The server of one home, shared by every process of the user that asks for it.

    It runs as long as one of them uses it, and stops when the last has called `close` or has ended in whatever way. Its
    settings are those of the process that started it; those of a process that attaches are ignored. With
    `durable=False` a crash of the machine may damage the data: that is for tests.
    """

    attached: bool
    """True if another process had started the server."""

    def __init__(
        self,
        home: Path,
        *,
        settings: Mapping[str, str] | None = None,
        install: Path | None = None,
        tcp_port: int | None = None,
        durable: bool = True,
    ) -> None:
        self.home = Path(home).absolute()
        self.data = self.home / supervisor.DATA
        self.attached = False
        self._log = ServerLog(self.home)
        wrong = sorted(cluster.RESERVED & {name.lower() for name in settings or {}})
        if wrong:
            raise EmbeddedServerError(f"The embedded server sets these itself: {', '.join(wrong)}.")
        unsafe = {} if durable else cluster.FAST_AND_UNSAFE
        self._settings = {**cluster.DEFAULT_SETTINGS, **unsafe, **(settings or {})}
        self._given_install = install
        self._tcp_port = tcp_port
        self._durable = durable
        self._mutex = threading.RLock()
        self._closing = threading.Event()
        self._users: FileLock | None = None
        self._was_used = False
        self._guardian: Guardian | None = None

    def start(self, timeout: float = START_SECONDS) -> Self:
        """Start the server, or attach to the one that runs; either way it accepts connections when this returns."""
        with self._mutex:
            if self._users is None:
                self._closing.clear()
                with self._naming_the_home():
                    self._users = self._join(time.monotonic() + timeout)
                self._was_used = True
        return self

    def conninfo(self, dbname: str = "postgres", *, user: str = "postgres", password: str | None = None) -> str:
        """Give libpq's connection string; for the superuser it has the password, so it must not be logged."""
        endpoint = Endpoint.load(self.home) if self._users else None
        if endpoint is None:
            raise EmbeddedServerError(f"This process does not use the embedded server of {self.home}; start it first.")
        return self._conninfo(endpoint, dbname, user, password)

    def ensure(self) -> bool:
        """
        Start the server again if it has died, and tell whether this call did.

        Cheap when it lives. Of several processes that call this at once one restarts it; the others get False at once,
        before it is up.
        """
        with self._mutex, self._naming_the_home():
            if self._users is None:
                return False
            owner = FileLock.try_acquire(self.home / supervisor.OWNER_LOCK, keep_in_forks=False)
            if owner is None:
                self._adopt_if_orphaned()
                return False
            with owner:
                self._launch(owner, time.monotonic() + START_SECONDS)
            return True

    def watch(self, interval: float = 0.25) -> None:
        """Call `ensure` in the background until `close`."""
        with self._mutex:
            if self._users is None:
                raise EmbeddedServerError(
                    f"This process does not use the embedded server of {self.home}; start it first."
                )
            if self._guardian is None:
                self._guardian = Guardian(self.ensure, interval)
                self._guardian.start()

    def close(self, *, wait: bool = False) -> None:
        """Use the server no longer; if nobody else does, it stops, and `wait` makes this return only after it has."""
        self._closing.set()
        guardian = self._guardian
        if guardian is not None:
            guardian.stop()
        with self._mutex:
            self._guardian = None
            users, self._users = self._users, None
            if users is not None:
                with users, contextlib.suppress(OSError):
                    self._adopt_if_orphaned()  # else nobody would be there to stop it
        if wait and self._was_used:
            with self._naming_the_home():
                self._wait_until_gone(time.monotonic() + STOP_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- start or attach ---------------------------------------------------------------------------------------------

    @cached_property
    def _account(self) -> Account | None:
        return server_account()

    @contextlib.contextmanager
    def _naming_the_home(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise EmbeddedServerError(
                f"The embedded server in {self.home} cannot be used: {error.strerror or error}"
                f"{f' ({error.filename})' if error.filename else ''}. GRANDBO_HOME has to be a folder of this user, "
                "on a local file system with free space."
            ) from error
        except subprocess.TimeoutExpired as error:
            raise EmbeddedServerError(f"{error} The machine may be overloaded; try again.") from None

    def _join(self, deadline: float) -> FileLock:
        """Become a user of the server, and see to it that there is one."""
        cluster.prepare_home(self.home, self._account)
        cluster.check_is_ours(self.home)
        path = self.home / supervisor.USERS_LOCK
        while (users := FileLock.try_acquire(path, shared=True)) is None:
            self._pause(deadline, "The server before this one is still stopping.")
        try:
            self._start_or_attach(deadline)
        except BaseException:
            users.close()
            raise
        return users

    def _start_or_attach(self, deadline: float) -> None:
        while True:
            owner = FileLock.try_acquire(self.home / supervisor.OWNER_LOCK, keep_in_forks=False)
            if owner is not None:
                with owner:
                    self._launch(owner, deadline)
                self.attached = False
                return
            if supervisor.postmaster_is_ready(self.data) and self._answers():
                self.attached = True
                self._adopt_if_orphaned()
                return
            self._pause(deadline, "Another process runs or starts it, but it does not answer.")

    def _launch(self, owner: FileLock, deadline: float) -> None:
        """Start the server. We hold owner.lock, so none of ours lives."""
        account = self._account
        cluster.check_reachable(self.home, account)
        install = reachable_install(account, self._given_install or find_install(), self.home / "bin")
        cluster.initialise(self.home, install / "bin", account, owner, self._durable)
        cluster.read_password(self.home)
        sockets = cluster.socket_folder(self.home, account)
        cluster.drop_stale_files(self.data, sockets)
        # Before there is a server: whatever is killed from here on, the next process knows where to find it.
        Endpoint(str(sockets), self._tcp_port or 5432).save(self.home)
        command = cluster.server_command(install / "bin", self.data, sockets, self._tcp_port, self._settings)
        log_start = self._log.begin()
        ids = [str(account.uid), str(account.gid)] if account else ["-1", "-1"]
        arguments = [str(owner.fileno()), *ids, *command]
        process = spawn_supervisor(self.home, self._log, "start", *arguments, descriptors=(owner.fileno(),))
        while not supervisor.postmaster_is_ready(self.data):
            if process.poll() is not None:
                raise EmbeddedServerError(f"The embedded server did not start: {self._log.since(log_start)}")
            self._pause(deadline, f"It is still starting: {self._log.since(log_start)}", 0.01)

    def _answers(self) -> bool:
        endpoint = Endpoint.load(self.home)
        if endpoint is None:
            return False
        try:
            psycopg.connect(self._conninfo(endpoint, "postgres", cluster.SUPERUSER, None), connect_timeout=5).close()
        except psycopg.OperationalError as error:
            if "password authentication failed" in str(error):
                raise EmbeddedServerError(
                    f"The embedded server refuses the password in {self.home / cluster.PASSWORD_FILE}. Restore that "
                    "file from a backup of the same home."
                ) from None
            return False
        return True

    def _conninfo(self, endpoint: Endpoint, dbname: str, user: str, password: str | None) -> str:
        if password is None and user == cluster.SUPERUSER:
            password = cluster.read_password(self.home)
        # hostaddr and sslmode are given so that PGHOSTADDR and PGSSLMODE in our environment have no say.
        return make_conninfo(
            host=endpoint.host,
            hostaddr="",
            port=endpoint.port,
            sslmode="disable",
            dbname=dbname,
            user=user,
            password=password,
        )

    # -- looking after it --------------------------------------------------------------------------------------------

    def _adopt_if_orphaned(self) -> subprocess.Popen[bytes] | None:
        """Start a supervisor for a server that lost its own; of several that do so at once one stays."""
        lock = FileLock.try_acquire(self.home / supervisor.SUPERVISOR_LOCK, keep_in_forks=False)
        if lock is None:
            return None
        lock.close()
        pid = supervisor.postmaster_pid(self.data)
        if pid is None or not supervisor.serves_here(pid, self.data):
            return None
        return spawn_supervisor(self.home, self._log, "adopt")

    def _wait_until_gone(self, deadline: float) -> None:
        adopter: subprocess.Popen[bytes] | None = None
        while (owner := FileLock.try_acquire(self.home / supervisor.OWNER_LOCK, keep_in_forks=False)) is None:
            if self._others_use_it():
                return
            if adopter is None or adopter.poll() is not None:
                adopter = self._adopt_if_orphaned()  # the supervisor may be killed at this very moment
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"The embedded server of {self.home} did not stop. Its log is {self._log.path}."
                )
            time.sleep(0.02)
        owner.close()

    def _others_use_it(self) -> bool:
        path = self.home / supervisor.USERS_LOCK
        lock = FileLock.try_acquire(path)
        if lock is not None:
            lock.close()
            return False  # the supervisor is about to take it
        lock = FileLock.try_acquire(path, shared=True)
        if lock is not None:
            lock.close()
        return lock is not None  # else the supervisor has it, and stops the server

    def _pause(self, deadline: float, reason: str, seconds: float = 0.05) -> None:
        if self._closing.wait(seconds):
            raise EmbeddedServerError(f"The embedded server of {self.home} was closed while it was being started.")
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                f"The embedded server of {self.home} was not ready in time. {reason} Its log is {self._log.path}."
            )

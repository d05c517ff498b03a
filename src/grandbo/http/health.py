"""Readiness: whether this process should be sent requests now, and if not, why not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog
from psycopg_pool import PoolClosed, PoolTimeout

from grandbo.errors import GrandboError
from grandbo.library import Grandbo
from grandbo.storage.opening import check_login

# Probes come from several places at once and need no credential; the database answers at most one a second.
REMEMBERED_SECONDS = 1.0
POOL_SECONDS = 1.0
# A pass covers all tenants and waits out a slow provider; a worker silent for longer than this is gone.
WORKER_SILENT_SECONDS = 300.0

log = structlog.get_logger(__name__)


class Readiness:
    """Checks what a request would need: the database, a fitting schema, a free connection, a living worker."""

    def __init__(self, grandbo: Grandbo, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._grandbo = grandbo
        self._clock = clock
        self._lock = threading.Lock()
        self._started_at = clock()
        self._checked_at: float | None = None
        self._reasons: list[str] = []
        self._stopping = False

    def stop(self) -> None:
        """From now on not ready: the process is about to end. Safe to call from a signal handler."""
        self._stopping = True

    @property
    def is_stopping(self) -> bool:
        """Whether the end has begun."""
        return self._stopping

    def reasons(self) -> list[str]:
        """Why not to send requests here; empty when all is well."""
        if self._stopping:
            return ["shutting_down"]
        with self._lock:
            now = self._clock()
            if self._checked_at is None or now - self._checked_at >= REMEMBERED_SECONDS:
                found = [*self._database(), *self._worker(now)]
                if found != self._reasons:
                    log.warning("readiness_changed", reasons=found)
                self._reasons = found
                self._checked_at = self._clock()
            return list(self._reasons)

    def _database(self) -> list[str]:
        pool = self._grandbo.database.pool
        try:
            check_login(str(pool.conninfo))
            with pool.connection(timeout=POOL_SECONDS):
                return []
        except PoolTimeout:
            return ["pool_exhausted"]
        except PoolClosed:
            return ["pool_closed"]
        except GrandboError as error:
            return [error.code]

    def _worker(self, now: float) -> list[str]:
        worker = self._grandbo.worker
        if worker is None:
            return []
        if not self._grandbo.worker_is_alive:
            return ["worker_ended"]
        last = self._started_at if worker.last_pass_at is None else worker.last_pass_at
        return ["worker_silent"] if now - last > WORKER_SILENT_SECONDS else []

"""
Who answers a recall: a read replica where one is configured and far enough, the primary otherwise.

A replica shows a gapless prefix of a tenant's log, so a position tells whether it has what a caller must find: at least
what this process has acknowledged, and what the caller says that it knows of.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

import structlog

from grandbo.errors import DatabaseBehind, Unavailable
from grandbo.storage.database import Database

# A replica that does not answer is left alone for so long: waiting for it costs each recall its patience.
REST_SECONDS = 15.0

T = TypeVar("T")

log = structlog.get_logger(__name__)


class ReplicaBehind(Exception):
    """A tenant's log on this server is shorter than the position that was asked for."""


class Readers:
    """The primary and, where there is one, its replica. Safe to use from several threads."""

    def __init__(
        self, primary: Database, replica: Database | None, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.replica = replica
        self._primary = primary
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._rests_until = 0.0
        self._counts = {"answered": 0, "behind": 0, "failed": 0}

    def read(self, tenant_id: UUID, at_least: int, work: Callable[[Database, int | None], T]) -> T:
        """
        Do the work on the replica, or on the primary where the replica is behind or does not answer.

        Args:
            at_least: the position that the caller must find.
            work: gets the database, and for a replica the position below which it raises `ReplicaBehind`.
        """
        if self.replica is not None and self._may_try():
            wanted = max(at_least, self._primary.acknowledged.of(tenant_id))
            try:
                found = work(self.replica, wanted)
            except ReplicaBehind:
                self._count("behind")
            except (Unavailable, DatabaseBehind) as error:
                self._count("failed")
                self._rests_until = self._monotonic() + REST_SECONDS
                log.warning("replica_unavailable", code=error.code)
            else:
                self._count("answered")
                self._rests_until = 0.0
                return found
        return work(self._primary, None)

    def _may_try(self) -> bool:
        """Whether the replica answers as far as is known; when it has rested long enough, one caller finds out."""
        with self._lock:
            if not self._rests_until:
                return True
            if self._monotonic() < self._rests_until:
                return False
            self._rests_until = self._monotonic() + REST_SECONDS
            return True

    def counts(self) -> dict[str, int]:
        """How many reads the replica has answered, was behind for, and failed."""
        with self._lock:
            return dict(self._counts)

    def _count(self, outcome: str) -> None:
        with self._lock:
            self._counts[outcome] += 1

"""Work that takes longer than a page may: begun by a form, done in a thread, looked at until it is done."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog

from grandbo.errors import GrandboError, NotFound, QuotaExceeded
from grandbo.logs import describe_exception
from grandbo.types import Clock, new_id, utc_text

KEPT = 200
AT_ONCE = 2

Progress = Callable[[int, int | None], None]
Work = Callable[[Progress], dict[str, Any]]

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Job:
    """What is being done, how far it is, and what came of it."""

    job_id: UUID
    tenant_id: UUID
    what: str
    principal: str
    began_at: datetime
    done: int = 0
    of: int | None = None
    ended_at: datetime | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    thread: threading.Thread | None = field(default=None, repr=False)

    @property
    def is_running(self) -> bool:
        return self.ended_at is None

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "job_id": str(self.job_id),
            "what": self.what,
            "began_at": utc_text(self.began_at),
            "ended_at": utc_text(self.ended_at) if self.ended_at else None,
            "done": self.done,
            "of": self.of,
            "result": self.result,
            "error": self.error,
        }


class Jobs:
    """The jobs of this process. What they do is in the memory; that they were done is forgotten with the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: OrderedDict[UUID, Job] = OrderedDict()

    def begin(self, tenant_id: UUID, principal: str, what: str, work: Work) -> Job:
        """
        Begin it; the one that runs where the same is being done for this tenant already.

        Raises:
            QuotaExceeded: as many as are allowed at once run already.
        """
        with self._lock:
            running = [job for job in self._jobs.values() if job.is_running]
            if same := next((job for job in running if (job.tenant_id, job.what) == (tenant_id, what)), None):
                return same
            if len(running) >= AT_ONCE:
                raise QuotaExceeded("Other long work runs in this process; try again when it is done.")
            job = Job(new_id(), tenant_id, what, principal, self._clock())
            self._jobs[job.job_id] = job
            while len(self._jobs) > KEPT:
                self._jobs.popitem(last=False)
            job.thread = threading.Thread(target=self._run, args=(job, work), name="grandbo-job", daemon=True)
            job.thread.start()
        return job

    def find(self, tenant_id: UUID, job_id: UUID) -> Job:
        """A job of this tenant. Raises `NotFound`."""
        with self._lock:
            job = self._jobs.get(job_id)
        if job is None or job.tenant_id != tenant_id:
            raise NotFound("There is no such work in this process; it may have ended since.")
        return job

    def last(self, tenant_id: UUID, what: str) -> Job | None:
        """The last one of a kind of this tenant."""
        with self._lock:
            return next((j for j in reversed(self._jobs.values()) if (j.tenant_id, j.what) == (tenant_id, what)), None)

    def close(self, seconds: float = 30.0) -> None:
        """Wait for what runs."""
        with self._lock:
            threads = [job.thread for job in self._jobs.values() if job.is_running and job.thread]
        for thread in threads:
            thread.join(seconds)

    def _run(self, job: Job, work: Work) -> None:
        def progress(done: int, of: int | None) -> None:
            job.done, job.of = done, of

        try:
            job.result = work(progress)
        except GrandboError as error:
            job.error = error.as_dict()
        except Exception as error:  # noqa: BLE001  # told on the page, and in the log by type and place
            log.error("job_failed", job_id=str(job.job_id), what=job.what, **describe_exception(error))
            job.error = GrandboError("This is a fault of the server; its log has the id of this work.").as_dict()
        job.ended_at = self._clock()

"""
The caretaker: maps what hooks delivered, compares new entries with their nearest, notes expiries, and forgets the
working notes of investigations that are over, for all tenants, off the write path.

All are level-triggered: what was not done is still there to be found, whatever happened in between.
"""

from __future__ import annotations

import threading
from uuid import UUID

import structlog

from grandbo.errors import GrandboError
from grandbo.memory.inbox_queue import prune_inbox
from grandbo.memory.notes import sweep_notes
from grandbo.memory.sweeping import sweep
from grandbo.storage.database import Database
from grandbo.storage.tenancy import all_tenants
from grandbo.types import Clock, utc_now
from grandbo.workers.contradictions import detect_contradictions
from grandbo.workers.mapping import map_deliveries

log = structlog.get_logger(__name__)

PAUSE_SECONDS = 5.0
INBOX_DAYS = 30


class Caretaker:
    """Goes round all tenants, and goes round again."""

    def __init__(self, database: Database, *, clock: Clock = utc_now, inbox_days: int = INBOX_DAYS) -> None:
        """Keep the bodies of deliveries that are done with for `inbox_days`."""
        self._database = database
        self._clock = clock
        self._inbox_days = inbox_days
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Work in a thread of its own until `stop`."""
        self._thread = threading.Thread(target=self.run, name="grandbo-caretaker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the tenant in hand."""
        self._stop.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join(timeout=30)
            self._thread = None

    def run(self) -> None:
        """Go round until `stop`; a failure of one tenant or of the database ends neither the round nor the work."""
        while not self._stop.is_set():
            worked = self.go_round()
            if not worked:
                self._woken.wait(PAUSE_SECONDS)
            self._woken.clear()

    def wake(self) -> None:
        """There may be something to do."""
        self._woken.set()

    def go_round(self) -> bool:
        """One batch for each tenant; gives whether anything was done."""
        worked = False
        for tenant_id in self._tenants():
            if self._stop.is_set():
                break
            try:
                worked = self._care_for(tenant_id) or worked
            except GrandboError as error:
                log.warning("care_failed", code=error.code, tenant_id=str(tenant_id))
            except Exception:
                # What nobody foresaw must not end the work: nothing would be compared from then on, without a word.
                log.exception("care_failed", code="unexpected", tenant_id=str(tenant_id))
        return worked

    def _care_for(self, tenant_id: UUID) -> bool:
        mapped = map_deliveries(self._database, tenant_id, clock=self._clock)
        pruned = prune_inbox(self._database, tenant_id, self._inbox_days, clock=self._clock)
        noted = sweep(self._database, tenant_id, clock=self._clock)
        detected = detect_contradictions(self._database, tenant_id, clock=self._clock)
        forgotten = sweep_notes(self._database, tenant_id, clock=self._clock)
        return bool(mapped.total or pruned or noted or detected.compared or forgotten)

    def _tenants(self) -> list[UUID]:
        try:
            return all_tenants(self._database)
        except GrandboError as error:
            log.warning("care_failed", code=error.code)
            return []

"""
Telling the outside: each subscription in the order of positions, at least once, whatever happens in between.

Level-triggered: a subscription whose place is behind the head is the to-do list. What is not taken is tried again, at
growing distances, and holds back what comes after it; in the end the subscription is dead, and waits for a person.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog

from grandbo.errors import GrandboError
from grandbo.memory.subscription_queue import CLAIMED_FOR, advance, claim_subscription, fail, next_events, release
from grandbo.memory.subscriptions import held_secrets
from grandbo.memory.tenants import find_tenant
from grandbo.storage.database import Database, Row
from grandbo.storage.tenancy import all_tenants
from grandbo.types import Clock, utc_now, utc_text
from grandbo.workers.sending import Answer, Sender

log = structlog.get_logger(__name__)

PAUSE_SECONDS = 5.0
THREADS = 4
# With the pauses below it is given up after about a day and a half of silence.
MAX_ATTEMPTS = 24
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(hours=3)
# One subscription is told for so long, then others have their turn; well within its claim.
TURN_SECONDS = 30.0


def payload_of(row: Row, event: Row) -> dict[str, Any]:
    """
    What is sent of an event: what happened to what, when and by whom, and where the log has it; never a text.

    Who wants the text asks for the entry with a credential of his own, and gets it if it is still his to see.
    """
    is_entry = event["event_type"].startswith("entry_")
    data = {
        "tenant_id": str(row["tenant_id"]),
        "position": event["position"],
        "event_id": str(event["event_id"]),
        "entry_id": str(event["stream_id"]) if is_entry else None,
        "candidate_id": None if is_entry else str(event["stream_id"]),
        "revision": event["revision"],
        "version": None if is_entry else event["stream_version"],
        "kind": event["kind"],
        "status": event["status"],
        "visibility": event["visibility"],
        "principal": event["principal"],
        "occurred_at": utc_text(event["occurred_at"]),
        "recorded_at": utc_text(event["recorded_at"]),
        "hash": event["hash"].hex(),
    }
    return {"type": event["event_type"], "timestamp": utc_text(event["recorded_at"]), "data": data}


def message_id_of(row: Row, position: int) -> str:
    """The same for each try of the same event at the same subscription."""
    return f"msg_{row['subscription_id'].hex}_{position}"


@dataclass(slots=True)
class Told:
    """What a turn came to: how many events were taken, and whether one was not."""

    delivered: int = 0
    failed: int = 0


def deliver(
    database: Database,
    tenant_id: UUID,
    sender: Sender,
    *,
    clock: Clock = utc_now,
    turn_seconds: float = TURN_SECONDS,
    stop: threading.Event | None = None,
    claimed: Callable[[], None] = lambda: None,
) -> Told | None:
    """
    Tell one subscription of the tenant what it has not been told, for one turn; None where none is due.

    Args:
        claimed: called once one was found: there may be more.
    """
    row = claim_subscription(database, tenant_id, clock=clock)
    if row is None:
        return None
    claimed()
    return _Turn(database, row, sender, clock, turn_seconds, stop or threading.Event()).run()


class _Turn:
    """One claimed subscription, until it is told everything, its turn is over, or a delivery fails."""

    def __init__(
        self, database: Database, row: Row, sender: Sender, clock: Clock, seconds: float, stop: threading.Event
    ) -> None:
        self._database = database
        self._row = row
        self._sender = sender
        self._clock = clock
        self._ends_at = time.monotonic() + min(seconds, CLAIMED_FOR.total_seconds() - 2 * sender.seconds)
        self._stop = stop
        self._told = Told()

    def run(self) -> Told:
        tiers = find_tenant(self._database, str(self._row["tenant_id"])).policy.tiers
        secrets = held_secrets(self._row)
        while True:
            found, up_to = next_events(self._database, self._row, tiers)
            for event in found:
                if not self._tell(event, secrets):
                    return self._told
            if not advance(self._database, self._row, up_to, clock=self._clock):
                return self._told
            self._row["position"] = up_to
            if not found or self._is_over():
                release(self._database, self._row, clock=self._clock)
                return self._told

    def _tell(self, event: Row, secrets: list[str]) -> bool:
        """Whether to go on with the next."""
        if self._is_over():
            release(self._database, self._row, clock=self._clock)
            return False
        position: int = event["position"]
        now = self._clock()
        answer = self._sender.send(
            self._row["url"], payload_of(self._row, event), message_id_of(self._row, position), secrets, now
        )
        if answer.code is not None:
            self._fail(answer)
            return False
        if not advance(self._database, self._row, position, told_at=now, clock=self._clock):
            return False
        self._row["position"], self._row["attempts"] = position, 0
        self._told.delivered += 1
        return True

    def _is_over(self) -> bool:
        return self._stop.is_set() or time.monotonic() >= self._ends_at

    def _fail(self, answer: Answer) -> None:
        self._told.failed = 1
        attempts: int = self._row["attempts"] + 1
        is_dead = answer.is_final or attempts >= MAX_ATTEMPTS
        again_at = _again_at(self._clock(), attempts, answer.retry_after)
        fail(self._database, self._row, again_at, code=answer.code or "", why=answer.why, is_dead=is_dead)
        log.warning(
            "event_not_delivered",
            tenant_id=str(self._row["tenant_id"]),
            subscription_id=str(self._row["subscription_id"]),
            code=answer.code,
            attempts=attempts,
            dead=is_dead,
        )


def _again_at(now: datetime, attempts: int, retry_after: float | None) -> datetime:
    longest = LONGEST_PAUSE.total_seconds()
    pause = max(FIRST_PAUSE.total_seconds() * 2.0 ** min(attempts - 1, 16), retry_after or 0.0)
    return now + timedelta(seconds=min(pause, longest))


class Deliverer:
    """Goes round all tenants, several subscriptions at once, so that a slow receiver holds up itself alone."""

    def __init__(self, database: Database, sender: Sender, *, clock: Clock = utc_now, threads: int = THREADS) -> None:
        self._database = database
        self._sender = sender
        self._clock = clock
        self._threads = threads
        self._stop = threading.Event()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._busy: dict[UUID, int] = {}
        self.delivered = 0
        self.failed = 0

    def start(self) -> None:
        """Work in threads of its own until `stop`."""
        self._thread = threading.Thread(target=self.run, name="grandbo-deliverer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the deliveries in hand."""
        self._stop.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join(timeout=30)
            self._thread = None

    def wake(self) -> None:
        """Something was appended."""
        self._woken.set()

    def run(self) -> None:
        """Go round until `stop`."""
        with ThreadPoolExecutor(self._threads, thread_name_prefix="grandbo-deliverer") as pool:
            while not self._stop.is_set():
                for tenant_id in self._tenants():
                    self._offer(pool, tenant_id)
                self._woken.wait(PAUSE_SECONDS)
                self._woken.clear()

    def _offer(self, pool: ThreadPoolExecutor, tenant_id: UUID) -> None:
        """One more thread for the tenant, while it does not hold half of them."""
        with self._lock:
            busy = self._busy.get(tenant_id, 0)
            if self._stop.is_set() or busy >= max(1, self._threads // 2):
                return
            self._busy[tenant_id] = busy + 1
        pool.submit(self._work, pool, tenant_id)

    def _work(self, pool: ThreadPoolExecutor, tenant_id: UUID) -> None:
        def another() -> None:
            # The pool takes nothing any more once the end has begun.
            with contextlib.suppress(RuntimeError):
                self._offer(pool, tenant_id)

        try:
            while not self._stop.is_set():
                told = deliver(
                    self._database, tenant_id, self._sender, clock=self._clock, stop=self._stop, claimed=another
                )
                if told is None:
                    return
                with self._lock:
                    self.delivered += told.delivered
                    self.failed += told.failed
        except GrandboError as error:
            log.warning("delivering_failed", code=error.code, tenant_id=str(tenant_id))
        except Exception:
            # What nobody foresaw must not end the work for the other tenants.
            log.exception("delivering_failed", code="unexpected", tenant_id=str(tenant_id))
        finally:
            with self._lock:
                left = self._busy.pop(tenant_id) - 1
                if left:
                    self._busy[tenant_id] = left

    def _tenants(self) -> list[UUID]:
        try:
            return all_tenants(self._database)
        except GrandboError as error:
            log.warning("delivering_failed", code=error.code)
            return []

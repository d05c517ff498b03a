"""
Mapping what was delivered: from the inbox into the records of incidents, and from there into the memory.

Level-triggered: what was received and is due is the to-do list. What cannot succeed as things stand is dead, and waits
for a person; what may succeed later is tried again, at growing distances; what waits for the database or for room in
the queue of proposals is not counted against the delivery.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog

from grandbo.errors import GrandboError, InvalidInput, NotFound, QuotaExceeded, SubjectMissing, Unavailable
from grandbo.events.models import Policy
from grandbo.finding_limits import NAME_LIMIT
from grandbo.hooks.drafts import Draft, Ignored, Mapped, Unmappable
from grandbo.hooks.sources import SOURCES
from grandbo.memory import inbox_queue
from grandbo.memory.closing import Closing
from grandbo.memory.hooks import Hook, read_hook
from grandbo.memory.importing import parse_json
from grandbo.memory.inbox import DeliveryState
from grandbo.memory.tenants import find_tenant
from grandbo.storage.database import Database, Row
from grandbo.text import check_text
from grandbo.types import Clock, utc_now

log = structlog.get_logger(__name__)

BATCH = 50
MAX_ATTEMPTS = 8
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(hours=1)
NO_ROOM_PAUSE = timedelta(minutes=5)
_NAME_IT = "Nothing of it is recalled. Map it again under the subject: grandbo inbox retry ID --subject SUBJECT."


@dataclass(slots=True)
class MappedCounts:
    """What a pass did."""

    mapped: int = 0
    ignored: int = 0
    dead: int = 0
    postponed: int = 0

    @property
    def total(self) -> int:
        """How many deliveries were looked at."""
        return self.mapped + self.ignored + self.dead + self.postponed

    def as_dict(self) -> dict[str, int]:
        """Plain values."""
        return {"mapped": self.mapped, "ignored": self.ignored, "dead": self.dead, "postponed": self.postponed}


def map_deliveries(
    database: Database, tenant_id: UUID, *, at_most: int = BATCH, clock: Clock = utc_now
) -> MappedCounts:
    """Map up to `at_most` deliveries that are due, oldest first. Several workers at once are one another's helpers."""
    counts = MappedCounts()
    policy: Policy | None = None
    while counts.total < at_most and (row := inbox_queue.claim(database, tenant_id, clock=clock)) is not None:
        policy = policy or find_tenant(database, str(tenant_id)).policy
        state = _Work(database, policy, row, clock).run()
        setattr(counts, state, getattr(counts, state) + 1)
        log.info("delivery_handled", state=state, tenant_id=str(tenant_id), delivery_id=str(row["delivery_id"]))
    return counts


def drafts_of(source: str, body: bytes, headers: dict[str, str]) -> Mapped:
    """
    What a delivery of this source says. Pure.

    Raises:
        Unmappable, NotJSON: it is not what this source sends. InvalidInput: an id that cannot be one.
    """
    payload = parse_json(body)
    if not isinstance(payload, dict):
        raise Unmappable("The payload is not an object.")
    mapped = SOURCES[source].map(payload, headers)
    if isinstance(mapped, Ignored):
        return mapped
    for draft in mapped:
        if not draft.incident_id.strip():
            raise Unmappable("An incident has no id.")
        check_text(draft.incident_id, "incident_id", limit=NAME_LIMIT, single_line=True)
    return mapped


class _Work:
    """One claimed delivery, to its end or to its next attempt."""

    def __init__(self, database: Database, policy: Policy, row: Row, clock: Clock) -> None:
        self._database = database
        self._policy = policy
        self._row = row
        self._clock = clock

    def run(self) -> str:
        """The name of the count that it belongs to."""
        if self._row["attempts"] > MAX_ATTEMPTS:
            return self._die(self._row["error_code"] or "given_up", "It was tried too often without an end.")
        try:
            return self._map()
        except Unmappable as error:
            return self._die("unmappable", str(error))
        except Unavailable as error:
            return self._later(error.code, error.message, is_counted=False)
        except QuotaExceeded as error:
            return self._later(error.code, error.message, is_counted=False, pause=NO_ROOM_PAUSE)
        except SubjectMissing as error:
            return self._die(error.code, f"{error.message} {_NAME_IT}")
        except InvalidInput as error:
            return self._die(error.code, error.message)
        except GrandboError as error:
            return self._later(error.code, error.message)
        except Exception as error:
            # A mapper that nobody foresaw to fail must not stop the deliveries behind it.
            log.exception("mapping_failed", delivery_id=str(self._row["delivery_id"]))
            return self._later("mapper_failed", f"The mapper failed with {type(error).__name__}.")

    def _map(self) -> str:
        mapped = drafts_of(self._row["source"], bytes(self._row["body"]), self._row["headers"])
        if isinstance(mapped, Ignored) or not mapped:
            why = mapped.why if isinstance(mapped, Ignored) else "says_nothing"
            return self._done("ignored", why, [])
        try:
            hook, _ = read_hook(self._database, self._row["tenant_id"], self._row["hook_id"])
        except NotFound:
            return self._die("not_found", "Its hook was taken away before it was mapped.")
        named = list(dict.fromkeys(draft.incident_id for draft in mapped))
        waits_until = inbox_queue.name_incidents(self._database, self._row, named)
        if waits_until is not None:
            until = max(waits_until, self._clock()) + timedelta(seconds=1)
            self._postpone(until, self._row["attempts"] - 1, "waits", "A delivery before it comes first.")
            return "postponed"
        return self._apply(hook, mapped)

    def _apply(self, hook: Hook, mapped: tuple[Draft, ...]) -> str:
        closing = Closing(self._database, self._row["tenant_id"], self._policy, hook, self._clock)
        about = self._row["subject_id"]
        outcomes = [closing.apply(draft, self._row["received_at"], about) for draft in mapped]
        kinds = {outcome["outcome"] for outcome in outcomes}
        # What may not be here is not kept for looking at either.
        keep_body = not kinds & {"private_refused", "erased"}
        if kinds <= {"drill", "private_refused", "erased"}:
            return self._done("ignored", ", ".join(sorted(kinds)), outcomes, keep_body=keep_body)
        return self._done("mapped", "", outcomes, keep_body=keep_body)

    def _done(self, state: DeliveryState, why: str, outcomes: list[dict[str, Any]], *, keep_body: bool = True) -> str:
        inbox_queue.finish(
            self._database, self._row, state, why=why, outcomes=outcomes, keep_body=keep_body, clock=self._clock
        )
        return state

    def _die(self, code: str, why: str) -> str:
        inbox_queue.finish(self._database, self._row, "dead", code=code, why=why, clock=self._clock)
        return "dead"

    def _later(self, code: str, why: str, *, is_counted: bool = True, pause: timedelta | None = None) -> str:
        attempts: int = self._row["attempts"]
        if is_counted and attempts >= MAX_ATTEMPTS:
            return self._die(code, why)
        wait = pause or min(FIRST_PAUSE * 2 ** (attempts - 1), LONGEST_PAUSE)
        self._postpone(self._clock() + wait, attempts if is_counted else attempts - 1, code, why)
        return "postponed"

    def _postpone(self, until: datetime, attempts: int, code: str, why: str) -> None:
        inbox_queue.postpone(self._database, self._row, until, attempts=attempts, code=code, why=why)

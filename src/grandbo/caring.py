"""The verbs that keep a memory in good order, as the library has them. `TenantMemory` is one of these."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any
from uuid import UUID

from grandbo.errors import TopicIsSlug, TopicTooShort
from grandbo.memory import due, reading, recurrence
from grandbo.memory.policy import require
from grandbo.memory.sweeping import sweep
from grandbo.recall import judged, usage
from grandbo.recall.topic import TOPIC_LIMIT
from grandbo.types import derived_id
from grandbo.verbs import Verbs
from grandbo.workers.contradictions import Detected, detect_contradictions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from grandbo.embedding import Embedder
    from grandbo.memory.govern import Changed
    from grandbo.recall.answer import Answer

DETECT_AT_MOST = 200
NEAR = 3


class Caring(Verbs):
    """What is due, what recurs, what contradicts, and how much all of it is used."""

    verify_entry: Callable[..., Changed]
    query_topic: Callable[..., Answer]

    @property
    @abstractmethod
    def _embedder_or_none(self) -> Embedder | None:
        """The embedder of this process, if it has one."""

    def due(self, **wanted: Any) -> due.DuePage:
        """A page of what is due: `within` (`7d`), `limit` (1 to 500), `after` (the `next` of the page before)."""
        who = (self.tenant.tenant_id, self.principal, self._policy_now())
        return due.list_due(self._database, *who, clock=self._clock(), **wanted)

    def verify_due(self, rows: Iterable[object], *, command_id: UUID | None = None) -> Iterator[dict[str, Any]]:
        """
        Say of each row, `{entry_id, reason, days?}`, that its entry was checked; gives one result for each, in order.

        Args:
            command_id: of the whole; each row has one of its own from it, so that a retry is one.
        """
        require(self.principal, "govern")

        def verify(entry_id: UUID, reason: str, days: int | None) -> dict[str, Any]:
            own = derived_id("verify_due", str(command_id), str(entry_id)) if command_id else None
            changed = self.verify_entry(entry_id, reason=reason, days=days, command_id=own)
            told = changed.acknowledgement
            return {"revision": told.revision, "position": told.position, "appended": changed.appended}

        return due.verify_rows(rows, verify)

    def sweep_expired(self) -> int:
        """Put on the record what has expired since the last sweep; gives how many entries."""
        require(self.principal, "govern")
        noted = 0
        while batch := sweep(self._database, self.tenant.tenant_id, clock=self._clock()):
            noted += batch
        return noted

    def detect_contradictions(self, *, at_most: int = DETECT_AT_MOST) -> Detected:
        """Compare entries that have not been compared as they are now; what contradicts waits as a candidate."""
        require(self.principal, "govern")
        return detect_contradictions(self._database, self.tenant.tenant_id, at_most=at_most, clock=self._clock())

    def recurrences(self, *, entry_id: UUID | None = None, service: str | None = None) -> dict[str, Any]:
        """
        How often it has happened again: `{entries, services, months, near}`, of all, of one entry, or of one service.

        `near`: of an entry, those of its service near it whose follow-ups are still open.
        """
        who = (self.tenant.tenant_id, self.principal, self._policy_now())
        found = recurrence.recurrences(self._database, *who, entry_id=entry_id, service=service)
        return found | {"near": self._near(entry_id) if entry_id else []}

    def _near(self, entry_id: UUID) -> list[dict[str, Any]]:
        who = (self.tenant.tenant_id, self.principal, self._policy_now())
        entry = reading.show_entry(self._database, *who, entry_id)
        try:
            answer = self.query_topic(f"{entry['title']}. {entry['summary']}"[:TOPIC_LIMIT], limit=NEAR + 1)
        except (TopicTooShort, TopicIsSlug):
            return []  # one word is nothing that a recall could go by
        others = [match.as_dict() for match in answer.matches if match.entry_id != entry_id]
        return recurrence.recurrence_of(entry["service"], others)

    def judged_by_feedback(self, topics: Mapping[str, str]) -> judged.Judgements:
        """Verdicts in force on answers to these topics, given by any id; no receipt tells its topic by itself."""
        self._receipts.flush()
        who = (self.tenant.tenant_id, self.principal, self._policy_now())
        return judged.judged_by_feedback(self._database, *who, topics)

    def usage(self, *, days: int | None = None) -> dict[str, Any]:
        """Counts of entries, candidates, recalls and what waits; no topic, which nobody keeps."""
        self._receipts.flush()
        embedder = self._embedder_or_none
        who = (self.tenant.tenant_id, self.principal, self._policy_now())
        stamp = embedder.stamp.id if embedder else None
        return usage.usage(self._database, *who, stamp=stamp, days=days, clock=self._clock())

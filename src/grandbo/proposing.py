"""The verbs on candidates, as the library has them. `TenantMemory` is one of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from grandbo.errors import NotFound, TopicIsSlug, TopicTooShort
from grandbo.memory import reading, reviewing
from grandbo.memory.candidacy import Decided
from grandbo.memory.contradiction import Claim, judge
from grandbo.memory.differences import state_differences
from grandbo.memory.policy import may
from grandbo.memory.proposing import Candidates
from grandbo.memory.recurrence import recurrence_of
from grandbo.memory.rescan import Rescan, rescan
from grandbo.memory.restating import body_adds_nothing, says_the_same
from grandbo.recall.topic import TOPIC_LIMIT
from grandbo.verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grandbo.events.models import Policy
    from grandbo.recall.answer import Answer, Match
    from grandbo.types import Principal

NEAREST = 3
_COMPARED = ("title", "summary", "body", "kind", "service")


# By meaning: as near as this, in cosine distance, where nothing contradicts and it is about the same service.
NEAR_DUPLICATE_DISTANCE = 0.10


def is_near_duplicate(content: Mapping[str, Any], entry: Mapping[str, Any], match: Match) -> bool:
    """Whether a candidate says what an entry says: by the same words, or by a meaning that is as good as the same."""
    titles = (content["title"], content["summary"], entry["title"], entry["summary"])
    if says_the_same(*titles) and body_adds_nothing(content["body"], entry["body"]):
        return True
    is_near = match.semantic is not None and match.semantic.distance <= NEAR_DUPLICATE_DISTANCE
    return is_near and content["service"] == entry["service"]


class Proposing(Verbs):
    """
    Propose, review and decide. The commands take `reason`, and optionally `expected_version` (the version that the
    wish was formed on) and `command_id`.
    """

    query_topic: Callable[..., Answer]

    def propose(self, document: Mapping[str, Any], **options: Any) -> Decided:
        """
        Propose what a finding would say, of any kind; it is recalled only once a person has approved it.

        What is `personal` has `subject`, `memory_key`, `title` and `text`, an `episode` has `subject` and `session_id`.

        Options: `origin` (`{type: conversation|person, ref, label}`, for what has no evidence), `into` (the entry that
        it would correct), `reason`, `command_id`.
        """
        return self._candidates().propose(document, **options)

    def amend_candidate(
        self, candidate_id: UUID, changes: Mapping[str, Any], *, reason: str, **options: Any
    ) -> Decided:
        """Replace the named fields; approvals that it had are void."""
        return self._candidates().amend(candidate_id, changes, reason=reason, **options)

    def approve_candidate(self, candidate_id: UUID, *, reason: str, **options: Any) -> Decided:
        """Let it in as an entry of its own; `changes` are fields that the reviewer sets."""
        return self._told(self._candidates().approve(candidate_id, reason=reason, **options))

    def merge_candidate(self, candidate_id: UUID, *, reason: str, **options: Any) -> Decided:
        """Let it in as a correction of the entry `into`, or of the one that the proposal names."""
        return self._told(self._candidates().merge(candidate_id, reason=reason, **options))

    def reject_candidate(self, candidate_id: UUID, *, reason: str, **options: Any) -> Decided:
        """Decide against it."""
        return self._candidates().reject(candidate_id, reason=reason, **options)

    def withdraw_candidate(self, candidate_id: UUID, *, reason: str, **options: Any) -> Decided:
        """Take one's own proposal back."""
        return self._candidates().withdraw(candidate_id, reason=reason, **options)

    def reopen_candidate(self, candidate_id: UUID, *, reason: str, **options: Any) -> Decided:
        """Undo the decision, and what it put into the memory."""
        return self._told(self._candidates().reopen(candidate_id, reason=reason, **options))

    def candidates(self, **wanted: Any) -> list[dict[str, Any]]:
        """A page of the queue: `status` (pending), `kind`, `mine`, `limit`, `after` (risk, position)."""
        return reviewing.list_candidates(self._database, *self._who(), **wanted)

    def candidate(self, candidate_id: UUID) -> dict[str, Any]:
        """
        One candidate with all that a reviewer needs: text, evidence, flags, related entries, and the nearest ones with
        what is different in them.
        """
        found = reviewing.show_candidate(self._database, *self._who(), candidate_id)
        nearest = self._nearest(found["content"])
        pair = self._pair(found) if found["disputes"] else None
        recurs = recurrence_of(found["content"]["service"], nearest)
        return found | {"nearest": nearest, "recurrence": recurs, "dispute": pair}

    def rescan(self, *, progress: Callable[[int, int], None] | None = None) -> Rescan:
        """
        Look at everything stored, within one's tiers, with the present screen, and propose what has to go.

        Nothing is changed. `progress` is told how many were looked at, of how many.
        """
        who = (self.tenant.tenant_id, self.principal, self._policy_now())
        return rescan(self._database, *who, progress=progress, clock=self._clock())

    def _nearest(self, content: dict[str, Any]) -> list[dict[str, Any]]:
        """The live entries that a recall of the candidate's own words gives, through the one read seam."""
        if not may(self.principal, "recall"):
            return []
        try:
            kinds = ["personal"] if content["kind"] == "personal" else None
            topic = f"{content['title']}. {content['summary']}"[:TOPIC_LIMIT]
            answer = self.query_topic(topic, kinds=kinds, limit=NEAREST)
        except (TopicTooShort, TopicIsSlug):
            return []  # one word is nothing that a recall could go by
        return [item for match in answer.matches if (item := self._compared(match, content)) is not None]

    def _pair(self, found: dict[str, Any]) -> dict[str, Any] | None:
        """What the two entries of a dispute say against each other, as they stand now."""
        try:
            into, other = (
                reading.show_entry(self._database, *self._who(), UUID(found[name])) for name in ("into", "disputes")
            )
        except NotFound:
            return None  # raised above the caller's tiers in between
        return {"title": other["title"], "contradictions": judge(Claim.of(into), Claim.of(other)).as_dict()}

    def _compared(self, match: Match, content: dict[str, Any]) -> dict[str, Any] | None:
        try:
            entry = reading.show_entry(self._database, *self._who(), match.entry_id)
        except NotFound:
            return None  # raised above the caller's tiers in between
        judgement = judge(Claim.of(content), Claim.of(entry))
        before, after = ({name: state[name] for name in _COMPARED} for state in (entry, content))
        changes = [difference.as_dict() for difference in state_differences(before, after)]
        return {
            "entry_id": str(match.entry_id),
            "revision": entry["revision"],
            "title": entry["title"],
            "service": entry["service"],
            "near_duplicate": not judgement.findings and is_near_duplicate(content, entry, match),
            "open_follow_ups": match.open_follow_ups,
            "contradictions": judgement.as_dict(),
            "changes": changes,
        }

    def _candidates(self) -> Candidates:
        return Candidates(self._database, *self._who(), clock=self._clock())

    def _who(self) -> tuple[UUID, Principal, Policy]:
        """What is proposed about somebody is seen and decided on by whose it is."""
        return self.tenant.tenant_id, self._owner(), self._policy_now()

    def _told(self, decided: Decided) -> Decided:
        self._changed()
        return decided

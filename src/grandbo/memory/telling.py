"""
Approving what is about a subject: a fact under its key, or what came of a session, of which there is one.

It goes the way that the same thing goes at its own door: what stands under the key or of the session is corrected, and
where somebody of another type said it, it is an entry of its own that takes the other's place.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from grandbo.errors import InvalidInput
from grandbo.events.candidates import CandidateContent
from grandbo.events.log import Event
from grandbo.events.models import Policy
from grandbo.memory import candidacy
from grandbo.memory.candidacy import CandidateState
from grandbo.memory.candidate_outcome import check_target, decide_told
from grandbo.memory.episodes import decide_episode, same_session_query
from grandbo.memory.finding import Finding
from grandbo.memory.govern import CURRENT, visible_state
from grandbo.memory.lifecycle import check_acceptable
from grandbo.memory.remembered import Author, Fact, decide_remember, same_fact_query
from grandbo.memory.screening import Screening
from grandbo.memory.subjects import SUBJECT, Subject
from grandbo.storage.database import Row, Step
from grandbo.types import Principal, from_utc_text


@dataclass(frozen=True, slots=True)
class Telling:
    """
    One approval.

    Attributes:
        content: as the reviewer has it; `finding` is the same.
        tiers: those that the reviewer sees, the subject's own among them where he decides on it.
        into: under whose key a fact goes, instead of its own.
    """

    tenant_id: UUID
    subject_id: UUID
    principal: Principal
    policy: Policy
    tiers: tuple[str, ...]
    finding: Finding
    content: CandidateContent
    screening: Screening
    reason: str
    into: UUID | None = None
    expected_revision: int | None = None

    @property
    def reads(self) -> list[Step]:
        """What the decision rests on."""
        subject = (SUBJECT, {"tenant_id": self.tenant_id, "subject": self.subject_id})
        if self.content.kind == "episode":
            return [subject, same_session_query(self.tenant_id, self.finding.external_id or "")]
        target = [] if self.into is None else [(CURRENT, {"tenant_id": self.tenant_id, "entry_id": self.into})]
        return [subject, same_fact_query(self.tenant_id, self.subject_id), *target]

    def decide(self, state: CandidateState, found: list[list[Row]], now: datetime) -> list[Event]:
        """The approval, and what it lets in; of two approvals the first alone."""
        candidacy.check_decider(state, self.principal)
        key = self._key(found)
        if candidacy.awaits_second(state, self.content, self.policy, self.principal):
            first = candidacy.decide_approve(state, self.content, "awaits_second", self.reason)
            return [Event(state.candidate_id, first)]
        subject = Subject.of_row(found[0][0]) if found[0] else None
        standing = found[1]
        if self.content.kind == "episode":
            standing = [row for row in standing if self._is_its_session(row)]
            told = decide_episode(
                self.finding,
                subject,
                standing,
                policy=self.policy,
                visibility=self.content.visibility,
                author_type=state.author_type,
                screening=self.screening,
                now=now,
            )
        else:
            told = decide_remember(self._fact(state, key, now), subject, standing, self.policy, now)
        known = next((row["entry_id"] for row in standing if row["external_id"] == key), None)
        return decide_told(state, self.content, self.reason, told, known)

    def _is_its_session(self, row: Row) -> bool:
        return row["subject_id"] == self.subject_id and row["visibility"] in self.tiers

    def _key(self, found: list[list[Row]]) -> str:
        """Under which key it goes."""
        if self.into is None:
            return self.finding.external_id or ""
        entry = visible_state(found[2], self.tiers)
        check_target(entry, self.content)
        check_acceptable(entry, "correct", self.expected_revision)
        return str(found[2][0]["external_id"])

    def _fact(self, state: CandidateState, key: str, now: datetime) -> Fact:
        by_policy = now + timedelta(days=self.policy.expiry_days.get("personal", 90))
        stated = self.content.expires_at
        expires_at = by_policy if stated is None else from_utc_text(stated)
        if expires_at <= now:
            raise InvalidInput("expires_at: the time has passed already.", field="expires_at")
        return Fact(
            memory_key=key,
            title=self.content.title,
            text=self.content.summary,
            confidence_bp=self.content.confidence_bp,
            expires_at=expires_at,
            author=Author(state.proposed_by, state.author_type),
            screened=self.screening.screened,
            sources=self.content.evidence,
        )

"""
Deciders of a candidate's life: from its state and a wish to the event that happened, or to a typed refusal. Pure.

`CANDIDATE_ALLOWED` is the table of what each state accepts. Nobody approves their own, an approval is a person's, and
what was decided first stands: the second is told by whom and how.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from grandbo.errors import CandidateDecided, CandidateStale, Forbidden, IllegalTransition
from grandbo.events import candidates as events
from grandbo.events.candidates import CandidateContent, Outcome
from grandbo.events.models import Policy, Screened
from grandbo.memory.candidate_content import content_of, flags_of, risk_of
from grandbo.memory.finding import Finding
from grandbo.memory.policy import may, require, require_writing
from grandbo.types import Principal, PrincipalType

CandidateStatus = Literal["pending", "approved", "rejected", "withdrawn"]
CANDIDATE_STATUSES: tuple[CandidateStatus, ...] = ("pending", "approved", "rejected", "withdrawn")
CANDIDATE_ALLOWED: dict[str, frozenset[str]] = {
    "amend": frozenset({"pending"}),
    "approve": frozenset({"pending"}),
    "merge": frozenset({"pending"}),
    "reject": frozenset({"pending"}),
    "withdraw": frozenset({"pending"}),
    "reopen": frozenset({"approved", "rejected", "withdrawn"}),
}


@dataclass(frozen=True, slots=True)
class CandidateState:
    """A candidate as it stands; `owners`: of what is personal, the principals whose it is."""

    candidate_id: UUID
    version: int
    status: CandidateStatus
    content: CandidateContent
    into: UUID | None
    author_type: PrincipalType
    proposed_by: str
    approved_by: tuple[str, ...]
    decided_by: str | None
    decision_reason: str | None
    outcome: Outcome | None
    entry_id: UUID | None
    entry_revision: int | None
    disputes: UUID | None
    other_revision: int | None
    position: int
    subject_id: UUID | None
    owners: tuple[str, ...]

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> CandidateState:
        """From a row of `CANDIDATE`."""
        same = {name: row[name] for name in cls.__slots__ if name not in ("content", "into", "approved_by", "owners")}
        return cls(
            **same,
            content=CandidateContent.model_validate(row["content"]),
            into=row["into_entry"],
            approved_by=tuple(row["approved_by"]),
            owners=tuple(row["owners"] or ()),
        )


@dataclass(frozen=True, slots=True)
class Decided:
    """The answer to a command on a candidate; `entry_id` and `entry_revision` where an entry came of it."""

    candidate_id: UUID
    version: int
    position: int
    hash: str
    status: str
    outcome: str | None
    entry_id: UUID | None
    entry_revision: int | None
    appended: bool
    replayed: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "candidate_id": str(self.candidate_id),
            "version": self.version,
            "position": self.position,
            "hash": self.hash,
            "status": self.status,
            "outcome": self.outcome,
            "entry_id": str(self.entry_id) if self.entry_id else None,
            "entry_revision": self.entry_revision,
            "appended": self.appended,
        }


def check_candidate(state: CandidateState, verb: str, expected_version: int | None) -> None:
    """
    Refuse a wish that was formed on another version, or that this state does not accept.

    Raises:
        CandidateDecided: someone decided first; it says who and how.
        CandidateStale, IllegalTransition
    """
    if state.status not in CANDIDATE_ALLOWED[verb]:
        if state.status != "pending" and expected_version is not None and verb != "reopen":
            raise _decided(state)
        possible = sorted(other for other, states in CANDIDATE_ALLOWED.items() if state.status in states)
        raise IllegalTransition(
            f"The candidate is {state.status}; {verb} is not possible, these are: {', '.join(possible)}.",
            entry_status=state.status,
            allowed=possible,
        )
    if state.disputes is not None and verb in ("amend", "merge"):
        raise IllegalTransition(
            f"A dispute says that two entries contradict each other; {verb} is not possible, approve or reject it.",
            entry_status=state.status,
            allowed=["approve", "reject"],
        )
    if expected_version is not None and expected_version != state.version:
        raise CandidateStale(expected=expected_version, current=state.version)


def check_decider(state: CandidateState, principal: Principal) -> None:
    """Refuse a decision that is not a person's, or that is about one's own proposal, whichever key it comes with."""
    if principal.type != "human":
        raise Forbidden("A person has to decide on a candidate; this credential is not a person's.")
    if state.proposed_by == principal.ref:
        raise Forbidden("Nobody approves their own; somebody else has to decide on this candidate.")


def require_decider(state: CandidateState, principal: Principal) -> None:
    """Refuse who neither governs nor is one of those whose it is, of what is personal. Raises `Forbidden`."""
    if principal.ref in state.owners and may(principal, "recall"):
        require_writing(principal)
    else:
        require(principal, "govern")


def may_decide(state: CandidateState, principal: Principal) -> bool:
    """Whether the principal is one of those who decide on it."""
    try:
        require_decider(state, principal)
        check_decider(state, principal)
    except Forbidden:
        return False
    return True


def decide_propose(
    finding: Finding,
    visibility: str,
    author_type: PrincipalType,
    into: UUID | None,
    reason: str,
    screened: Screened,
    screen_flags: tuple[str, ...],
) -> events.CandidateProposed:
    """It waits for a person."""
    content = content_of(finding, visibility)
    flags = flags_of(content, author_type, screen_flags)
    return events.CandidateProposed(
        version=1,
        content=content,
        flags=flags,
        risk=risk_of(flags),
        author_type=author_type,
        into=str(into) if into else None,
        disputes=None,
        reason=reason,
        screened=screened,
    )


def decide_amend(
    state: CandidateState,
    content: CandidateContent,
    into: UUID | None,
    reason: str,
    screened: Screened,
    screen_flags: tuple[str, ...],
) -> events.CandidateAmended | None:
    """It says something else; None where it says what it said."""
    changed = _changed(state.content, content)
    if into != state.into:
        changed = (*changed, "into")
    if not changed:
        return None
    flags = flags_of(content, state.author_type, screen_flags)
    return events.CandidateAmended(
        version=state.version + 1,
        reason=reason,
        content=content,
        flags=flags,
        risk=risk_of(flags),
        into=str(into) if into else None,
        changed=changed,
        screened=screened,
    )


def awaits_second(state: CandidateState, content: CandidateContent, policy: Policy, principal: Principal) -> bool:
    """
    Whether this approval is the first of two that the policy wants.

    Raises:
        IllegalTransition: the same person twice, or a second approval of something else than the first saw.
    """
    is_wanted = content.kind in policy.second_approval_kinds or content.visibility in policy.second_approval_tiers
    if not state.approved_by:
        return is_wanted
    if principal.ref in state.approved_by:
        raise IllegalTransition("You approved it already; a second person has to.", entry_status=state.status)
    if _changed(state.content, content):
        raise IllegalTransition(
            "The first approval was for what it says now; amend it, and let both look again.", entry_status=state.status
        )
    return False


def decide_approve(
    state: CandidateState,
    content: CandidateContent,
    outcome: Outcome,
    reason: str,
    entry_id: UUID | None = None,
    entry_revision: int | None = None,
    other_revision: int | None = None,
) -> events.CandidateApproved:
    """A person let it in."""
    return events.CandidateApproved(
        version=state.version + 1,
        reason=reason,
        content=content,
        outcome=outcome,
        entry_id=str(entry_id) if entry_id else None,
        entry_revision=entry_revision,
        other_revision=other_revision,
    )


def decide_reject(state: CandidateState, reason: str) -> events.CandidateRejected:
    """A person decided against it."""
    return events.CandidateRejected(version=state.version + 1, reason=reason)


def decide_withdraw(state: CandidateState, principal: Principal, reason: str) -> events.CandidateWithdrawn:
    """Who proposed it takes it back."""
    if state.proposed_by != principal.ref:
        raise Forbidden("Only who proposed a candidate withdraws it; to decide against it, reject it.")
    return events.CandidateWithdrawn(version=state.version + 1, reason=reason)


def decide_reopen(state: CandidateState, reason: str) -> events.CandidateReopened:
    """The decision is undone."""
    assert state.status != "pending"
    return events.CandidateReopened(version=state.version + 1, reason=reason, undone=state.status)


def _changed(before: CandidateContent, after: CandidateContent) -> tuple[str, ...]:
    return tuple(name for name in CandidateContent.model_fields if getattr(before, name) != getattr(after, name))


def _decided(state: CandidateState) -> CandidateDecided:
    return CandidateDecided(
        f"The candidate was {state.status} already.",
        candidate_status=state.status,
        decided_by=state.decided_by,
        version=state.version,
        entry_id=str(state.entry_id) if state.entry_id else None,
    )

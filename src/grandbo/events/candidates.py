"""Event bodies of candidates: what was proposed, how it was amended, and what people decided."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from grandbo.events.models import AppliesTo, Evidence, IncidentRef, Screened
from grandbo.events.parts import BasisPoints, Count, Digest, EventBody, Part, Text, UtcTime, UuidText
from grandbo.types import Kind, Precision, PrincipalType

Outcome = Literal["recorded", "corroborated", "known", "merged", "awaits_second", "disputed"]


# What a reviewer should look at first, 0 to 100.
Risk = Annotated[int, Field(strict=True, ge=0, le=100)]


class CandidateContent(Part):
    """What the entry would say. `expires_at` and `valid_from` where someone set them; else the policy's at approval."""

    kind: Kind
    title: Text
    summary: Text
    body: Text
    service: Text
    tags: tuple[Text, ...]
    visibility: Text
    namespace: Text
    owner: Text | None
    applicability: tuple[AppliesTo, ...]
    confidence_bp: BasisPoints
    evidence: tuple[Evidence, ...]
    incident: IncidentRef | None
    external_id: Text | None
    occurred_at: UtcTime | None
    occurred_precision: Precision | None
    ended_at: UtcTime | None
    valid_from: UtcTime | None
    expires_at: UtcTime | None
    claim_digest: Digest
    text_digest: Digest


class CandidateProposed(EventBody):
    """
    Someone proposed something; it waits for a person. `into`: the entry that it would correct.

    `disputes`: not to say something new, but that `into`, whose content it has, and this entry contradict each other.
    """

    EVENT_TYPE: ClassVar[str] = "candidate_proposed"

    version: Literal[1]
    content: CandidateContent
    flags: tuple[Text, ...]
    risk: Risk
    author_type: PrincipalType
    into: UuidText | None
    disputes: UuidText | None
    reason: Text
    screened: Screened


class CandidateChanged(EventBody):
    """Base of what happens to a candidate: it makes a version, and it says why."""

    version: Count
    reason: Text


class CandidateAmended(CandidateChanged):
    """It says something else now; approvals that it had are void. `changed` names the fields."""

    EVENT_TYPE: ClassVar[str] = "candidate_amended"

    content: CandidateContent
    flags: tuple[Text, ...]
    risk: Risk
    into: UuidText | None
    changed: tuple[Text, ...]
    screened: Screened


class CandidateApproved(CandidateChanged):
    """
    A person let it into the memory, or is the first of two who must.

    The content is as approved; the entry's own event follows in the same command. `other_revision`: the one that the
    approval of a dispute gave its other side, if it gave it one.
    """

    EVENT_TYPE: ClassVar[str] = "candidate_approved"

    content: CandidateContent
    outcome: Outcome
    entry_id: UuidText | None
    entry_revision: Count | None
    other_revision: Count | None


class CandidateRejected(CandidateChanged):
    """A person decided against it."""

    EVENT_TYPE: ClassVar[str] = "candidate_rejected"


class CandidateWithdrawn(CandidateChanged):
    """Who proposed it took it back."""

    EVENT_TYPE: ClassVar[str] = "candidate_withdrawn"


class CandidateReopened(CandidateChanged):
    """A decision was undone: it waits again. What an approval had put into the memory is undone by the event after."""

    EVENT_TYPE: ClassVar[str] = "candidate_reopened"

    undone: Literal["approved", "rejected", "withdrawn"]

"""The bodies of the candidate routes: they describe; the verbs judge the values."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from grandbo.events.candidates import Outcome
from grandbo.finding_limits import SUMMARY_LIMIT
from grandbo.http.entry_schemas import FieldDifferenceDocument, Id, Time
from grandbo.http.schemas import SAYING_TEXT, TEXT, EvidenceDocument, FindingDocument, FullName, Name
from grandbo.memory.contradiction import Rule
from grandbo.memory.govern import REASON_LIMIT
from grandbo.memory.statements import Slot
from grandbo.types import Kind, PrincipalType, ProposedKind

Reason = Annotated[str, Field(min_length=1, max_length=REASON_LIMIT, pattern=SAYING_TEXT)]
FreeReason = Annotated[str, Field(max_length=REASON_LIMIT, pattern=TEXT)]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OriginDocument(_Document):
    """Where it was said: what a candidate without evidence must name."""

    model_config = ConfigDict(extra="forbid", title="Origin")

    type: Literal["conversation", "person"]
    ref: FullName
    label: FullName | None = None


class ProposedFindingDocument(FindingDocument):
    """
    What the entry would say; as a finding, but its evidence may be missing where the origin is named.

    Of the kinds `personal` and `episode` the `subject` is required.
    """

    model_config = ConfigDict(extra="forbid", title="ProposedFinding")

    kind: ProposedKind | None = "finding"  # type: ignore[assignment]  # wider on purpose
    memory_key: Name | None = Field(default=None, description="Of what is personal: the key of this one fact.")
    text: Annotated[str, Field(max_length=SUMMARY_LIMIT, pattern=TEXT)] | None = Field(
        default=None, description="Of what is personal: what more there is to it; the same as `summary`."
    )
    session_id: Name | None = Field(default=None, description="Of an episode: the session that it is of.")
    evidence: list[EvidenceDocument] | None = None  # type: ignore[assignment]  # wider on purpose


class ProposalDocument(_Document):
    """A proposal: what it would say, where it comes from, and which entry it would correct."""

    model_config = ConfigDict(extra="forbid", title="Proposal")

    candidate: ProposedFindingDocument
    origin: OriginDocument | None = None
    into: Id | None = None
    reason: FreeReason | None = None


class CandidateReasonDocument(_Document):
    """Why."""

    model_config = ConfigDict(extra="forbid", title="CandidateReason")

    reason: Reason


class CandidateChangesDocument(CandidateReasonDocument):
    """The fields of a finding to set, and why. Null leaves a field as it is."""

    model_config = ConfigDict(extra="forbid", title="CandidateChanges")

    changes: dict[str, Any] | None = None
    into: Id | None = Field(default=None, description="Amend, merge: the entry that it corrects.")
    expected_revision: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Merge: of that entry.")


class DecidedDocument(_Document):
    """The candidate after the command, and the entry that came of it."""

    model_config = ConfigDict(extra="forbid", title="Decided")

    candidate_id: Id
    version: int = Field(ge=1)
    position: int = Field(ge=1)
    hash: str = Field(pattern="^[0-9a-f]{64}$")
    status: Literal["pending", "approved", "rejected", "withdrawn"]
    outcome: Outcome | None
    entry_id: Id | None
    entry_revision: int | None
    appended: bool


class CandidateSummaryDocument(_Document):
    """A candidate in the queue, without its text."""

    model_config = ConfigDict(extra="forbid", title="CandidateSummary")

    candidate_id: Id
    version: int
    position: int
    status: Literal["pending", "approved", "rejected", "withdrawn"]
    kind: Kind
    title: str
    visibility: str
    flags: list[str]
    risk: int
    into: Id | None
    disputes: Id | None = Field(description="The entry that `into` contradicts: approving marks both as disputed.")
    subject_id: Id | None = Field(description="Whom it is about, where it names somebody.")
    author_type: PrincipalType
    proposed_by: str
    proposed_at: Time
    changed_at: Time
    approved_by: list[str]
    decided_by: str | None
    decision_reason: str | None
    outcome: str | None
    entry_id: Id | None
    entry_revision: int | None


class RelatedDocument(_Document):
    """A live entry of the same text or the same incident."""

    model_config = ConfigDict(extra="forbid", title="Related")

    entry_id: Id
    revision: int
    title: str
    same_text: bool


class SpanDocument(_Document):
    """Characters of a field."""

    model_config = ConfigDict(extra="forbid", title="Span")

    field: str
    start: int
    end: int


class ContradictionDocument(_Document):
    """Two sentences that cannot both hold, by which rule, and where they stand."""

    model_config = ConfigDict(extra="forbid", title="Contradiction")

    rule: Rule
    subject: str
    slot: Slot
    a: str
    b: str
    spans: list[SpanDocument]


class UnjudgedDocument(_Document):
    """What the rules could not judge, and why; of the whole pair where it has no span."""

    model_config = ConfigDict(extra="forbid", title="Unjudged")

    reason: str
    side: Literal["a", "b"] | None
    span: SpanDocument | None


class JudgementDocument(_Document):
    """What a version of the rules found between two texts, and what it could not judge."""

    model_config = ConfigDict(extra="forbid", title="Judgement")

    version: int
    findings: list[ContradictionDocument]
    unjudged: list[UnjudgedDocument]


class RecurrenceDocument(_Document):
    """An entry of the same service, near it, whose follow-ups are still open."""

    model_config = ConfigDict(extra="forbid", title="Recurrence")

    entry_id: Id
    title: str
    open_follow_ups: int


class DisputedPairDocument(_Document):
    """Of a dispute: the title of the other entry, and what the two say against each other as they stand."""

    model_config = ConfigDict(extra="forbid", title="DisputedPair")

    title: str
    contradictions: JudgementDocument


class NearestDocument(_Document):
    """A live entry near in words or meaning, and what is different in it."""

    model_config = ConfigDict(extra="forbid", title="Nearest")

    entry_id: Id
    revision: int
    title: str
    service: str
    near_duplicate: bool = Field(description="It says the same, by its words or by a meaning as good as the same.")
    open_follow_ups: int
    contradictions: JudgementDocument = Field(description="`a` is the candidate, `b` the entry.")
    changes: list[FieldDifferenceDocument]


class CandidateDocument(CandidateSummaryDocument):
    """A candidate with all that a reviewer needs."""

    model_config = ConfigDict(extra="forbid", title="Candidate")

    content: dict[str, Any]
    may_decide: bool = Field(description="Whether the caller is one of those who decide on it.")
    proposal_reason: str
    related: list[RelatedDocument]
    nearest: list[NearestDocument]
    recurrence: list[RecurrenceDocument]
    dispute: DisputedPairDocument | None


class CandidatesDocument(_Document):
    """A page of the queue; `next` goes into `after`, null at the end."""

    model_config = ConfigDict(extra="forbid", title="Candidates")

    candidates: list[CandidateSummaryDocument]
    next: str | None


CANDIDATE_DOCUMENTS: tuple[type[BaseModel], ...] = (
    ProposalDocument,
    CandidateReasonDocument,
    CandidateChangesDocument,
    DecidedDocument,
    CandidateDocument,
    CandidatesDocument,
)

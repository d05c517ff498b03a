"""The bodies of recall and of its receipts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from grandbo.applicability import CONTEXT_LIMIT
from grandbo.applicability import TEXT_LIMIT as APPLIES_LIMIT
from grandbo.http.schemas import TEXT, Document, EvidenceDocument, FullName, IncidentDocument, Instant
from grandbo.recall.answer import EmptyReason, Mode
from grandbo.recall.budget import DEFAULT_BUDGET, MAX_BUDGET, MIN_BUDGET
from grandbo.recall.question import DEFAULT_LIMIT, MAX_LIMIT
from grandbo.recall.topic import TOPIC_LIMIT
from grandbo.types import Kind, PrincipalType

AskableStatus = Literal["published", "archived", "superseded", "quarantined", "disputed", "expired"]


class AskedDocument(Document):
    """A topic, and what narrows it. Null stands for an omitted field."""

    topic: str = Field(
        min_length=3,
        max_length=TOPIC_LIMIT,
        pattern=TEXT,
        description="A sentence: the symptom, the suspected mechanism, the component.",
        examples=["consumers stopped taking work after the broker restarted and leases were not renewed"],
    )
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] | None = DEFAULT_LIMIT
    service: FullName | None = None
    namespace: FullName | None = None
    context: (
        Annotated[
            dict[str, Annotated[str, Field(min_length=1, max_length=APPLIES_LIMIT)]],
            Field(max_length=CONTEXT_LIMIT, examples=[{"worker": "5.2"}]),
        ]
        | None
    ) = Field(default=None, description="Systems that you run, with their versions: what does not apply is left out.")
    mode: Mode | None = "hybrid"
    statuses: list[AskableStatus] | AskableStatus | None = Field(
        default=["published"],
        description="Statuses to look at, by name; `disputed` and `expired` are of the published.",
    )
    incident: IncidentDocument | None = Field(
        default=None, description="What it is asked for; narrows nothing, and stands in the receipt."
    )
    at_least: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="A position that the answer must not be given without, where a replica answers."
    )


class RecallDocument(AskedDocument):
    """A topic, and filters that only narrow. Null stands for an omitted field."""

    model_config = ConfigDict(extra="forbid", title="Recall")

    kinds: list[Kind] | Kind | None = None
    kind: list[Kind] | Kind | None = Field(default=None, description="The same as `kinds`; give one of the two.")
    as_of_position: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="What the log knew at this position. This and the next three need the act audit."
    )
    as_of: Instant | None = Field(default=None, description="What was known at this time.")
    valid_at: Instant | None = Field(default=None, description="Judge validity at this time instead.")
    as_role: str | None = Field(default=None, description="As someone with this role would be answered.")
    diff: bool | None = Field(default=False, description="With as_of or as_of_position: what is different today.")
    render: bool | None = Field(default=False, description="Give the answer as a fenced block for a model too.")
    budget: Annotated[int, Field(ge=MIN_BUDGET, le=MAX_BUDGET)] | None = Field(
        default=None, description=f"With render: estimated tokens of the block; {DEFAULT_BUDGET} unless given."
    )


class LexicalDocument(Document):
    """Place in the list by words."""

    model_config = ConfigDict(extra="forbid", title="Lexical")

    rank: int = Field(ge=1)
    terms: list[str]
    part: float = Field(ge=0, description="How much of the match's score comes from this list.")


class SemanticDocument(Document):
    """Place in the list by meaning."""

    model_config = ConfigDict(extra="forbid", title="Semantic")

    rank: int = Field(ge=1)
    distance: float
    part: float = Field(ge=0, description="How much of the match's score comes from this list.")


class MatchDocument(Document):
    """One ranked answer; its citation is (entry_id, revision, position)."""

    model_config = ConfigDict(extra="forbid", title="Match")

    entry_id: str = Field(json_schema_extra={"format": "uuid"})
    revision: int
    position: int
    kind: Kind
    title: str
    summary: str
    service: str
    status: str
    expired: bool
    disputed: bool
    disputed_with: str | None = Field(json_schema_extra={"format": "uuid"})
    confidence_bp: int
    trust_bp: int = Field(description="The author's confidence, moved by what has happened to the entry since.")
    author_type: PrincipalType
    occurred_at: str | None
    verified_at: str | None
    expires_at: str
    evidence: list[EvidenceDocument]
    open_follow_ups: int = Field(description="How many pieces of its evidence are follow-ups that are still open.")
    external_id: str | None
    visibility: str
    namespace: str
    owner: str | None
    applies_to: list[str]
    score: float
    lexical: LexicalDocument | None
    semantic: SemanticDocument | None
    restated: int = Field(description="How many others that were found say nothing but this.")
    restated_ids: list[Annotated[str, Field(json_schema_extra={"format": "uuid"})]]


class ExcludedDocument(Document):
    """How many entries do not apply to the asker's systems, and of which of these no version could be read."""

    model_config = ConfigDict(extra="forbid", title="Excluded")

    applicability: int
    unreadable: list[str]


class SearchedDocument(Document):
    """What was searched, and why there is no more."""

    model_config = ConfigDict(extra="forbid", title="Searched")

    signals: list[Literal["lexical", "semantic"]]
    degraded: str | None
    stamp: str | None
    cutoff: float | None
    eligible: int
    without_vector: int | None
    near_misses: int
    nearest_beyond: float | None
    excluded: ExcludedDocument | None = Field(default=None, description="A receipt of an earlier version lacks it.")
    empty_reason: EmptyReason | None
    scan: Literal["exact", "signatures"] | None = Field(
        default=None,
        description="`signatures`: the scope is large, what is counted beyond the cutoff is a lower bound. "
        "A receipt of an earlier version lacks it.",
    )


class AnswerDocument(Document):
    """Matches, best first, or why there are none."""

    model_config = ConfigDict(extra="forbid", title="Answer")

    matches: list[MatchDocument]
    floor: list[MatchDocument] = Field(description="Core references that the policy has given where nothing matched.")
    searched: SearchedDocument
    position: int
    instant: str
    receipt_id: str = Field(json_schema_extra={"format": "uuid"})


class ChangeEventDocument(Document):
    """The event of the entry's latest revision; `since` the moment that was asked about, or before it."""

    model_config = ConfigDict(extra="forbid", title="ChangeEvent")

    event_type: str
    position: int
    since: bool


class PlaceChangeDocument(Document):
    """An entry whose place or revision differs; places count from 1, null where that answer does not hold it."""

    model_config = ConfigDict(extra="forbid", title="PlaceChange")

    entry_id: str = Field(json_schema_extra={"format": "uuid"})
    title: str
    then: int | None
    now: int | None
    event: ChangeEventDocument


class DifferenceDocument(Document):
    """The answer as of a moment, today's, and what lies between them."""

    model_config = ConfigDict(extra="forbid", title="Difference")

    then: AnswerDocument
    today: AnswerDocument
    added: list[PlaceChangeDocument]
    dropped: list[PlaceChangeDocument]
    reordered: list[PlaceChangeDocument]
    revised: list[PlaceChangeDocument]


class ReceiptMatchDocument(Document):
    """What a receipt keeps of a match; a receipt of an earlier version may lack the label."""

    model_config = ConfigDict(extra="forbid", title="ReceiptMatch")

    entry_id: str = Field(json_schema_extra={"format": "uuid"})
    revision: int
    position: int
    score: float
    lexical_rank: int | None
    semantic_rank: int | None
    distance: float | None
    disputed: bool = False
    restated: int = 0


class ErasedMatchDocument(Document):
    """A match whose entry was erased since: that there was one, and no longer which."""

    model_config = ConfigDict(extra="forbid", title="ErasedMatch")

    erased: Literal[True]


class ReceiptDocument(Document):
    """The record of one recall. Never the topic."""

    model_config = ConfigDict(extra="forbid", title="Receipt")

    receipt_id: str = Field(json_schema_extra={"format": "uuid"})
    made_at: str
    principal: str
    position: int
    instant: str
    key_epoch: int
    parameters: dict[str, Any]
    searched: SearchedDocument
    matches: list[ReceiptMatchDocument | ErasedMatchDocument]


class ReceiptsDocument(Document):
    """A page of receipts, newest first; `next` goes into `after`, null at the end."""

    model_config = ConfigDict(extra="forbid", title="Receipts")

    receipts: list[ReceiptDocument]
    next: str | None = Field(json_schema_extra={"format": "uuid"})


class ReplayRequestDocument(Document):
    """The topic that was asked, as it was asked."""

    model_config = ConfigDict(extra="forbid", title="ReplayRequest")

    topic: str = Field(min_length=3, max_length=TOPIC_LIMIT, pattern=TEXT)


class ReplayDifferenceDocument(Document):
    """One place in which the answer is another."""

    model_config = ConfigDict(extra="forbid", title="ReplayDifference")

    what: str
    then: Any
    now: Any


class ReplayDocument(Document):
    """Whether the recall gives the same again."""

    model_config = ConfigDict(extra="forbid", title="Replay")

    receipt_id: str = Field(json_schema_extra={"format": "uuid"})
    equal: bool
    differences: list[ReplayDifferenceDocument]


RECALL_DOCUMENTS: tuple[type[BaseModel], ...] = (
    RecallDocument,
    AnswerDocument,
    DifferenceDocument,
    ReceiptDocument,
    ReceiptsDocument,
    ReplayRequestDocument,
    ReplayDocument,
)

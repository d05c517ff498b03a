"""
The bodies as the OpenAPI document describes them.

They describe and do not parse: findings are read by `parse_finding`, topics by `check_question`, so that every door
refuses the same things in the same words. A test holds them to what those accept and give.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from grandbo.memory.finding import (
    BODY_LIMIT_BYTES,
    EVIDENCE_LIMIT,
    NAME_LIMIT,
    SUMMARY_LIMIT,
    TAG_LIMIT,
    TAGS_LIMIT,
    TITLE_LIMIT,
    URI_LIMIT,
)
from grandbo.recall.answer import EmptyReason, Mode
from grandbo.recall.budget import DEFAULT_BUDGET, MAX_BUDGET, MIN_BUDGET
from grandbo.recall.question import DEFAULT_LIMIT, MAX_LIMIT
from grandbo.recall.topic import TOPIC_LIMIT
from grandbo.types import Kind, PrincipalType, Status

# No control characters; in what has lines, tab and line breaks only.
_LINE = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"
_TEXT = "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$"
_URI = "^[^\\s\\u0000-\\u001f\\u007f-\\u009f]*:[^\\s\\u0000-\\u001f\\u007f-\\u009f]*$"
# Something other than white space must stand in it.
_SAYING = "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\u0000-\\u0020\\u007f-\\u00a0][^\\u0000-\\u001f\\u007f-\\u009f]*$"

Name = Annotated[str, Field(max_length=NAME_LIMIT, pattern=_LINE)]
FullName = Annotated[str, Field(min_length=1, max_length=NAME_LIMIT, pattern=_LINE)]
StatedTime = Annotated[
    str,
    Field(
        description="RFC 3339 with a zone, or a date, a month, a year.",
        examples=["2026-01-02T03:04:05Z", "2026-01-02"],
    ),
]


Instant = Annotated[str, Field(description="RFC 3339 with a zone.", examples=["2026-01-02T03:04:05Z"])]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EvidenceDocument(_Document):
    """Where a claim comes from."""

    model_config = ConfigDict(extra="forbid", title="Evidence")

    type: FullName = Field(examples=["postmortem"])
    uri: str = Field(min_length=1, max_length=URI_LIMIT, pattern=_URI)
    label: Name | None = ""


class IncidentDocument(_Document):
    """The tool that knows the incident, and its id there."""

    model_config = ConfigDict(extra="forbid", title="Incident")

    source: FullName
    id: FullName


class FindingDocument(_Document):
    """What an incident taught. Null stands for an omitted field."""

    model_config = ConfigDict(extra="forbid", title="Finding")

    title: str = Field(min_length=1, max_length=TITLE_LIMIT, pattern=_SAYING)
    evidence: list[EvidenceDocument] = Field(
        min_length=1,
        max_length=EVIDENCE_LIMIT,
        description="At least one piece must not be memory itself (`grandbo:` URIs are).",
    )
    summary: Annotated[str, Field(max_length=SUMMARY_LIMIT, pattern=_TEXT)] | None = ""
    body: (
        Annotated[
            str,
            Field(max_length=BODY_LIMIT_BYTES, pattern=_TEXT, description="Counted in bytes of UTF-8."),
        ]
        | None
    ) = ""
    kind: Kind | None = "finding"
    service: Name | None = ""
    tags: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=TAG_LIMIT, pattern=_SAYING)]],
            Field(max_length=TAGS_LIMIT),
        ]
        | None
    ) = []
    incident: IncidentDocument | None = Field(
        default=None, description="Without it the Idempotency-Key header is required."
    )
    external_id: Name | None = None
    occurred_at: StatedTime | None = None
    ended_at: StatedTime | None = None
    valid_from: StatedTime | None = None
    expires_at: StatedTime | None = None
    confidence_bp: Annotated[int, Field(ge=0, le=10_000)] | None = Field(
        default=7_000, description="Confidence in basis points."
    )
    visibility: Name | None = Field(default=None, description="A tier of the tenant; its default where omitted.")


class AcknowledgementDocument(_Document):
    """The answer to a write; position and hash prove later that the event was kept."""

    model_config = ConfigDict(extra="forbid", title="Acknowledgement")

    entry_id: str = Field(json_schema_extra={"format": "uuid"})
    revision: int = Field(ge=1)
    position: int = Field(ge=1)
    hash: str = Field(pattern="^[0-9a-f]{64}$")
    created: bool


class RecallDocument(_Document):
    """A topic, and filters that only narrow. Null stands for an omitted field."""

    model_config = ConfigDict(extra="forbid", title="Recall")

    topic: str = Field(
        min_length=3,
        max_length=TOPIC_LIMIT,
        pattern=_TEXT,
        description="A sentence: the symptom, the suspected mechanism, the component.",
        examples=["consumers stopped taking work after the broker restarted and leases were not renewed"],
    )
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] | None = DEFAULT_LIMIT
    kinds: list[Kind] | Kind | None = None
    kind: list[Kind] | Kind | None = Field(default=None, description="The same as `kinds`; give one of the two.")
    service: FullName | None = None
    mode: Mode | None = "hybrid"
    statuses: list[Status] | Status | None = Field(default=["published"], description="Statuses to look at, by name.")
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


class LexicalDocument(_Document):
    """Place in the list by words."""

    model_config = ConfigDict(extra="forbid", title="Lexical")

    rank: int = Field(ge=1)
    terms: list[str]


class SemanticDocument(_Document):
    """Place in the list by meaning."""

    model_config = ConfigDict(extra="forbid", title="Semantic")

    rank: int = Field(ge=1)
    distance: float


class MatchDocument(_Document):
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
    disputed: bool
    disputed_with: str | None = Field(json_schema_extra={"format": "uuid"})
    confidence_bp: int
    author_type: PrincipalType
    occurred_at: str | None
    verified_at: str | None
    expires_at: str
    evidence: list[EvidenceDocument]
    external_id: str | None
    visibility: str
    score: float
    lexical: LexicalDocument | None
    semantic: SemanticDocument | None


class SearchedDocument(_Document):
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
    empty_reason: EmptyReason | None


class AnswerDocument(_Document):
    """Matches, best first, or why there are none."""

    model_config = ConfigDict(extra="forbid", title="Answer")

    matches: list[MatchDocument]
    searched: SearchedDocument
    position: int
    instant: str
    receipt_id: str = Field(json_schema_extra={"format": "uuid"})


class ChangeEventDocument(_Document):
    """The event of the entry's latest revision; `since` the moment that was asked about, or before it."""

    model_config = ConfigDict(extra="forbid", title="ChangeEvent")

    event_type: str
    position: int
    since: bool


class PlaceChangeDocument(_Document):
    """An entry whose place or revision differs; places count from 1, null where that answer does not hold it."""

    model_config = ConfigDict(extra="forbid", title="PlaceChange")

    entry_id: str = Field(json_schema_extra={"format": "uuid"})
    title: str
    then: int | None
    now: int | None
    event: ChangeEventDocument


class DifferenceDocument(_Document):
    """The answer as of a moment, today's, and what lies between them."""

    model_config = ConfigDict(extra="forbid", title="Difference")

    then: AnswerDocument
    today: AnswerDocument
    added: list[PlaceChangeDocument]
    dropped: list[PlaceChangeDocument]
    reordered: list[PlaceChangeDocument]
    revised: list[PlaceChangeDocument]


class ReceiptMatchDocument(_Document):
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


class ReceiptDocument(_Document):
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
    matches: list[ReceiptMatchDocument]


class ReceiptsDocument(_Document):
    """A page of receipts, newest first; `next` goes into `after`, null at the end."""

    model_config = ConfigDict(extra="forbid", title="Receipts")

    receipts: list[ReceiptDocument]
    next: str | None = Field(json_schema_extra={"format": "uuid"})


class ReplayRequestDocument(_Document):
    """The topic that was asked, as it was asked."""

    model_config = ConfigDict(extra="forbid", title="ReplayRequest")

    topic: str = Field(min_length=3, max_length=TOPIC_LIMIT, pattern=_TEXT)


class ReplayDifferenceDocument(_Document):
    """One place in which the answer is another."""

    model_config = ConfigDict(extra="forbid", title="ReplayDifference")

    what: str
    then: Any
    now: Any


class ReplayDocument(_Document):
    """Whether the recall gives the same again."""

    model_config = ConfigDict(extra="forbid", title="Replay")

    receipt_id: str = Field(json_schema_extra={"format": "uuid"})
    equal: bool
    differences: list[ReplayDifferenceDocument]


class ReadyDocument(_Document):
    """Well."""

    model_config = ConfigDict(extra="forbid", title="Ready")

    status: Literal["live", "ready"]


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    field: str
    code: str
    message: str


class ProblemDocument(BaseModel):
    """An error, as RFC 9457 has it, with a stable `code`."""

    model_config = ConfigDict(extra="allow", title="Problem")

    type: str
    title: str
    status: int = Field(ge=400, le=599)
    code: str
    detail: str
    request_id: str
    errors: list[FieldProblem] = Field(default_factory=list, description="What is wrong, by field, where fields are.")
    reasons: list[str] = Field(default_factory=list, description="Of `not_ready`: what is missing.")


DOCUMENTS: tuple[type[BaseModel], ...] = (
    FindingDocument,
    AcknowledgementDocument,
    RecallDocument,
    AnswerDocument,
    DifferenceDocument,
    ReceiptDocument,
    ReceiptsDocument,
    ReplayRequestDocument,
    ReplayDocument,
    ReadyDocument,
    ProblemDocument,
)


def schema_of(document: type[BaseModel]) -> dict[str, Any]:
    """A reference to a document's schema in the OpenAPI document."""
    return {"$ref": f"#/components/schemas/{name_of(document)}"}


def name_of(document: type[BaseModel]) -> str:
    """The name it goes by there."""
    return str(document.model_config.get("title", document.__name__))

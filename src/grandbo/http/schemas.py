"""
The bodies as the OpenAPI document describes them.

They describe and do not parse: findings are read by `parse_finding`, topics by `check_question`, so that every door
refuses the same things in the same words. A test holds them to what those accept and give.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from grandbo.applicability import APPLICABILITY_LIMIT
from grandbo.applicability import TEXT_LIMIT as APPLIES_LIMIT
from grandbo.finding_limits import (
    BODY_LIMIT_BYTES,
    EVIDENCE_LIMIT,
    NAME_LIMIT,
    SUMMARY_LIMIT,
    TAG_LIMIT,
    TAGS_LIMIT,
    TITLE_LIMIT,
    URI_LIMIT,
)
from grandbo.types import OrganisationKind

# No control characters; in what has lines, tab and line breaks only.
LINE = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"
TEXT = "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$"
_URI = "^[^\\s\\u0000-\\u001f\\u007f-\\u009f]*:[^\\s\\u0000-\\u001f\\u007f-\\u009f]*$"
# Something other than white space must stand in it.
SAYING = "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\u0000-\\u0020\\u007f-\\u00a0][^\\u0000-\\u001f\\u007f-\\u009f]*$"
# Something other than white space must stand in it; line breaks may.
SAYING_TEXT = (
    "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*[^\\u0000-\\u0020\\u007f-\\u00a0]"
    "[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$"
)

Name = Annotated[str, Field(max_length=NAME_LIMIT, pattern=LINE)]
FullName = Annotated[str, Field(min_length=1, max_length=NAME_LIMIT, pattern=LINE)]
StatedTime = Annotated[
    str,
    Field(
        description="RFC 3339 with a zone, or a date, a month, a year.",
        examples=["2026-01-02T03:04:05Z", "2026-01-02"],
    ),
]


Applicability = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=APPLIES_LIMIT, pattern=LINE)]],
    Field(
        max_length=APPLICABILITY_LIMIT,
        description="The systems and versions it applies to; everything where empty.",
        examples=[["worker >=4,<7"]],
    ),
]
Instant = Annotated[str, Field(description="RFC 3339 with a zone.", examples=["2026-01-02T03:04:05Z"])]


class Document(BaseModel):
    """A body that takes no fields but its own."""

    model_config = ConfigDict(extra="forbid")


class EvidenceDocument(Document):
    """Where a claim comes from."""

    model_config = ConfigDict(extra="forbid", title="Evidence")

    type: FullName = Field(examples=["postmortem"])
    uri: str = Field(min_length=1, max_length=URI_LIMIT, pattern=_URI)
    label: Name | None = ""


class IncidentDocument(Document):
    """The tool that knows the incident, and its id there."""

    model_config = ConfigDict(extra="forbid", title="Incident")

    source: FullName
    id: FullName


class FindingDocument(Document):
    """What an incident taught. Null stands for an omitted field."""

    model_config = ConfigDict(extra="forbid", title="Finding")

    title: str = Field(min_length=1, max_length=TITLE_LIMIT, pattern=SAYING)
    evidence: list[EvidenceDocument] = Field(
        min_length=1,
        max_length=EVIDENCE_LIMIT,
        description="At least one piece must not be memory itself (`grandbo:` URIs are).",
    )
    summary: Annotated[str, Field(max_length=SUMMARY_LIMIT, pattern=TEXT)] | None = ""
    body: (
        Annotated[
            str,
            Field(max_length=BODY_LIMIT_BYTES, pattern=TEXT, description="Counted in bytes of UTF-8."),
        ]
        | None
    ) = ""
    kind: OrganisationKind | None = "finding"
    service: Name | None = ""
    tags: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=TAG_LIMIT, pattern=SAYING)]],
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
    namespace: Name | None = ""
    owner: Name | None = Field(default=None, description="Who keeps it.")
    applicability: Applicability | None = []
    subject: Annotated[str, Field(min_length=1, max_length=NAME_LIMIT, pattern=SAYING)] | None = Field(
        default=None, description="Whom it is about, by id or reference: its text is sealed, and goes with the subject."
    )


class AcknowledgementDocument(Document):
    """The answer to a write; position and hash prove later that the event was kept."""

    model_config = ConfigDict(extra="forbid", title="Acknowledgement")

    entry_id: str = Field(json_schema_extra={"format": "uuid"})
    revision: int = Field(ge=1)
    position: int = Field(ge=1)
    hash: str = Field(pattern="^[0-9a-f]{64}$")
    created: bool


class ReadyDocument(Document):
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
    ReadyDocument,
    ProblemDocument,
)


def schema_of(document: type[BaseModel]) -> dict[str, Any]:
    """A reference to a document's schema in the OpenAPI document."""
    return {"$ref": f"#/components/schemas/{name_of(document)}"}


def name_of(document: type[BaseModel]) -> str:
    """The name it goes by there."""
    return str(document.model_config.get("title", document.__name__))

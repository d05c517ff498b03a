"""The bodies of the entry routes: they describe, and name the fields that are taken; the verbs judge the values."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema

from grandbo.http.openapi import _public, _renamed
from grandbo.http.schemas import (
    _SAYING,
    _TEXT,
    AcknowledgementDocument,
    EvidenceDocument,
    FullName,
    Name,
    StatedTime,
)
from grandbo.memory.finding import (
    BODY_LIMIT_BYTES,
    EVIDENCE_LIMIT,
    SUMMARY_LIMIT,
    TAG_LIMIT,
    TAGS_LIMIT,
    TITLE_LIMIT,
)
from grandbo.memory.govern import REASON_LIMIT
from grandbo.memory.wishes import LARGEST_REVISION, LONGEST_REVIEW_DAYS
from grandbo.types import Kind, LinkType, Precision, PrincipalType, Status

# Something other than white space must stand in it; line breaks may.
_SAYING_TEXT = (
    "^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*[^\\u0000-\\u0020\\u007f-\\u00a0]"
    "[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$"
)

Id = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
BasisPoints = Annotated[int, Field(ge=0, le=10_000)]


class ReasonDocument(BaseModel):
    """Why; it stands in the history."""

    model_config = ConfigDict(extra="forbid", title="Reason")

    reason: str = Field(min_length=1, max_length=REASON_LIMIT, pattern=_SAYING_TEXT)


class ChangesDocument(BaseModel):
    """The fields to replace. Null stands for an omitted field: it is left as it is."""

    model_config = ConfigDict(extra="forbid", title="Changes", json_schema_extra={"minProperties": 1})

    title: Annotated[str, Field(min_length=1, max_length=TITLE_LIMIT, pattern=_SAYING)] | None = None
    summary: Annotated[str, Field(max_length=SUMMARY_LIMIT, pattern=_TEXT)] | None = None
    body: (
        Annotated[str, Field(max_length=BODY_LIMIT_BYTES, pattern=_TEXT, description="Counted in bytes of UTF-8.")]
        | None
    ) = None
    service: Name | None = None
    tags: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=TAG_LIMIT, pattern=_SAYING)]],
            Field(max_length=TAGS_LIMIT),
        ]
        | None
    ) = None
    confidence_bp: BasisPoints | None = None
    evidence: Annotated[list[EvidenceDocument], Field(min_length=1, max_length=EVIDENCE_LIMIT)] | None = None
    occurred_at: StatedTime | None = None
    ended_at: StatedTime | None = None


class CorrectionDocument(ReasonDocument):
    """What to replace, and why."""

    model_config = ConfigDict(extra="forbid", title="Correction")

    changes: ChangesDocument


class RestoreDocument(ReasonDocument):
    """Which revision's text to bring back, and why."""

    model_config = ConfigDict(extra="forbid", title="Restore")

    revision: int = Field(ge=1, le=LARGEST_REVISION)


class DisputeDocument(ReasonDocument):
    """Why it is disputed, and by which other entry, where there is one."""

    model_config = ConfigDict(extra="forbid", title="Dispute")

    other: Id | None = None


class SupersedeDocument(ReasonDocument):
    """Which entry takes its place, and why."""

    model_config = ConfigDict(extra="forbid", title="Supersede")

    by: Id


class NewLinkDocument(ReasonDocument):
    """To which entry, of what type, and why."""

    model_config = ConfigDict(extra="forbid", title="NewLink")

    type: LinkType
    to: Id


class VerificationDocument(ReasonDocument):
    """How it was checked, and in how many days it is due again; else what the tenant's policy says."""

    model_config = ConfigDict(extra="forbid", title="Verification")

    days: Annotated[int, Field(ge=1, le=LONGEST_REVIEW_DAYS)] | None = None


class ExpiryDocument(ReasonDocument):
    """Until when it is valid, and why."""

    model_config = ConfigDict(extra="forbid", title="Expiry")

    at: StatedTime


class ReclassificationDocument(ReasonDocument):
    """Another kind, another tier, or both, and why."""

    model_config = ConfigDict(extra="forbid", title="Reclassification")

    kind: Kind | None = None
    visibility: FullName | None = Field(default=None, description="A tier of the tenant that the caller sees.")


class ChangeDocument(AcknowledgementDocument):
    """The acknowledgement of a change; `appended` is false where there was nothing to change, or on a replay."""

    model_config = ConfigDict(extra="forbid", title="Change")

    appended: bool


class StateDocument(BaseModel):
    """An entry at one revision."""

    model_config = ConfigDict(extra="forbid", title="State")

    kind: Kind
    status: Status
    title: str
    summary: str
    body: str
    service: str
    tags: list[str]
    visibility: str
    confidence_bp: BasisPoints
    author_type: PrincipalType
    evidence: list[EvidenceDocument]
    incident_source: str | None
    incident_id: str | None
    external_id: str | None
    occurred_at: Time | None
    occurred_precision: Precision | None
    ended_at: Time | None
    valid_from: Time
    expires_at: Time
    verified_at: Time | None
    review_at: Time
    disputed: bool
    supported_by: list[Any]
    recorded_at: Time
    changed_at: Time
    disputed_with: Id | None
    superseded_by: Id | None


class LinkDocument(BaseModel):
    """A link to or from another entry that the caller sees. Links make no revision."""

    model_config = ConfigDict(extra="forbid", title="Link")

    type: LinkType
    direction: Literal["to", "from"]
    entry_id: Id
    reason: str
    position: int = Field(ge=1)


class EntryDocument(StateDocument):
    """An entry as it stands."""

    model_config = ConfigDict(extra="forbid", title="Entry")

    entry_id: Id
    revision: int = Field(ge=1)
    position: int = Field(ge=1)
    links: list[LinkDocument]


class RevisionDocument(BaseModel):
    """One state of an entry, and how it came to be: by which event, by whom, when and why."""

    model_config = ConfigDict(extra="forbid", title="Revision")

    entry_id: Id
    revision: int = Field(ge=1)
    position: int = Field(ge=1)
    event_type: str
    principal: str = Field(description="`type:id`, as the log has it.")
    at: Time
    reason: str | None
    state: StateDocument


class HistoryDocument(BaseModel):
    """Every revision that the caller may see, oldest first."""

    model_config = ConfigDict(extra="forbid", title="History")

    entry_id: Id
    revisions: list[RevisionDocument]


class PieceDocument(BaseModel):
    """A run of text that both have, or that only the one before or only the one after has."""

    model_config = ConfigDict(extra="forbid", title="Piece")

    operation: Literal["kept", "removed", "added"]
    text: str


class FieldDifferenceDocument(BaseModel):
    """One field that is not the same; `words` where both values are text."""

    model_config = ConfigDict(extra="forbid", title="FieldDifference")

    field: str
    before: Any
    after: Any
    words: list[PieceDocument] | None


class RestorePreviewDocument(BaseModel):
    """What a restore would change in the entry as it stands, had it been carried out."""

    model_config = ConfigDict(extra="forbid", title="RestorePreview")

    entry_id: Id
    revision: int = Field(ge=1, description="The current revision; send it as If-Match with the restore.")
    restored_revision: int = Field(ge=1)
    next_revision: int = Field(ge=2)
    status: Status = Field(description="It stays what it is.")
    changes: list[FieldDifferenceDocument]


ENTRY_DOCUMENTS: tuple[type[BaseModel], ...] = (
    ReasonDocument,
    CorrectionDocument,
    RestoreDocument,
    DisputeDocument,
    SupersedeDocument,
    NewLinkDocument,
    VerificationDocument,
    ExpiryDocument,
    ReclassificationDocument,
    ChangeDocument,
    EntryDocument,
    HistoryDocument,
    RestorePreviewDocument,
)


def install_entry_documents(app: FastAPI, documents: tuple[type[BaseModel], ...] = ENTRY_DOCUMENTS) -> None:
    """Put these bodies into the OpenAPI document beside the others; call it after `install_document`."""
    generate = app.openapi
    _, defined = models_json_schema(
        [(model, "validation") for model in documents], ref_template="#/components/schemas/{model}"
    )
    schemas = {_public(name): _renamed(schema) for name, schema in sorted(defined["$defs"].items())}

    def document() -> dict[str, Any]:
        made = generate()
        made["components"]["schemas"] |= schemas
        return made

    app.openapi = document  # type: ignore[method-assign]  # the way that FastAPI documents for extending it

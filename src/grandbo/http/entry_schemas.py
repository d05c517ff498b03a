"""The bodies of the entry routes: they describe, and name the fields that are taken; the verbs judge the values."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from grandbo.finding_limits import BODY_LIMIT_BYTES, EVIDENCE_LIMIT, SUMMARY_LIMIT, TAG_LIMIT, TAGS_LIMIT, TITLE_LIMIT
from grandbo.http.schemas import (
    SAYING,
    SAYING_TEXT,
    TEXT,
    AcknowledgementDocument,
    Applicability,
    EvidenceDocument,
    FullName,
    IncidentDocument,
    Name,
    StatedTime,
)
from grandbo.http.submission_schemas import FeedbackDocument, NewEntryDocument
from grandbo.memory.govern import REASON_LIMIT
from grandbo.memory.wishes import LARGEST_REVISION, LONGEST_REVIEW_DAYS
from grandbo.types import Kind, LinkType, OrganisationKind, Precision, PrincipalType, Status

Id = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
BasisPoints = Annotated[int, Field(ge=0, le=10_000)]


class ReasonDocument(BaseModel):
    """Why; it stands in the history."""

    model_config = ConfigDict(extra="forbid", title="Reason")

    reason: str = Field(min_length=1, max_length=REASON_LIMIT, pattern=SAYING_TEXT)


class ChangesDocument(BaseModel):
    """The fields to replace. Null stands for an omitted field: it is left as it is."""

    model_config = ConfigDict(extra="forbid", title="Changes", json_schema_extra={"minProperties": 1})

    title: Annotated[str, Field(min_length=1, max_length=TITLE_LIMIT, pattern=SAYING)] | None = None
    summary: Annotated[str, Field(max_length=SUMMARY_LIMIT, pattern=TEXT)] | None = None
    body: (
        Annotated[str, Field(max_length=BODY_LIMIT_BYTES, pattern=TEXT, description="Counted in bytes of UTF-8.")]
        | None
    ) = None
    service: Name | None = None
    tags: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=TAG_LIMIT, pattern=SAYING)]],
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


class CorroborationDocument(BaseModel):
    """Which incident supports it, and with what evidence; at least one piece must not be memory itself."""

    model_config = ConfigDict(extra="forbid", title="Corroboration")

    incident: IncidentDocument
    evidence: list[EvidenceDocument] = Field(min_length=1, max_length=EVIDENCE_LIMIT)


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
    """What it shall count as, and why; what is omitted stays as it is."""

    model_config = ConfigDict(extra="forbid", title="Reclassification")

    kind: OrganisationKind | None = None
    visibility: FullName | None = Field(default=None, description="A tier of the tenant that the caller sees.")
    namespace: Name | None = None
    owner: Name | None = Field(default=None, description="Who keeps it; empty for nobody.")
    applicability: Applicability | None = None


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
    namespace: str
    owner: str | None
    applicability: list[str]


class LinkDocument(BaseModel):
    """A link to or from another entry that the caller sees. Links make no revision."""

    model_config = ConfigDict(extra="forbid", title="Link")

    type: LinkType
    direction: Literal["to", "from"]
    entry_id: Id
    reason: str
    position: int = Field(ge=1)


class FeedbackCountsDocument(BaseModel):
    """How many of those who were told it say so now."""

    model_config = ConfigDict(extra="forbid", title="FeedbackCounts")

    helped: int
    irrelevant: int
    wrong: int
    stale: int


class MomentDocument(BaseModel):
    """A position of the log, and the instant that was meant."""

    model_config = ConfigDict(extra="forbid", title="Moment")

    position: int = Field(ge=1)
    instant: Time


class ListedEntryDocument(StateDocument):
    """An entry in a listing: its state, without its links."""

    model_config = ConfigDict(extra="forbid", title="ListedEntry")

    entry_id: Id
    revision: int = Field(ge=1)
    position: int = Field(ge=1)


class EntriesDocument(BaseModel):
    """A page of entries in the order of their ids; `next` goes into `after`, null at the end."""

    model_config = ConfigDict(extra="forbid", title="Entries")

    entries: list[ListedEntryDocument]
    next: str | None
    as_of: MomentDocument | None


class EntryDocument(ListedEntryDocument):
    """An entry as it stands."""

    model_config = ConfigDict(extra="forbid", title="Entry")

    links: list[LinkDocument]
    feedback: FeedbackCountsDocument
    trust_bp: int = Field(description="The author's confidence, moved by what has happened to the entry since.")


class PastEntryDocument(ListedEntryDocument):
    """An entry as it stood, with the links that were open then."""

    model_config = ConfigDict(extra="forbid", title="PastEntry")

    links: list[LinkDocument]
    trust_bp: int = Field(description="As it was then.")
    erased: bool = Field(description="Its words of then were erased since.")
    as_of: MomentDocument


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
    erased: bool = Field(description="Its words were erased; what is left is a tombstone.")
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


class RevisionDifferencesDocument(BaseModel):
    """What is different from one revision to another."""

    model_config = ConfigDict(extra="forbid", title="RevisionDifferences", populate_by_name=True)

    entry_id: Id
    earlier: int = Field(ge=1, alias="from")
    later: int = Field(ge=1, alias="to")
    changes: list[FieldDifferenceDocument]


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
    NewEntryDocument,
    FeedbackDocument,
    ReasonDocument,
    CorrectionDocument,
    RestoreDocument,
    DisputeDocument,
    SupersedeDocument,
    CorroborationDocument,
    NewLinkDocument,
    VerificationDocument,
    ExpiryDocument,
    ReclassificationDocument,
    ChangeDocument,
    EntriesDocument,
    EntryDocument,
    PastEntryDocument,
    HistoryDocument,
    RevisionDifferencesDocument,
    RestorePreviewDocument,
)

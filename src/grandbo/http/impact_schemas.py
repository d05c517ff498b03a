"""The bodies of the impact routes, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from grandbo.finding_limits import URI_LIMIT
from grandbo.http.entry_schemas import Id, ReasonDocument, Time
from grandbo.http.schemas import IncidentDocument
from grandbo.memory.closure import Because
from grandbo.types import Kind, Status

_Uri = Annotated[
    str,
    Field(
        min_length=1,
        max_length=URI_LIMIT,
        pattern="^[^\\u0000-\\u001f\\u007f-\\u009f]*:[^\\u0000-\\u001f\\u007f-\\u009f]*$",
        description="Exactly as the evidence names it.",
    ),
]


class SourceDocument(BaseModel):
    """The URI of a source."""

    model_config = ConfigDict(extra="forbid", title="Source")

    uri: _Uri


class SourceReasonDocument(ReasonDocument):
    """The URI of a source, and why."""

    model_config = ConfigDict(extra="forbid", title="SourceReason")

    uri: _Uri


class EntrySeedDocument(BaseModel):
    """It begins at an entry."""

    model_config = ConfigDict(extra="forbid", title="EntrySeed")

    entry_id: Id


class ImpactReasonDocument(BaseModel):
    """Why an entry is a member: what it rests on (`of`: an entry or a URI), and how."""

    model_config = ConfigDict(extra="forbid", title="ImpactReason")

    because: Because
    of: str
    receipt_id: Id | None = Field(description="Of `recorded_after`: by which its author had been told.")


class ImpactMemberDocument(BaseModel):
    """An entry that rests on the seed, as it stands."""

    model_config = ConfigDict(extra="forbid", title="ImpactMember")

    entry_id: Id
    revision: int = Field(ge=1)
    position: int = Field(ge=1)
    kind: Kind
    status: Status
    title: str
    service: str
    reasons: list[ImpactReasonDocument]


class ImpactReceiptDocument(BaseModel):
    """An answer that held members."""

    model_config = ConfigDict(extra="forbid", title="ImpactReceipt")

    receipt_id: Id
    principal: str
    made_at: Time
    position: int
    incident: IncidentDocument | None
    entries: list[Id]


class ImpactReceiptsDocument(BaseModel):
    """The newest of those answers, and how many there are."""

    model_config = ConfigDict(extra="forbid", title="ImpactReceipts")

    total: int
    items: list[ImpactReceiptDocument]
    has_more: bool


class PossiblyAffectedDocument(BaseModel):
    """An entry by someone who had been told a member, for no incident that he named."""

    model_config = ConfigDict(extra="forbid", title="PossiblyAffected")

    entry_id: Id
    title: str
    principal: str
    receipt_id: Id


class PossiblyAffectedEntriesDocument(BaseModel):
    """Some of those entries, and how many there are."""

    model_config = ConfigDict(extra="forbid", title="PossiblyAffectedEntries")

    total: int
    items: list[PossiblyAffectedDocument]
    has_more: bool


class ImpactDocument(BaseModel):
    """All that rests on a seed, who was told any of it, and what may be affected besides."""

    model_config = ConfigDict(extra="forbid", title="Impact")

    seed: EntrySeedDocument | SourceDocument
    position: int = Field(ge=1)
    correlation_id: Id = Field(description="Of the events by which this impact is put away.")
    members: list[ImpactMemberDocument]
    receipts: ImpactReceiptsDocument
    possibly_affected: PossiblyAffectedEntriesDocument


class ContainedEntryDocument(BaseModel):
    """The acknowledgement of one entry's change, and its status now."""

    model_config = ConfigDict(extra="forbid", title="ContainedEntry")

    entry_id: Id
    revision: int
    position: int = Field(ge=1)
    hash: str = Field(pattern="^[0-9a-f]{64}$")
    status: Status


class _ContainedDocument(BaseModel):
    seed: EntrySeedDocument | SourceDocument
    correlation_id: Id
    appended: bool = Field(description="False where there was nothing to change, or on a replay.")


class ImpactQuarantineDocument(_ContainedDocument):
    """What was put away; `left` was in quarantine already, and is null on a replay."""

    model_config = ConfigDict(extra="forbid", title="ImpactQuarantine")

    quarantined: list[ContainedEntryDocument]
    left: list[Id] | None


class ImpactReleaseDocument(_ContainedDocument):
    """What was let out."""

    model_config = ConfigDict(extra="forbid", title="ImpactRelease")

    released: list[ContainedEntryDocument]


IMPACT_DOCUMENTS: tuple[type[BaseModel], ...] = (
    ReasonDocument,
    SourceDocument,
    SourceReasonDocument,
    ImpactDocument,
    ImpactQuarantineDocument,
    ImpactReleaseDocument,
)

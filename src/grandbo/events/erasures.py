"""Event bodies of erasure: what was taken out of the memory for good, and what of an entry was kept."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from grandbo.events.models import AppliesTo, Evidence, IncidentRef
from grandbo.events.parts import BasisPoints, Count, Digest, EventBody, Part, Text, UtcTime, UuidText
from grandbo.types import Kind, Precision, PrincipalType, Status

# Codes, never free text: a reason in words could hold what was to go.
ErasureReason = Literal["personal_data", "secret", "legal", "request"]


class EntryErased(EventBody):
    """
    What these streams said before this event is gone, from the log and from every projection; and what the entry's own
    stream said at these positions, where single revisions of it were erased.

    It names streams and people by their ids alone, so that it can stay. Version 1 knew no positions.
    """

    EVENT_TYPE: ClassVar[str] = "entry_erased"
    SCHEMA_VERSION: ClassVar[int] = 2
    SEALED: ClassVar[bool] = False

    reason: ErasureReason
    requested_by: Text
    requested_at: UtcTime
    streams: tuple[UuidText, ...]
    positions: tuple[Count, ...]


class RedactedEvent(Part):
    """
    What is left of an event whose words were erased: its body without them, as JSON.

    A replay reads it in the place of the body that is gone.
    """

    position: Count
    event_type: Text
    schema_version: Count
    body: Text


class EntryRedacted(EventBody):
    """Revisions of the entry have lost their words; the event before says by whose wish, and at which positions."""

    EVENT_TYPE: ClassVar[str] = "entry_redacted"

    revisions: Annotated[tuple[Count, ...], Field(min_length=1)]
    events: Annotated[tuple[RedactedEvent, ...], Field(min_length=1)]


class EntryKept(EventBody):
    """What an entry says after its past was erased: its whole state, for nothing before it is left to build it from."""

    EVENT_TYPE: ClassVar[str] = "entry_kept"

    revision: Count
    kind: Kind
    status: Status
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
    author_type: PrincipalType
    evidence: tuple[Evidence, ...]
    incident: IncidentRef | None
    supported_by: tuple[IncidentRef, ...]
    external_id: Text | None
    claim_digest: Digest
    text_digest: Digest
    occurred_at: UtcTime | None
    occurred_precision: Precision | None
    ended_at: UtcTime | None
    valid_from: UtcTime
    expires_at: UtcTime
    verified_at: UtcTime | None
    review_at: UtcTime
    disputed: bool
    disputed_with: UuidText | None
    superseded_by: UuidText | None
    recorded_at: UtcTime

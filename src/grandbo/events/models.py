"""
Event bodies, one class per event type.

A body is a fact in the past tense and it is fat: it carries all that its projection needs. Bodies are strict and
frozen, forbid unknown fields, and hold no floats: a float does not survive every round trip, and the log's bytes are
hashed. A change of meaning is a new `schema_version` with an upcaster; `tests/golden/events` keeps every version.
"""

from __future__ import annotations

import base64
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_serializer

from grandbo.events.parts import BasisPoints, Count, Digest, EventBody, Part, Text, UtcTime, UuidText
from grandbo.types import Kind, LinkType, Precision, PrincipalType, Status


class Evidence(Part):
    """Where a claim comes from."""

    type: Text
    uri: Text
    label: Text


class IncidentRef(Part):
    """Which incident taught it: the tool that knows the incident, and the id it has there."""

    source: Text
    id: Text


class AppliesTo(Part):
    """A target system, and the versions of it as a specification: `>=4,<7`; all of them where it is empty."""

    system: Text
    versions: Text


Action = Literal["redact", "quarantine", "flag"]


class ScreenFinding(Part):
    """What the screen found in a field, how often, and what was done. Never the value."""

    field: Text
    kind: Text
    action: Action
    count: Count


class Screened(Part):
    """That the screen of this version looked at the text, and what it found."""

    version: Count
    findings: tuple[ScreenFinding, ...]


class EntryRecorded(EventBody):
    """
    An entry came to be, with its whole first state; `quarantined` where the screen would have it looked at first.

    Version 1 had no namespace, owner and applicability, and knew no screen.
    """

    EVENT_TYPE: ClassVar[str] = "entry_recorded"
    SCHEMA_VERSION: ClassVar[int] = 2

    revision: Literal[1]
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
    author_type: PrincipalType
    evidence: tuple[Evidence, ...]
    incident: IncidentRef | None
    external_id: Text | None
    claim_digest: Digest
    text_digest: Digest
    occurred_at: UtcTime | None
    occurred_precision: Precision | None
    ended_at: UtcTime | None
    valid_from: UtcTime
    expires_at: UtcTime
    review_at: UtcTime
    status: Literal["published", "quarantined"]
    screened: Screened | None


class EntryCorroborated(EventBody):
    """Another incident supports the entry."""

    EVENT_TYPE: ClassVar[str] = "entry_corroborated"

    revision: Count
    incident: IncidentRef
    evidence: tuple[Evidence, ...]


class EntryChanged(EventBody):
    """Base of what a person does to an entry: it makes a revision, and it says why."""

    revision: Count
    reason: Text


class TextChanged(EntryChanged):
    """Base of what replaces an entry's text: the whole new text, whatever of it stayed the same. Never a status."""

    title: Text
    summary: Text
    body: Text
    service: Text
    tags: tuple[Text, ...]
    confidence_bp: BasisPoints
    evidence: tuple[Evidence, ...]
    occurred_at: UtcTime | None
    occurred_precision: Precision | None
    ended_at: UtcTime | None
    visibility: Text
    claim_digest: Digest
    text_digest: Digest


class EntryCorrected(TextChanged):
    """Someone put it right. `changed` names the fields that are not as they were. Version 1 knew no screen."""

    EVENT_TYPE: ClassVar[str] = "entry_corrected"
    SCHEMA_VERSION: ClassVar[int] = 2

    changed: tuple[Text, ...]
    screened: Screened | None


class EntryRevisionRestored(TextChanged):
    """The text of an earlier revision is the text again; the status is what it was."""

    EVENT_TYPE: ClassVar[str] = "entry_revision_restored"

    restored_revision: Count


class EntryArchived(EntryChanged):
    """It is put away: kept, and not recalled unless asked for by name."""

    EVENT_TYPE: ClassVar[str] = "entry_archived"


class EntryUnarchived(EntryChanged):
    """
    It is back; `no_longer_superseded` where another entry had taken its place.

    Version 1 did not say so, and left it called superseded by that one.
    """

    EVENT_TYPE: ClassVar[str] = "entry_unarchived"
    SCHEMA_VERSION: ClassVar[int] = 2

    no_longer_superseded: Annotated[bool, Field(strict=True)]


class EntryDisputed(EntryChanged):
    """Someone says it is wrong, or that another entry says otherwise."""

    EVENT_TYPE: ClassVar[str] = "entry_disputed"

    other_entry_id: UuidText | None


class EntryDisputeResolved(EntryChanged):
    """The dispute is settled: the entry stands."""

    EVENT_TYPE: ClassVar[str] = "entry_dispute_resolved"


class EntrySuperseded(EntryChanged):
    """Another entry takes its place."""

    EVENT_TYPE: ClassVar[str] = "entry_superseded"

    superseded_by: UuidText


class EntryVerified(EntryChanged):
    """Someone checked it; the next review is due at `review_at`."""

    EVENT_TYPE: ClassVar[str] = "entry_verified"

    review_at: UtcTime


class EntryExpirySet(EntryChanged):
    """It is valid until then."""

    EVENT_TYPE: ClassVar[str] = "entry_expiry_set"

    expires_at: UtcTime


class EntryExpired(EventBody):
    """
    The entry, at this revision, has passed its expiry: put on the record by the sweep.

    It makes no revision, and no answer goes by it: what has expired is decided by `expires_at` alone.
    """

    EVENT_TYPE: ClassVar[str] = "entry_expired"

    revision: Count
    expires_at: UtcTime


class EntryReclassified(EntryChanged):
    """
    What it counts as is another; the claim, which kind and tier are part of, is told apart anew.

    Version 1 had kind and tier alone.
    """

    EVENT_TYPE: ClassVar[str] = "entry_reclassified"
    SCHEMA_VERSION: ClassVar[int] = 2

    kind: Kind
    visibility: Text
    namespace: Text
    owner: Text | None
    applicability: tuple[AppliesTo, ...]
    claim_digest: Digest


class EntryQuarantined(EntryChanged):
    """It is taken out of every answer until someone has looked at it."""

    EVENT_TYPE: ClassVar[str] = "entry_quarantined"


class EntryReleased(EntryChanged):
    """It is out of quarantine, with the status that it had before."""

    EVENT_TYPE: ClassVar[str] = "entry_released"

    status: Status


class EntryLinked(EventBody):
    """The entry, at this revision, has a typed link to another. It makes no revision: it says what it said."""

    EVENT_TYPE: ClassVar[str] = "entry_linked"

    revision: Count
    link_type: LinkType
    to_entry_id: UuidText
    reason: Text


class EntryUnlinked(EventBody):
    """That link is no more."""

    EVENT_TYPE: ClassVar[str] = "entry_unlinked"

    revision: Count
    link_type: LinkType
    to_entry_id: UuidText
    reason: Text


class EmbeddedWindow(Part):
    """One window of the entry's text and its vector: little-endian float32, base64, `native_dimensions` numbers."""

    window: Annotated[int, Field(strict=True, ge=0)]
    start: Annotated[int, Field(strict=True, ge=0)]
    end: Annotated[int, Field(strict=True, ge=0)]
    vector: Text

    @classmethod
    def of(cls, window: int, start: int, end: int, vector: npt.NDArray[np.float32]) -> EmbeddedWindow:
        """Encode a vector."""
        encoded = base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode("ascii")
        return cls(window=window, start=start, end=end, vector=encoded)

    def decoded(self) -> npt.NDArray[np.float32]:
        """The vector as it was, bit for bit."""
        return np.frombuffer(base64.b64decode(self.vector), dtype="<f4")


class EntryEmbedded(EventBody):
    """The entry's text, identified by its digest, has vectors in the space that the stamp names."""

    EVENT_TYPE: ClassVar[str] = "entry_embedded"

    stamp: Text
    text_digest: Digest
    native_dimensions: Annotated[int, Field(strict=True, ge=1, le=1024)]
    windows: Annotated[tuple[EmbeddedWindow, ...], Field(min_length=1)]


class StampInForce(Part):
    """A space that recall may use, and how near in it is near: cosine distance in ten-thousandths."""

    stamp: Text
    cutoff_bp: Annotated[int, Field(strict=True, ge=1, le=20_000)]


class PeoplePolicy(Part):
    """
    What a tenant decides about memories of people and workspaces.

    `quota`: how many one subject may have at once. `per_answer`: how many one answer gives. `shared_with`: roles that
    are told everyone's, not only their own. `second_person`: whether erasing a subject takes two.
    `workspace_unconfirmed`: whether a fact about a workspace is stored without a person's confirmation. `episodes`:
    whether task summaries are taken in.
    """

    quota: Count
    per_answer: Annotated[int, Field(strict=True, ge=1, le=20)]
    shared_with: tuple[Text, ...]
    second_person: Annotated[bool, Field(strict=True)]
    workspace_unconfirmed: Annotated[bool, Field(strict=True)]
    episodes: Annotated[bool, Field(strict=True)]


class Policy(Part):
    """
    What a tenant decides for itself. Temporal: recall as of a moment uses the policy of that moment.

    `expiry_days`: 0 for a kind that does not expire, which is kept by review alone, every `review_days`.
    `stamps` empty: recall uses whatever space its process embeds in. `floor`: how many core references an answer
    without a match gives. Candidates of the second-approval kinds and tiers need two people; `pending_candidates` of
    one principal may wait at once. `screening`: what becomes of a text, for each signal of the screen. `rrf_emphasis`:
    how much more a place counts that stands out of its list; 0: ranks alone. Up to `exact_up_to` entries in scope
    everything is measured; beyond, as much as a set of numbers says, and `scan` names the set.
    """

    tiers: tuple[Text, ...]
    roles: dict[Text, tuple[Text, ...]]
    default_visibility: Text
    expiry_days: dict[Text, Annotated[int, Field(strict=True, ge=0, le=2**53 - 1)]]
    review_days: dict[Text, Count]
    rrf_k: Count
    rrf_emphasis: Annotated[int, Field(strict=True, ge=0, le=4)]
    exact_up_to: Annotated[int, Field(strict=True, ge=0, le=100_000)]
    scan: Count
    candidates: Count
    lexical_floor_bp: BasisPoints
    lexical_alone_floor_bp: BasisPoints
    stamps: tuple[StampInForce, ...]
    floor: Annotated[int, Field(strict=True, ge=0, le=3)]
    second_approval_kinds: tuple[Text, ...]
    second_approval_tiers: tuple[Text, ...]
    pending_candidates: Count
    screening: dict[Text, Literal["refuse", "redact", "quarantine", "flag"]]
    people: PeoplePolicy

    @field_serializer("roles")
    def _sorted_roles(self, roles: dict[str, tuple[str, ...]]) -> dict[str, list[str]]:
        return {role: list(roles[role]) for role in sorted(roles)}


class TenantCreated(EventBody):
    """
    The tenant's log begins; its stream is the tenant itself.

    Version 1's policy had no stamps and no floor, version 2's said nothing about people, version 3's had no emphasis,
    version 4's said nothing of how a large scope is scanned.
    """

    EVENT_TYPE: ClassVar[str] = "tenant_created"
    SCHEMA_VERSION: ClassVar[int] = 5

    name: Text
    policy: Policy


class PolicyChanged(EventBody):
    """
    The tenant decided otherwise: the whole policy as it is from here on, and what of it is new.

    Version 1 said nothing about people, version 2 had no emphasis, version 3 said nothing of how a large scope is
    scanned.
    """

    EVENT_TYPE: ClassVar[str] = "policy_changed"
    SCHEMA_VERSION: ClassVar[int] = 4

    name: Text
    policy: Policy
    changed: tuple[Text, ...]
    reason: Text

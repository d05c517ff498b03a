"""The bodies of `/v1/hooks` and `/v1/inbox`, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from grandbo.hooks.sources import SOURCES
from grandbo.http.schemas import SAYING, Document
from grandbo.memory.hooks import NAME_LIMIT
from grandbo.memory.inbox import DeliveryState
from grandbo.memory.subjects import REFERENCE_LIMIT


class NewHookDocument(Document):
    """A tool, and how far it is trusted."""

    model_config = ConfigDict(extra="forbid", title="NewHook")

    source: str = Field(description="The tool.", json_schema_extra={"enum": [*sorted(SOURCES)]})
    name: str = Field(min_length=1, max_length=NAME_LIMIT, pattern=SAYING, description="For people.")
    direct: bool | None = Field(default=False, description="What it tells with a cause is recorded at once.")
    takes_private: bool | None = Field(
        default=False, description="What is restricted there is remembered, in the highest tier."
    )
    secret: str | None = Field(default=None, description="Where the tool makes it; else one is made.")


class RotateHookDocument(Document):
    """The new secret."""

    model_config = ConfigDict(extra="forbid", title="RotateHook")

    secret: str | None = Field(default=None, description="Where the tool makes it; else one is made.")
    keep_previous: bool | None = Field(default=True, description="Whether the one before works on.")


class HookTestPayloadDocument(Document):
    """What the tool would send."""

    model_config = ConfigDict(extra="forbid", title="HookTestPayload")

    payload: dict[str, Any] | None = None


class HookDocument(Document):
    """A hook without its secrets."""

    model_config = ConfigDict(extra="forbid", title="Hook")

    hook_id: str
    source: str
    name: str
    path: str = Field(description="Where its tool delivers to.")
    signature: str | None = Field(description="The scheme; null for a source that is not known any more.")
    signed: bool = Field(description="Whether a delivery proves its body, or only that its sender knows the secret.")
    direct: bool
    takes_private: bool
    created_at: str
    rotated_at: str | None
    has_previous_secret: bool


class MadeHookDocument(HookDocument):
    """A hook with its secret, which is shown this once."""

    model_config = ConfigDict(extra="forbid", title="MadeHook")

    secret: str


class HooksDocument(Document):
    """All hooks."""

    model_config = ConfigDict(extra="forbid", title="Hooks")

    hooks: list[HookDocument]


class HookDraftDocument(Document):
    """What one part of a delivery says, and what would come of it by itself."""

    model_config = ConfigDict(extra="forbid", title="HookDraft")

    event: str
    incident_id: str
    occurred_at: str | None
    becomes: str
    document: dict[str, Any]


class HookTestDocument(Document):
    """What a delivery would become."""

    model_config = ConfigDict(extra="forbid", title="HookTest")

    hook_id: str
    verified_by: str
    ignored: str | None
    drafts: list[HookDraftDocument]


class DeliveryAnswerDocument(Document):
    """What the tool is told."""

    model_config = ConfigDict(extra="forbid", title="DeliveryAnswer")

    delivery_id: str = Field(json_schema_extra={"format": "uuid"})
    duplicate: bool = Field(description="Whether it had been delivered before.")


class DeliveryOutcomeDocument(Document):
    """What came of one part of a delivery."""

    model_config = ConfigDict(extra="forbid", title="DeliveryOutcome")

    incident_id: str
    outcome: str
    candidate_id: str | None
    entry_id: str | None


class DeliveryDocument(Document):
    """A delivery without its body."""

    model_config = ConfigDict(extra="forbid", title="Delivery")

    delivery_id: str = Field(json_schema_extra={"format": "uuid"})
    hook_id: str
    source: str
    received_at: str
    verified_by: str
    state: DeliveryState
    attempts: int
    next_attempt_at: str | None
    error_code: str | None
    note: str
    outcomes: list[DeliveryOutcomeDocument]
    subject_id: str | None = Field(
        json_schema_extra={"format": "uuid"}, description="Whom it is about, where a person has named somebody."
    )
    bytes: int
    has_body: bool


class DeliverySubjectDocument(Document):
    """Whom a delivery is about."""

    model_config = ConfigDict(extra="forbid", title="DeliverySubject")

    subject: str = Field(min_length=1, max_length=REFERENCE_LIMIT, pattern=SAYING, description="An id or a reference.")


class FullDeliveryDocument(DeliveryDocument):
    """A delivery with what is kept of its headers, and the first 64 KiB of its body."""

    model_config = ConfigDict(extra="forbid", title="FullDelivery")

    headers: dict[str, str]
    body: str | None


class DeliveryPageDocument(Document):
    """A page of the inbox."""

    model_config = ConfigDict(extra="forbid", title="DeliveryPage")

    deliveries: list[DeliveryDocument]
    next: str | None


HOOK_DOCUMENTS: tuple[type[BaseModel], ...] = (
    NewHookDocument,
    RotateHookDocument,
    HookTestPayloadDocument,
    MadeHookDocument,
    HooksDocument,
    HookTestDocument,
    DeliveryAnswerDocument,
    DeliveryDocument,
    DeliverySubjectDocument,
    FullDeliveryDocument,
    DeliveryPageDocument,
)

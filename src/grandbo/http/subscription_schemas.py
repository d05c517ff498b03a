"""The bodies of `/v1/subscriptions`, as the OpenAPI document describes them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from grandbo.http.schemas import SAYING, Document
from grandbo.memory.subscriptions import NAME_LIMIT, TOLD_TYPES, SubscriptionState
from grandbo.screening.destinations import URL_LIMIT


class NewSubscriptionDocument(Document):
    """Who is told, of what."""

    model_config = ConfigDict(extra="forbid", title="NewSubscription")

    url: str = Field(max_length=URL_LIMIT, description="Where it is sent to: a public address over TLS.")
    name: str = Field(min_length=1, max_length=NAME_LIMIT, pattern=SAYING, description="For people.")
    event_types: list[str] | None = Field(
        default=None,
        description="Of which events; all of entries and candidates where omitted, but that a vector arrived.",
        json_schema_extra={"items": {"type": "string", "enum": [*TOLD_TYPES, "entry_embedded"]}},
    )
    tiers: list[str] | None = Field(
        default=None, description="It learns of what stands in these; the tenant's default tier where omitted."
    )
    start: int | None = Field(
        default=None, ge=1, lt=2**62, description="The first position that is told; else what comes from now on."
    )
    secret: str | None = Field(default=None, description="`whsec_…`; one is made where omitted.")


class RotateSubscriptionDocument(Document):
    """The new secret."""

    model_config = ConfigDict(extra="forbid", title="RotateSubscription")

    secret: str | None = Field(default=None, description="`whsec_…`; one is made where omitted.")
    keep_previous: bool | None = Field(default=True, description="Whether it signs with the one before too.")


class ReplaySubscriptionDocument(Document):
    """From where."""

    model_config = ConfigDict(extra="forbid", title="ReplaySubscription")

    start: int = Field(ge=1, lt=2**62, description="The first position that is told.")


class SubscriptionDocument(Document):
    """A subscription without its secrets."""

    model_config = ConfigDict(extra="forbid", title="Subscription")

    subscription_id: str = Field(json_schema_extra={"format": "uuid"})
    name: str
    url: str
    event_types: list[str]
    tiers: list[str]
    state: SubscriptionState
    position: int = Field(description="Everything up to here has been told, or was not for it.")
    behind: int = Field(description="How many positions the log is further.")
    attempts: int = Field(description="How often the next event was tried in vain.")
    next_attempt_at: str | None
    error_code: str | None
    note: str
    delivered_at: str | None
    created_by: str
    created_at: str
    rotated_at: str | None
    has_previous_secret: bool


class MadeSubscriptionDocument(SubscriptionDocument):
    """A subscription with its secret, which is shown this once."""

    model_config = ConfigDict(extra="forbid", title="MadeSubscription")

    secret: str


class SubscriptionsDocument(Document):
    """All subscriptions."""

    model_config = ConfigDict(extra="forbid", title="Subscriptions")

    subscriptions: list[SubscriptionDocument]


class SubscriptionTestDocument(Document):
    """What became of a delivery that was only a test."""

    model_config = ConfigDict(extra="forbid", title="SubscriptionTest")

    subscription_id: str = Field(json_schema_extra={"format": "uuid"})
    ok: bool
    status: int | None = Field(description="Of the answer, where there was one.")
    error_code: str | None
    note: str


SUBSCRIPTION_DOCUMENTS: tuple[type[BaseModel], ...] = (
    NewSubscriptionDocument,
    RotateSubscriptionDocument,
    ReplaySubscriptionDocument,
    MadeSubscriptionDocument,
    SubscriptionDocument,
    SubscriptionsDocument,
    SubscriptionTestDocument,
)

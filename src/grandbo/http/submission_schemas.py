"""The bodies of an entry of any kind and of feedback, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from grandbo.http.schemas import FindingDocument
from grandbo.recall.feedback import NOTE_LIMIT
from grandbo.types import OrganisationKind, Verdict


class NewEntryDocument(FindingDocument):
    """What is to be remembered, of whatever kind. Null stands for an omitted field."""

    model_config = ConfigDict(extra="forbid", title="NewEntry")

    kind: OrganisationKind


class FeedbackDocument(BaseModel):
    """What became of one entry of the answer."""

    model_config = ConfigDict(extra="forbid", title="Feedback")

    entry_id: str = Field(json_schema_extra={"format": "uuid"})
    verdict: Verdict
    note: Annotated[str, Field(min_length=1, max_length=NOTE_LIMIT)] | None = None

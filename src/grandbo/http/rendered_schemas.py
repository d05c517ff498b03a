"""The answer of a recall with its context block, as the OpenAPI document describes it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from grandbo.http.recall_schemas import AnswerDocument


class RenderedDocument(BaseModel):
    """The answer as the fenced block that a model is given."""

    model_config = ConfigDict(extra="forbid", title="Rendered")

    text: str
    tokens: int = Field(ge=1, description="Estimated, rather too many than too few.")
    has_more: bool = Field(description="Whether matches are left out for want of room.")
    shown: int = Field(ge=0)
    left_out: int = Field(ge=0)


class RenderedAnswerDocument(AnswerDocument):
    """Matches, best first, or why there are none; and the block."""

    model_config = ConfigDict(extra="forbid", title="RenderedAnswer")

    rendered: RenderedDocument


RENDERED_DOCUMENTS: tuple[type[BaseModel], ...] = (RenderedAnswerDocument,)

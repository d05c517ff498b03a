"""The event body of feedback: what became of an answer."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from grandbo.events.parts import Count, EventBody, Text, UuidText
from grandbo.types import Verdict


class FeedbackGiven(EventBody):
    """Someone who was told it says what became of the answer; a later one of the same stream takes its place."""

    EVENT_TYPE: ClassVar[str] = "feedback_given"

    receipt_id: UuidText
    entry_id: UuidText
    revision: Count
    verdict: Verdict
    note: Annotated[Text, Field(max_length=1_000)] | None

"""What event bodies are made of: the base that all of them have, and the kinds of values in them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(strict=True)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
UtcTime = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$")]
UuidText = Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
BasisPoints = Annotated[int, Field(strict=True, ge=0, le=10_000)]
Count = Annotated[int, Field(strict=True, ge=1, le=2**53 - 1)]


class Part(BaseModel):
    """A value inside an event body."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EventBody(Part):
    """What an event says. `EVENT_TYPE` and `SCHEMA_VERSION` are the stable names under which it is stored."""

    EVENT_TYPE: ClassVar[str]
    SCHEMA_VERSION: ClassVar[int] = 1
    # Sealed under the subject's key wherever its stream is about one.
    SEALED: ClassVar[bool] = True

    # What the command said, digested: tells a retry from a second use of its id. It leaves with the body.
    command_digest: Digest | None = None

    def document(self) -> dict[str, Any]:
        """Plain JSON values: str, int, bool, None, list, dict."""
        return self.model_dump(mode="json")

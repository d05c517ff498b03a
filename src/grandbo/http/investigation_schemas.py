"""The bodies of working notes and of recall in layers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from grandbo.http.recall_schemas import AnswerDocument, AskedDocument
from grandbo.http.schemas import TEXT, Document
from grandbo.memory.notes import NOTE_LIMIT, NoteRole
from grandbo.recall.budget import MAX_BUDGET, MIN_BUDGET

Layer = Literal["findings", "guidance", "reference", "ruled_out", "personal", "notes"]


class NoteDocument(Document):
    """What to note."""

    model_config = ConfigDict(extra="forbid", title="Note")

    text: str = Field(min_length=1, max_length=NOTE_LIMIT, pattern=TEXT)
    role: NoteRole | None = "note"


class NotedDocument(Document):
    """The note."""

    model_config = ConfigDict(extra="forbid", title="Noted")

    note_id: str = Field(json_schema_extra={"format": "uuid"})
    role: NoteRole
    author: str
    text: str
    noted_at: str


class WindowDocument(Document):
    """The last notes within a budget of tokens; how many it shows, dropped as too old, and clipped as too long."""

    model_config = ConfigDict(extra="forbid", title="Window")

    text: str
    tokens: int
    shown: int
    dropped: int
    clipped: int


class ClosedDocument(Document):
    """How many notes were forgotten."""

    model_config = ConfigDict(extra="forbid", title="Closed")

    investigation_id: str
    forgotten: int


class ContextDocument(AskedDocument):
    """A topic, and the layers to recall; fields that narrow are those of a recall."""

    model_config = ConfigDict(extra="forbid", title="Context")

    layers: list[Layer] | None = Field(default=None, description="findings, guidance and ruled_out unless given.")
    investigation_id: str | None = Field(default=None, description="Whose notes the layer `notes` gives.")
    budget: (
        Annotated[int, Field(ge=MIN_BUDGET, le=MAX_BUDGET)]
        | dict[str, Annotated[int, Field(ge=MIN_BUDGET, le=MAX_BUDGET)]]
        | None
    ) = Field(default=None, description="Tokens for all together, 2000 unless given, or for each layer by name.")


class LayerDocument(Document):
    """One layer: its heading, the answer, and how much of it the text shows."""

    model_config = ConfigDict(extra="forbid", title="Layer")

    heading: str
    answer: AnswerDocument | None = None
    rendered: dict[str, Any]


class LayeredDocument(Document):
    """The layers by name, and one text of all, each in a fence of its own."""

    model_config = ConfigDict(extra="forbid", title="Layered")

    layers: dict[str, LayerDocument]
    text: str


INVESTIGATION_DOCUMENTS: tuple[type[BaseModel], ...] = (
    NoteDocument,
    NotedDocument,
    WindowDocument,
    ClosedDocument,
    ContextDocument,
    LayeredDocument,
)

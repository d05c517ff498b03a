"""The golden event bodies: every version ever shipped, with every field in use and with as few as it allows."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path

import rfc8785

from grandbo.events import chain
from grandbo.events.log import RecordedEvent
from grandbo.events.registry import EVENT_TYPES

FOLDER = Path(__file__).parent.parent / "golden" / "events"
FORMS = ("full", "minimal")


def golden_path(event_type: str, schema_version: int, form: str) -> Path:
    """Where a golden body, or with `schema` a model's schema, is kept."""
    return FOLDER / f"{event_type}.v{schema_version}.{form}.json"


def golden_body(event_type: str, schema_version: int, form: str) -> bytes:
    """The bytes as they stand in a log; the file has them indented."""
    return rfc8785.dumps(json.loads(golden_path(event_type, schema_version, form).read_text(encoding="utf-8")))


def golden_event(event_type: str, form: str, *, position: int = 7, stream: int = 3) -> RecordedEvent:
    """A golden body of today's version as an event of a log, of this stream."""
    model = EVENT_TYPES[event_type]
    header = chain.EventHeader(
        tenant_id=uuid.UUID(int=1),
        position=position,
        event_id=uuid.UUID(int=2),
        stream_id=uuid.UUID(int=stream),
        stream_version=1,
        event_type=event_type,
        schema_version=model.SCHEMA_VERSION,
        principal=f"human:{uuid.UUID(int=4)}",
        subject_id=None,
        command_id=uuid.UUID(int=5),
        command_index=0,
        correlation_id=None,
        causation_id=None,
        occurred_at=datetime(2026, 1, 2, tzinfo=UTC),
        recorded_at=datetime(2026, 1, 2, tzinfo=UTC),
    )
    body = golden_body(event_type, model.SCHEMA_VERSION, form)
    return RecordedEvent(header, "", body, bytes(32), bytes(32), bytes(32), model.model_validate_json(body))

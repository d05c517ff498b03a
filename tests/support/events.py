"""The golden event bodies: every version ever shipped, with every field in use and with as few as it allows."""

from __future__ import annotations

import json
from pathlib import Path

import rfc8785

FOLDER = Path(__file__).parent.parent / "golden" / "events"
FORMS = ("full", "minimal")


def golden_path(event_type: str, schema_version: int, form: str) -> Path:
    """Where a golden body, or with `schema` a model's schema, is kept."""
    return FOLDER / f"{event_type}.v{schema_version}.{form}.json"


def golden_body(event_type: str, schema_version: int, form: str) -> bytes:
    """The bytes as they stand in a log; the file has them indented."""
    return rfc8785.dumps(json.loads(golden_path(event_type, schema_version, form).read_text(encoding="utf-8")))

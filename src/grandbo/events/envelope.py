"""
An event's envelope against its row: whether it is the one text that the columns and the body allow.

Part of the product's own verification; what is wrong is said in words, None or a document where nothing is.
"""

from __future__ import annotations

import json
import re
from typing import Any

import rfc8785

from grandbo.events import chain
from grandbo.storage.database import Row
from grandbo.types import utc_text

_TEXT_COLUMNS = (
    "event_id",
    "stream_id",
    "subject_id",
    "command_id",
    "correlation_id",
    "causation_id",
    "tenant_id",
)
_PLAIN_COLUMNS = ("position", "stream_version", "event_type", "schema_version", "principal", "command_index")
_TIME_COLUMNS = ("occurred_at", "recorded_at")
_KEYS = {"v", "commitment", *_TEXT_COLUMNS, *_PLAIN_COLUMNS, *_TIME_COLUMNS}
_NULLABLE = {"subject_id", "correlation_id", "causation_id"}
_EVENT_TYPE = re.compile(r"[a-z][a-z0-9_]{0,62}")
_PRINCIPAL = re.compile(r"(human|agent|hook|system):[0-9a-f-]{36}")
_SHAPES = {"commitment": re.compile(r"[0-9a-f]{64}"), "event_type": _EVENT_TYPE, "principal": _PRINCIPAL}
_ENVELOPE = (
    '{"causation_id":%s,"command_id":"%s","command_index":%d,"commitment":"%s","correlation_id":%s,"event_id":"%s",'
    '"event_type":"%s","occurred_at":"%s","position":%d,"principal":"%s","recorded_at":"%s","schema_version":%d,'
    '"stream_id":"%s","stream_version":%d,"subject_id":%s,"tenant_id":"%s","v":1}'
)


def stated(row: Row) -> dict[str, Any]:
    """What the columns say, in the envelope's spelling."""
    return {
        "tenant_id": _text(row["tenant_id"]),
        "position": row["position"],
        "event_id": _text(row["event_id"]),
        "stream_id": _text(row["stream_id"]),
        "stream_version": row["stream_version"],
        "event_type": row["event_type"],
        "schema_version": row["schema_version"],
        "principal": row["principal"],
        "subject_id": _text(row["subject_id"]),
        "command_id": _text(row["command_id"]),
        "command_index": row["command_index"],
        "correlation_id": _text(row["correlation_id"]),
        "causation_id": _text(row["causation_id"]),
        "occurred_at": utc_text(row["occurred_at"]),
        "recorded_at": utc_text(row["recorded_at"]),
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def written(columns: dict[str, Any], row: Row) -> str | None:
    """
    The one envelope that columns, salt and body allow; None where only reading the stored one can tell.

    To write it and to compare is several times faster than to read it and to look at each key.
    """
    body, salt = row["body"], row["salt"]
    if body is None or salt is None or len(salt) != chain.SALT_BYTES:
        return None
    event_type, principal = columns["event_type"], columns["principal"]
    # What could hold a quote is looked at first; the rest is of a type that cannot.
    if not (_EVENT_TYPE.fullmatch(event_type or "") and _PRINCIPAL.fullmatch(principal or "")):
        return None
    if None in (columns["event_id"], columns["stream_id"], columns["command_id"], columns["tenant_id"]):
        return None
    causation, correlation, subject = columns["causation_id"], columns["correlation_id"], columns["subject_id"]
    return _ENVELOPE % (
        f'"{causation}"' if causation else "null",
        columns["command_id"],
        columns["command_index"],
        chain.commitment(salt, body).hex(),
        f'"{correlation}"' if correlation else "null",
        columns["event_id"],
        event_type,
        columns["occurred_at"],
        columns["position"],
        principal,
        columns["recorded_at"],
        columns["schema_version"],
        columns["stream_id"],
        columns["stream_version"],
        f'"{subject}"' if subject else "null",
        columns["tenant_id"],
    )


def read_document(position: int, tenant_id: str, row: Row) -> dict[str, Any] | str:
    """The envelope of the event at `position`, key by key, or what is wrong with it."""
    document = _canonical_document(row["envelope"])
    if document is None:
        return "envelope is not canonical"
    if document.keys() != _KEYS or type(document["v"]) is not int or document["v"] != 1:
        return "envelope is not of version 1"
    malformed = _malformed_key(document)
    if malformed is not None:
        return f"envelope has a malformed {malformed}"
    if document["tenant_id"] != tenant_id:
        return "event of another tenant"
    if document["position"] != position or row["position"] != position:
        return "gap, duplicate or reorder"
    column = _column_that_differs(document, row)
    return document if column is None else f"column {column} differs from the envelope"


def _canonical_document(envelope: str) -> dict[str, Any] | None:
    try:
        document = json.loads(envelope)
        is_canonical = isinstance(document, dict) and rfc8785.dumps(document).decode() == envelope
    except (ValueError, RecursionError):
        return None
    return document if is_canonical else None


def _malformed_key(document: dict[str, Any]) -> str | None:
    for name in sorted(_KEYS - _NULLABLE):
        value, shape = document[name], _SHAPES.get(name)
        if value is None or (shape is not None and not (isinstance(value, str) and shape.fullmatch(value))):
            return name
    return None


def _column_that_differs(document: dict[str, Any], row: Row) -> str | None:
    for name in _TEXT_COLUMNS:
        if document[name] != (None if row[name] is None else str(row[name])):
            return name
    for name in _PLAIN_COLUMNS:
        # The types too: to Python `true` equals 1.
        if type(document[name]) is not type(row[name]) or document[name] != row[name]:
            return name
    for name in _TIME_COLUMNS:
        if document[name] != utc_text(row[name]):
            return name
    return None

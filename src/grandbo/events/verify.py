"""
Verification of a tenant's log against itself: the product's own implementation.

`scripts/verify_log.py` is the second one; it imports nothing from here, and a test runs both over the same logs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import rfc8785

from grandbo.events import chain
from grandbo.events.log import READ_HEAD, read_rows
from grandbo.storage.database import Database, Row
from grandbo.types import utc_text

Progress = Callable[[int], None]

_ERASURES = ("entry_erased", "subject_erased")
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
_SHAPES = {
    "commitment": re.compile(r"[0-9a-f]{64}"),
    "event_type": re.compile(r"[a-z][a-z0-9_]{0,62}"),
    "principal": re.compile(r"(human|agent|hook|system):[0-9a-f-]{36}"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """The first position at which the log is not what it must be, and what is wrong there."""

    position: int
    what: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"position": self.position, "what": self.what}


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verification of one tenant found."""

    tenant_id: UUID
    events: int
    head: int
    first_bad: Fault | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "tenant_id": str(self.tenant_id),
            "events": self.events,
            "head": self.head,
            "first_bad": self.first_bad.as_dict() if self.first_bad else None,
        }


@dataclass(slots=True)
class _State:
    position: int = 0
    hash: bytes = b""
    recorded_at: str = ""
    versions: dict[str, int] = field(default_factory=dict)
    seen: set[tuple[str, ...]] = field(default_factory=set)
    removed: list[dict[str, Any]] = field(default_factory=list)
    erasures: list[tuple[int, set[str], str | None]] = field(default_factory=list)


def verify_tenant(database: Database, tenant_id: UUID, *, progress: Progress | None = None) -> Verification:
    """Read the tenant's whole log in one snapshot and check every event, then the head."""
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        heads = transaction.execute(READ_HEAD, {"tenant_id": tenant_id})
        state, fault = verify_rows(tenant_id, read_rows(transaction, tenant_id), progress)
    head = heads[0]["position"] if heads else 0
    if fault is None and not heads:
        fault = Fault(0, "the tenant has no head")
    elif fault is None and (head, heads[0]["hash"]) != (state.position, state.hash):
        # The same position with another hash: the last event is not the one that the head was moved onto.
        first_bad = head if head == state.position else min(head, state.position) + 1
        fault = Fault(first_bad, "the head does not name the last event")
    return Verification(tenant_id, state.position, head, fault)


def head_position(database: Database, tenant_id: UUID) -> int:
    """The tenant's last position; 0 where there is no head."""
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        heads = transaction.execute(READ_HEAD, {"tenant_id": tenant_id})
    return int(heads[0]["position"]) if heads else 0


def verify_rows(tenant_id: UUID, rows: Iterable[Row], progress: Progress | None = None) -> tuple[_State, Fault | None]:
    """Check rows of the log in order, from the first."""
    state = _State(hash=chain.genesis(tenant_id))
    for row in rows:
        what = _fault_of(state, str(tenant_id), row)
        if what is not None:
            return state, Fault(state.position + 1, what)
        state.position += 1
        if progress and state.position % 1_000 == 0:
            progress(state.position)
    for document in state.removed:
        if not _is_covered(document, state.erasures):
            return state, Fault(document["position"], "body missing without an erasure event")
    return state, None


def _fault_of(state: _State, tenant_id: str, row: Row) -> str | None:
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
    if document["position"] != state.position + 1 or row["position"] != state.position + 1:
        return "gap, duplicate or reorder"
    column = _column_that_differs(document, row)
    if column is not None:
        return f"column {column} differs from the envelope"
    return _chain_fault(state, row) or _body_fault(state, document, row) or _order_fault(state, document)


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


def _chain_fault(state: _State, row: Row) -> str | None:
    if row["prev_hash"] != state.hash:
        return "chain broken: does not continue the event before"
    state.hash = chain.link(row["position"], state.hash, chain.leaf_hash(row["envelope"]))
    return None if row["hash"] == state.hash else "event altered: its hash does not fit"


def _body_fault(state: _State, document: dict[str, Any], row: Row) -> str | None:
    body, salt = row["body"], row["salt"]
    if (body is None) != (salt is None):
        return "half-removed body"
    if body is None:
        state.removed.append(document)
        return None
    if len(salt) != chain.SALT_BYTES or chain.commitment(salt, body).hex() != document["commitment"]:
        return "body altered: it does not fit its commitment"
    if document["event_type"] in _ERASURES:
        streams = _erased_streams(body)
        if streams is None:
            return "erasure that does not say what it removed"
        subject = document["stream_id"] if document["event_type"] == "subject_erased" else None
        state.erasures.append((document["position"], streams, subject))
    return None


def _erased_streams(body: bytes) -> set[str] | None:
    try:
        document = json.loads(body.decode())
    except (ValueError, RecursionError):
        return None
    streams = document.get("streams", []) if isinstance(document, dict) else None
    if not isinstance(streams, list) or not all(isinstance(stream, str) for stream in streams):
        return None
    return set(streams)


def _order_fault(state: _State, document: dict[str, Any]) -> str | None:
    stream, version = document["stream_id"], document["stream_version"]
    if version != state.versions.get(stream, 0) + 1:
        return "stream version skipped"
    state.versions[stream] = version
    if document["recorded_at"] < state.recorded_at:
        return "recorded_at ran backwards"
    state.recorded_at = document["recorded_at"]
    for key in (("event", document["event_id"]), ("command", document["command_id"], str(document["command_index"]))):
        if key in state.seen:
            return f"{key[0]} id used twice"
        state.seen.add(key)
    return None


def _is_covered(document: dict[str, Any], erasures: list[tuple[int, set[str], str | None]]) -> bool:
    return any(
        document["position"] < position
        and (document["stream_id"] in streams or (subject is not None and document["subject_id"] == subject))
        for position, streams, subject in erasures
    )

"""
Verification of a tenant's log against itself: the product's own implementation.

`scripts/verify_log.py` is the second one; it imports nothing from here, and a test runs both over the same logs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput
from grandbo.events import chain
from grandbo.events.envelope import read_document, stated, written
from grandbo.events.log import READ_HEAD, read_rows
from grandbo.events.merkle import Frontier
from grandbo.events.notes import NoteRefused, open_checkpoint, origin_of
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.tables import checkpoints, events
from grandbo.storage.tenancy import of_tenant
from grandbo.types import utc_text

Progress = Callable[[int], None]

_ERASURES = ("entry_erased", "subject_erased")

_NOTES = sa.select(checkpoints).where(of_tenant(checkpoints)).order_by(checkpoints.c.size, checkpoints.c.is_full)
_EVENT_AT = sa.select(events.c.hash, events.c.recorded_at).where(
    of_tenant(events), events.c.position == sa.bindparam("at", type_=sa.BigInteger)
)
_VERSIONS_AT = (
    sa.select(events.c.stream_id, sa.func.max(events.c.stream_version).label("version"))
    .where(of_tenant(events), events.c.position <= sa.bindparam("at", type_=sa.BigInteger))
    .group_by(events.c.stream_id)
)


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


@dataclass(frozen=True, slots=True)
class _Erasure:
    """An erasure event: whose earlier bodies it removed, and at which positions of its own stream it did."""

    position: int
    stream_id: str
    streams: frozenset[str]
    positions: frozenset[int]
    subject_id: str | None

    def covers(self, document: Mapping[str, Any]) -> bool:
        """Whether it may have removed the body of this event."""
        if document["position"] >= self.position:
            return False
        by_subject = self.subject_id is not None and document["subject_id"] == self.subject_id
        is_named = document["stream_id"] == self.stream_id and document["position"] in self.positions
        return by_subject or is_named or document["stream_id"] in self.streams


@dataclass(slots=True)
class State:
    """What the next event has to fit. `roots`: by size, the roots that were signed; they need the `frontier`."""

    position: int = 0
    hash: bytes = b""
    recorded_at: str = ""
    versions: dict[str, int] = field(default_factory=dict)
    event_ids: set[str] = field(default_factory=set)
    commands: set[tuple[str, int]] = field(default_factory=set)
    removed: list[Mapping[str, Any]] = field(default_factory=list)
    erasures: list[_Erasure] = field(default_factory=list)
    frontier: Frontier | None = None
    roots: dict[int, bytes] = field(default_factory=dict)


def verify_tenant(
    database: Database,
    tenant_id: UUID,
    *,
    start: int = 1,
    public_key: bytes | None = None,
    progress: Progress | None = None,
) -> Verification:
    """
    Read the tenant's log in one snapshot and check every event, then the head.

    Args:
        start: the first position to check; what stands before it is taken as it is.
        public_key: the notary's. With it, and from the first position on, the stored checkpoints are checked as well.
    """
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        heads = transaction.execute(READ_HEAD, {"tenant_id": tenant_id})
        head = heads[0]["position"] if heads else 0
        if not 1 <= start <= max(head, 1):
            raise InvalidInput(f"from: the log has the positions 1 to {head}; name one of them.", field="from")
        state = resumed(transaction, tenant_id, start - 1)
        fault = None
        if start == 1 and public_key is not None:
            state.frontier = Frontier()
            fault = _take_notes(transaction, tenant_id, public_key, state)
        state, found = verify_rows(tenant_id, read_rows(transaction, tenant_id, after=start - 1), progress, state)
    fault = _earlier(found, fault)
    if fault is None and not heads:
        fault = Fault(0, "the tenant has no head")
    elif fault is None and (head, heads[0]["hash"]) != (state.position, state.hash):
        # The same position with another hash: the last event is not the one that the head was moved onto.
        first_bad = head if head == state.position else min(head, state.position) + 1
        fault = Fault(first_bad, "the head does not name the last event")
    fault = fault or _lost_tail(state)
    return Verification(tenant_id, state.position - start + 1, head, fault)


def resumed(transaction: Transaction, tenant_id: UUID, position: int) -> State:
    """The state after the event at `position`, taken from the log as it is; event and command ids start anew."""
    if position == 0:
        return State(hash=chain.genesis(tenant_id))
    at = {"tenant_id": tenant_id, "at": position}
    rows = transaction.execute(_EVENT_AT, at)
    versions = {str(row["stream_id"]): row["version"] for row in transaction.execute(_VERSIONS_AT, at)}
    if not rows:
        # Then the chain cannot continue, and the first event to check is the one that says so.
        return State(position, versions=versions)
    return State(position, rows[0]["hash"], utc_text(rows[0]["recorded_at"]), versions)


def stored_notes(transaction: Transaction, tenant_id: UUID) -> list[Row]:
    """The tenant's checkpoints as they are stored, smallest first; of one size the quick one, then the full one."""
    return transaction.execute(_NOTES, {"tenant_id": tenant_id})


def _take_notes(transaction: Transaction, tenant_id: UUID, public_key: bytes, state: State) -> Fault | None:
    for row in stored_notes(transaction, tenant_id):
        try:
            checkpoint = open_checkpoint(row["note"], origin_of(tenant_id), public_key)
        except NoteRefused as refusal:
            return Fault(row["size"], f"checkpoint: {refusal}")
        if (checkpoint.size, checkpoint.root) != (row["size"], row["root"]):
            return Fault(row["size"], "checkpoint: size or root differ from the signed note")
        state.roots[checkpoint.size] = checkpoint.root
    return None


def _lost_tail(state: State) -> Fault | None:
    signed = max(state.roots, default=0)
    if signed <= state.position:
        return None
    return Fault(state.position + 1, f"the log ends before the signed checkpoint of size {signed}")


def _earlier(one: Fault | None, other: Fault | None) -> Fault | None:
    return min((fault for fault in (one, other) if fault), key=lambda fault: fault.position, default=None)


def head_position(database: Database, tenant_id: UUID) -> int:
    """The tenant's last position; 0 where there is no head."""
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        heads = transaction.execute(READ_HEAD, {"tenant_id": tenant_id})
    return int(heads[0]["position"]) if heads else 0


def verify_rows(
    tenant_id: UUID, rows: Iterable[Row], progress: Progress | None = None, state: State | None = None
) -> tuple[State, Fault | None]:
    """Check rows of the log in order, from the first, or from where `state` stands."""
    state = state or State(hash=chain.genesis(tenant_id))
    own_id = str(tenant_id)
    for row in rows:
        what = _fault_of(state, own_id, row)
        if what is not None:
            return state, Fault(state.position + 1, what)
        state.position += 1
        if progress and state.position % 1_000 == 0:
            progress(state.position)
    for document in state.removed:
        if not _is_covered(document, state.erasures):
            return state, Fault(document["position"], "body missing without an erasure event")
    return state, None


def _fault_of(state: State, tenant_id: str, row: Row) -> str | None:
    document = stated(row)
    is_as_written = row["envelope"] == written(document, row) and row["position"] == state.position + 1
    if not is_as_written or document["tenant_id"] != tenant_id:
        read = read_document(state.position + 1, tenant_id, row)
        if isinstance(read, str):
            return read
        document = read
    return (
        _chain_fault(state, row)
        or _body_fault(state, document, row, is_checked=is_as_written)
        or _order_fault(state, document)
    )


def _chain_fault(state: State, row: Row) -> str | None:
    if row["prev_hash"] != state.hash:
        return "chain broken: does not continue the event before"
    leaf = chain.leaf_hash(row["envelope"])
    state.hash = chain.link(row["position"], state.hash, leaf)
    if row["hash"] != state.hash:
        return "event altered: its hash does not fit"
    if state.frontier is not None:
        state.frontier.add(leaf)
        signed = state.roots.get(state.frontier.size)
        if signed is not None and state.frontier.root() != signed:
            return "the log up to here is not the one of the signed checkpoint"
    return None


def _body_fault(state: State, document: Mapping[str, Any], row: Row, *, is_checked: bool) -> str | None:
    body, salt = row["body"], row["salt"]
    if (body is None) != (salt is None):
        return "half-removed body"
    if body is None:
        state.removed.append(document)
        return None
    if not is_checked and (
        len(salt) != chain.SALT_BYTES or chain.commitment(salt, body).hex() != document["commitment"]
    ):
        return "body altered: it does not fit its commitment"
    if document["event_type"] in _ERASURES:
        erasure = _erasure_of(document, body)
        if erasure is None:
            return "erasure that does not say what it removed"
        state.erasures.append(erasure)
    return None


def _erasure_of(document: Mapping[str, Any], body: bytes) -> _Erasure | None:
    try:
        said = json.loads(body.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    streams, positions = said.get("streams", []), said.get("positions", [])
    if not isinstance(streams, list) or not all(isinstance(stream, str) for stream in streams):
        return None
    if not isinstance(positions, list) or not all(type(position) is int for position in positions):
        return None
    is_subjects = document["event_type"] == "subject_erased"
    own = document["stream_id"]
    return _Erasure(document["position"], own, frozenset(streams), frozenset(positions), own if is_subjects else None)


def _order_fault(state: State, document: Mapping[str, Any]) -> str | None:
    stream, version = document["stream_id"], document["stream_version"]
    if version != state.versions.get(stream, 0) + 1:
        return "stream version skipped"
    state.versions[stream] = version
    if document["recorded_at"] < state.recorded_at:
        return "recorded_at ran backwards"
    state.recorded_at = document["recorded_at"]
    command = (document["command_id"], document["command_index"])
    if document["event_id"] in state.event_ids:
        return "event id used twice"
    if command in state.commands:
        return "command id used twice"
    state.event_ids.add(document["event_id"])
    state.commands.add(command)
    return None


def _is_covered(document: Mapping[str, Any], erasures: list[_Erasure]) -> bool:
    return any(erasure.covers(document) for erasure in erasures)

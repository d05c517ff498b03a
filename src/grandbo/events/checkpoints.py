"""
Checkpoints: what the log was, signed, so that it can be kept where nobody who runs the database can rewrite it.

The notary signs nothing that is not consistent with what it signed last: an old note, kept by anyone, then shows a
rewriting even by someone who holds the key.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import LogDamaged
from grandbo.events import chain
from grandbo.events.log import READ_HEAD, head_of, read_rows
from grandbo.events.merkle import Frontier
from grandbo.events.notes import (
    Checkpoint,
    NoteRefused,
    open_checkpoint,
    origin_of,
    parse_checkpoint,
    public_bytes,
    sign_checkpoint,
)
from grandbo.events.verify import Fault, Progress, resumed, verify_rows
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.tables import checkpoints, events
from grandbo.storage.tenancy import TENANT, of_tenant

# Of one size there may be a quick one and a full one, which says the same and more.
_fuller_first = (checkpoints.c.size.desc(), checkpoints.c.is_full.desc())
_LAST_NOTE = sa.select(checkpoints).where(of_tenant(checkpoints)).order_by(*_fuller_first).limit(1)
_NOTES = (
    sa.select(checkpoints)
    .where(of_tenant(checkpoints), checkpoints.c.size < sa.bindparam("before", type_=sa.BigInteger))
    .ext(pg.distinct_on(checkpoints.c.size))
    .order_by(*_fuller_first)
    .limit(sa.bindparam("page", type_=sa.Integer))
)
_FULL_NOTE_AT = sa.select(checkpoints.c.note).where(
    of_tenant(checkpoints), checkpoints.c.size == sa.bindparam("at"), checkpoints.c.is_full
)
_KEPT_NOTE = sa.select(checkpoints.c.note).where(
    of_tenant(checkpoints),
    checkpoints.c.size == sa.bindparam("at"),
    checkpoints.c.is_full == sa.bindparam("is_full", type_=sa.Boolean),
)
_KEEP = (
    pg.insert(checkpoints)
    .values(
        tenant_id=TENANT,
        size=sa.bindparam("size", type_=sa.BigInteger),
        root=sa.bindparam("root"),
        note=sa.bindparam("note"),
    )
    .on_conflict_do_nothing()
)
_ENVELOPES = (
    sa.select(events.c.envelope)
    .where(of_tenant(events), events.c.position <= sa.bindparam("at", type_=sa.BigInteger))
    .order_by(events.c.position)
)


@dataclass(frozen=True, slots=True)
class Signed:
    """A checkpoint and its note; `created` is False where it had been made before."""

    tenant_id: UUID
    checkpoint: Checkpoint
    note: str
    created: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "tenant_id": str(self.tenant_id),
            "origin": self.checkpoint.origin,
            "size": self.checkpoint.size,
            "root": base64.b64encode(self.checkpoint.root).decode(),
            "extensions": list(self.checkpoint.extensions),
            "note": self.note,
            "created": self.created,
        }


def standing(database: Database, tenant_id: UUID, key: Ed25519PrivateKey, *, full: bool) -> Signed | None:
    """
    The last checkpoint if the log has not grown since; None where a new one is due.

    Args:
        full: one that states the digest of the projections; after a quick one it is due without a new event.

    Raises:
        LogDamaged
    """
    with database.transaction("notary", tenant_id, read_only=True, snapshot=True) as transaction:
        head = head_of(transaction.execute(READ_HEAD, {"tenant_id": tenant_id}))
        last = _last(transaction, tenant_id, key)
        if last is None or last.checkpoint.size < head.position or (full and not last.checkpoint.is_full):
            return None
        # What has not grown must still be what was signed.
        _check(transaction, tenant_id, last.checkpoint, head.position, None)
    return last


def make(
    database: Database,
    tenant_id: UUID,
    key: Ed25519PrivateKey,
    size: int,
    extensions: Sequence[str] = (),
    *,
    progress: Progress | None = None,
) -> Signed:
    """
    Sign the log up to `size`, and keep the note.

    Everything after the last checkpoint is verified; everything before it must be what that checkpoint signed.

    Raises:
        LogDamaged: the log does not verify, or is not consistent with the last checkpoint.
    """
    with database.transaction("notary", tenant_id, read_only=True, snapshot=True) as transaction:
        last = _last(transaction, tenant_id, key)
        root = _check(transaction, tenant_id, last.checkpoint if last else None, size, progress)
    origin = origin_of(tenant_id)
    note = sign_checkpoint(origin, size, root, key, extensions)
    with database.transaction("notary", tenant_id) as transaction:
        transaction.execute(_KEEP, {"tenant_id": tenant_id, "size": size, "root": root, "note": note})
        # Of two notaries that sign one size alike, the first one's note is the one that stays.
        made = parse_note(note)
        at = {"tenant_id": tenant_id, "at": size, "is_full": made.is_full}
        kept = transaction.execute(_KEPT_NOTE, at)[0]["note"]
    if kept == note:
        return Signed(tenant_id, made, kept, created=True)
    return Signed(tenant_id, _opened(kept, tenant_id, size, key), kept, created=False)


def list_notes(database: Database, tenant_id: UUID, *, limit: int, before: int | None = None) -> list[dict[str, Any]]:
    """
    A page of the stored checkpoints, the largest first: `{size, root, extensions, note}`; one of each size, the fuller.
    """
    params = {"tenant_id": tenant_id, "before": 2**62 if before is None else before, "page": limit}
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_NOTES, params)
    return [
        {
            "size": row["size"],
            "root": base64.b64encode(bytes(row["root"])).decode(),
            "extensions": _extensions(row["note"]),
            "note": row["note"],
        }
        for row in rows
    ]


def _extensions(note: str) -> list[str] | None:
    """The further lines of a note; None where it is none any more, which `verify` says with its reason."""
    try:
        return list(parse_note(note).extensions)
    except NoteRefused:
        return None


def signed_projections(database: Database, tenant_id: UUID, size: int, public_key: bytes | None) -> str | None:
    """
    The digest of the projections that the checkpoint of this size states; None where there is none.

    Args:
        public_key: the notary's; without it the note is read unchecked.

    Raises:
        LogDamaged: the checkpoint is not what was signed.
    """
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_FULL_NOTE_AT, {"tenant_id": tenant_id, "at": size})
    if not rows:
        return None
    try:
        note = rows[0]["note"]
        stated = parse_note(note) if public_key is None else open_checkpoint(note, origin_of(tenant_id), public_key)
    except NoteRefused as refusal:
        raise LogDamaged(f"The checkpoint of size {size} is not what was signed ({refusal}).") from refusal
    return stated.projections


def parse_note(note: str) -> Checkpoint:
    """What a note states, whoever signed it; raises `NoteRefused`."""
    return parse_checkpoint(note.rpartition("\n\n")[0] + "\n")


def _last(transaction: Transaction, tenant_id: UUID, key: Ed25519PrivateKey) -> Signed | None:
    rows: list[Row] = transaction.execute(_LAST_NOTE, {"tenant_id": tenant_id})
    if not rows:
        return None
    row = rows[0]
    checkpoint = _opened(row["note"], tenant_id, row["size"], key)
    if (checkpoint.size, checkpoint.root) != (row["size"], row["root"]):
        raise LogDamaged(f"The checkpoint of size {row['size']} is not what was signed; keep a copy of the database.")
    return Signed(tenant_id, checkpoint, row["note"], created=False)


def _opened(note: str, tenant_id: UUID, size: int, key: Ed25519PrivateKey) -> Checkpoint:
    try:
        return open_checkpoint(note, origin_of(tenant_id), public_bytes(key))
    except NoteRefused as refusal:
        raise LogDamaged(
            f"The checkpoint of size {size} was altered or signed with another key ({refusal}); "
            "sign with the notary.key that signed it."
        ) from refusal


def _check(
    transaction: Transaction, tenant_id: UUID, last: Checkpoint | None, size: int, progress: Progress | None
) -> bytes:
    """The root over the first `size` events, once all of them are known to be sound."""
    signed = last.size if last else 0
    if size < 1:
        raise LogDamaged("The log is empty: not even the event that made the tenant is there.")
    if signed > size:
        raise LogDamaged(f"The log ends at position {size}, before its last checkpoint of size {signed}.")
    state = resumed(transaction, tenant_id, signed)
    frontier, hash_ = Frontier(), chain.genesis(tenant_id)
    for row in transaction.stream(_ENVELOPES, {"tenant_id": tenant_id, "at": signed}) if signed else ():
        leaf = chain.leaf_hash(row["envelope"])
        frontier.add(leaf)
        hash_ = chain.link(frontier.size, hash_, leaf)
    if last is not None and (frontier.size, frontier.root(), hash_) != (signed, last.root, state.hash):
        raise LogDamaged(
            f"The first {signed} events are not those of the last checkpoint; `grandbo audit verify` looks for where."
        )
    state.frontier = frontier
    rows = read_rows(transaction, tenant_id, after=signed, until=size)
    state, fault = verify_rows(tenant_id, rows, progress, state)
    if fault is None and state.position != size:
        fault = Fault(state.position + 1, "the event is missing")
    if fault is not None:
        raise LogDamaged(f"The log is not signed: position {fault.position}: {fault.what}.")
    return frontier.root()

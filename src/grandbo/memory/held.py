"""
What is held about a subject, whole: every entry with every revision, who said it, until when it is kept, and to whom
and when it was shown. Asked again without anything having happened it is the same, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.log import RecordedEvent, recorded_event
from grandbo.events.models import EntryRecorded
from grandbo.events.sealing import Keys
from grandbo.memory.policy import may, require
from grandbo.memory.reading import plain_state
from grandbo.memory.redacting import ERASED_TITLE
from grandbo.memory.subjects import Subject, find_subject, is_private, name_in, read_subject
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.subject_keys import open_keys
from grandbo.storage.tables import (
    candidates,
    confirmations,
    entries,
    erasures,
    events,
    feedback,
    inbox,
    principals,
    receipt_entries,
    receipts,
    revisions,
)
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Principal, utc_text

PURPOSE = (
    "To be told to whom it is for when it bears on what they ask; for the legal basis see the tenant's own notice."
)
MASKED = "somebody else"

_subject = sa.bindparam("subject", type_=sa.Uuid)
_ids = sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid)))
_ABOUT = sa.select(events).where(of_tenant(events), events.c.subject_id == _subject).order_by(events.c.position)
_ENTRIES = sa.select(entries).where(of_tenant(entries), entries.c.entry_id == _ids).order_by(entries.c.entry_id)
_REVISIONS = (
    sa.select(revisions)
    .where(of_tenant(revisions), revisions.c.entry_id == _ids)
    .order_by(revisions.c.entry_id, revisions.c.revision)
)
_CANDIDATES = (
    sa.select(candidates)
    .where(of_tenant(candidates), candidates.c.candidate_id == _ids)
    .order_by(candidates.c.candidate_id)
)
_FEEDBACK = (
    sa.select(feedback).where(of_tenant(feedback), feedback.c.entry_id == _ids).order_by(feedback.c.from_position)
)
_SHOWN = (
    sa.select(
        receipt_entries.c.entry_id,
        receipt_entries.c.revision,
        receipts.c.receipt_id,
        receipts.c.principal,
        receipts.c.parameters,
        receipts.c.made_at,
    )
    .join(
        receipts,
        sa.and_(
            receipts.c.tenant_id == receipt_entries.c.tenant_id, receipts.c.receipt_id == receipt_entries.c.receipt_id
        ),
    )
    .where(of_tenant(receipt_entries), of_tenant(receipts), receipt_entries.c.entry_id == _ids)
    .order_by(receipts.c.made_at, receipts.c.receipt_id, receipt_entries.c.entry_id)
)
_WAITING = (
    sa.select(confirmations.c.asked_by, confirmations.c.asked_at, confirmations.c.expires_at)
    .where(of_tenant(confirmations), confirmations.c.subject_id == _subject)
    .order_by(confirmations.c.asked_at, confirmations.c.confirmation_id)
)
_DELIVERED = (
    sa.select(inbox.c.delivery_id, inbox.c.source, inbox.c.received_at, inbox.c.state, inbox.c.body_bytes)
    .where(of_tenant(inbox), inbox.c.subject_id == _subject)
    .order_by(inbox.c.received_at, inbox.c.delivery_id)
)
_REQUESTED = sa.select(erasures).where(of_tenant(erasures), erasures.c.subject_id == _subject)
_NAMES = sa.select(principals.c.type, principals.c.principal_id, principals.c.name).where(of_tenant(principals))


def held(database: Database, tenant_id: UUID, principal: Principal, named: object) -> dict[str, Any]:
    """
    All that is held about a subject, as plain values. For who administers, and for the subject's own principals.

    Raises:
        Forbidden, NotFound
        KeyUnavailable: what was said of it cannot be opened just now.
    """
    subject_id = find_subject(database, tenant_id, named)
    with database.transaction("writer", tenant_id, read_only=True, snapshot=True) as transaction:
        subject = read_subject(transaction, tenant_id, subject_id)
        if principal.ref not in subject.principals or not may(principal, "recall"):
            require(principal, "administer")
        keys = open_keys(transaction, database.keys, tenant_id, [subject_id], back="writer")
        name = name_in(transaction, tenant_id, subject_id, keys) if subject.state == "active" else None
        return _Report(transaction, tenant_id, subject, keys).document(name)


class _Report:
    """One reading of everything, in one snapshot."""

    def __init__(self, transaction: Transaction, tenant_id: UUID, subject: Subject, keys: Keys) -> None:
        self._subject = subject
        about = {"tenant_id": tenant_id, "subject": subject.subject_id}
        log = [recorded_event(row, keys) for row in transaction.execute(_ABOUT, about)]
        self._log: dict[UUID, list[RecordedEvent]] = {}
        for event in log:
            self._log.setdefault(event.header.stream_id, []).append(event)
        ids = {"tenant_id": tenant_id, "ids": sorted(self._log)}
        found = transaction.batch(
            [
                *((query, ids) for query in (_ENTRIES, _REVISIONS, _CANDIDATES, _FEEDBACK, _SHOWN)),
                (_WAITING, about),
                (_DELIVERED, about),
                (_REQUESTED, about),
                (_NAMES, {"tenant_id": tenant_id}),
            ]
        )
        self._entries, self._revisions, self._candidates, self._feedback, self._shown = found[:5]
        self._waiting, self._delivered, self._requested, names = found[5:]
        self._names = {f"{row['type']}:{row['principal_id']}": row["name"] for row in names}

    def document(self, name: str | None) -> dict[str, Any]:
        """The whole report."""
        subject = self._subject.as_dict() | {"name": name}
        subject["principals"] = [self._who(ref) for ref in self._subject.principals]
        if subject["hold"] is not None:
            subject["hold"]["by"] = self._who(self._subject.held_by)
        return {
            "subject": subject,
            "purpose": PURPOSE,
            "entries": [self._entry(row) for row in self._entries],
            "candidates": [self._candidate(row) for row in self._candidates],
            "feedback": [self._said(row) for row in self._feedback],
            "waiting": [self._waits(row) for row in self._waiting],
            "deliveries": [self._delivery(row) for row in self._delivered],
            "erasure": self._erasure(),
        }

    def _entry(self, row: Row) -> dict[str, Any]:
        entry_id: UUID = row["entry_id"]
        return {
            "entry_id": str(entry_id),
            "kind": row["kind"],
            "status": row["status"],
            "memory_key": row["external_id"] if row["kind"] == "personal" else None,
            "seen_by": _seen_by(row["visibility"]),
            "author_type": row["author_type"],
            "is_inference": row["author_type"] != "human",
            "recorded_at": utc_text(row["recorded_at"]),
            "expires_at": utc_text(row["expires_at"]),
            "verified_at": utc_text(row["verified_at"]) if row["verified_at"] else None,
            "revisions": [self._revision(one) for one in self._revisions if one["entry_id"] == entry_id],
            "shown": [self._showing(one) for one in self._shown if one["entry_id"] == entry_id],
            "log": [self._logged(event) for event in self._log[entry_id]],
        }

    def _revision(self, row: Row) -> dict[str, Any]:
        state = plain_state(row)
        event = next(one for one in self._log[row["entry_id"]] if one.position == row["from_position"])
        kept = ("title", "summary", "body", "service", "tags", "confidence_bp", "evidence", "occurred_at")
        return {
            "revision": row["revision"],
            "position": row["from_position"],
            "event_type": row["event_type"],
            "at": utc_text(row["changed_at"]),
            "by": self._who(row["principal"]),
            "reason": getattr(event.data, "reason", None),
            "status": row["status"],
            "erased": row["title"] == ERASED_TITLE,
            "expires_at": state["expires_at"],
            **{name: state[name] for name in kept},
            "screened": _screened(event),
        }

    def _showing(self, row: Row) -> dict[str, Any]:
        # Neither the topic, which nobody keeps, nor what else the answer held: that is not about this subject.
        return {
            "at": utc_text(row["made_at"]),
            "to": self._told(row["principal"]),
            "roles": row["parameters"].get("roles", []),
            "revision": row["revision"],
            "receipt_id": str(row["receipt_id"]),
        }

    def _candidate(self, row: Row) -> dict[str, Any]:
        content = row["content"]
        return {
            "candidate_id": str(row["candidate_id"]),
            "status": row["status"],
            "author_type": row["author_type"],
            "proposed_by": self._who(row["proposed_by"]),
            "proposed_at": utc_text(row["proposed_at"]),
            "decided_by": self._who(row["decided_by"]),
            "decision_reason": row["decision_reason"],
            "entry_id": str(row["entry_id"]) if row["entry_id"] else None,
            "memory_key": content["external_id"] if row["kind"] == "personal" else None,
            "seen_by": _seen_by(row["visibility"]),
            **{name: content.get(name) for name in ("kind", "title", "summary", "body", "evidence", "expires_at")},
            "log": [self._logged(event) for event in self._log[row["candidate_id"]]],
        }

    def _said(self, row: Row) -> dict[str, Any]:
        return {
            "entry_id": str(row["entry_id"]),
            "verdict": row["verdict"],
            "note": row["note"],
            "by": self._who(row["principal"]),
            "at": utc_text(row["given_at"]),
        }

    def _waits(self, row: Row) -> dict[str, Any]:
        return {
            "asked_by": self._who(row["asked_by"]),
            "asked_at": utc_text(row["asked_at"]),
            "until": utc_text(row["expires_at"]),
        }

    def _delivery(self, row: Row) -> dict[str, Any]:
        """What a tool delivered and a person has said to be about the subject; its text is in what came of it."""
        return {
            "delivery_id": str(row["delivery_id"]),
            "source": row["source"],
            "received_at": utc_text(row["received_at"]),
            "state": row["state"],
            "bytes": row["body_bytes"],
        }

    def _erasure(self) -> dict[str, Any] | None:
        rows = sorted(self._requested, key=lambda row: row["requested_at"])
        if not rows:
            return None
        row = rows[-1]
        return {
            "state": "requested" if row["position"] is None else "erased",
            "reason": row["reason"],
            "requested_at": utc_text(row["requested_at"]),
            "position": row["position"],
        }

    def _logged(self, event: RecordedEvent) -> dict[str, Any]:
        """The event as the log has it: with its hash the copy can be proven to be of this log."""
        return {
            "position": event.position,
            "event_type": event.header.event_type,
            "recorded_at": utc_text(event.header.recorded_at),
            "hash": event.hash.hex(),
        }

    def _who(self, ref: str | None) -> dict[str, Any] | None:
        """The type of a principal, and its name where it is no other person's: those are not the subject's to know."""
        if ref is None:
            return None
        is_known = not ref.startswith("human:") or ref in self._subject.principals
        return self._told(ref) if is_known else {"type": "human", "name": MASKED}

    def _told(self, ref: str) -> dict[str, Any]:
        """To whom something was shown, by name: of what is held about them people may know who has seen it."""
        return {"type": ref.partition(":")[0], "name": self._names.get(ref, MASKED)}


def _seen_by(visibility: str) -> str:
    return "the subject's own principals" if is_private(visibility) else f"tier {visibility}"


def _screened(event: RecordedEvent) -> list[dict[str, Any]] | None:
    screened = getattr(event.data, "screened", None) if isinstance(event.data, EntryRecorded) else None
    return [finding.model_dump(mode="json") for finding in screened.findings] if screened else None


def count_of(document: Mapping[str, Any]) -> dict[str, int]:
    """How much there is of what."""
    shown: Sequence[Any] = [one for entry in document["entries"] for one in entry["shown"]]
    return {name: len(document[name]) for name in ("entries", "candidates", "feedback", "waiting", "deliveries")} | {
        "shown": len(shown)
    }

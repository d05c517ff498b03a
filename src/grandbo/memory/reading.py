"""Reading one entry and its history: what an administrator sees, within his tiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import NotFound
from grandbo.events import models
from grandbo.events.log import recorded_event
from grandbo.events.models import Policy
from grandbo.events.registry import parse_body
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.redacting import ERASED_TITLE
from grandbo.memory.trust import resolved_query, trust_in, voices_query
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.keyring import OpenedKeys
from grandbo.storage.subject_keys import open_keys
from grandbo.storage.tables import STATE_COLUMNS, entries, events, feedback, links, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.types import VERDICTS, Principal, utc_text

_entry = sa.bindparam("entry_id", type_=sa.Uuid)
_ENTRY = sa.select(entries).where(of_tenant(entries), entries.c.entry_id == _entry)
_REVISIONS = (
    sa.select(revisions, events.c.schema_version, events.c.subject_id, events.c.body.label("event_body"))
    .join(events, sa.and_(events.c.tenant_id == revisions.c.tenant_id, events.c.position == revisions.c.from_position))
    .where(of_tenant(revisions), of_tenant(events), revisions.c.entry_id == _entry)
    .order_by(revisions.c.revision)
)
_SEALED = sa.select(events).where(of_tenant(events), events.c.stream_id == _entry, events.c.subject_id.is_not(None))
_far = entries.alias("far")
# Links whose far end the caller may see: one that he may not see must not show that it is there.
_LINKS = (
    sa.select(links)
    .join(
        _far,
        sa.and_(
            _far.c.tenant_id == links.c.tenant_id,
            _far.c.entry_id == sa.case((links.c.from_entry == _entry, links.c.to_entry), else_=links.c.from_entry),
        ),
    )
    .where(
        of_tenant(links),
        of_tenant(_far),
        sa.or_(links.c.from_entry == _entry, links.c.to_entry == _entry),
        links.c.to_position.is_(None),
        _far.c.visibility == sa.any_(sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))),
    )
    .order_by(links.c.from_position)
)
_VERDICTS = (
    sa.select(feedback.c.verdict, sa.func.count().label("given"))
    .where(of_tenant(feedback), feedback.c.entry_id == _entry, feedback.c.to_position.is_(None))
    .group_by(feedback.c.verdict)
)
_NAMED = ("disputed_with", "superseded_by")
_SEEN = sa.select(entries.c.entry_id).where(
    of_tenant(entries),
    entries.c.entry_id == sa.any_(sa.bindparam("named", type_=pg.ARRAY(sa.Uuid))),
    entries.c.visibility == sa.any_(sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))),
)
HIDDEN = {"claim_digest", "text_digest", "applies_systems", "applies_from", "applies_until"}


def show_entry(
    database: Database, tenant_id: UUID, principal: Principal, policy: Policy, entry_id: UUID
) -> dict[str, Any]:
    """The entry as it stands, as plain values. Raises `NotFound`, for one above the caller's tiers too."""
    require(principal, "recall")
    tiers = visible_tiers(policy, principal)
    key = {"tenant_id": tenant_id, "entry_id": entry_id}
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        one = {"tenant_id": tenant_id, "ids": [entry_id]}
        rows, linked, verdicts, voices, resolved = transaction.batch(
            [
                (_ENTRY, key),
                (_LINKS, {**key, "tiers": list(tiers)}),
                (_VERDICTS, key),
                (voices_query(is_past=False), one),
                (resolved_query(is_past=False), one),
            ]
        )
        seen = seen_of(transaction, tenant_id, rows, tiers)
    if not rows or rows[0]["visibility"] not in tiers:
        raise NotFound
    row = rows[0]
    head = {"entry_id": str(entry_id), "revision": row["revision"], "position": row["position"]}
    told = dict.fromkeys(VERDICTS, 0) | {found["verdict"]: found["given"] for found in verdicts}
    trust = trust_in(row, voices, resolved)
    shown = {"links": [plain_link(link, entry_id) for link in linked], "feedback": told, "trust_bp": trust}
    return head | without_unseen(plain_state(row), seen) | shown


def entry_history(
    database: Database, tenant_id: UUID, principal: Principal, policy: Policy, entry_id: UUID
) -> list[dict[str, Any]]:
    """
    Every revision with its event, its author and its reason, oldest first.

    Raises `NotFound` where the entry is not there or stands above the caller's tiers now. Revisions from when it stood
    above them are left out.
    """
    require(principal, "recall")
    tiers = visible_tiers(policy, principal)
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        rows = transaction.execute(_REVISIONS, {"tenant_id": tenant_id, "entry_id": entry_id})
        seen = seen_of(transaction, tenant_id, rows, tiers)
        if not rows or rows[-1]["visibility"] not in tiers:
            raise NotFound
        sealed = _sealed_reasons(transaction, database.keys, tenant_id, rows)
    return [_revision(row, seen, sealed) for row in rows if row["visibility"] in tiers]


def _sealed_reasons(
    transaction: Transaction, keys: OpenedKeys, tenant_id: UUID, rows: Sequence[Row]
) -> dict[int, str | None]:
    """Of an entry about a subject the reasons by position: they are sealed with the rest of their events."""
    about = {row["subject_id"] for row in rows if row["subject_id"] is not None}
    if not about:
        return {}
    opened = open_keys(transaction, keys, tenant_id, about, back="auditor")
    found = transaction.execute(_SEALED, {"tenant_id": tenant_id, "entry_id": rows[0]["entry_id"]})
    events_read = (recorded_event(row, opened) for row in found)
    return {event.position: getattr(event.data, "reason", None) for event in events_read}


def named_entries(rows: Sequence[Row]) -> set[UUID]:
    """The other entries that these states name."""
    return {row[name] for row in rows for name in _NAMED if row[name] is not None}


def seen_of(transaction: Transaction, tenant_id: UUID, rows: Sequence[Row], tiers: Sequence[str]) -> set[str]:
    """Of the entries that the rows name, those in these tiers."""
    named = named_entries(rows)
    if not named:
        return set()
    params = {"tenant_id": tenant_id, "named": list(named), "tiers": list(tiers)}
    return {str(found["entry_id"]) for found in transaction.execute(_SEEN, params)}


def without_unseen(state: dict[str, Any], seen: set[str]) -> dict[str, Any]:
    """The state without the ids of entries that the reader may not see: that they are there is theirs to know."""
    return state | {name: state[name] if state[name] in seen else None for name in _NAMED}


def plain_link(row: Row, entry_id: UUID) -> dict[str, Any]:
    is_from = row["from_entry"] == entry_id
    return {
        "type": row["link_type"],
        "direction": "to" if is_from else "from",
        "entry_id": str(row["to_entry"] if is_from else row["from_entry"]),
        "reason": row["reason"],
        "position": row["from_position"],
    }


def plain_state(row: Row) -> dict[str, Any]:
    """The state columns of a row as plain values."""
    return {name: _plain(row[name]) for name in STATE_COLUMNS if name not in HIDDEN}


def _revision(row: Row, seen: set[str], sealed: dict[int, str | None]) -> dict[str, Any]:
    return {
        "entry_id": str(row["entry_id"]),
        "revision": row["revision"],
        "position": row["from_position"],
        "event_type": row["event_type"],
        "principal": row["principal"],
        "at": utc_text(row["changed_at"]),
        "reason": _reason(row) if row["subject_id"] is None else sealed.get(row["from_position"]),
        "erased": row["title"] == ERASED_TITLE,
        "state": without_unseen(plain_state(row), seen),
    }


def _reason(row: Row) -> str | None:
    if row["event_body"] is None:
        return None
    data = parse_body(row["event_type"], row["schema_version"], row["event_body"], position=row["from_position"])
    return data.reason if isinstance(data, models.EntryChanged) else None


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    return utc_text(value) if hasattr(value, "astimezone") else value

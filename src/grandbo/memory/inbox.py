"""The inbox: what hooks delivered, as it came, and what became of it. Operational, not in the log."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import IllegalTransition, InvalidInput, NotFound
from grandbo.hooks.sources import SOURCES
from grandbo.memory.hooks import Hook
from grandbo.memory.importing import parse_json
from grandbo.memory.subjects import find_subject, locked_subject
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import inbox
from grandbo.storage.tenancy import TENANT, of_tenant
from grandbo.types import Clock, new_id, utc_now, utc_text

DeliveryState = Literal["received", "mapped", "ignored", "dead", "dropped"]
STATES: tuple[DeliveryState, ...] = get_args(DeliveryState)
# What a mapper may go by, and a person who looks; no signature, no credential, no address.
HEADERS_KEPT = frozenset(
    {
        "content-type",
        "user-agent",
        "webhook-id",
        "webhook-timestamp",
        "svix-id",
        "svix-timestamp",
        "x-webhook-id",
        "x-webhook-subscription",
        "sentry-hook-resource",
        "sentry-hook-timestamp",
        "request-id",
    }
)
HEADER_LIMIT = 300
DEFAULT_PAGE = 50
MAX_PAGE = 500
_SHOWN_BYTES = 64 * 1024

_Time = sa.DateTime(timezone=True)
_now = sa.bindparam("now", type_=_Time)
_delivery = sa.bindparam("which", type_=sa.Uuid)
_is_it = sa.and_(of_tenant(inbox), inbox.c.delivery_id == _delivery)
_STORE = (
    pg.insert(inbox)
    .values(
        {column.name: sa.bindparam(column.name) for column in inbox.c if column.name != "tenant_id"}
        | {"tenant_id": TENANT}
    )
    .on_conflict_do_nothing(index_elements=["tenant_id", "hook_id", "delivery_key"])
    .returning(inbox.c.delivery_id)
)
_KNOWN = sa.select(inbox.c.delivery_id).where(
    of_tenant(inbox),
    inbox.c.hook_id == sa.bindparam("hook_id", type_=sa.Text),
    inbox.c.delivery_key == sa.bindparam("delivery_key", type_=sa.LargeBinary),
)
_RETRY = (
    sa.update(inbox)
    .where(_is_it, inbox.c.body.is_not(None), inbox.c.state != "dropped")
    .values(
        state="received",
        attempts=0,
        next_attempt_at=_now,
        error_code=None,
        note="",
        done_at=None,
        subject_id=sa.func.coalesce(sa.bindparam("about", type_=sa.Uuid), inbox.c.subject_id),
    )
    .returning(inbox)
)
_DROP = (
    sa.update(inbox)
    .where(_is_it)
    .values(state="dropped", body=None, done_at=sa.func.coalesce(inbox.c.done_at, _now))
    .returning(inbox)
)
_ONE = sa.select(inbox).where(_is_it)
_AFTER = sa.bindparam("after", type_=sa.Uuid)
_listed = [column for column in inbox.c if column.name != "body"]
_PAGE = (
    sa.select(*_listed, inbox.c.body.is_not(None).label("has_body"))
    .where(
        of_tenant(inbox),
        sa.or_(
            sa.bindparam("in_state", type_=sa.Text).is_(None), inbox.c.state == sa.bindparam("in_state", type_=sa.Text)
        ),
        sa.or_(_AFTER.is_(None), inbox.c.delivery_id < _AFTER),
    )
    .order_by(inbox.c.delivery_id.desc())
    .limit(sa.bindparam("page", type_=sa.Integer))
)
_COUNTS = sa.select(
    *(sa.func.count().filter(inbox.c.state == state).label(state) for state in ("received", "dead"))
).where(of_tenant(inbox), sa.or_(inbox.c.state == "received", inbox.c.state == "dead"))


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the sender is told: the id, and whether this had been delivered before."""

    delivery_id: UUID
    tenant_id: UUID
    is_new: bool


def header_values(raw: list[tuple[str, str]]) -> dict[str, str]:
    """Headers by their names in lower case; one that is sent twice says nothing for certain, and is left out."""
    names = [name.lower() for name, _ in raw]
    return {name.lower(): value for name, value in raw if names.count(name.lower()) == 1}


def store_delivery(
    database: Database, hook: Hook, headers: Mapping[str, str], body: bytes, *, clock: Clock = utc_now
) -> Delivery:
    """Keep a verified delivery; durable when this returns. The same one again is the one that is there."""
    scheme = hook.scheme
    assert scheme is not None
    now = clock()
    delivery_id = new_id()
    key = {"tenant_id": hook.tenant_id, "hook_id": hook.hook_id, "delivery_key": delivery_key(hook, headers, body)}
    row = {
        **key,
        "delivery_id": delivery_id,
        "source": hook.source,
        "received_at": now,
        "verified_by": scheme,
        "headers": kept_headers(headers),
        "body": body,
        "body_bytes": len(body),
        "state": "received",
        "attempts": 0,
        "next_attempt_at": now,
        "incident_ids": [],
        "error_code": None,
        "note": "",
        "outcomes": [],
        "done_at": None,
        "subject_id": None,
    }
    with database.transaction("writer", hook.tenant_id) as transaction:
        if transaction.execute(_STORE, row):
            return Delivery(delivery_id, hook.tenant_id, is_new=True)
        known = transaction.execute(_KNOWN, key)
    return Delivery(known[0]["delivery_id"], hook.tenant_id, is_new=False)


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """What is kept of the headers: those that are known to be harmless, without what cannot be stored."""
    return {
        name: "".join(char for char in value[:HEADER_LIMIT] if char.isprintable())
        for name, value in headers.items()
        if name in HEADERS_KEPT
    }


def delivery_key(hook: Hook, headers: Mapping[str, str], body: bytes) -> bytes:
    """What a retry has too: what the source says tells its deliveries apart, else the body itself; 32 bytes."""
    try:
        payload = parse_json(body)
        stated = SOURCES[hook.source].delivery_key(payload, headers) if isinstance(payload, dict) else ""
    except Exception:  # noqa: BLE001  # whatever a body does to it, the delivery is kept
        stated = ""
    if stated:
        return hashlib.sha256(b"key\x00" + stated.encode("utf-8", "surrogatepass")).digest()
    return hashlib.sha256(b"body\x00" + body).digest()


def list_deliveries(
    database: Database,
    tenant_id: UUID,
    *,
    state: object = None,
    limit: object = None,
    after: object = None,
) -> dict[str, Any]:
    """A page of the inbox, newest first, without the bodies: `{deliveries, next}`."""
    if state is not None and state not in STATES:
        raise InvalidInput(f"state: it must be one of {', '.join(STATES)}.", field="state")
    size = DEFAULT_PAGE if limit is None else limit
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAX_PAGE:
        raise InvalidInput(f"limit: it must be a whole number from 1 to {MAX_PAGE}.", field="limit")
    params = {"tenant_id": tenant_id, "in_state": state, "after": _cursor(after), "page": size + 1}
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_PAGE, params)
    more = str(rows[size - 1]["delivery_id"]) if len(rows) > size else None
    return {"deliveries": [shown(row, has_body=row["has_body"]) for row in rows[:size]], "next": more}


def count_inbox(database: Database, tenant_id: UUID) -> dict[str, int]:
    """How many deliveries are `received` and wait to be mapped, and how many are `dead` and wait for a person."""
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        return dict(transaction.execute(_COUNTS, {"tenant_id": tenant_id})[0])


def show_delivery(database: Database, tenant_id: UUID, delivery_id: UUID) -> dict[str, Any]:
    """A delivery with its headers and the beginning of its body as text; raises `NotFound`."""
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        row = _found(transaction.execute(_ONE, {"tenant_id": tenant_id, "which": delivery_id}))
    body = None if row["body"] is None else bytes(row["body"])[:_SHOWN_BYTES].decode("utf-8", "replace")
    return {**shown(row, has_body=body is not None), "headers": row["headers"], "body": body}


def retry_delivery(
    database: Database, tenant_id: UUID, delivery_id: UUID, *, subject: object = None, clock: Clock = utc_now
) -> dict[str, Any]:
    """
    Map it again, whatever became of it.

    Args:
        subject: whom it is about, by id or reference, where it speaks of somebody.

    Raises:
        NotFound, SubjectErased. IllegalTransition: its body is not there any more.
    """
    key = {"tenant_id": tenant_id, "which": delivery_id}
    about = None if subject is None else find_subject(database, tenant_id, subject)
    with database.transaction("writer", tenant_id) as transaction:
        if about is not None:
            locked_subject(transaction, tenant_id, about)
        rows = transaction.execute(_RETRY, {**key, "now": clock(), "about": about})
        if not rows:
            _found(transaction.execute(_ONE, key))
            raise IllegalTransition("Its body is not kept any more, so there is nothing to map.")
    return shown(rows[0], has_body=True)


def drop_delivery(database: Database, tenant_id: UUID, delivery_id: UUID, *, clock: Clock = utc_now) -> dict[str, Any]:
    """Give it up and its body away; that it came stays known, so that a retry of its sender is none. Or `NotFound`."""
    with database.transaction("writer", tenant_id) as transaction:
        rows = transaction.execute(_DROP, {"tenant_id": tenant_id, "which": delivery_id, "now": clock()})
    return shown(_found(rows), has_body=False)


def shown(row: Row, *, has_body: bool) -> dict[str, Any]:
    """A delivery as plain values."""
    return {
        "delivery_id": str(row["delivery_id"]),
        "hook_id": row["hook_id"],
        "source": row["source"],
        "received_at": utc_text(row["received_at"]),
        "verified_by": row["verified_by"],
        "state": row["state"],
        "attempts": row["attempts"],
        "next_attempt_at": utc_text(row["next_attempt_at"]) if row["state"] == "received" else None,
        "error_code": row["error_code"],
        "note": row["note"],
        "outcomes": row["outcomes"],
        "subject_id": str(row["subject_id"]) if row["subject_id"] else None,
        "bytes": row["body_bytes"],
        "has_body": has_body,
    }


def _found(rows: list[Row]) -> Row:
    if not rows:
        raise NotFound("There is no such delivery in this tenant's inbox.")
    return rows[0]


def _cursor(after: object) -> UUID | None:
    if after is None:
        return None
    try:
        return UUID(str(after))
    except ValueError:
        raise InvalidInput("after: it must be the `next` of the page before.", field="after") from None

"""
The log as a list: which events, by whom, on what, when.

It is read page by page in the order of positions, so that no connection is held while someone looks at a page. Pages
miss nothing and repeat nothing: positions have no gaps and events never change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import InvalidInput
from grandbo.events.log import READ_HEAD, head_of
from grandbo.events.registry import EVENT_TYPES
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import candidates, entries, events, feedback, principals
from grandbo.storage.tenancy import of_tenant
from grandbo.types import parse_moment, require_zone, utc_text

PAGE = 500
COLUMNS = (
    "position",
    "recorded_at",
    "event_type",
    "actor",
    "principal",
    "stream_id",
    "stream_version",
    "occurred_at",
    "subject_id",
    "correlation_id",
    "causation_id",
    "command_id",
    "event_id",
    "schema_version",
    "hash",
)

_REFERENCE = re.compile(r"(human|agent|hook|system):[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_tiers = sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))
_other_side = entries.alias("other_side")
_seen_entry = sa.exists().where(
    of_tenant(entries), entries.c.entry_id == events.c.stream_id, entries.c.visibility == sa.any_(_tiers)
)
_seen_candidate = sa.exists().where(
    of_tenant(candidates),
    candidates.c.candidate_id == events.c.stream_id,
    candidates.c.visibility == sa.any_(_tiers),
    sa.not_(
        sa.exists().where(
            of_tenant(_other_side),
            _other_side.c.entry_id.in_([candidates.c.into_entry, candidates.c.disputes]),
            _other_side.c.visibility != sa.all_(_tiers),
        )
    ),
)
_seen_feedback = sa.exists().where(
    of_tenant(feedback),
    of_tenant(entries),
    feedback.c.feedback_id == events.c.stream_id,
    entries.c.entry_id == feedback.c.entry_id,
    entries.c.visibility == sa.any_(_tiers),
)
# For who does not see every tier: what stands above his is not there, nor is what was erased, whose tier is gone too,
# nor is what is about a person.
_WITHIN_TIERS = sa.and_(
    events.c.subject_id.is_(None),
    sa.case(
        (events.c.event_type.startswith("entry_"), _seen_entry),
        (events.c.event_type.startswith("candidate_"), _seen_candidate),
        (events.c.event_type.startswith("feedback_"), _seen_feedback),
        else_=sa.true(),
    ),
)
_PEOPLE = sa.select(principals.c.type, principals.c.principal_id, principals.c.name).where(of_tenant(principals))
_SOME_PEOPLE = _PEOPLE.where(principals.c.principal_id == sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid))))


@dataclass(frozen=True, slots=True)
class EventFilter:
    """
    Which events are wanted; what is None does not narrow. `since` is part of the range, `until` is not.

    With `tiers`, those of entries, candidates and verdicts above them are left out.
    """

    actor: str | None = None
    event_type: str | None = None
    entry_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    after: int = 0
    limit: int | None = None
    tiers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some events; what was wanted up to `position` is all in it, or was in those before."""

    events: list[dict[str, Any]]
    position: int
    is_full: bool

    def as_dict(self) -> dict[str, Any]:
        """`{events, next, position}`; `next` is null where there is no further page."""
        return {"events": self.events, "next": self.position if self.is_full else None, "position": self.position}


def event_filter(
    *,
    actor: str | None = None,
    event_type: str | None = None,
    entry_id: UUID | str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    after: int = 0,
    limit: int | None = None,
    tiers: tuple[str, ...] | None = None,
) -> EventFilter:
    """Read what a caller wants, within `tiers` where he does not see them all; raises `InvalidInput`."""
    if event_type is not None and event_type not in EVENT_TYPES:
        raise InvalidInput(f"type: there is no such event; known are {', '.join(sorted(EVENT_TYPES))}.", field="type")
    if not 0 <= after < 2**62:
        raise InvalidInput("after: it is the position of an event, 0 for the first page.", field="after")
    if limit is not None and limit < 1:
        raise InvalidInput("limit: it must be at least 1.", field="limit")
    return EventFilter(
        actor, event_type, _as_id(entry_id), _as_time(since, "since"), _as_time(until, "until"), after, limit, tiers
    )


def list_events(
    database: Database, tenant_id: UUID, wanted: EventFilter, *, bodies: bool = False
) -> Iterator[dict[str, Any]]:
    """
    Give the events up to the head of this moment, oldest first, as plain values.

    With `bodies` each has what it says as `body`, and as `body_state` whether it is `kept`, `erased` or `encrypted`.
    """
    return _pages(database, tenant_id, wanted, _known(database, tenant_id, wanted, bodies))


def page_of_events(database: Database, tenant_id: UUID, wanted: EventFilter, *, bodies: bool = False) -> EventPage:
    """At most `limit` of the wanted events, and how far in the log that is all there was."""
    known = _known(database, tenant_id, wanted, bodies)
    found = list(_pages(database, tenant_id, wanted, known))
    is_full = len(found) == wanted.limit
    return EventPage(found, found[-1]["position"] if is_full else max(known[2], wanted.after), is_full)


def _known(
    database: Database, tenant_id: UUID, wanted: EventFilter, bodies: bool
) -> tuple[list[str] | None, dict[str, str], int, bool]:
    """Whose events are wanted, the names of all, the head of this moment, whether bodies are wanted."""
    names = _names(database, tenant_id)
    actors = _actors(names, wanted.actor)
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        head = head_of(transaction.execute(READ_HEAD, {"tenant_id": tenant_id})).position
    return actors, names, head, bodies


def show_head(database: Database, tenant_id: UUID) -> dict[str, Any]:
    """The end of the log: `{position, hash, recorded_at}`."""
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        head = head_of(transaction.execute(READ_HEAD, {"tenant_id": tenant_id}))
    return {"position": head.position, "hash": head.hash.hex(), "recorded_at": utc_text(head.recorded_at)}


def _pages(
    database: Database,
    tenant_id: UUID,
    wanted: EventFilter,
    known: tuple[list[str] | None, dict[str, str], int, bool],
) -> Iterator[dict[str, Any]]:
    actors, names, head, bodies = known
    narrowing = _narrowing(wanted, actors)
    statement = _statement(frozenset(narrowing), bodies)
    after, left = wanted.after, wanted.limit
    while after < head and left != 0:
        size = PAGE if left is None else min(PAGE, left)
        bounds = {"tenant_id": tenant_id, "after": after, "head": head, "size": size}
        with database.transaction("auditor", tenant_id, read_only=True) as transaction:
            rows = transaction.execute(statement, {**bounds, **narrowing})
        for row in rows:
            yield _plain(row, names, bodies)
        if len(rows) < size:
            return
        after = rows[-1]["position"]
        left = None if left is None else left - len(rows)


@lru_cache
def _statement(narrowed: frozenset[str], bodies: bool) -> sa.Select[Any]:
    """The page of events, narrowed by these of the filter's parameters."""
    names = [name for name in COLUMNS if name != "actor"]
    columns = [events.c[name] for name in (*names, *(("body",) if bodies else ()))]
    recorded = sa.DateTime(timezone=True)
    narrowing = {
        "actors": events.c.principal == sa.any_(sa.bindparam("actors", type_=pg.ARRAY(sa.Text))),
        "wanted_type": events.c.event_type == sa.bindparam("wanted_type"),
        "entry": events.c.stream_id == sa.bindparam("entry", type_=sa.Uuid),
        "since": events.c.recorded_at >= sa.bindparam("since", type_=recorded),
        "until": events.c.recorded_at < sa.bindparam("until", type_=recorded),
        "tiers": _WITHIN_TIERS,
    }
    where = [
        of_tenant(events),
        events.c.position > sa.bindparam("after", type_=sa.BigInteger),
        events.c.position <= sa.bindparam("head", type_=sa.BigInteger),
        *(narrowing[name] for name in sorted(narrowed)),
    ]
    size = sa.bindparam("size", type_=sa.Integer)
    return sa.select(*columns).where(*where).order_by(events.c.position).limit(size)


def _narrowing(wanted: EventFilter, actors: list[str] | None) -> dict[str, Any]:
    values = {
        "actors": actors,
        "wanted_type": wanted.event_type,
        "entry": wanted.entry_id,
        "since": wanted.since,
        "until": wanted.until,
        "tiers": None if wanted.tiers is None else list(wanted.tiers),
    }
    return {name: value for name, value in values.items() if value is not None}


def _plain(row: Row, names: dict[str, str], bodies: bool) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name in COLUMNS:
        value = names.get(row["principal"]) if name == "actor" else row[name]
        if isinstance(value, datetime):
            value = utc_text(value)
        elif isinstance(value, bytes):
            value = value.hex()
        elif isinstance(value, UUID):
            value = str(value)
        document[name] = value
    if bodies:
        document["body_state"], document["body"] = _body(row)
    return document


def _body(row: Row) -> tuple[str, Any]:
    if row["body"] is None:
        return "erased", None
    if row["subject_id"] is not None:
        return "encrypted", None
    return "kept", json.loads(row["body"])


def list_names(database: Database, tenant_id: UUID, refs: Iterable[str]) -> dict[str, str]:
    """The names behind references such as `human:…`; those that have none, or none any more, are left out."""
    asked = {ref for ref in refs if _REFERENCE.fullmatch(ref)}
    ids = sorted({UUID(ref.rpartition(":")[2]) for ref in asked})
    if not ids:
        return {}
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_SOME_PEOPLE, {"tenant_id": tenant_id, "ids": ids})
    found = {f"{row['type']}:{row['principal_id']}": row["name"] for row in rows}
    return {ref: name for ref, name in found.items() if ref in asked}


def _names(database: Database, tenant_id: UUID) -> dict[str, str]:
    """Names by reference. A name may have been erased since; the log goes on with the reference alone."""
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_PEOPLE, {"tenant_id": tenant_id})
    return {f"{row['type']}:{row['principal_id']}": row["name"] for row in rows}


def _actors(names: dict[str, str], wanted: str | None) -> list[str] | None:
    """The references that `type:uuid`, `type:name` or a name mean; of a name there may be several types."""
    if wanted is None:
        return None
    kind, _, rest = wanted.partition(":")
    found = [ref for ref, name in names.items() if name == wanted or (name == rest and ref.startswith(f"{kind}:"))]
    # A reference that no name belongs to, such as the operator's or an erased person's, is one all the same.
    return [*found, wanted.lower()] if _REFERENCE.fullmatch(wanted.lower()) else found


def _as_id(value: UUID | str | None) -> UUID | None:
    if value is None or isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except ValueError:
        raise InvalidInput("entry: this is not an id; ids are UUIDs.", field="entry") from None


def _as_time(value: datetime | str | None, name: str) -> datetime | None:
    if value is None:
        return None
    return parse_moment(value, name).at if isinstance(value, str) else require_zone(value, name)

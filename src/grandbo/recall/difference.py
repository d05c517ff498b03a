"""What today adds to an answer of the past, drops or puts elsewhere, and which event last changed each entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.recall.answer import Answer, Match
from grandbo.recall.view import held_at
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import revisions
from grandbo.storage.tenancy import of_tenant

_LATEST = sa.select(revisions.c.entry_id, revisions.c.event_type, revisions.c.from_position).where(
    of_tenant(revisions),
    held_at(revisions, "position"),
    revisions.c.entry_id == sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid))),
)

_Place = tuple[int, Match]


@dataclass(frozen=True, slots=True)
class Change:
    """One entry whose place or revision differs. Places count from 1; None: not in that answer."""

    entry_id: UUID
    title: str
    then: int | None
    now: int | None
    event_type: str
    event_position: int
    since: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values. `since` false: no event changed the entry since; time passed, or others came before it."""
        event = {"event_type": self.event_type, "position": self.event_position, "since": self.since}
        return {
            "entry_id": str(self.entry_id),
            "title": self.title,
            "then": self.then,
            "now": self.now,
            "event": event,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """Two answers to one topic, and what lies between them."""

    then: Answer
    today: Answer
    added: tuple[Change, ...]
    dropped: tuple[Change, ...]
    reordered: tuple[Change, ...]
    revised: tuple[Change, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        lists = ("added", "dropped", "reordered", "revised")
        changes = {name: [change.as_dict() for change in getattr(self, name)] for name in lists}
        return {"then": self.then.as_dict(), "today": self.today.as_dict(), **changes}


def difference(database: Database, tenant_id: UUID, then: Answer, today: Answer) -> Difference:
    """Compare an answer of the past with today's; the entries of both are such as the caller may see now."""
    before, after = _places(then), _places(today)
    pairs = {key: (before.get(key), after.get(key)) for key in {**before, **after}}
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        params = {"tenant_id": tenant_id, "ids": list(pairs), "position": today.position}
        latest = {row["entry_id"]: row for row in transaction.execute(_LATEST, params)}
    changes = [_change(latest[key], old, new, then.position) for key, (old, new) in pairs.items()]
    stayed = [change for change in changes if change.then is not None and change.now is not None]
    return Difference(
        then=then,
        today=today,
        added=tuple(change for change in changes if change.then is None),
        dropped=tuple(change for change in changes if change.now is None),
        reordered=tuple(change for change in stayed if change.then != change.now),
        revised=tuple(change for change in stayed if change.then == change.now and change.since),
    )


def _places(answer: Answer) -> dict[UUID, _Place]:
    return {match.entry_id: (place, match) for place, match in enumerate(answer.matches, start=1)}


def _change(latest: Row, old: _Place | None, new: _Place | None, position: int) -> Change:
    shown = new or old
    assert shown is not None
    return Change(
        entry_id=latest["entry_id"],
        title=shown[1].title,
        then=old and old[0],
        now=new and new[0],
        event_type=latest["event_type"],
        event_position=latest["from_position"],
        since=latest["from_position"] > position,
    )

"""
The spaces that a tenant's vectors live in: how complete each is, which ones recall uses, and changing that.

A change of model needs nobody to decide: the worker puts a space into force once every entry has its vectors there.
These are the steps beside it: taking the old space out, and bringing one back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.embedding import Stamp
from grandbo.embedding.stamp import is_of_titles
from grandbo.errors import InvalidInput, NotFound, StampNotReady
from grandbo.events.models import StampInForce
from grandbo.memory.policies import STAMPS_LIMIT, PolicyInForce
from grandbo.storage.database import Database
from grandbo.storage.tables import embeddings
from grandbo.storage.tenancy import of_tenant
from grandbo.workers.backlog import BacklogCounts, count_backlog

_first = sa.select(sa.func.min(embeddings.c.stamp).label("stamp")).where(of_tenant(embeddings)).cte(recursive=True)
# From each space to the next by the key, not over all rows: a space has tens of thousands, a tenant few spaces.
_walk = _first.union_all(
    sa.select(
        sa.select(sa.func.min(embeddings.c.stamp))
        .where(of_tenant(embeddings), embeddings.c.stamp > _first.c.stamp)
        .scalar_subquery()
    ).where(_first.c.stamp.is_not(None))
)
_STAMPS = sa.select(_walk.c.stamp).where(_walk.c.stamp.is_not(None))
_FILLED_SINCE: sa.Select[Any] = (
    sa.select(sa.literal_column("1"))
    .where(
        of_tenant(embeddings),
        embeddings.c.stamp == sa.bindparam("stamp", type_=sa.Text),
        embeddings.c.from_position > sa.bindparam("position", type_=sa.BigInteger),
    )
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class Space:
    """
    One space.

    Attributes:
        place: its place among those in force, from 1, the newest first; None for one that recall does not use.
        cutoff_bp: the largest distance of a match, in basis points: the policy's, or that of this process's embedder.
        is_own: whether this process embeds in it.
        is_filling: whether it gets vectors that recall does not use yet, since the policy was changed last.
    """

    stamp: str
    place: int | None
    cutoff_bp: int | None
    is_own: bool
    is_filling: bool
    counts: BacklogCounts

    @property
    def is_complete(self) -> bool:
        """Whether every entry that may be embedded has its vectors there."""
        return self.counts.entries == self.counts.embedded

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "stamp": self.stamp,
            "place": self.place,
            "cutoff_bp": self.cutoff_bp,
            "is_own": self.is_own,
            "is_filling": self.is_filling,
            "entries": self.counts.entries,
            "embedded": self.counts.embedded,
            "pending": self.counts.pending,
            "dead": self.counts.dead,
        }


def list_spaces(database: Database, tenant_id: UUID, current: PolicyInForce, own: Stamp | None) -> list[Space]:
    """Those in force, the newest first, then the process's own, then others that have vectors."""
    in_force = current.policy.stamps
    named = [item.stamp for item in in_force]
    key = {"tenant_id": tenant_id}
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        filled = [row["stamp"] for row in transaction.execute(_STAMPS, key) if not is_of_titles(row["stamp"])]
        others = [stamp for stamp in filled if stamp not in named]
        asked = [(_FILLED_SINCE, {**key, "stamp": stamp, "position": current.position}) for stamp in others]
        filling = [stamp for stamp, rows in zip(others, transaction.batch(asked), strict=True) if rows]
    cutoffs = {**({own.id: own.cutoff_bp} if own else {}), **{item.stamp: item.cutoff_bp for item in in_force}}
    return [
        Space(
            stamp,
            named.index(stamp) + 1 if stamp in named else None,
            cutoffs.get(stamp),
            own is not None and stamp == own.id,
            stamp in filling,
            count_backlog(database, tenant_id, stamp),
        )
        for stamp in dict.fromkeys([*named, *([own.id] if own else []), *filled])
    ]


def decide_use(
    spaces: Sequence[Space], in_force: Sequence[StampInForce], stamp: str, cutoff_bp: int | None
) -> list[dict[str, Any]]:
    """
    The spaces in force with this one first. Pure.

    Raises:
        NotFound: nothing was ever embedded there. StampNotReady: not every entry has its vectors there.
        InvalidInput: nobody has said which cutoff it has.
    """
    space = next((known for known in spaces if known.stamp == stamp), None)
    if space is None:
        raise NotFound("There is no such space; nothing was embedded in it.")
    if not space.is_complete:
        lacking = space.counts.entries - space.counts.embedded
        raise StampNotReady(
            f"{lacking} of {space.counts.entries} entries lack a vector in this space; embed them first: a recall that "
            f"used it would miss them.",
            lacking=lacking,
        )
    cutoff = space.cutoff_bp if cutoff_bp is None else cutoff_bp
    if cutoff is None:
        raise InvalidInput("cutoff_bp: say how far is near there; nobody has measured it.", field="cutoff_bp")
    return [{"stamp": stamp, "cutoff_bp": cutoff}, *_without(in_force, stamp)][:STAMPS_LIMIT]


def decide_retire(in_force: Sequence[StampInForce], stamp: str, own: Stamp | None) -> list[dict[str, Any]]:
    """
    The spaces in force without this one. Pure.

    Raises:
        NotFound: it is not in force. StampNotReady: it is the only one, or the one this process embeds in.
    """
    others = _without(in_force, stamp)
    if len(others) == len(in_force):
        raise NotFound("This space is not in force.")
    if not others:
        raise StampNotReady("It is the only space in force; put another one into force first.")
    if own is not None and stamp == own.id:
        raise StampNotReady(
            "This process embeds in it, and would answer by words alone. Start it with the other embedder first."
        )
    return others


def _without(in_force: Sequence[StampInForce], stamp: str) -> list[dict[str, Any]]:
    return [item.model_dump() for item in in_force if item.stamp != stamp]

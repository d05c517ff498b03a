"""
Working notes: what an investigation writes down for itself.

They are no part of the memory: no event, no entry, no recall but their own investigation's, and they go with it. Who
reads them sees at least the tiers that their author saw, so that nothing comes down through a note.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import InvalidInput, QuotaExceeded
from grandbo.events.models import Policy
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.screening import refuse_traits
from grandbo.storage.database import Database
from grandbo.storage.tables import notes
from grandbo.storage.tenancy import TENANT, of_tenant
from grandbo.text import check_text
from grandbo.types import Clock, Principal, new_id, utc_now, utc_text

NoteRole = Literal["note", "user", "assistant", "tool"]
NOTE_ROLES: tuple[NoteRole, ...] = get_args(NoteRole)
NOTE_LIMIT = 16_000
NOTES_LIMIT = 2_000
# An investigation in which nothing was noted for so long is over.
KEPT_FOR = timedelta(days=7)
_INVESTIGATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}")

_investigation = sa.bindparam("investigation_id", type_=sa.Text)
_is_of_it = sa.and_(of_tenant(notes), notes.c.investigation_id == _investigation)
_INSERT = sa.insert(notes).values(
    {column.name: sa.bindparam(column.name) for column in notes.c if column.name != "tenant_id"} | {"tenant_id": TENANT}
)
_COUNT = sa.select(sa.func.count().label("n"), sa.func.max(notes.c.noted_at).label("last_at")).where(_is_of_it)
# Newest first: what is read back is the end of the story.
_NEWEST = (
    sa.select(notes)
    .where(_is_of_it, notes.c.tiers.contained_by(sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))))
    .order_by(notes.c.note_id.desc())
    .limit(sa.bindparam("at_most", type_=sa.Integer))
)
_FORGET = sa.delete(notes).where(_is_of_it).returning(notes.c.note_id)
_later = notes.alias("later")
_SWEEP = (
    sa.delete(notes)
    .where(
        of_tenant(notes),
        ~sa.exists(
            sa.select(sa.literal_column("1")).where(
                of_tenant(_later),
                _later.c.investigation_id == notes.c.investigation_id,
                _later.c.noted_at >= sa.bindparam("since", type_=sa.DateTime(timezone=True)),
            )
        ),
    )
    .returning(notes.c.note_id)
)


@dataclass(frozen=True, slots=True)
class Note:
    """One note, or one turn of a conversation."""

    note_id: UUID
    role: NoteRole
    author: str
    text: str
    noted_at: datetime

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "note_id": str(self.note_id),
            "role": self.role,
            "author": self.author,
            "text": self.text,
            "noted_at": utc_text(self.noted_at),
        }


def check_investigation(given: object) -> str:
    """The id of an investigation. Raises `InvalidInput`."""
    if not isinstance(given, str) or not _INVESTIGATION.fullmatch(given):
        raise InvalidInput(
            "investigation_id: 1 to 128 letters, digits, dots, dashes, slashes, colons, at signs or underscores, a "
            "letter or digit first.",
            field="investigation_id",
        )
    return given


def add_note(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    investigation_id: object,
    text: object,
    *,
    role: object = None,
    clock: Clock = utc_now,
) -> Note:
    """
    Note something down in an investigation; the first note begins it.

    Raises:
        InvalidInput, LimitExceeded: more than 16,000 characters. QuotaExceeded: more than 2,000 notes.
    """
    require(principal, "propose")
    investigation = check_investigation(investigation_id)
    chosen = next((known for known in NOTE_ROLES if known == ("note" if role is None else role)), None)
    if chosen is None:
        raise InvalidInput(f"role: it must be one of {', '.join(NOTE_ROLES)}.", field="role")
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("text: write what is to be noted.", field="text")
    check_text(text, "text", limit=NOTE_LIMIT)
    refuse_traits(text, "text")
    note = Note(new_id(), chosen, principal.ref, text, clock())
    key = {"tenant_id": tenant_id, "investigation_id": investigation}
    with database.transaction("writer", tenant_id) as transaction:
        found = transaction.execute(_COUNT, key)[0]
        if found["last_at"] is not None and found["last_at"] < note.noted_at - KEPT_FOR:
            # The id of one that is over, used again: it must not be told what the other one noted.
            transaction.execute(_FORGET, key)
        elif found["n"] >= NOTES_LIMIT:
            raise QuotaExceeded(
                f"The investigation has {NOTES_LIMIT} notes; close it, or go on in another.", limit=NOTES_LIMIT
            )
        row = {
            "note_id": note.note_id,
            "role": note.role,
            "author": note.author,
            "tiers": list(visible_tiers(policy, principal)),
            "text": note.text,
            "noted_at": note.noted_at,
        }
        transaction.execute(_INSERT, key | row)
    return note


def newest_notes(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    investigation_id: object,
    *,
    at_most: int = NOTES_LIMIT,
    clock: Clock = utc_now,
) -> list[Note]:
    """The last notes of an investigation, oldest first; none of one that is over, or that never was."""
    require(principal, "recall")
    params = {
        "tenant_id": tenant_id,
        "investigation_id": check_investigation(investigation_id),
        "tiers": list(visible_tiers(policy, principal)),
        "at_most": at_most,
    }
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_NEWEST, params)
    if not rows or rows[0]["noted_at"] < clock() - KEPT_FOR:
        return []
    return [Note(row["note_id"], row["role"], row["author"], row["text"], row["noted_at"]) for row in reversed(rows)]


def close_investigation(database: Database, tenant_id: UUID, principal: Principal, investigation_id: object) -> int:
    """Forget an investigation's notes; gives how many there were."""
    require(principal, "propose")
    key = {"tenant_id": tenant_id, "investigation_id": check_investigation(investigation_id)}
    with database.transaction("writer", tenant_id) as transaction:
        return len(transaction.execute(_FORGET, key))


def sweep_notes(database: Database, tenant_id: UUID, *, clock: Clock = utc_now) -> int:
    """Forget the notes of every investigation that is over. No answer depends on its having run."""
    params = {"tenant_id": tenant_id, "since": clock() - KEPT_FOR}
    with database.transaction("writer", tenant_id) as transaction:
        return len(transaction.execute(_SWEEP, params))

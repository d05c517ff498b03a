"""
As of when: a position (what the log knew), a time (the last position by then), an instant (what was valid), a role.

A time must have a zone: which instant a naive one means is not for us to guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput, MomentUnknown
from grandbo.events.log import LAST_POSITION, Head
from grandbo.memory.policy import ROLE_ACTS
from grandbo.storage.database import Transaction
from grandbo.storage.tables import events
from grandbo.storage.tenancy import of_tenant
from grandbo.types import parse_instant, require_zone, utc_text

TIME_WANTED = "write RFC 3339 with a zone, such as 2026-01-02T03:04:05Z or 2026-01-02T04:04:05+01:00"
# Who may recall at all: as another role a recall would be refused, not answered.
RECALLING_ROLES = tuple(role for role, acts in ROLE_ACTS.items() if "recall" in acts)

_RECORDED_AT = sa.select(events.c.recorded_at).where(
    of_tenant(events), events.c.position == sa.bindparam("position", type_=sa.BigInteger)
)


@dataclass(frozen=True, slots=True)
class AsOf:
    """What was asked of the past; at least one is given."""

    position: int | None = None
    time: datetime | None = None
    valid_at: datetime | None = None
    role: str | None = None

    @property
    def names_a_moment(self) -> bool:
        """Whether a position or a time of the log was named."""
        return self.position is not None or self.time is not None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a receipt."""
        return {
            "as_of_position": self.position,
            "as_of": utc_text(self.time) if self.time else None,
            "valid_at": utc_text(self.valid_at) if self.valid_at else None,
            "as_role": self.role,
        }


@dataclass(frozen=True, slots=True)
class Moment:
    """A position of the log, and the instant at which validity is judged."""

    position: int
    instant: datetime


def check_as_of(
    *, as_of_position: object = None, as_of: object = None, valid_at: object = None, as_role: object = None
) -> AsOf | None:
    """
    Check what was asked of the past; None where nothing was: then the memory is asked as it stands.

    Raises:
        InvalidInput: with the field and what is allowed there.
    """
    if as_of_position is not None and as_of is not None:
        raise InvalidInput("as_of: give a time or a position, not both.", field="as_of")
    position = None
    if as_of_position is not None:
        if isinstance(as_of_position, bool) or not isinstance(as_of_position, int):
            raise InvalidInput("as_of_position: it must be a whole number.", field="as_of_position")
        position = as_of_position
    role = next((known for known in RECALLING_ROLES if known == as_role), None)
    if as_role is not None and role is None:
        raise InvalidInput(f"as_role: it must be one of {', '.join(RECALLING_ROLES)}.", field="as_role")
    asked = AsOf(position, _time(as_of, "as_of"), _time(valid_at, "valid_at"), role)
    return None if asked == AsOf() else asked


def check_at_least(given: object) -> int:
    """A position that the caller knows of; 0 where none is given. Raises `InvalidInput`."""
    if given is None:
        return 0
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= LAST_POSITION:
        raise InvalidInput("at_least: it must be a position: a whole number from 1.", field="at_least")
    return given


def resolve(transaction: Transaction, tenant_id: UUID, asked: AsOf, head: Head, now: datetime) -> Moment:
    """
    The position and the instant that are meant.

    Raises:
        MomentUnknown: the log does not reach there, with what it reaches.
    """
    if asked.position is not None:
        if not 1 <= asked.position <= head.position:
            raise MomentUnknown(
                f"as_of_position: this tenant's log has the positions 1 to {head.position}.", field="as_of_position"
            )
        at = asked.valid_at or _recorded_at(transaction, tenant_id, asked.position)
        return Moment(asked.position, at)
    if asked.time is not None:
        return Moment(_last_by(transaction, tenant_id, asked.time, head), asked.valid_at or asked.time)
    return Moment(head.position, asked.valid_at or now)


def _last_by(transaction: Transaction, tenant_id: UUID, time: datetime, head: Head) -> int:
    """The last position recorded at or before a time: positions have no gaps and `recorded_at` never runs backwards."""
    if time >= head.recorded_at:
        return head.position
    first = _recorded_at(transaction, tenant_id, 1)
    if time < first:
        raise MomentUnknown(f"as_of: this tenant's log begins at {utc_text(first)}.", field="as_of")
    known, beyond = 1, head.position
    while beyond - known > 1:
        middle = (known + beyond) // 2
        if _recorded_at(transaction, tenant_id, middle) <= time:
            known = middle
        else:
            beyond = middle
    return known


def _recorded_at(transaction: Transaction, tenant_id: UUID, position: int) -> datetime:
    rows = transaction.execute(_RECORDED_AT, {"tenant_id": tenant_id, "position": position})
    at: datetime = rows[0]["recorded_at"]
    return at


def _time(given: object, field: str) -> datetime | None:
    if given is None:
        return None
    if isinstance(given, datetime):
        return require_zone(given, field, TIME_WANTED)
    if not isinstance(given, str):
        raise InvalidInput(f"{field}: this is not a time; {TIME_WANTED}.", field=field)
    return parse_instant(given, field, TIME_WANTED)

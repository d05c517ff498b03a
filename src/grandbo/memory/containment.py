"""Put away all that rests on an entry or on a source, in one command, and let out exactly that again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events import models
from grandbo.events.log import CommandContext, Event, RecordedEvent
from grandbo.events.models import Policy
from grandbo.memory.commands import Appended, Command, run_command
from grandbo.memory.govern import CURRENT, REASON_LIMIT, check_reason, visible_state
from grandbo.memory.impact import Impact, Member, Seed
from grandbo.memory.lifecycle import ALLOWED, decide_quarantine, decide_release
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.screening import Screening
from grandbo.storage.database import Database, Row, Step
from grandbo.storage.tables import entries, events, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, Status, new_id, utc_now

_put_away = revisions.alias("put_away")
_last_put_away = (
    sa.select(sa.func.max(_put_away.c.from_position))
    .where(
        of_tenant(_put_away),
        _put_away.c.entry_id == entries.c.entry_id,
        _put_away.c.event_type == models.EntryQuarantined.EVENT_TYPE,
    )
    .scalar_subquery()
)
_status_before = (
    sa.select(revisions.c.status)
    .where(of_tenant(revisions), revisions.c.entry_id == entries.c.entry_id, revisions.c.status != "quarantined")
    .order_by(revisions.c.revision.desc())
    .limit(1)
    .scalar_subquery()
)
# Found from what is in quarantine now: the log has no index by correlation.
_HELD = (
    sa.select(entries.c.entry_id, entries.c.revision, entries.c.status, _status_before.label("before"))
    .where(
        of_tenant(entries),
        of_tenant(events),
        events.c.position == _last_put_away,
        entries.c.status == "quarantined",
        entries.c.visibility == sa.any_(sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))),
        events.c.correlation_id == sa.bindparam("correlation_id", type_=sa.Uuid),
    )
    .order_by(entries.c.entry_id)
)


@dataclass(frozen=True, slots=True)
class _Held:
    """An entry that an impact put away, and the status that it had before."""

    entry_id: UUID
    revision: int
    status: Status
    before: Status


@dataclass(frozen=True, slots=True)
class Contained:
    """
    What became of an impact.

    Attributes:
        changed: the entries that were put away, or let out, each as it was acknowledged, with its new status.
        left: members in quarantine already, which were left as they are; None on a replay, where it is not told again.
        appended: whether anything was appended just now.
    """

    seed: Seed
    correlation_id: UUID
    verb: str
    changed: tuple[dict[str, Any], ...]
    left: tuple[UUID, ...] | None
    replayed: bool

    @property
    def appended(self) -> bool:
        """Whether anything was appended just now."""
        return bool(self.changed) and not self.replayed

    def as_dict(self) -> dict[str, Any]:
        """The shape that every door gives."""
        document: dict[str, Any] = {
            "seed": self.seed.as_dict(),
            "correlation_id": str(self.correlation_id),
            self.verb: list(self.changed),
            "appended": self.appended,
        }
        if self.verb == "quarantined":
            document["left"] = None if self.left is None else [str(entry_id) for entry_id in self.left]
        return document


def quarantine_impact(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    seed: Seed,
    reason: str,
    *,
    command_id: UUID | None = None,
    clock: Clock = utc_now,
) -> Contained:
    """
    Put every member of the impact away: one command, decided on what is stored while the head is locked.

    Raises:
        Forbidden, InvalidInput, NotFound, ImpactTooLarge, CommandReused.
    """
    context, reason = _context(database, tenant_id, principal, policy, "quarantine_impact", seed, reason, command_id)
    impact = Impact(tenant_id, principal, policy, seed)

    def decide(_found: list[list[Row]], _now: datetime) -> list[Event]:
        return [
            Event(member.entry_id, decide_quarantine(member, reason)) for member in impact.members if _accepts(member)
        ]

    appended = run_command(database, Command(context, [], decide, impact.reads), clock=clock)
    left = None if appended.replayed else tuple(item.entry_id for item in impact.members if not _accepts(item))
    return _contained(seed, context, "quarantined", appended, left)


def release_impact(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    seed: Seed,
    reason: str,
    *,
    command_id: UUID | None = None,
    clock: Clock = utc_now,
) -> Contained:
    """
    Let out what this impact put away and nobody has put away since, each with the status that it had before.

    Raises:
        Forbidden, InvalidInput, NotFound, CommandReused.
    """
    context, reason = _context(database, tenant_id, principal, policy, "release_impact", seed, reason, command_id)
    tiers = visible_tiers(policy, principal)
    key = {"tenant_id": tenant_id, "tiers": list(tiers), "correlation_id": context.correlation_id}
    reads: list[Step] = [(_HELD, key)]
    if seed.entry_id is not None:
        reads.append((CURRENT, {"tenant_id": tenant_id, "entry_id": seed.entry_id}))

    def decide(found: list[list[Row]], _now: datetime) -> list[Event]:
        if seed.entry_id is not None:
            visible_state(found[1], tiers)
        held = [_Held(**row) for row in found[0]]
        return [Event(one.entry_id, decide_release(one, one.before, reason)) for one in held]

    appended = run_command(database, Command(context, reads, decide), clock=clock)
    return _contained(seed, context, "released", appended, ())


def _context(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    verb: str,
    seed: Seed,
    reason: str,
    command_id: UUID | None,
) -> tuple[CommandContext, str]:
    """What was commanded, and the reason as the screen let it pass."""
    require(principal, "govern")
    check_reason(reason)
    screening = Screening(database, tenant_id, policy)
    passed = screening.reason(reason, limit=REASON_LIMIT)
    said = {"verb": verb, "seed": seed.as_dict(), "reason": reason}
    correlation_id = seed.correlation_id(tenant_id)
    command_id = command_id or new_id()
    return CommandContext(tenant_id, principal, command_id, screening.digest(said), correlation_id), passed


def _accepts(member: Member) -> bool:
    return member.status in ALLOWED["quarantine"]


def _contained(
    seed: Seed, context: CommandContext, verb: str, appended: Appended, left: Sequence[UUID] | None
) -> Contained:
    assert context.correlation_id is not None
    changed = tuple(_changed(event) for event in appended.events)
    return Contained(
        seed, context.correlation_id, verb, changed, None if left is None else tuple(left), appended.replayed
    )


def _changed(event: RecordedEvent) -> dict[str, Any]:
    data = event.data
    return {
        "entry_id": str(event.header.stream_id),
        "revision": data.revision if isinstance(data, models.EntryChanged) else 0,
        "position": event.position,
        "hash": event.hash.hex(),
        "status": data.status if isinstance(data, models.EntryReleased) else "quarantined",
    }

"""The verbs of an entry's life, each one command: load the state, check it, decide, append."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput, NotFound
from grandbo.events import models
from grandbo.events.log import CommandContext, Event, RecordedEvent
from grandbo.events.models import Policy
from grandbo.events.parts import EventBody
from grandbo.memory.commands import Appended, Command, run_command
from grandbo.memory.lifecycle import EntryState, check_acceptable
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.screening import Screening, is_about
from grandbo.storage.database import Database, Row, Step
from grandbo.storage.tables import entries, events, links, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.text import check_text
from grandbo.types import Acknowledgement, Clock, Principal, new_id, utc_now

REASON_LIMIT = 1_000

_entry = sa.bindparam("entry_id", type_=sa.Uuid)
CURRENT = (
    sa.select(entries, events.c.hash)
    .join(events, sa.and_(events.c.tenant_id == entries.c.tenant_id, events.c.position == entries.c.position))
    .where(of_tenant(entries), of_tenant(events), entries.c.entry_id == _entry)
)
AT_REVISION = sa.select(revisions).where(
    of_tenant(revisions), revisions.c.entry_id == _entry, revisions.c.revision == sa.bindparam("revision")
)
BEFORE_QUARANTINE = (
    sa.select(revisions)
    .where(of_tenant(revisions), revisions.c.entry_id == _entry, revisions.c.status != "quarantined")
    .order_by(revisions.c.revision.desc())
    .limit(1)
)

OPEN_LINK = sa.select(links.c.from_position).where(
    of_tenant(links),
    links.c.from_entry == _entry,
    links.c.link_type == sa.bindparam("link_type"),
    links.c.to_entry == sa.bindparam("to_entry", type_=sa.Uuid),
    links.c.to_position.is_(None),
)

_MAKES_REVISION = (models.EntryChanged, models.EntryCorroborated)

Decide = Callable[[EntryState, list[list[Row]], datetime], EventBody | None]


@dataclass(frozen=True, slots=True)
class Wish:
    """
    What someone wants of an entry.

    Attributes:
        reason: None where the verb takes none: the evidence says why.
        said: the content of the command as plain values; tells a retry from another use of its id.
        prepare: from the command's screening to the decision; whatever text the wish brings has to pass it here.
        reads: further rows that the decision rests on, after the entry itself.
    """

    verb: str
    entry_id: UUID
    reason: str | None
    prepare: Callable[[Screening], Decide]
    said: Mapping[str, Any] = field(default_factory=dict)
    reads: Sequence[Step] = ()
    expected_revision: int | None = None
    command_id: UUID | None = None
    takes_reason: bool = True


@dataclass(frozen=True, slots=True)
class Changed:
    """An acknowledgement, and whether anything was appended for it just now."""

    acknowledgement: Acknowledgement
    appended: bool
    replayed: bool


def carry_out(
    database: Database, tenant_id: UUID, principal: Principal, policy: Policy, wish: Wish, *, clock: Clock = utc_now
) -> Changed:
    """
    Carry a wish out, or find that it changes nothing.

    Raises:
        Forbidden, NotFound, RevisionStale, IllegalTransition, InvalidInput, CommandReused.
    """
    require(principal, "govern")
    if wish.takes_reason:
        check_reason(wish.reason)
    tiers = visible_tiers(policy, principal)
    seen: list[Row] = []
    screening = Screening(database, tenant_id, policy, names_subject=is_about(database, tenant_id, wish.entry_id))
    decide_wish = wish.prepare(screening)
    reason = None if wish.reason is None else screening.reason(wish.reason, limit=REASON_LIMIT)

    def decide(found: list[list[Row]], now: datetime) -> list[Event]:
        state = visible_state(found[0], tiers)
        seen[:] = found[0]
        check_acceptable(state, wish.verb, wish.expected_revision)
        body = decide_wish(state, found[1:], now)
        if body is None:
            return []
        put_away = _put_away(state, body, screening)
        return [Event(wish.entry_id, one) for one in (with_reason(body, reason), *put_away)]

    why = {"reason": wish.reason} if wish.takes_reason else {}
    said = {"verb": wish.verb, "entry_id": str(wish.entry_id), **why, **wish.said}
    context = CommandContext(tenant_id, principal, wish.command_id or new_id(), screening.digest(said))
    current = (CURRENT, {"tenant_id": tenant_id, "entry_id": wish.entry_id})
    appended = run_command(database, Command(context, [current, *wish.reads], decide), clock=clock)
    return Changed(_acknowledge(appended, seen), bool(appended.events) and not appended.replayed, appended.replayed)


def preview(
    database: Database, tenant_id: UUID, principal: Principal, policy: Policy, wish: Wish, *, clock: Clock = utc_now
) -> tuple[EntryState, EventBody | None]:
    """What would happen, decided on what is stored now; nothing is locked and nothing is written."""
    require(principal, "govern")
    key = {"tenant_id": tenant_id, "entry_id": wish.entry_id}
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        found = transaction.batch([(CURRENT, key), *wish.reads])
    state = visible_state(found[0], visible_tiers(policy, principal))
    check_acceptable(state, wish.verb, wish.expected_revision)
    about = is_about(database, tenant_id, wish.entry_id)
    decide = wish.prepare(Screening(database, tenant_id, policy, names_subject=about))
    return state, decide(state, found[1:], clock())


def with_reason(body: EventBody, reason: str | None) -> EventBody:
    """The event with its reason as the screen let it pass."""
    if reason is None or getattr(body, "reason", reason) == reason:
        return body
    return body.model_copy(update={"reason": reason})


def _put_away(state: EntryState, body: EventBody, screening: Screening) -> list[EventBody]:
    """A text that the screen wants looked at takes a published entry out of every answer."""
    if not screening.quarantines or state.status != "published":
        return []
    return [screening.quarantined(body.revision)] if isinstance(body, _MAKES_REVISION) else []


def visible_state(rows: Sequence[Row], tiers: Sequence[str]) -> EntryState:
    """The state in the first row; what is not there and what is not the caller's to see are told apart by nothing."""
    if not rows or rows[0]["visibility"] not in tiers:
        raise NotFound
    return EntryState.of_row(rows[0])


def check_reason(reason: object) -> None:
    """Refuse what says nothing, or too much."""
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidInput("reason: say why; it stands in the history.", field="reason")
    check_text(reason, "reason", limit=REASON_LIMIT)


def _acknowledge(appended: Appended, seen: list[Row]) -> Acknowledgement:
    if appended.events:
        event: RecordedEvent = appended.events[-1]
        data = event.data
        makes_known = models.EntryChanged | models.EntryCorroborated | models.EntryLinked | models.EntryUnlinked
        revision = data.revision if isinstance(data, makes_known) else 0
        return Acknowledgement(event.header.stream_id, revision, event.position, event.hash.hex(), created=False)
    row = seen[0]
    return Acknowledgement(row["entry_id"], row["revision"], row["position"], row["hash"].hex(), created=False)

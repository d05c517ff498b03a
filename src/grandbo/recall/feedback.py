"""
What became of an answer: a verdict on one entry of one receipt, by one principal.

There is one at a time: another verdict takes the place of the one before, the same again changes nothing.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import Forbidden, InvalidInput, NotFound
from grandbo.events.feedback import FeedbackGiven
from grandbo.events.log import CommandContext, Event
from grandbo.events.models import Policy
from grandbo.memory.commands import Appended, Command, run_command
from grandbo.memory.govern import CURRENT, Changed, visible_state
from grandbo.memory.policy import require, require_writing, visible_tiers
from grandbo.memory.screening import Screening
from grandbo.memory.told import WITHIN_TIERS, tier_params
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import events, feedback, receipts
from grandbo.storage.tenancy import of_tenant
from grandbo.text import check_text
from grandbo.types import (
    VERDICTS,
    Acknowledgement,
    Clock,
    Principal,
    Verdict,
    derived_id,
    new_id,
    utc_now,
)

NOTE_LIMIT = 1_000

_own = receipts.c.principal == sa.bindparam("asker", type_=sa.Text)
_any_of_his_tiers = sa.and_(sa.bindparam("may_audit", type_=sa.Boolean), WITHIN_TIERS)
# One's own receipts; anybody's, within one's tiers, for who may audit.
_RECEIPT = sa.select(receipts.c.matches).where(
    of_tenant(receipts),
    receipts.c.receipt_id == sa.bindparam("receipt_id", type_=sa.Uuid),
    sa.or_(_own, _any_of_his_tiers),
)
_IN_FORCE = (
    sa.select(feedback.c.verdict, feedback.c.note, feedback.c.revision, feedback.c.from_position, events.c.hash)
    .join(events, sa.and_(events.c.tenant_id == feedback.c.tenant_id, events.c.position == feedback.c.from_position))
    .where(
        of_tenant(feedback),
        of_tenant(events),
        feedback.c.feedback_id == sa.bindparam("feedback_id", type_=sa.Uuid),
        feedback.c.to_position.is_(None),
    )
)


def give_feedback(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    receipt_id: UUID,
    entry_id: UUID,
    verdict: object,
    *,
    note: object = None,
    command_id: UUID | None = None,
    clock: Clock = utc_now,
) -> Changed:
    """
    Say what became of one entry of one answer; durable when this returns.

    The same verdict again, without a note or with the one that it has, changes nothing.

    Raises:
        NotFound: no such receipt, or neither one's own nor within what the caller may audit; or it does not hold the
            entry, or the entry stands above the caller's tiers.
        InvalidInput, CommandReused.
    """
    require(principal, "recall")
    require_writing(principal)
    said, given = _checked_verdict(verdict), _checked_note(note)
    screening = Screening(database, tenant_id, policy)
    remark = None if given is None else screening.reason(given, "note", limit=NOTE_LIMIT)
    tiers = visible_tiers(policy, principal)
    stream = derived_id("feedback", str(receipt_id), str(entry_id), principal.ref)
    before: list[Row] = []

    def decide(found: list[list[Row]], _now: object) -> list[Event]:
        held, entry, before[:] = found
        visible_state(entry, tiers)
        told = _revision_told(held, entry_id)
        known = before[0] if before else None
        if known is not None and known["verdict"] == said and remark in (None, known["note"]):
            return []
        body = FeedbackGiven(
            receipt_id=str(receipt_id), entry_id=str(entry_id), revision=told, verdict=said, note=remark
        )
        return [Event(stream, body, starts_stream=known is None)]

    content = screening.digest(["feedback", str(receipt_id), str(entry_id), said, given])
    context = CommandContext(tenant_id, principal, command_id or new_id(), content)
    key = {"tenant_id": tenant_id, "entry_id": entry_id, "receipt_id": receipt_id, "feedback_id": stream}
    asker = {"asker": principal.ref, "may_audit": _may_audit(principal), **tier_params(tenant_id, policy, tiers)}
    reads = [(_RECEIPT, {**key, **asker}), (CURRENT, key), (_IN_FORCE, key)]
    appended = run_command(database, Command(context, reads, decide), clock=clock)
    is_new = bool(appended.events) and not appended.replayed
    return Changed(_acknowledge(appended, entry_id, before), is_new, appended.replayed)


def _revision_told(held: list[Row], entry_id: UUID) -> int:
    matches: list[dict[str, Any]] = held[0]["matches"] if held else []
    told = next((match for match in matches if match.get("entry_id") == str(entry_id)), None)
    if told is None:
        raise NotFound
    revision: int = told["revision"]
    return revision


def _acknowledge(appended: Appended, entry_id: UUID, before: list[Row]) -> Acknowledgement:
    if appended.events:
        event = appended.events[0]
        revision = event.data.revision if isinstance(event.data, FeedbackGiven) else 0
        is_first = event.header.stream_version == 1
        return Acknowledgement(entry_id, revision, event.position, event.hash.hex(), created=is_first)
    known = before[0]
    return Acknowledgement(entry_id, known["revision"], known["from_position"], known["hash"].hex(), created=False)


def _may_audit(principal: Principal) -> bool:
    try:
        require(principal, "audit")
    except Forbidden:
        return False
    return True


def _checked_verdict(verdict: object) -> Verdict:
    known = next((known for known in VERDICTS if known == verdict), None)
    if known is None:
        raise InvalidInput(f"verdict: it must be one of {', '.join(VERDICTS)}.", field="verdict")
    return known


def _checked_note(note: object) -> str | None:
    if note is None:
        return None
    if not isinstance(note, str) or not note.strip():
        raise InvalidInput("note: it must say something, or be left out.", field="note")
    return check_text(note, "note", limit=NOTE_LIMIT)

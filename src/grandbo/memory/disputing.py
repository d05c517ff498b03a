"""
Dispute candidates: two entries that contradict each other, waiting for a person to say so.

Only a person disputes. An approval marks both sides, each with the other; a rejection is remembered by the command that
proposed it: the same two texts are never proposed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.applicability import parse_applies
from grandbo.errors import IllegalTransition
from grandbo.events.candidates import CandidateContent, CandidateProposed, Outcome
from grandbo.events.log import CommandContext, Event
from grandbo.events.models import Evidence, IncidentRef, Policy, Screened
from grandbo.memory import candidacy, lifecycle
from grandbo.memory.candidacy import CandidateState
from grandbo.memory.commands import Command, run_command
from grandbo.memory.contradiction import CONTRADICTION_VERSION, Judgement
from grandbo.memory.decide import applies_to
from grandbo.memory.lifecycle import EntryState
from grandbo.screening import SCREEN_VERSION
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import candidates, entries
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, derived_id, digest_of, new_id, utc_text

DETECTOR = Principal("system", derived_id("system", "contradiction-detector"), "contradiction-detector")
DISPUTE_FLAG = "contradiction"
DISPUTE_RISK = 60

_one, _other = (sa.bindparam(name, type_=sa.Uuid) for name in ("one", "other"))
_PAIR = sa.or_(
    sa.and_(candidates.c.into_entry == _one, candidates.c.disputes == _other),
    sa.and_(candidates.c.into_entry == _other, candidates.c.disputes == _one),
)
_WAITING = sa.select(
    sa.func.count().filter(_PAIR).label("same_pair"),
    sa.func.count().label("waiting"),
).where(of_tenant(candidates), candidates.c.proposed_by == sa.bindparam("detector"), candidates.c.status == "pending")
# Judged once more under the head lock: what was read before may be another text by now, or put away.
_SIDES = sa.select(entries).where(
    of_tenant(entries), entries.c.entry_id == sa.any_(sa.bindparam("sides", type_=pg.ARRAY(sa.Uuid)))
)


@dataclass(frozen=True, slots=True)
class Proposed:
    """Whether a dispute was proposed now, or has to wait because as many as may wait do."""

    is_new: bool
    is_held_back: bool


def propose_dispute(
    database: Database, tenant_id: UUID, policy: Policy, pair: tuple[Row, Row], judgement: Judgement, clock: Clock
) -> Proposed:
    """Let a pair wait for a person; the same two texts are proposed once, whatever becomes of it."""
    into, disputes = sorted(pair, key=lambda row: (row["recorded_at"], row["entry_id"]))
    body = _proposal(into, disputes, policy, judgement)
    held_back = False

    def decide(found: list[list[Row]], _now: datetime) -> list[Event]:
        nonlocal held_back
        if found[0][0]["same_pair"] or not _still_stand(found[1], (into, disputes)):
            return []
        held_back = found[0][0]["waiting"] >= policy.pending_candidates
        return [] if held_back else [Event(new_id(), body, starts_stream=True)]

    texts = sorted((str(row["entry_id"]), row["text_digest"].hex()) for row in pair)
    said = ["dispute", *(part for text in texts for part in text)]
    context = CommandContext(tenant_id, DETECTOR, derived_id(*said), digest_of(said))
    one, other = into["entry_id"], disputes["entry_id"]
    key = {"tenant_id": tenant_id}
    reads = [
        (_WAITING, {**key, "one": one, "other": other, "detector": DETECTOR.ref}),
        (_SIDES, {**key, "sides": [one, other]}),
    ]
    appended = run_command(database, Command(context, reads, decide), clock=clock)
    return Proposed(bool(appended.events) and not appended.replayed, held_back)


def approve_pair(
    candidate_id: UUID,
    state: CandidateState,
    content: CandidateContent,
    pair: tuple[EntryState, EntryState],
    reason: str,
) -> list[Event]:
    """
    What an approval does: each side that is not disputed is, with the other; nothing where both are already.

    Raises:
        IllegalTransition: one of them is not recalled any more, so there is nothing left to dispute.
    """
    for side in pair:
        if side.status != "published":
            raise IllegalTransition(
                f"An entry of the pair is {side.status}; there is nothing to dispute any more: reject the candidate.",
                entry_status=side.status,
            )
    into, other = pair
    made = [
        None if side.disputed else lifecycle.decide_dispute(side, against, reason)
        for side, against in ((into, other), (other, into))
    ]
    revisions = [body.revision if body else None for body in made]
    outcome: Outcome = "disputed" if any(made) else "known"
    approved = candidacy.decide_approve(state, content, outcome, reason, into.entry_id, *revisions)
    disputed = [Event(side.entry_id, body) for side, body in zip(pair, made, strict=True) if body]
    return [Event(candidate_id, approved), *disputed]


def undo_pair(state: CandidateState, pair: tuple[EntryState, EntryState], reason: str) -> list[Event]:
    """
    What undoing an approval does: the disputes that it made are resolved.

    Raises:
        IllegalTransition: a side has changed since.
    """
    undone = []
    for side, revision in zip(pair, (state.entry_revision, state.other_revision), strict=True):
        if revision is None:
            continue
        if side.revision != revision or not side.disputed:
            raise IllegalTransition(
                "An entry of the pair has changed since; resolve its dispute by itself.", entry_status=side.status
            )
        undone.append(Event(side.entry_id, lifecycle.decide_resolve(side, reason)))
    return undone


def _still_stand(found: Sequence[Row], pair: tuple[Row, Row]) -> bool:
    now = {row["entry_id"]: row for row in found}
    return all(
        row["entry_id"] in now
        and now[row["entry_id"]]["status"] == "published"
        and now[row["entry_id"]]["text_digest"] == row["text_digest"]
        for row in pair
    )


def _proposal(into: Row, disputes: Row, policy: Policy, judgement: Judgement) -> CandidateProposed:
    order = {tier: place for place, tier in enumerate(policy.tiers)}
    visibility = max(into["visibility"], disputes["visibility"], key=lambda tier: order.get(tier, len(order)))
    found = ", ".join(sorted({f"{item.rule} of {item.subject}" for item in judgement.findings}))
    return CandidateProposed(
        version=1,
        content=_content(into, visibility),
        flags=(DISPUTE_FLAG,),
        # Both texts are in the memory already: what the screen finds in them was found when they were written.
        screened=Screened(version=SCREEN_VERSION, findings=()),
        risk=DISPUTE_RISK,
        author_type=DETECTOR.type,
        into=str(into["entry_id"]),
        disputes=str(disputes["entry_id"]),
        reason=f"Rules {CONTRADICTION_VERSION}: {found}"[:1_000],
    )


def _content(row: Mapping[str, Any], visibility: str) -> CandidateContent:
    """What one of the entries says, so that the queue shows what it is about."""
    same = ("kind", "title", "summary", "body", "service", "namespace", "owner", "confidence_bp", "external_id")
    has_incident = row["incident_source"] is not None
    document = {
        **{name: row[name] for name in (*same, "occurred_precision")},
        "tags": tuple(row["tags"]),
        "visibility": visibility,
        "applicability": applies_to(parse_applies(item) for item in row["applicability"]),
        "evidence": tuple(Evidence(**item) for item in row["evidence"]),
        "incident": IncidentRef(source=row["incident_source"], id=row["incident_id"]) if has_incident else None,
        **{name: _time(row[name]) for name in ("occurred_at", "ended_at", "valid_from", "expires_at")},
        "claim_digest": row["claim_digest"].hex(),
        "text_digest": row["text_digest"].hex(),
    }
    return CandidateContent.model_validate(document)


def _time(moment: datetime | None) -> str | None:
    return utc_text(moment) if moment else None

"""
Episodes: what came of one session of work, told by whoever did it, where the tenant takes them in.

One a session id and subject: told again it is a correction. An episode is found like everything else, expires, and goes
with its subject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput, NotFound, SubjectErased
from grandbo.events.log import CommandContext, Event
from grandbo.events.models import EntrySuperseded, Policy
from grandbo.events.parts import EventBody
from grandbo.memory import lifecycle
from grandbo.memory.commands import Command, run_command
from grandbo.memory.decide import decide_record_finding
from grandbo.memory.finding import Finding, parse_finding, said_by
from grandbo.memory.lifecycle import EntryState
from grandbo.memory.personal import Remembered, remembered_by
from grandbo.memory.policy import check_visibility, may, require, visible_tiers
from grandbo.memory.proposal import with_session
from grandbo.memory.record import subject_of
from grandbo.memory.screening import Screening
from grandbo.memory.subjects import SUBJECT, Subject, refuse_held
from grandbo.storage.database import Database, Row, Step
from grandbo.storage.tables import entries, events
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, PrincipalType, digest_of, new_id, utc_now

_TOLD_AGAIN = "Told again of the same session."
_OTHER_AUTHOR = "Told anew of the same session, by somebody of another type."
_CORRECTED = ("title", "summary", "body", "service", "tags", "confidence_bp")

_OF_SESSION = (
    sa.select(entries, events.c.hash, events.c.subject_id)
    .join(events, sa.and_(events.c.tenant_id == entries.c.tenant_id, events.c.position == entries.c.position))
    .where(
        of_tenant(entries),
        of_tenant(events),
        entries.c.status == "published",
        entries.c.kind == "episode",
        entries.c.external_id == sa.bindparam("session", type_=sa.Text),
    )
    .order_by(entries.c.entry_id)
)


def record_episode(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    document: object,
    *,
    clock: Clock = utc_now,
) -> Remembered:
    """
    Record what came of a session: `session_id`, `subject`, `title`, and what else a finding has.

    Raises:
        Forbidden: the tenant takes no episodes in. SubjectMissing, SubjectErased, SubjectOnHold, InvalidInput
    """
    if not may(principal, "remember"):
        require(principal, "record")
    finding = _finding(document)
    visibility = check_visibility(policy, principal, finding.visibility)
    subject_id = subject_of(database, tenant_id, finding, policy)
    assert subject_id is not None
    finding = finding.model_copy(update={"subject": str(subject_id)})
    screening = Screening(database, tenant_id, policy, names_subject=True)
    passed = screening.finding(finding)
    tiers = visible_tiers(policy, principal)
    seen: list[Row] = []

    def decide(found: list[list[Row]], now: datetime) -> Sequence[Event]:
        subject = Subject.of_row(found[0][0]) if found[0] else None
        seen[:] = [row for row in found[1] if row["subject_id"] == subject_id and row["visibility"] in tiers]
        return decide_episode(
            passed,
            subject,
            seen,
            policy=policy,
            visibility=visibility,
            author_type=principal.type,
            screening=screening,
            now=now,
        )

    reads: list[Step] = [
        (SUBJECT, {"tenant_id": tenant_id, "subject": subject_id}),
        same_session_query(tenant_id, passed.external_id or ""),
    ]
    # The digest tells retries apart and leaves with the body, which is sealed.
    context = CommandContext(tenant_id, principal, new_id(), digest_of(said_by(finding)))
    return remembered_by(run_command(database, Command(context, reads, decide), clock=clock), seen)


def same_session_query(tenant_id: UUID, session_id: str) -> Step:
    """The episodes that stand of a session, whomever they are about."""
    return _OF_SESSION, {"tenant_id": tenant_id, "session": session_id}


def decide_episode(
    finding: Finding,
    subject: Subject | None,
    standing: Sequence[Row],
    *,
    policy: Policy,
    visibility: str,
    author_type: PrincipalType,
    screening: Screening,
    now: datetime,
) -> list[Event]:
    """
    What is told of a session first is an entry; told again it corrects it, or where somebody of another type tells it a
    new one takes its place. The same again is nothing.

    Args:
        standing: rows of `same_session_query` in tiers that the teller sees.

    Raises:
        NotFound, SubjectErased, SubjectOnHold
    """
    subject = _active(subject)
    about = subject.subject_id

    def put_away(revision: int) -> list[EventBody]:
        return [screening.quarantined(revision)] if screening.quarantines else []

    def recorded() -> list[Event]:
        made = decide_record_finding(
            finding,
            [],
            policy=policy,
            visibility=visibility,
            author_type=author_type,
            new_entry_id=new_id(),
            now=now,
            screened=screening.screened,
            is_quarantined=screening.quarantines,
            subject_id=about,
        )
        assert isinstance(made, Event)
        return [made, *(Event(made.stream_id, one) for one in put_away(1))]

    known = next((row for row in standing if row["subject_id"] == about), None)
    if known is None:
        return recorded()
    refuse_held(subject)
    state = EntryState.of_row(known)
    if known["author_type"] != author_type:
        made = recorded()
        by = str(made[0].stream_id)
        gone = EntrySuperseded(revision=state.revision + 1, reason=_OTHER_AUTHOR, superseded_by=by)
        return [Event(state.entry_id, gone, subject_id=about), *made]
    changes = {name: getattr(finding, name) for name in _CORRECTED}
    body = lifecycle.decide_correct(state, changes, _TOLD_AGAIN, screening.screened)
    said = [] if body is None else [body, *put_away(body.revision)]
    return [Event(state.entry_id, one, subject_id=about) for one in said]


def _finding(document: object) -> Finding:
    if not isinstance(document, Mapping):
        raise InvalidInput("An episode is an object with session_id, subject and title.")
    given: dict[str, Any] = dict(document)
    session = given.pop("session_id", None)
    if not isinstance(session, str) or not session.strip():
        raise InvalidInput("session_id: name the session.", field="session_id")
    return parse_finding(with_session({**given, "kind": "episode"}, session))


def _active(subject: Subject | None) -> Subject:
    if subject is None:
        raise NotFound("There is no such subject in this tenant.")
    if subject.state == "erased":
        raise SubjectErased
    return subject

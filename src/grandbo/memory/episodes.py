"""
Episodes: what came of one session of work, told by whoever did it, where the tenant takes them in.

One a session id and subject: told again it is a correction. An episode is found like everything else, expires, and goes
with its subject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput, NotFound, SubjectErased
from grandbo.events.log import CommandContext, Event
from grandbo.events.models import EntryRecorded, EntrySuperseded, Policy
from grandbo.finding_limits import NAME_LIMIT
from grandbo.memory import lifecycle
from grandbo.memory.commands import Command, run_command
from grandbo.memory.decide import decide_record_finding
from grandbo.memory.finding import Finding, parse_finding, said_by
from grandbo.memory.lifecycle import EntryState
from grandbo.memory.personal import Remembered, remembered_by
from grandbo.memory.policy import check_visibility, may, require
from grandbo.memory.record import subject_of
from grandbo.memory.screening import Screening
from grandbo.memory.subjects import SUBJECT, Subject, refuse_held
from grandbo.storage.database import Database, Row, Step
from grandbo.storage.tables import entries, events
from grandbo.storage.tenancy import of_tenant
from grandbo.text import check_text
from grandbo.types import Clock, Principal, digest_of, new_id, utc_now

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
    seen: list[Row] = []

    def decide(found: list[list[Row]], now: datetime) -> Sequence[Event]:
        subject = _active(found[0])
        seen[:] = [row for row in found[1] if row["subject_id"] == subject_id]
        if not seen:
            return _new(now)
        refuse_held(subject)
        state = EntryState.of_row(seen[0])
        if seen[0]["author_type"] != principal.type:
            made = _new(now)
            gone = EntrySuperseded(
                revision=state.revision + 1, reason=_OTHER_AUTHOR, superseded_by=str(made[0].stream_id)
            )
            return [Event(state.entry_id, gone, subject_id=subject_id), *made]
        changes = {name: getattr(passed, name) for name in _CORRECTED}
        body = lifecycle.decide_correct(state, changes, _TOLD_AGAIN, screening.screened)
        put_away = [screening.quarantined(body.revision)] if body is not None and screening.quarantines else []
        return [] if body is None else [Event(state.entry_id, one, subject_id=subject_id) for one in (body, *put_away)]

    def _new(now: datetime) -> list[Event]:
        recorded = decide_record_finding(
            passed,
            [],
            policy=policy,
            visibility=visibility,
            author_type=principal.type,
            new_entry_id=new_id(),
            now=now,
            screened=screening.screened,
            is_quarantined=screening.quarantines,
            subject_id=subject_id,
        )
        assert isinstance(recorded, Event)
        assert isinstance(recorded.body, EntryRecorded)
        put_away = [Event(recorded.stream_id, screening.quarantined(1))] if screening.quarantines else []
        return [recorded, *put_away]

    reads: list[Step] = [
        (SUBJECT, {"tenant_id": tenant_id, "subject": subject_id}),
        (_OF_SESSION, {"tenant_id": tenant_id, "session": passed.external_id}),
    ]
    # The digest tells retries apart and leaves with the body, which is sealed.
    context = CommandContext(tenant_id, principal, new_id(), digest_of(said_by(finding)))
    return remembered_by(run_command(database, Command(context, reads, decide), clock=clock), seen)


def _finding(document: object) -> Finding:
    if not isinstance(document, Mapping):
        raise InvalidInput("An episode is an object with session_id, subject and title.")
    given: dict[str, Any] = dict(document)
    session = given.pop("session_id", None)
    if not isinstance(session, str) or not session.strip():
        raise InvalidInput("session_id: name the session.", field="session_id")
    check_text(session, "session_id", limit=NAME_LIMIT, single_line=True)
    source = {"type": "session", "uri": f"urn:grandbo:session:{quote(session, safe='')}", "label": ""}
    evidence = [source, *(given.pop("evidence", None) or [])]
    return parse_finding({**given, "kind": "episode", "external_id": session, "evidence": evidence})


def _active(rows: Sequence[Row]) -> Subject:
    if not rows:
        raise NotFound("There is no such subject in this tenant.")
    subject = Subject.of_row(rows[0])
    if subject.state == "erased":
        raise SubjectErased
    return subject

"""`record_finding`: one finding in, one acknowledgement out."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import Forbidden, GrandboError, KindNotRecorded, SubjectErased, SubjectMissing
from grandbo.events.log import CommandContext, Event, RecordedEvent
from grandbo.events.models import EntryCorroborated, EntryQuarantined, EntryRecorded, Policy
from grandbo.events.sealing import NO_KEYS, Keys
from grandbo.memory.commands import Appended, Command, run_command, run_commands
from grandbo.memory.decide import AlreadyKnown, SameClaim, claim_digest, decide_record_finding
from grandbo.memory.finding import Finding, said_by
from grandbo.memory.policy import check_visibility, require
from grandbo.memory.screening import Screening
from grandbo.memory.subjects import find_subject, find_with_key
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import entries, events
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Acknowledgement, Clock, Principal, derived_id, digest_of, new_id, utc_now

# Oldest first: the first entry that made a claim is the one that others corroborate.
SAME_CLAIM = (
    sa.select(
        entries.c.entry_id,
        entries.c.revision,
        entries.c.position,
        entries.c.incident_source,
        entries.c.incident_id,
        entries.c.supported_by,
        events.c.hash,
    )
    .join(events, sa.and_(events.c.tenant_id == entries.c.tenant_id, events.c.position == entries.c.position))
    .where(
        of_tenant(entries),
        of_tenant(events),
        entries.c.claim_digest == sa.bindparam("claim_digest", type_=sa.LargeBinary),
        entries.c.status == "published",
    )
    .order_by(entries.c.recorded_at, entries.c.entry_id)
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An acknowledgement; whether the command had been carried out before; whether this time it appended anything."""

    acknowledgement: Acknowledgement
    replayed: bool
    appended: bool


def subject_of(database: Database, tenant_id: UUID, finding: Finding, policy: Policy) -> UUID | None:
    """
    Whom a finding is about, by id.

    Raises:
        SubjectMissing: an episode that names none. NotFound: there is no such subject. Forbidden: the tenant takes no
            episodes in.
    """
    check_episode(finding.kind, finding.subject, policy)
    return None if finding.subject is None else find_subject(database, tenant_id, finding.subject)


def check_episode(kind: object, subject: object, policy: Policy) -> None:
    """Refuse an episode where the tenant takes none in, and one that names no subject."""
    if kind == "episode":
        if not policy.people.episodes:
            raise Forbidden("Episodes are not taken in: the tenant's policy has people.episodes off.")
        if not subject:
            raise SubjectMissing(field="subject")


def _subject_key(keys: Keys, subject_id: UUID | None) -> bytes | None:
    if subject_id is None:
        return None
    if subject_id not in keys:
        raise SubjectErased
    return keys[subject_id]


def finding_command_id(finding: Finding, visibility: str, subject_key: bytes | None = None) -> UUID:
    """
    The command id of a finding: derived from source, incident and finding where it names its incident, so that a retry
    is a no-op by nature; new otherwise.

    The tier is part of it: a writer who does not see a tier must not learn from a conflict what is recorded there.
    """
    if finding.incident is None:
        return new_id()
    what = finding.external_id or claim_digest(finding, visibility)
    if subject_key is not None:
        # The id stays when the text is gone: without the key nobody can tell what it was made of.
        what = keyed(what, subject_key)
    return derived_id("finding", visibility, finding.incident.source, finding.incident.id, what)


def keyed(what: str, subject_key: bytes) -> str:
    """A text as an id is made of it that nobody can tell it from without the subject's key."""
    return hmac.new(subject_key, what.encode(), hashlib.sha256).hexdigest()


def record_finding(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    finding: Finding,
    *,
    command_id: UUID | None = None,
    clock: Clock = utc_now,
) -> Recorded:
    """
    Record a finding, durably, before this returns.

    Raises:
        Forbidden: the principal may not record, or not at this visibility.
        CommandReused: the command id was used with other content.
    """
    command, decision = _command(database, tenant_id, principal, policy, finding, command_id)
    appended = run_command(database, command, clock=clock)
    return _recorded(decision, appended)


def record_findings(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    findings: Sequence[Finding],
    *,
    command_ids: Sequence[UUID] | None = None,
    clock: Clock = utc_now,
) -> list[Recorded | GrandboError]:
    """
    Record several findings in one transaction; each is acknowledged or refused by itself.

    Args:
        command_ids: one for each; else they are derived.
    """
    outcomes: list[Recorded | GrandboError] = []
    made: list[tuple[int, Command, _Decision]] = []
    given: Sequence[UUID | None] = command_ids or [None] * len(findings)
    for finding, command_id in zip(findings, given, strict=True):
        try:
            command, decision = _command(database, tenant_id, principal, policy, finding, command_id)
        except GrandboError as error:
            outcomes.append(error)
            continue
        made.append((len(outcomes), command, decision))
        outcomes.append(GrandboError("not carried out"))
    appended = run_commands(database, tenant_id, [command for _, command, _ in made], clock=clock)
    for (place, _, decision), outcome in zip(made, appended, strict=True):
        outcomes[place] = outcome if isinstance(outcome, GrandboError) else _recorded(decision, outcome)
    return outcomes


def _command(
    database: Database, tenant_id: UUID, principal: Principal, policy: Policy, finding: Finding, command_id: UUID | None
) -> tuple[Command, _Decision]:
    require(principal, "record")
    visibility = check_visibility(policy, principal, finding.visibility)
    check_episode(finding.kind, finding.subject, policy)
    if finding.kind == "episode":
        # Only there is it one a session.
        raise KindNotRecorded("kind: an episode is recorded under its session: record_episode.", field="kind")
    subject_id, keys = None, NO_KEYS
    if finding.subject is not None:
        subject_id, keys = find_with_key(database, tenant_id, finding.subject)
        # By its id from here on: the reference is kept nowhere.
        finding = finding.model_copy(update={"subject": str(subject_id)})
    screening = Screening(database, tenant_id, policy, names_subject=subject_id is not None)
    passed = screening.finding(finding)
    said = said_by(finding)
    context = CommandContext(
        tenant_id=tenant_id,
        principal=principal,
        # An id that derives from a text must not give away what was taken out of it.
        command_id=command_id
        or finding_command_id(passed if screening.has_keyed else finding, visibility, _subject_key(keys, subject_id)),
        command_digest=screening.digest(said),
        bare_digest=digest_of(said),
    )
    claim = {"tenant_id": tenant_id, "claim_digest": bytes.fromhex(claim_digest(passed, visibility))}
    decision = _Decision(passed, policy, visibility, principal, screening, subject_id)
    return Command(context, [(SAME_CLAIM, claim)], decision, keys=keys), decision


class _Decision:
    """Remembers what the decision was made on, for the acknowledgement of a finding that adds nothing."""

    def __init__(
        self,
        finding: Finding,
        policy: Policy,
        visibility: str,
        principal: Principal,
        screening: Screening,
        subject_id: UUID | None,
    ) -> None:
        self._finding = finding
        self._subject_id = subject_id
        self._screening = screening
        self._policy = policy
        self._visibility = visibility
        self._principal = principal
        self._known: Row | None = None

    def __call__(self, found: list[list[Row]], now: datetime) -> Sequence[Event]:
        # What was put away for its text alone and let out again may be said again; new evidence that has to be looked
        # at must not come into a published entry, nor put it away.
        known = [] if self._screening.quarantines_beside_claim else [same_claim(row) for row in found[0]]
        decided = decide_record_finding(
            self._finding,
            known,
            policy=self._policy,
            visibility=self._visibility,
            author_type=self._principal.type,
            new_entry_id=new_id(),
            now=now,
            screened=self._screening.screened,
            is_quarantined=self._screening.quarantines,
            subject_id=self._subject_id,
        )
        if isinstance(decided, AlreadyKnown):
            self._known = next(row for row in found[0] if row["entry_id"] == decided.entry_id)
            return []
        return [decided, *self._put_away(decided)]

    def _put_away(self, decided: Event) -> list[Event]:
        """Where the screen wants it looked at first: the event that says why, beside the one that recorded it."""
        if not self._screening.quarantines or not isinstance(decided.body, EntryRecorded):
            return []
        return [Event(decided.stream_id, self._screening.quarantined(decided.body.revision))]

    def acknowledge(self, appended: Appended) -> Acknowledgement:
        if appended.events:
            return _acknowledgement(appended.events)
        assert self._known is not None
        return Acknowledgement(
            self._known["entry_id"],
            self._known["revision"],
            self._known["position"],
            self._known["hash"].hex(),
            created=False,
        )


def _recorded(decision: _Decision, appended: Appended) -> Recorded:
    return Recorded(
        decision.acknowledge(appended), appended.replayed, appended=bool(appended.events) and not appended.replayed
    )


def _acknowledgement(events: Sequence[RecordedEvent]) -> Acknowledgement:
    """Of where the entry stands after the command; a quarantine of it is the last of its events."""
    last, data = events[-1], events[-1].data
    revision = data.revision if isinstance(data, EntryRecorded | EntryCorroborated | EntryQuarantined) else 0
    return Acknowledgement(
        last.header.stream_id,
        revision,
        last.position,
        last.hash.hex(),
        created=events[0].header.event_type == EntryRecorded.EVENT_TYPE,
    )


def same_claim(row: Row) -> SameClaim:
    """A row of `SAME_CLAIM` as the decider wants it."""
    incidents = {(item["source"], item["id"]) for item in row["supported_by"]}
    if row["incident_source"] is not None:
        incidents.add((row["incident_source"], row["incident_id"]))
    return SameClaim(row["entry_id"], row["revision"], frozenset(incidents))

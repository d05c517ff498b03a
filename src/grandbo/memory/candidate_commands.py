"""What every command on a candidate does: read it as the caller may see it, decide under the lock, append, answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from grandbo.errors import InvalidInput, NotFound
from grandbo.events.candidates import CandidateChanged, CandidateContent, CandidateProposed
from grandbo.events.log import CommandContext, Event
from grandbo.events.models import Policy
from grandbo.events.sealing import NO_KEYS, Keys
from grandbo.memory import candidacy
from grandbo.memory.candidacy import CandidateState, Decided
from grandbo.memory.candidate_content import content_of, finding_of
from grandbo.memory.candidate_rows import CANDIDATE, deciders_wanted, is_seen
from grandbo.memory.commands import Appended, Command, Decide, run_command
from grandbo.memory.finding import Finding
from grandbo.memory.govern import CURRENT, REASON_LIMIT, check_reason, with_reason
from grandbo.memory.policy import check_visibility, require, visible_tiers
from grandbo.memory.screening import Screening
from grandbo.memory.subjects import private_tier
from grandbo.storage.database import Database, Row, Step
from grandbo.types import Clock, Principal, new_id, utc_now

Decision = Callable[[CandidateState, list[list[Row]], datetime], list[Event]]


class CandidateCommands:
    """
    One principal's commands in one tenant under one policy.

    The principal comes with the tiers of its own subjects where it may decide on what is proposed about them.
    """

    def __init__(
        self, database: Database, tenant_id: UUID, principal: Principal, policy: Policy, clock: Clock = utc_now
    ) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._principal = principal
        self._policy = policy
        self._clock = clock
        self._tiers = visible_tiers(policy, principal)

    def _read(self, candidate_id: UUID) -> CandidateState:
        with self._database.transaction("auditor", self._tenant_id, read_only=True) as transaction:
            return self._visible(transaction.execute(*self._candidate(candidate_id)))

    def _visible(self, rows: Sequence[Row]) -> CandidateState:
        """What is not there and what is not the caller's to see are told apart by nothing."""
        deciders = deciders_wanted(self._policy, self._principal)
        if not rows or not is_seen(rows[0], self._principal, self._tiers, deciders):
            raise NotFound("There is no such candidate in this tenant.")
        return CandidateState.of_row(rows[0])

    def _decidable(self, candidate_id: UUID) -> CandidateState:
        """The candidate, for one of those who decide on it."""
        if not self._principal.own_tiers:
            require(self._principal, "govern")
        seen = self._read(candidate_id)
        candidacy.require_decider(seen, self._principal)
        return seen

    def _screening(self, subject_id: UUID | None) -> Screening:
        """A person looks at a candidate before it counts."""
        named = subject_id is not None
        return Screening(self._database, self._tenant_id, self._policy, is_reviewed=True, names_subject=named)

    def _content(
        self, seen: CandidateState, changes: Mapping[str, Any] | None, screening: Screening
    ) -> CandidateContent:
        finding = screening.finding(finding_of(seen.content, changes, seen.subject_id))
        return content_of(finding, self._tier(finding, seen.subject_id))

    def _tier(self, finding: Finding, subject_id: UUID | None) -> str:
        """What is personal stands in its subject's own tier, all else in one of the proposer's or the reviewer's."""
        if finding.kind == "personal" and subject_id is not None:
            return private_tier(subject_id)
        return check_visibility(self._policy, self._principal, finding.visibility)

    def _tiers_of(self, seen: CandidateState) -> tuple[str, ...]:
        """Tiers in which entries of a decision may stand: who decides on what is personal sees that subject's."""
        return (*self._tiers, seen.content.visibility) if seen.content.kind == "personal" else self._tiers

    def _candidate(self, candidate_id: UUID) -> Step:
        return CANDIDATE, {"tenant_id": self._tenant_id, "candidate_id": candidate_id}

    def _entry(self, entry_id: UUID) -> Step:
        return CURRENT, {"tenant_id": self._tenant_id, "entry_id": entry_id}

    def _decide(
        self,
        verb: str,
        seen: CandidateState,
        reason: str,
        said: dict[str, Any],
        reads: Sequence[Step],
        decide: Decision,
        screening: Screening | None,
        *,
        expected_version: int | None = None,
        command_id: UUID | None = None,
    ) -> Decided:
        check_reason(reason)
        screening = screening or self._screening(seen.subject_id)
        why = screening.reason(reason, limit=REASON_LIMIT)

        def decided(found: list[list[Row]], now: datetime) -> list[Event]:
            state = self._visible(found[0])
            # What was computed from the version that was read must not be decided on another.
            candidacy.check_candidate(state, verb, seen.version if expected_version is None else expected_version)
            return [replace(event, body=with_reason(event.body, why)) for event in decide(state, found[1:], now)]

        document = {"verb": verb, "candidate_id": str(seen.candidate_id), "reason": reason, **said}
        steps = [self._candidate(seen.candidate_id), *reads]
        return self._run(document, command_id or new_id(), steps, decided, screening, seen)

    def _run(
        self,
        said: dict[str, Any],
        command_id: UUID,
        reads: Sequence[Step],
        decide: Decide,
        screening: Screening,
        seen: CandidateState | None = None,
        keys: Keys = NO_KEYS,
    ) -> Decided:
        digest = screening.digest(_plain(said))
        context = CommandContext(self._tenant_id, self._principal, command_id, digest)
        appended = run_command(self._database, Command(context, reads, decide, keys=keys), clock=self._clock)
        return self._answer(appended, seen)

    def _answer(self, appended: Appended, seen: CandidateState | None) -> Decided:
        event = appended.events[0] if appended.events else None
        told = event.data if event else None
        version = told.version if isinstance(told, CandidateProposed | CandidateChanged) else None
        candidate_id = event.header.stream_id if event else seen.candidate_id if seen else None
        assert candidate_id is not None
        with self._database.transaction("auditor", self._tenant_id, read_only=True) as transaction:
            row = transaction.execute(*self._candidate(candidate_id))[0]
        return Decided(
            candidate_id=candidate_id,
            version=version or row["version"],
            position=event.position if event else row["position"],
            hash=(event.hash if event else bytes(row["hash"])).hex(),
            status=row["status"],
            outcome=row["outcome"],
            entry_id=row["entry_id"],
            entry_revision=row["entry_revision"],
            appended=bool(appended.events) and not appended.replayed,
            replayed=appended.replayed,
        )


def _plain(said: dict[str, Any]) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(json.dumps(said, allow_nan=False))
    except (TypeError, ValueError):
        raise InvalidInput("changes: they must be plain JSON values.", field="changes") from None
    return plain

"""
The commands on candidates: propose, amend, approve, merge, reject, withdraw, reopen.

Each is one transaction. What is approved and the entry that comes of it are events of one command: both are there or
neither is. At once: the head lock decides who is first, and the second is told what the first decided.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput, NotFound, QuotaExceeded
from grandbo.events.candidates import CandidateChanged, CandidateContent, CandidateProposed
from grandbo.events.log import CommandContext, Event
from grandbo.events.models import Policy
from grandbo.memory import candidacy, disputing, lifecycle
from grandbo.memory.candidacy import CandidateState, Decided
from grandbo.memory.candidate_content import content_of, finding_of, merged_changes, with_origin
from grandbo.memory.candidate_rows import CANDIDATE
from grandbo.memory.commands import Appended, Command, Decide, run_command
from grandbo.memory.decide import decide_record_finding
from grandbo.memory.finding import Finding, parse_finding, said_by
from grandbo.memory.govern import AT_REVISION, CURRENT, REASON_LIMIT, check_reason, visible_state, with_reason
from grandbo.memory.lifecycle import EntryState, check_acceptable
from grandbo.memory.policy import check_visibility, require, visible_tiers
from grandbo.memory.record import SAME_CLAIM, same_claim, subject_of
from grandbo.memory.screening import Screening, is_about, screening_key
from grandbo.memory.wishes import correction_values
from grandbo.storage.database import Database, Row, Step
from grandbo.storage.tables import candidates
from grandbo.storage.tenancy import of_tenant
from grandbo.text import check_text
from grandbo.types import Clock, Principal, derived_id, digest_of, new_id, utc_now

_PENDING_OF = sa.select(sa.func.count().label("pending")).where(
    of_tenant(candidates), candidates.c.proposed_by == sa.bindparam("principal"), candidates.c.status == "pending"
)
_Decision = Callable[[CandidateState, list[list[Row]], datetime], list[Event]]


class Candidates:
    """The commands, for one principal of one tenant under one policy."""

    def __init__(
        self, database: Database, tenant_id: UUID, principal: Principal, policy: Policy, clock: Clock = utc_now
    ) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._principal = principal
        self._policy = policy
        self._clock = clock
        self._tiers = visible_tiers(policy, principal)

    # -- proposing -----------------------------------------------------------------------------------------------------

    def propose(
        self,
        document: Mapping[str, Any],
        *,
        origin: Mapping[str, str] | None = None,
        into: UUID | None = None,
        reason: str = "",
        command_id: UUID | None = None,
        flags: tuple[str, ...] = (),
    ) -> Decided:
        """
        Propose an entry, or with `into` a correction of one; it waits for a person.

        Args:
            flags: further ones, which a part of the product that proposes by itself sets.
            origin: `{type: conversation|person, ref, label}`, for what has no evidence: where it was said.

        Raises:
            OriginMissing: neither evidence nor an origin. QuotaExceeded: too many of this principal's wait already.
        """
        require(self._principal, "propose")
        check_text(reason, "reason", limit=1_000)
        finding = parse_finding(with_origin(document, origin))
        visibility = check_visibility(self._policy, self._principal, finding.visibility)
        candidate_id, subject_id = new_id(), subject_of(self._database, self._tenant_id, finding, self._policy)
        screening = self._screening(candidate_id, named=subject_id is not None)
        passed = screening.finding(finding)
        why = screening.reason(reason, limit=REASON_LIMIT)
        body = candidacy.decide_propose(
            passed, visibility, self._principal.type, into, why, screening.screened, (*screening.flags, *flags)
        )

        def decide(found: list[list[Row]], _now: datetime) -> list[Event]:
            limit = self._policy.pending_candidates
            if found[0][0]["pending"] >= limit:
                raise QuotaExceeded(f"{limit} of your proposals wait already; let them be decided first.", limit=limit)
            if into is not None:
                visible_state(found[1], self._tiers)
            return [Event(candidate_id, body, subject_id=subject_id, starts_stream=True)]

        pending = (_PENDING_OF, {"tenant_id": self._tenant_id, "principal": self._principal.ref})
        target = [] if into is None else [self._entry(into)]
        said = {"propose": said_by(finding), "into": str(into) if into else None, "reason": reason}
        command_id = command_id or self._proposal_id(passed if screening.has_keyed else finding)
        return self._run(said, command_id, [pending, *target], decide, screening)

    def _proposal_id(self, finding: Finding) -> UUID:
        """A hook that tells of the same incident again makes the same proposal."""
        if self._principal.type != "hook" or finding.incident is None:
            return new_id()
        what = finding.external_id or digest_of(said_by(finding))
        return derived_id("candidate", self._principal.ref, finding.incident.source, finding.incident.id, what)

    # -- changing and deciding -----------------------------------------------------------------------------------------

    def amend(
        self, candidate_id: UUID, changes: Mapping[str, Any], *, reason: str, into: UUID | None = None, **options: Any
    ) -> Decided:
        """Replace the named fields; who proposed it may, and who may govern. Option `flags`: as in `propose`."""
        flags: tuple[str, ...] = options.pop("flags", ())
        seen = self._read(candidate_id)
        if seen.proposed_by != self._principal.ref:
            require(self._principal, "govern")
        screening = self._screening(candidate_id)
        content = self._content(seen, changes, screening)

        def decide(state: CandidateState, _found: list[list[Row]], _now: datetime) -> list[Event]:
            told = screening.screened, (*screening.flags, *flags)
            body = candidacy.decide_amend(state, content, into or state.into, reason, *told)
            return [] if body is None else [Event(candidate_id, body)]

        said = {"changes": dict(changes), "into": str(into) if into else None}
        return self._decide("amend", seen, reason, said, [], decide, screening, **options)

    def approve(
        self, candidate_id: UUID, *, reason: str, changes: Mapping[str, Any] | None = None, **options: Any
    ) -> Decided:
        """
        Let it in as an entry of its own; one that says word for word the same is corroborated instead. A dispute marks
        both of its entries, each with the other.

        Args:
            changes: fields that the reviewer sets, of those that a finding has.
        """
        require(self._principal, "govern")
        seen = self._read(candidate_id)
        if seen.disputes is not None:
            return self._approve_dispute(seen, seen.disputes, reason, changes, options)
        screening = self._screening(candidate_id)
        finding = screening.finding(finding_of(seen.content, changes))
        content = content_of(finding, check_visibility(self._policy, self._principal, finding.visibility))
        claim = {"tenant_id": self._tenant_id, "claim_digest": bytes.fromhex(content.claim_digest)}

        def decide(state: CandidateState, found: list[list[Row]], now: datetime) -> list[Event]:
            candidacy.check_decider(state, self._principal)
            if candidacy.awaits_second(state, content, self._policy, self._principal):
                first = candidacy.decide_approve(state, content, "awaits_second", reason)
                return [Event(candidate_id, first)]
            entry = decide_record_finding(
                finding,
                [same_claim(row) for row in found[0]],
                policy=self._policy,
                visibility=content.visibility,
                author_type=state.author_type,
                new_entry_id=new_id(),
                now=now,
                screened=screening.screened,
            )
            return candidacy.decide_entry(candidate_id, state, content, reason, entry)

        said = {"changes": dict(changes or {})}
        return self._decide("approve", seen, reason, said, [(SAME_CLAIM, claim)], decide, screening, **options)

    def _approve_dispute(
        self,
        seen: CandidateState,
        other_id: UUID,
        reason: str,
        changes: Mapping[str, Any] | None,
        options: dict[str, Any],
    ) -> Decided:
        if changes:
            raise InvalidInput("changes: a dispute has nothing to set; approve it as it is.", field="changes")
        assert seen.into is not None
        candidate_id, content = seen.candidate_id, seen.content

        def decide(state: CandidateState, found: list[list[Row]], _now: datetime) -> list[Event]:
            candidacy.check_decider(state, self._principal)
            if candidacy.awaits_second(state, content, self._policy, self._principal):
                return [Event(candidate_id, candidacy.decide_approve(state, content, "awaits_second", reason))]
            into, other = (visible_state(rows, self._tiers) for rows in found)
            return disputing.approve_pair(candidate_id, state, content, (into, other), reason)

        reads = [self._entry(seen.into), self._entry(other_id)]
        return self._decide("approve", seen, reason, {"changes": {}}, reads, decide, None, **options)

    def merge(
        self,
        candidate_id: UUID,
        *,
        reason: str,
        into: UUID | None = None,
        changes: Mapping[str, Any] | None = None,
        expected_revision: int | None = None,
        **options: Any,
    ) -> Decided:
        """
        Let it in as a correction of an entry: its text becomes the entry's, tags and evidence become those of both.

        Args:
            into: the entry; else the one that the proposal names.
            changes: fields that the reviewer sets in the candidate first.
            expected_revision: of the entry; `RevisionStale` where it has moved on.
        """
        require(self._principal, "govern")
        seen = self._read(candidate_id)
        target = into or seen.into
        if target is None:
            raise InvalidInput("into: name the entry that it shall correct.", field="into")
        screening = self._screening(candidate_id)
        content = self._content(seen, changes, screening)
        # Known before the head is locked: no second connection may be waited for under the lock.
        screening_key(self._database, self._tenant_id)

        def decide(state: CandidateState, found: list[list[Row]], _now: datetime) -> list[Event]:
            candidacy.check_decider(state, self._principal)
            entry = visible_state(found[0], self._tiers)
            check_acceptable(entry, "correct", expected_revision)
            if candidacy.awaits_second(state, content, self._policy, self._principal):
                return [Event(candidate_id, candidacy.decide_approve(state, content, "awaits_second", reason))]
            # What the entry brings in may be from before the screen.
            whole = self._screening(candidate_id)
            changed = whole.values(correction_values(merged_changes(content, found[0][0])))
            corrected = lifecycle.decide_correct(entry, changed, reason, whole.screened_with(screening))
            if corrected is None:
                return [Event(candidate_id, candidacy.decide_approve(state, content, "known", reason, target))]
            merged = candidacy.decide_approve(state, content, "merged", reason, target, corrected.revision)
            return [Event(candidate_id, merged), Event(target, corrected)]

        said = {"changes": dict(changes or {}), "into": str(target)}
        return self._decide("merge", seen, reason, said, [self._entry(target)], decide, screening, **options)

    def reject(self, candidate_id: UUID, *, reason: str, **options: Any) -> Decided:
        """Decide against it."""
        require(self._principal, "govern")
        seen = self._read(candidate_id)

        def decide(state: CandidateState, _found: list[list[Row]], _now: datetime) -> list[Event]:
            candidacy.check_decider(state, self._principal)
            return [Event(candidate_id, candidacy.decide_reject(state, reason))]

        return self._decide("reject", seen, reason, {}, [], decide, None, **options)

    def withdraw(self, candidate_id: UUID, *, reason: str, **options: Any) -> Decided:
        """Take one's own proposal back."""
        require(self._principal, "propose")
        seen = self._read(candidate_id)

        def decide(state: CandidateState, _found: list[list[Row]], _now: datetime) -> list[Event]:
            return [Event(candidate_id, candidacy.decide_withdraw(state, self._principal, reason))]

        return self._decide("withdraw", seen, reason, {}, [], decide, None, **options)

    def reopen(self, candidate_id: UUID, *, reason: str, **options: Any) -> Decided:
        """
        Undo the decision: it waits again.

        The entry that an approval made is archived; the text that a merge replaced is the text again. Where the entry
        has changed since, that is for a person to sort out: `IllegalTransition`.
        """
        seen = self._read(candidate_id)
        if seen.status != "withdrawn" or seen.proposed_by != self._principal.ref:
            require(self._principal, "govern")
        reads = []
        if seen.disputes is not None and seen.entry_id is not None:
            reads = [self._entry(seen.entry_id), self._entry(seen.disputes)]
        elif seen.entry_id is not None:
            earlier = {
                "tenant_id": self._tenant_id,
                "entry_id": seen.entry_id,
                "revision": (seen.entry_revision or 1) - 1,
            }
            reads = [self._entry(seen.entry_id), (AT_REVISION, earlier)]

        def decide(state: CandidateState, found: list[list[Row]], _now: datetime) -> list[Event]:
            undone = [Event(candidate_id, candidacy.decide_reopen(state, reason))]
            if state.disputes is not None and state.entry_id is not None:
                into, other = (visible_state(rows, self._tiers) for rows in found)
                undone += disputing.undo_pair(state, (into, other), reason)
            elif state.entry_id is not None:
                entry = visible_state(found[0], self._tiers)
                before = EntryState.of_row(found[1][0]) if found[1] else None
                body = candidacy.decide_undoing(state, entry, before, reason)
                undone += [] if body is None else [Event(state.entry_id, body)]
            return undone

        return self._decide("reopen", seen, reason, {}, reads, decide, None, **options)

    # -- shared --------------------------------------------------------------------------------------------------------

    def _read(self, candidate_id: UUID) -> CandidateState:
        with self._database.transaction("auditor", self._tenant_id, read_only=True) as transaction:
            return self._visible(transaction.execute(*self._candidate(candidate_id)))

    def _visible(self, rows: Sequence[Row]) -> CandidateState:
        """What is not there and what is not the caller's to see are told apart by nothing."""
        is_own = bool(rows) and rows[0]["proposed_by"] == self._principal.ref
        pair = (rows[0]["pair_tiers"] or ()) if rows else ()
        if not rows or (rows[0]["visibility"] not in self._tiers and not is_own) or not set(pair) <= set(self._tiers):
            raise NotFound("There is no such candidate in this tenant.")
        return CandidateState.of_row(rows[0])

    def _screening(self, candidate_id: UUID, *, named: bool = False) -> Screening:
        """A person looks at a candidate before it counts."""
        about = named or is_about(self._database, self._tenant_id, candidate_id)
        return Screening(self._database, self._tenant_id, self._policy, is_reviewed=True, names_subject=about)

    def _content(
        self, seen: CandidateState, changes: Mapping[str, Any] | None, screening: Screening
    ) -> CandidateContent:
        finding = screening.finding(finding_of(seen.content, changes))
        return content_of(finding, check_visibility(self._policy, self._principal, finding.visibility))

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
        decide: _Decision,
        screening: Screening | None,
        *,
        expected_version: int | None = None,
        command_id: UUID | None = None,
    ) -> Decided:
        check_reason(reason)
        screening = screening or self._screening(seen.candidate_id)
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
    ) -> Decided:
        digest = screening.digest(_plain(said))
        context = CommandContext(self._tenant_id, self._principal, command_id, digest)
        appended = run_command(self._database, Command(context, reads, decide), clock=self._clock)
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

"""
The commands on candidates: propose, amend, approve, merge, reject, withdraw, reopen.

Each is one transaction. What is approved and the entry that comes of it are events of one command: both are there or
neither is. At once: the head lock decides who is first, and the second is told what the first decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput, QuotaExceeded
from grandbo.events.candidates import CandidateContent
from grandbo.events.log import Event
from grandbo.events.sealing import NO_KEYS
from grandbo.memory import candidacy, disputing, lifecycle
from grandbo.memory.candidacy import CandidateState, Decided
from grandbo.memory.candidate_commands import CandidateCommands
from grandbo.memory.candidate_content import content_of, finding_of, merged_changes, with_origin
from grandbo.memory.candidate_outcome import check_target, decide_entry, decide_undoing
from grandbo.memory.decide import decide_record_finding
from grandbo.memory.finding import Finding, said_by
from grandbo.memory.govern import REASON_LIMIT, visible_state
from grandbo.memory.lifecycle import EntryState, check_acceptable
from grandbo.memory.policy import may, require, require_writing
from grandbo.memory.proposal import OWN_NAMES, check_about, parse_proposal
from grandbo.memory.record import SAME_CLAIM, check_episode, keyed, same_claim
from grandbo.memory.screening import Screening, screening_key
from grandbo.memory.subjects import find_with_key
from grandbo.memory.telling import Telling
from grandbo.memory.wishes import correction_values
from grandbo.storage.database import Row, Step
from grandbo.storage.tables import candidates, entries, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.text import check_text
from grandbo.types import derived_id, digest_of, new_id

# How an entry stood when a candidate was approved, before what came of that; nothing where it was made by it.
_BEFORE = sa.select(revisions).where(
    of_tenant(revisions),
    revisions.c.entry_id == sa.bindparam("entry_id", type_=sa.Uuid),
    revisions.c.from_position <= sa.bindparam("position", type_=sa.BigInteger),
    revisions.c.to_position > sa.bindparam("position", type_=sa.BigInteger),
)
_REPLACED = sa.select(entries).where(
    of_tenant(entries),
    entries.c.superseded_by == sa.bindparam("entry_id", type_=sa.Uuid),
    entries.c.status == "superseded",
)
_PENDING_OF = sa.select(sa.func.count().label("pending")).where(
    of_tenant(candidates), candidates.c.proposed_by == sa.bindparam("principal"), candidates.c.status == "pending"
)


class Candidates(CandidateCommands):
    """The commands, for one principal of one tenant under one policy."""

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
        self._require_proposer(document)
        check_text(reason, "reason", limit=1_000)
        check_episode(document.get("kind"), document.get("subject"), self._policy)
        finding = parse_proposal(with_origin(check_about(document), origin))
        subject_id, keys = None, NO_KEYS
        if finding.subject is not None:
            subject_id, keys = find_with_key(self._database, self._tenant_id, finding.subject)
            # By its id from here on: the reference is kept nowhere.
            finding = finding.model_copy(update={"subject": str(subject_id)})
        tier = self._tier(finding, subject_id)
        candidate_id, screening = new_id(), self._screening(subject_id)
        passed = screening.finding(finding)
        why = screening.reason(reason, limit=REASON_LIMIT)
        body = candidacy.decide_propose(
            passed, tier, self._principal.type, into, why, screening.screened, (*screening.flags, *flags)
        )

        def decide(found: list[list[Row]], _now: datetime) -> list[Event]:
            limit = self._policy.pending_candidates
            if found[0][0]["pending"] >= limit:
                raise QuotaExceeded(f"{limit} of your proposals wait already; let them be decided first.", limit=limit)
            if into is not None:
                check_target(visible_state(found[1], self._tiers), body.content)
            return [Event(candidate_id, body, subject_id=subject_id, starts_stream=True)]

        pending = (_PENDING_OF, {"tenant_id": self._tenant_id, "principal": self._principal.ref})
        target = [] if into is None else [self._entry(into)]
        said = {"propose": said_by(finding), "into": str(into) if into else None, "reason": reason}
        told = passed if screening.has_keyed else finding
        command_id = command_id or self._proposal_id(told, keys.get(subject_id) if subject_id else None)
        return self._run(said, command_id, [pending, *target], decide, screening, keys=keys)

    def _require_proposer(self, document: Mapping[str, Any]) -> None:
        """Who has things remembered about somebody may propose them too: a person decides on both."""
        if not (document.get("kind") in OWN_NAMES and may(self._principal, "remember")):
            require(self._principal, "propose")

    def _proposal_id(self, finding: Finding, subject_key: bytes | None) -> UUID:
        """A hook that tells of the same incident again makes the same proposal."""
        if self._principal.type != "hook" or finding.incident is None:
            return new_id()
        what = finding.external_id or digest_of(said_by(finding))
        if subject_key is not None:
            what = keyed(what, subject_key)
        return derived_id("candidate", self._principal.ref, finding.incident.source, finding.incident.id, what)

    # -- changing and deciding -----------------------------------------------------------------------------------------

    def amend(
        self, candidate_id: UUID, changes: Mapping[str, Any], *, reason: str, into: UUID | None = None, **options: Any
    ) -> Decided:
        """Replace the named fields; who proposed it may, and who may govern. Option `flags`: as in `propose`."""
        flags: tuple[str, ...] = options.pop("flags", ())
        seen = self._read(candidate_id)
        require_writing(self._principal)
        if seen.proposed_by != self._principal.ref:
            candidacy.require_decider(seen, self._principal)
        screening = self._screening(seen.subject_id)
        content = self._content(seen, changes, screening)

        def decide(state: CandidateState, found: list[list[Row]], _now: datetime) -> list[Event]:
            told = screening.screened, (*screening.flags, *flags)
            body = candidacy.decide_amend(state, content, into or state.into, reason, *told)
            if found:
                check_target(visible_state(found[0], self._tiers_of(state)), content)
            return [] if body is None else [Event(candidate_id, body)]

        said = {"changes": dict(changes), "into": str(into) if into else None}
        target = [] if into is None else [self._entry(into)]
        return self._decide("amend", seen, reason, said, target, decide, screening, **options)

    def approve(
        self, candidate_id: UUID, *, reason: str, changes: Mapping[str, Any] | None = None, **options: Any
    ) -> Decided:
        """
        Let it in as an entry of its own; one that says word for word the same is corroborated instead. A dispute marks
        both of its entries, each with the other.

        Args:
            changes: fields that the reviewer sets, of those that a finding has.
        """
        seen = self._decidable(candidate_id)
        if seen.disputes is not None:
            return self._approve_dispute(seen, seen.disputes, reason, changes, options)
        screening = self._screening(seen.subject_id)
        finding = screening.finding(finding_of(seen.content, changes, seen.subject_id))
        content = content_of(finding, self._tier(finding, seen.subject_id))
        said = {"changes": dict(changes or {})}
        if content.kind in OWN_NAMES:
            told = self._telling(seen, finding, content, screening, reason)
            return self._decide("approve", seen, reason, said, told.reads, told.decide, screening, **options)
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
                subject_id=seen.subject_id,
            )
            return decide_entry(candidate_id, state, content, reason, entry)

        return self._decide("approve", seen, reason, said, [(SAME_CLAIM, claim)], decide, screening, **options)

    def _telling(
        self, seen: CandidateState, finding: Finding, content: CandidateContent, screening: Screening, reason: str
    ) -> Telling:
        assert seen.subject_id is not None
        return Telling(
            self._tenant_id,
            seen.subject_id,
            self._principal,
            self._policy,
            self._tiers_of(seen),
            finding,
            content,
            screening,
            reason,
        )

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
        seen = self._decidable(candidate_id)
        target = into or seen.into
        if target is None:
            raise InvalidInput("into: name the entry that it shall correct.", field="into")
        screening = self._screening(seen.subject_id)
        content = self._content(seen, changes, screening)
        said = {"changes": dict(changes or {}), "into": str(target)}
        if content.kind == "personal":
            told = self._telling(seen, finding_of(content, None, seen.subject_id), content, screening, reason)
            told = replace(told, into=target, expected_revision=expected_revision)
            return self._decide("merge", seen, reason, said, told.reads, told.decide, screening, **options)
        # Known before the head is locked: no second connection may be waited for under the lock.
        screening_key(self._database, self._tenant_id)

        def decide(state: CandidateState, found: list[list[Row]], _now: datetime) -> list[Event]:
            candidacy.check_decider(state, self._principal)
            entry = visible_state(found[0], self._tiers_of(state))
            check_target(entry, content)
            check_acceptable(entry, "correct", expected_revision)
            if candidacy.awaits_second(state, content, self._policy, self._principal):
                return [Event(candidate_id, candidacy.decide_approve(state, content, "awaits_second", reason))]
            # What the entry brings in may be from before the screen.
            whole = self._screening(seen.subject_id)
            changed = whole.values(correction_values(merged_changes(content, found[0][0])))
            corrected = lifecycle.decide_correct(entry, changed, reason, whole.screened_with(screening))
            if corrected is None:
                return [Event(candidate_id, candidacy.decide_approve(state, content, "known", reason, target))]
            merged = candidacy.decide_approve(state, content, "merged", reason, target, corrected.revision)
            return [Event(candidate_id, merged), Event(target, corrected)]

        return self._decide("merge", seen, reason, said, [self._entry(target)], decide, screening, **options)

    def reject(self, candidate_id: UUID, *, reason: str, **options: Any) -> Decided:
        """Decide against it."""
        seen = self._decidable(candidate_id)

        def decide(state: CandidateState, _found: list[list[Row]], _now: datetime) -> list[Event]:
            candidacy.check_decider(state, self._principal)
            return [Event(candidate_id, candidacy.decide_reject(state, reason))]

        return self._decide("reject", seen, reason, {}, [], decide, None, **options)

    def withdraw(self, candidate_id: UUID, *, reason: str, **options: Any) -> Decided:
        """Take one's own proposal back."""
        require_writing(self._principal)
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
        require_writing(self._principal)
        seen = self._read(candidate_id)
        if seen.status != "withdrawn" or seen.proposed_by != self._principal.ref:
            candidacy.require_decider(seen, self._principal)
        reads: list[Step] = []
        if seen.disputes is not None and seen.entry_id is not None:
            reads = [self._entry(seen.entry_id), self._entry(seen.disputes)]
        elif seen.entry_id is not None:
            of_it = {"tenant_id": self._tenant_id, "entry_id": seen.entry_id, "position": seen.position}
            reads = [self._entry(seen.entry_id), (_BEFORE, of_it), (_REPLACED, of_it)]

        def decide(state: CandidateState, found: list[list[Row]], _now: datetime) -> list[Event]:
            undone = [Event(candidate_id, candidacy.decide_reopen(state, reason))]
            if state.disputes is not None and state.entry_id is not None:
                into, other = (visible_state(rows, self._tiers) for rows in found)
                undone += disputing.undo_pair(state, (into, other), reason)
            elif state.entry_id is not None:
                entry = visible_state(found[0], self._tiers_of(state))
                before = EntryState.of_row(found[1][0]) if found[1] else None
                replaced = [EntryState.of_row(row) for row in found[2]]
                undone += decide_undoing(state, entry, before, replaced, reason)
            return undone

        return self._decide("reopen", seen, reason, {}, reads, decide, None, **options)

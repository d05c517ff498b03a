"""
From the close of an incident to the memory: a candidate, or a finding where the hook is trusted, and one of them ever.

Each step is the memory's own verb under a command id that derives from the incident and the version of its record: a
step that was interrupted is the same step again. What a person has written meanwhile is not overwritten: what the
source says then waits as a candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import Conflict, NotFound
from grandbo.events.log import streams_of
from grandbo.events.models import Policy
from grandbo.finding_limits import EVIDENCE_LIMIT, TAGS_LIMIT
from grandbo.hooks.drafts import Draft
from grandbo.memory import wishes
from grandbo.memory.candidacy import CandidateState
from grandbo.memory.candidate_rows import CANDIDATE
from grandbo.memory.finding import parse_finding
from grandbo.memory.govern import CURRENT, Wish, carry_out
from grandbo.memory.hooks import Hook
from grandbo.memory.incidents import document_of_incident, fold, has_cause, is_closed
from grandbo.memory.proposing import Candidates
from grandbo.memory.record import record_finding
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import incidents
from grandbo.storage.tenancy import TENANT, of_tenant
from grandbo.types import Clock, Principal, derived_id, utc_now, utc_text

NO_CAUSE = ("no_cause",)
_PROMPT = "The source closed this incident without a cause: write down what caused it before you approve this."
_CAUSE = "The source tells the cause of this incident; check it before you approve this."
_CHANGED = "The source tells more, or other, of this incident."
_NAMED = "It is told now whom it is about; it is proposed anew, under its subject."
_PRIVATE = "The source has restricted this incident."
_TOLD = ("title", "summary", "body", "service")

_is_it = sa.and_(
    of_tenant(incidents),
    incidents.c.source == sa.bindparam("source", type_=sa.Text),
    incidents.c.incident_id == sa.bindparam("incident_id", type_=sa.Text),
)
_ONE = sa.select(incidents).where(_is_it)
_insert = pg.insert(incidents).values(
    {column.name: sa.bindparam(column.name) for column in incidents.c if column.name != "tenant_id"}
    | {"tenant_id": TENANT}
)
_KEEP = _insert.on_conflict_do_update(
    index_elements=["tenant_id", "source", "incident_id"],
    set_={
        column.name: _insert.excluded[column.name]
        for column in incidents.c
        if column.name not in ("tenant_id", "source", "incident_id")
    },
    where=sa.and_(of_tenant(incidents), incidents.c.version == _insert.excluded.version - 1),
).returning(incidents.c.version)


@dataclass(frozen=True, slots=True)
class Incident:
    """The record of an incident; `applied` is the document that the memory was given last."""

    source: str
    incident_id: str
    version: int = 0
    said: Mapping[str, Any] | None = None
    is_private: bool = False
    applied: Mapping[str, Any] | None = None
    candidate_id: UUID | None = None
    entry_id: UUID | None = None
    outcome: str = "collected"
    # Whom it is about, where a person has named somebody: all that is told of it from then on is.
    subject_id: UUID | None = None

    def told(self) -> dict[str, Any]:
        """What came of it, as plain values."""
        return {
            "incident_id": self.incident_id,
            "outcome": self.outcome,
            "candidate_id": str(self.candidate_id) if self.candidate_id else None,
            "entry_id": str(self.entry_id) if self.entry_id else None,
        }


class Closing:
    """What the deliveries of one hook do to one tenant's memory."""

    def __init__(self, database: Database, tenant_id: UUID, policy: Policy, hook: Hook, clock: Clock = utc_now) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._policy = policy
        self._hook = hook
        self._clock = clock
        # Code decides what a hook does, so that no key of a hook may do as much: it corrects, and writes to all tiers.
        self._principal = Principal("hook", hook.principal_id, hook.name, frozenset({"hook", "admin"}))
        self._candidates = Candidates(database, tenant_id, self._principal, policy, clock)

    def apply(self, draft: Draft, received_at: datetime, subject_id: UUID | None = None) -> dict[str, Any]:
        """
        Take one draft in; gives what came of it.

        Args:
            subject_id: whom it is about, where a person has named somebody.

        Raises:
            Conflict: another delivery of this incident was faster. Whatever the verbs raise.
        """
        record = self._read(draft.incident_id)
        is_named_now = subject_id is not None and subject_id != record.subject_id
        record = replace(record, subject_id=subject_id or record.subject_id)
        if draft.is_drill:
            return replace(record, outcome="drill", candidate_id=None, entry_id=None).told()
        if record.outcome == "erased":
            # Two people decided that it goes; its source does not bring it back.
            return record.told()
        is_private = record.is_private or draft.is_private
        if is_private and not self._hook.takes_private:
            return self._keep(self._withheld(record)).told()
        before = record.said or {}
        said = fold(before, draft, received_at)
        is_of_this = said == before and said.get("said_at") == utc_text(received_at)
        if record.applied is not None and is_of_this and not is_named_now:
            # Taken in by this very delivery, which was broken off before it was done with: it came to what it came to.
            return record.told()
        record = replace(record, said=said, is_private=is_private)
        if not is_closed(said):
            return self._keep(replace(record, outcome="collected")).told()
        document = document_of_incident(record.source, record.incident_id, said)
        document["visibility"] = self._policy.tiers[-1] if is_private else None
        if record.subject_id is not None:
            document["subject"] = str(record.subject_id)
        if document == record.applied:
            return self._keep(replace(record, outcome="unchanged")).told()
        is_new_cause = has_cause(said) and not has_cause(before)
        acted = self._remember(self._with_entry(record), document, is_new_cause)
        return self._keep(replace(acted, applied=document)).told()

    # -- what is done --------------------------------------------------------------------------------------------------

    def _remember(self, record: Incident, document: dict[str, Any], is_new_cause: bool) -> Incident:
        if record.entry_id is not None and self._is_about_another(record, record.entry_id):
            # What is there names nobody, or somebody else, and cannot take in what is about this one.
            record = replace(record, entry_id=None, candidate_id=None)
        if record.entry_id is not None:
            return self._correct(record, record.entry_id, document)
        waiting = self._waiting(record)
        if waiting is not None and waiting.subject_id != record.subject_id:
            self._candidates.withdraw(
                waiting.candidate_id, reason=_NAMED, command_id=self._command(record, "withdraw_unnamed")
            )
            record, waiting = replace(record, candidate_id=None), None
        if self._hook.direct and has_cause(record.said or {}):
            return self._record(record, document, waiting)
        if waiting is not None:
            return self._amend(record, waiting, document)
        if record.candidate_id is not None and not is_new_cause:
            # A person has decided against it, and nothing new speaks for it.
            return replace(record, outcome="decided_before")
        return self._propose(record, document)

    def _record(self, record: Incident, document: dict[str, Any], waiting: CandidateState | None) -> Incident:
        finding = parse_finding(document)
        recorded = record_finding(
            self._database,
            self._tenant_id,
            self._principal,
            self._policy,
            finding,
            command_id=self._command(record, "record"),
            clock=self._clock,
        )
        if waiting is not None:
            self._candidates.withdraw(
                waiting.candidate_id,
                reason="The source tells the cause now; it is recorded as a finding.",
                command_id=self._command(record, "withdraw"),
            )
        return replace(record, entry_id=recorded.acknowledgement.entry_id, candidate_id=None, outcome="recorded")

    def _propose(self, record: Incident, document: dict[str, Any], into: UUID | None = None) -> Incident:
        knows = has_cause(record.said or {})
        proposed = self._candidates.propose(
            document,
            into=into,
            reason=_CHANGED if into else _CAUSE if knows else _PROMPT,
            flags=() if knows else NO_CAUSE,
            command_id=self._command(record, "propose"),
        )
        outcome = "correction_proposed" if into else "proposed"
        return replace(record, candidate_id=proposed.candidate_id, outcome=outcome)

    def _amend(self, record: Incident, waiting: CandidateState, document: dict[str, Any]) -> Incident:
        content = waiting.content.model_dump(mode="json")
        before = record.applied or {}
        changes = {
            name: value
            for name, value in document.items()
            if value is not None and value != before.get(name) and name not in ("incident", "subject")
        }
        # A reviewer's wording stays.
        kept = [name for name in _TOLD if name in changes and content[name] not in (before.get(name), changes[name])]
        changes = {name: value for name, value in changes.items() if name not in kept}
        if not changes:
            return replace(record, outcome="review_kept" if kept else "unchanged")
        left = f" Left as the review has it: {', '.join(kept)}." if kept else ""
        self._candidates.amend(
            waiting.candidate_id,
            changes,
            reason=_CHANGED + left,
            flags=() if has_cause(record.said or {}) else NO_CAUSE,
            command_id=self._command(record, "amend"),
        )
        return replace(record, outcome="amended")

    def _correct(self, record: Incident, entry_id: UUID, document: dict[str, Any]) -> Incident:
        row = self._entry(entry_id)
        if record.is_private and row["visibility"] != document["visibility"]:
            self._restrict(record, entry_id)
        if row["status"] not in ("published", "quarantined"):
            return replace(record, outcome="entry_put_away")
        before = record.applied or {}
        changes = {
            name: value
            for name, value in document.items()
            if name in wishes.CORRECTABLE and value is not None and value != before.get(name)
        }
        if not changes:
            return replace(record, outcome="unchanged")
        is_touched = any(row[name] not in (before.get(name), changes[name]) for name in _TOLD if name in changes)
        if is_touched or not self._hook.direct:
            waiting = self._waiting(record)
            if waiting is not None:
                return replace(self._amend(record, waiting, document), outcome="correction_proposed")
            return self._propose(record, document, into=entry_id)
        wish = wishes.correct(
            entry_id, _with_others(changes, row), _CHANGED, command_id=self._command(record, "correct")
        )
        self._carry_out(wish)
        return replace(record, outcome="corrected")

    def _withheld(self, record: Incident) -> Incident:
        """What is restricted now is taken out of sight, and nothing more of it is kept."""
        if record.is_private:
            return replace(record, outcome="private_refused")
        record = self._with_entry(record)
        waiting = self._waiting(record)
        if waiting is not None:
            self._candidates.withdraw(
                waiting.candidate_id, reason=_PRIVATE, command_id=self._command(record, "withdraw")
            )
        if record.entry_id is not None:
            self._restrict(record, record.entry_id)
        return replace(record, said={}, applied=None, is_private=True, outcome="private_refused")

    def _restrict(self, record: Incident, entry_id: UUID) -> None:
        if self._entry(entry_id)["visibility"] == self._policy.tiers[-1]:
            return
        to = {"visibility": self._policy.tiers[-1]}
        command_id = self._command(record, "restrict")
        self._carry_out(wishes.reclassify(self._principal, self._policy, entry_id, to, _PRIVATE, command_id=command_id))

    # -- what is known -------------------------------------------------------------------------------------------------

    def _with_entry(self, record: Incident) -> Incident:
        """The record with the entry that came of its candidate, once a person has approved it."""
        candidate = self._candidate(record)
        if record.entry_id is None and candidate is not None and candidate.status == "approved":
            return replace(record, entry_id=candidate.entry_id)
        return record

    def _waiting(self, record: Incident) -> CandidateState | None:
        candidate = self._candidate(record)
        return candidate if candidate is not None and candidate.status == "pending" else None

    def _candidate(self, record: Incident) -> CandidateState | None:
        if record.candidate_id is None:
            return None
        params = {"tenant_id": self._tenant_id, "candidate_id": record.candidate_id}
        with self._database.transaction("auditor", self._tenant_id, read_only=True) as transaction:
            rows = transaction.execute(CANDIDATE, params)
        return CandidateState.of_row(rows[0]) if rows else None

    def _is_about_another(self, record: Incident, entry_id: UUID) -> bool:
        if record.subject_id is None:
            return False
        with self._database.transaction("auditor", self._tenant_id, read_only=True) as transaction:
            about = streams_of(transaction, self._tenant_id, [entry_id])[1].get(entry_id)
        return about != record.subject_id

    def _entry(self, entry_id: UUID) -> Row:
        with self._database.transaction("auditor", self._tenant_id, read_only=True) as transaction:
            rows = transaction.execute(CURRENT, {"tenant_id": self._tenant_id, "entry_id": entry_id})
        if not rows:
            raise NotFound
        return rows[0]

    def _read(self, incident_id: str) -> Incident:
        key = {"tenant_id": self._tenant_id, "source": self._hook.source, "incident_id": incident_id}
        with self._database.transaction("writer", self._tenant_id, read_only=True) as transaction:
            rows = transaction.execute(_ONE, key)
        if not rows:
            return Incident(self._hook.source, incident_id)
        return Incident(**{name: rows[0][name] for name in Incident.__slots__})

    def _keep(self, record: Incident) -> Incident:
        kept = {name: getattr(record, name) for name in Incident.__slots__}
        kept |= {"tenant_id": self._tenant_id, "version": record.version + 1, "changed_at": self._clock()}
        with self._database.transaction("writer", self._tenant_id) as transaction:
            if not transaction.execute(_KEEP, {**kept, "said": dict(record.said or {})}):
                raise Conflict("Another delivery of this incident was taken in meanwhile.")
        return record

    def _command(self, record: Incident, step: str) -> UUID:
        return derived_id("incident", record.source, record.incident_id, str(record.version), step)

    def _carry_out(self, wish: Wish) -> None:
        carry_out(self._database, self._tenant_id, self._principal, self._policy, wish, clock=self._clock)


def _with_others(changes: dict[str, Any], row: Row) -> dict[str, Any]:
    """Tags and evidence that came from elsewhere stay."""
    whole = dict(changes)
    if "tags" in changes:
        whole["tags"] = list(dict.fromkeys([*changes["tags"], *row["tags"]]))[:TAGS_LIMIT]
    if "evidence" in changes:
        by_uri = {item["uri"]: item for item in (*row["evidence"], *changes["evidence"])}
        whole["evidence"] = list(by_uri.values())[:EVIDENCE_LIMIT]
    return whole

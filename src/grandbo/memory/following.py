"""Bringing the memory to what documents say: record what is new, correct what changed, leave the rest alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from grandbo.applicability import parse_applicability
from grandbo.errors import Forbidden, GrandboError
from grandbo.events.models import Policy
from grandbo.memory import wishes
from grandbo.memory.finding import parse_finding
from grandbo.memory.govern import Wish, carry_out
from grandbo.memory.policy import check_visibility, require
from grandbo.memory.proposing import Candidates
from grandbo.memory.record import record_findings
from grandbo.memory.sourced import (
    Known,
    command_id,
    corrections,
    known_candidates,
    known_entries,
    mark_of,
    marked,
    vanished,
)
from grandbo.storage.database import Database
from grandbo.types import Clock, Principal, utc_now

Action = Literal["recorded", "corrected", "proposed", "amended", "corroborated", "unchanged", "vanished", "archived"]
BATCH = 16
CHANGED = "The document that it comes from has changed."
GONE = "The document that it comes from is no more."


@dataclass(slots=True)
class FollowReport:
    """What became of the documents; in a preview, what would."""

    read: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    documents: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)

    def note(self, name: str, title: str, action: Action, found_id: UUID | None = None) -> None:
        """One outcome: the document's id, and that of the entry or the candidate where there is one."""
        self.counts[action] = self.counts.get(action, 0) + 1
        known = {"id": str(found_id)} if found_id is not None else {}
        self.documents.append({"document": name, "title": title, "action": action, **known})

    def refuse(self, name: str, error: GrandboError) -> None:
        """A document that was not taken, and why."""
        self.errors.append({"document": name, "code": error.code, "message": error.message})

    def as_dict(self) -> dict[str, Any]:
        """Plain values: a count for each action, each outcome, each refusal."""
        return {
            "read": self.read,
            **{name: self.counts.get(name, 0) for name in Action.__args__},  # type: ignore[attr-defined]  # of a Literal
            "refused": len(self.errors),
            "documents": self.documents,
            "errors": self.errors,
        }


Progress = Callable[[FollowReport], None]


class Follower:
    """
    The commands, for one principal of one tenant under one policy.

    Args:
        preview: say what would become of the documents, and change nothing.
        strict: raise what a document is refused for, instead of noting it and going on.
    """

    def __init__(
        self,
        database: Database,
        tenant_id: UUID,
        principal: Principal,
        policy: Policy,
        *,
        visibility: str | None = None,
        preview: bool = False,
        strict: bool = False,
        clock: Clock = utc_now,
    ) -> None:
        self._who = (database, tenant_id, principal, policy)
        self._visibility = check_visibility(policy, principal, visibility)
        self._preview = preview
        self._strict = strict
        self._clock = clock

    # -- documents that are the truth ----------------------------------------------------------------------------------

    def follow(
        self,
        documents: Sequence[Mapping[str, Any]],
        source: str,
        report: FollowReport,
        progress: Progress | None = None,
    ) -> FollowReport:
        """Record and correct, each document durable or refused by itself; `source` is that of all of them."""
        require(self._who[2], "record")
        known = known_entries(*self._who, source)
        new: list[dict[str, Any]] = []
        for plain in documents:
            report.read += 1
            document = self._tiered(plain)
            entry = known.get(document["external_id"])
            try:
                parse_finding(document)
                if entry is None:
                    new.append(document)
                else:
                    self._correct(document, entry, report)
            except GrandboError as error:
                self._refuse(document["external_id"], error, report)
            if len(new) == BATCH:
                self._record(new, report)
                new = []
            if progress:
                progress(report)
        self._record(new, report)
        return report

    def _record(self, documents: Sequence[dict[str, Any]], report: FollowReport) -> None:
        if self._preview:
            for document in documents:
                report.note(document["external_id"], document["title"], "recorded")
            return
        findings = [parse_finding(marked(document)) for document in documents]
        ids = [command_id("record", document, self._visibility) for document in documents]
        outcomes = record_findings(*self._who, findings, command_ids=ids, clock=self._clock)
        for document, outcome in zip(documents, outcomes, strict=True):
            if isinstance(outcome, GrandboError):
                self._refuse(document["external_id"], outcome, report)
                continue
            told = outcome.acknowledgement
            action: Action = "recorded" if told.created else "corroborated"
            is_new = outcome.appended and not outcome.replayed
            report.note(document["external_id"], document["title"], action if is_new else "unchanged", told.entry_id)

    def _correct(self, document: dict[str, Any], entry: Known, report: FollowReport) -> None:
        name, title = document["external_id"], document["title"]
        if entry.mark == mark_of(document):
            report.note(name, title, "unchanged", entry.id)
            return
        # Of two at once the other may have done it.
        is_done = self._preview
        if not self._preview:
            changes = corrections(marked(document), entry)
            own_id = command_id("correct", document, self._visibility, entry)
            is_done = self._carry_out(wishes.correct(entry.id, changes, CHANGED, command_id=own_id))
            applies = [str(item) for item in parse_applicability(document.get("applicability") or [])]
            if tuple(applies) != entry.applicability and document["kind"] == "runbook":
                own_id = command_id("reclassify", document, self._visibility, entry)
                is_done = self._reclassify(entry, applies, own_id) or is_done
        report.note(name, title, "corrected" if is_done else "unchanged", entry.id)

    def _reclassify(self, entry: Known, applicability: list[str], own_id: UUID) -> bool:
        _, _, principal, policy = self._who
        changes = {"applicability": applicability}
        return self._carry_out(wishes.reclassify(principal, policy, entry.id, changes, CHANGED, command_id=own_id))

    # -- documents that a person decides on ----------------------------------------------------------------------------

    def propose(
        self,
        documents: Sequence[Mapping[str, Any]],
        source: str,
        report: FollowReport,
        progress: Progress | None = None,
    ) -> FollowReport:
        """Propose what is new; what waits already is amended, and of what is known a correction is proposed."""
        require(self._who[2], "propose")
        waiting = known_candidates(*self._who, source)
        entries = known_entries(*self._who, source)
        for plain in documents:
            report.read += 1
            document = self._tiered(plain)
            try:
                parse_finding(document)
                self._propose(document, waiting.get(document["external_id"]), entries, report)
            except GrandboError as error:
                self._refuse(document["external_id"], error, report)
            if progress:
                progress(report)
        return report

    def _propose(
        self, document: dict[str, Any], waiting: Known | None, entries: Mapping[str, Known], report: FollowReport
    ) -> None:
        name, title = document["external_id"], document["title"]
        entry = entries.get(name)
        latest = waiting or entry
        if latest is not None and latest.mark == mark_of(document):
            report.note(name, title, "unchanged", latest.id)
            return
        action: Action = "amended" if waiting is not None else "proposed"
        if self._preview:
            report.note(name, title, action)
            return
        candidates = Candidates(*self._who, clock=self._clock)
        own_id = command_id(action, document, self._visibility, latest)
        if waiting is not None:
            changes = corrections(marked(document), waiting)
            decided = candidates.amend(waiting.id, changes, reason=CHANGED, command_id=own_id)
        else:
            into = entry.id if entry is not None else None
            decided = candidates.propose(marked(document), into=into, reason=CHANGED if into else "", command_id=own_id)
        report.note(name, title, action if decided.appended else "unchanged", decided.candidate_id)

    # -- documents that are no more ------------------------------------------------------------------------------------

    def vanished(
        self,
        present: Sequence[str],
        unread: Sequence[str],
        source: str,
        report: FollowReport,
        *,
        archive: bool,
        within: str = "",
    ) -> None:
        """
        Note which entries have lost their document; with `archive`, put them away.

        Args:
            unread: files that are there and could not be read; what came of them has not vanished.
            within: how the ids of the documents begin that are meant.
        """
        for name, entry in sorted(vanished(known_entries(*self._who, source), present, within).items()):
            if _is_of(name, unread):
                continue
            if archive and not self._preview:
                self._carry_out(wishes.archive(entry.id, GONE))
            report.note(name, entry.title, "archived" if archive else "vanished", entry.id)

    def unsupported(
        self, present: Sequence[str], unread: Sequence[str], source: str, report: FollowReport, *, within: str = ""
    ) -> None:
        """Note which candidates wait whose document is no more; whether they fall is for a person to say."""
        for name, waiting in sorted(vanished(known_candidates(*self._who, source), present, within).items()):
            if not _is_of(name, unread):
                report.note(name, waiting.title, "vanished", waiting.id)

    def _tiered(self, document: Mapping[str, Any]) -> dict[str, Any]:
        return {**document, "visibility": self._visibility}

    def _refuse(self, name: str, error: GrandboError, report: FollowReport) -> None:
        # What the caller may not do he may not do with any of them.
        if self._strict or isinstance(error, Forbidden):
            raise error
        report.refuse(name, error)

    def _carry_out(self, wish: Wish) -> bool:
        """Carry it out; whether this did it, and nobody before."""
        return carry_out(*self._who, wish, clock=self._clock).appended


def _is_of(name: str, paths: Sequence[str]) -> bool:
    """Whether a document, or a part of one, came from one of these files."""
    return any(name == path or name.startswith(f"{path}#") for path in paths)

"""Deciders of what an approval puts into the memory, and of what takes it back. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from grandbo.errors import IllegalTransition, InvalidInput
from grandbo.events.candidates import CandidateContent, Outcome
from grandbo.events.log import Event
from grandbo.events.models import (
    EntryChanged,
    EntryCorroborated,
    EntryExpirySet,
    EntryRecorded,
)
from grandbo.events.parts import EventBody
from grandbo.memory import lifecycle
from grandbo.memory.candidacy import CandidateState, decide_approve
from grandbo.memory.decide import AlreadyKnown
from grandbo.memory.lifecycle import EntryState
from grandbo.types import utc_text


def check_target(entry: EntryState, content: CandidateContent) -> None:
    """Refuse to let a person's own memory into another's, or into the organisation's, or the reverse."""
    is_personal = "personal" in (entry.kind, content.kind)
    if is_personal and (entry.kind, entry.visibility) != (content.kind, content.visibility):
        raise InvalidInput(
            "into: what is personal goes into what is remembered about the same subject, and into nothing else.",
            field="into",
        )


def decide_entry(
    candidate_id: UUID, state: CandidateState, content: CandidateContent, reason: str, entry: Event | AlreadyKnown
) -> list[Event]:
    """The approval, and the event of the entry that comes of it."""
    if isinstance(entry, AlreadyKnown):
        return [Event(candidate_id, decide_approve(state, content, "known", reason, entry.entry_id))]
    outcome: Outcome = "recorded" if isinstance(entry.body, EntryRecorded) else "corroborated"
    assert isinstance(entry.body, EntryRecorded | EntryCorroborated)
    approved = decide_approve(state, content, outcome, reason, entry.stream_id, entry.body.revision)
    return [Event(candidate_id, approved), entry]


def decide_told(
    state: CandidateState, content: CandidateContent, reason: str, told: list[Event], known: UUID | None
) -> list[Event]:
    """
    The approval, and the events of what it lets into the memory of a subject.

    Args:
        known: the entry that stands, where there is nothing to add to it.
    """
    if not told:
        return [Event(state.candidate_id, decide_approve(state, content, "known", reason, known))]
    last = told[-1]
    assert isinstance(last.body, EntryRecorded | EntryChanged)
    outcome: Outcome = "recorded" if isinstance(last.body, EntryRecorded) else "merged"
    approved = decide_approve(state, content, outcome, reason, last.stream_id, last.body.revision)
    return [Event(state.candidate_id, approved), *told]


def decide_undoing(
    state: CandidateState,
    entry: EntryState,
    before: EntryState | None,
    replaced: Sequence[EntryState],
    reason: str,
) -> list[Event]:
    """
    The events that take back what the approval put into the memory.

    Args:
        before: how the entry stood before the approval; None where it was made by it.
        replaced: entries whose place the entry took.

    Raises:
        IllegalTransition
    """
    if state.outcome == "known":
        return []
    if state.outcome == "corroborated" or entry.revision != state.entry_revision:
        raise IllegalTransition(
            "The entry has changed since, or was only supported; correct or archive it by itself.",
            entry_status=entry.status,
        )
    if before is not None:
        return [Event(entry.entry_id, body) for body in _as_before(entry, before, reason)]
    back = [Event(one.entry_id, body) for one in replaced for body in _let_out(one, reason)]
    return [*([Event(entry.entry_id, lifecycle.decide_archive(entry, reason))] * (entry.status == "published")), *back]


def _as_before(entry: EntryState, before: EntryState, reason: str) -> Iterator[EventBody]:
    restored = lifecycle.decide_restore(entry, before, reason)
    yield restored
    if entry.expires_at != before.expires_at:
        yield EntryExpirySet(revision=restored.revision + 1, reason=reason, expires_at=utc_text(before.expires_at))


def _let_out(entry: EntryState, reason: str) -> Iterator[EventBody]:
    """What is superseded comes back by way of the archive: nothing else leads from one state to the other."""
    archived = lifecycle.decide_archive(entry, reason)
    yield archived
    yield lifecycle.decide_unarchive(replace(entry, revision=archived.revision), reason)

"""
Taking the words out of single revisions: which events go, and what is left of each. Pure.

What is left is the event without a word that somebody wrote: a replay reads it in its place, so that every event after
it, and every revision before and after, is what it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rfc8785

from grandbo.errors import IllegalTransition, InvalidInput
from grandbo.events.erasures import EntryKept, EntryRedacted, RedactedEvent
from grandbo.events.log import RecordedEvent
from grandbo.events.models import (
    EntryChanged,
    EntryCorroborated,
    EntryEmbedded,
    EntryReclassified,
    EntryRecorded,
    TextChanged,
)
from grandbo.events.parts import EventBody
from grandbo.memory.decide import claim_digest_of, text_digest

ERASED_TITLE = ""
_NO_WORDS: dict[str, Any] = {
    "title": ERASED_TITLE,
    "summary": "",
    "body": "",
    "service": "",
    "tags": (),
    "evidence": (),
    "occurred_at": None,
    "occurred_precision": None,
    "ended_at": None,
}
# What people read of a revision, field by field.
_FIELDS = ("title", "summary", "body", "tags", "evidence")

Worded = EntryRecorded | TextChanged | EntryKept


@dataclass(frozen=True, slots=True)
class Plan:
    """
    What goes, and what is left.

    Attributes:
        revisions: those that lose their text: the named ones and those that only repeat it, such as an archiving.
        positions: of the events whose bodies go.
        digests: of the texts that go.
        redacted: the event that says what is left.
    """

    revisions: tuple[int, ...]
    positions: tuple[int, ...]
    digests: frozenset[str]
    redacted: EntryRedacted


def wordless(body: EventBody) -> EventBody:
    """
    An event's body without a word that somebody wrote, and without a digest of one.

    What it counts as stays: kind, tier, namespace, owner, times of validity, its incident, its id elsewhere.
    """
    changes: dict[str, Any] = {"command_digest": None}
    if isinstance(body, EntryChanged):
        changes["reason"] = ""
    if isinstance(body, EntryRecorded | TextChanged | EntryKept):
        kind = body.kind if isinstance(body, EntryRecorded | EntryKept) else ""
        changes |= _NO_WORDS
        changes |= {"claim_digest": _claim(kind, body.visibility), "text_digest": text_digest("", "", "")}
    elif isinstance(body, EntryCorroborated):
        changes["evidence"] = ()
    elif isinstance(body, EntryReclassified):
        changes["claim_digest"] = _claim(body.kind, body.visibility)
    return body.model_copy(update=changes)


def plan_redaction(stream: Sequence[RecordedEvent], named: Iterable[int]) -> Plan:
    """
    What has to go for these revisions.

    Args:
        stream: the entry's events, from where it began or began anew; redacted ones as what is left of them.

    Raises:
        InvalidInput: no such revision, or one that was erased already.
        IllegalTransition: it is what the entry says now.
    """
    wanted = sorted(set(named))
    made = {number: event for event in stream if (number := made_revision(event.data)) is not None}
    for number in wanted:
        _check(number, made)
    worded = sorted(n for n, event in made.items() if isinstance(event.data, Worded))
    spans = {n: _span(n, worded, max(made)) for n in wanted if n in worded}
    if any(max(made) in span for span in spans.values()):
        raise IllegalTransition(
            f"Revision {worded[-1]} is what the entry says now: correct the entry first, or erase the whole of it.",
            entry_status="published",
        )
    gone = {number for span in spans.values() for number in span}
    digests = {_digest(made[n]) for n in spans}
    kept = {_digest(made[n]) for n in worded if n not in spans}
    between = [(made[n].position, made[max(span) + 1].position) for n, span in spans.items()]
    vectors = [
        event.position
        for event in stream
        if isinstance(event.data, EntryEmbedded)
        and event.data.text_digest in digests
        and (event.data.text_digest not in kept or any(low < event.position < high for low, high in between))
    ]
    # A reclassification tells the claim apart by a digest of the text that it found.
    told_apart = [n for n in gone if isinstance(made[n].data, EntryReclassified)]
    left = [_left(made[n]) for n in sorted({*wanted, *told_apart})]
    positions = sorted([*(item.position for item in left), *vectors])
    redacted = EntryRedacted(revisions=tuple(wanted), events=tuple(left))
    return Plan(tuple(sorted(gone)), tuple(positions), frozenset(digests), redacted)


def still_said(rows: Sequence[Mapping[str, Any]], named: Iterable[int], gone: Iterable[int]) -> list[dict[str, Any]]:
    """
    In which other revisions some of the same words stand, field by field, oldest first: nobody shall think them gone.

    Args:
        rows: the entry's revisions.
        gone: those that lose their text; a named one that is not among them has its text from another.
    """
    lost = set(gone)
    texts = [row for row in rows if row["revision"] in lost | set(named)]
    found = []
    for row in rows:
        same = [name for name in _FIELDS if any(_shares(row[name], text[name]) for text in texts)]
        if same and row["revision"] not in lost:
            found.append({"revision": row["revision"], "fields": same})
    return found


def made_revision(body: EventBody | None) -> int | None:
    """The number of the revision that the event made; None where it made none, or is not there to say."""
    makes = EntryRecorded | EntryCorroborated | EntryChanged | EntryKept
    return body.revision if isinstance(body, makes) else None


def _check(number: int, made: Mapping[int, RecordedEvent]) -> None:
    if number not in made:
        raise InvalidInput(
            f"revision: there is none of the number {number} left; there are {min(made)} to {max(made)}.",
            field="revision",
        )
    if made[number].body is None:
        raise InvalidInput(f"revision: {number} was erased already.", field="revision")


def _span(number: int, worded: Sequence[int], last: int) -> range:
    """The revision, and those after it that only repeat its text."""
    return range(number, next((n for n in worded if n > number), last + 1))


def _digest(event: RecordedEvent) -> str:
    assert isinstance(event.data, Worded)
    return event.data.text_digest


def _left(event: RecordedEvent) -> RedactedEvent:
    assert event.data is not None
    left = wordless(event.data)
    return RedactedEvent(
        position=event.position,
        event_type=left.EVENT_TYPE,
        schema_version=left.SCHEMA_VERSION,
        body=rfc8785.dumps(left.document()).decode(),
    )


def _claim(kind: str, visibility: str) -> str:
    return claim_digest_of(kind, visibility, "", "", "")


def _shares(one: object, other: object) -> bool:
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return any(item in other for item in one)
    return bool(one) and one == other

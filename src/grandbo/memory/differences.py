"""What is different between two states of an entry, field by field and word by word. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from grandbo.errors import NotFound
from grandbo.events.models import EntryRevisionRestored, TextChanged
from grandbo.events.parts import EventBody
from grandbo.memory.lifecycle import EntryState
from grandbo.types import utc_text

Operation = Literal["kept", "removed", "added"]

# What is longer is compared by lines, and past that as a whole: a hostile text must not buy a long computation.
LONGEST_COMPARED = 8_000

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
# A restore carries the revision's number and the entry's own tier along.
_LEFT_ALONE = frozenset({"revision", "visibility"})
# Another one at every revision, so it says nothing.
_UNTOLD = frozenset({"changed_at"})
# What a restore brings back.
_TEXT_FIELDS = tuple(
    name for name in TextChanged.model_fields if name in EntryState.__slots__ and name not in _LEFT_ALONE
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text that both have, or that only the earlier or only the later one has."""

    operation: Operation
    text: str

    def as_dict(self) -> dict[str, str]:
        """The shape that every door gives."""
        return {"operation": self.operation, "text": self.text}


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field that is not the same; `words` where both values are text."""

    field: str
    before: Any
    after: Any
    words: tuple[Piece, ...] | None

    def as_dict(self) -> dict[str, Any]:
        """The shape that every door gives."""
        words = None if self.words is None else [piece.as_dict() for piece in self.words]
        return {"field": self.field, "before": self.before, "after": self.after, "words": words}


@dataclass(frozen=True, slots=True)
class ComparedRevisions:
    """What is different from one revision of an entry to another."""

    entry_id: str
    earlier: int
    later: int
    changes: tuple[FieldDifference, ...]

    def as_dict(self) -> dict[str, Any]:
        """The shape that every door gives."""
        changes = [change.as_dict() for change in self.changes]
        return {"entry_id": self.entry_id, "from": self.earlier, "to": self.later, "changes": changes}


@dataclass(frozen=True, slots=True)
class RestorePreview:
    """What a restore would make of the entry as it stands; nothing was written."""

    state: EntryState
    restored_revision: int
    next_revision: int
    changes: tuple[FieldDifference, ...]

    def as_dict(self) -> dict[str, Any]:
        """The shape that every door gives."""
        return {
            "entry_id": str(self.state.entry_id),
            "revision": self.state.revision,
            "restored_revision": self.restored_revision,
            "next_revision": self.next_revision,
            "status": self.state.status,
            "changes": [change.as_dict() for change in self.changes],
        }


def word_difference(before: str, after: str) -> tuple[Piece, ...]:
    """
    The pieces of two texts, in order: kept and removed ones together are `before`, kept and added ones are `after`.
    """
    for pattern in (_WORDS, _LINES):
        old, new = pattern.findall(before), pattern.findall(after)
        start = _common(old, new)
        end = _common(old[start:][::-1], new[start:][::-1])
        middle = old[start : len(old) - end], new[start : len(new) - end]
        if max(map(len, middle)) <= LONGEST_COMPARED:
            kept = Piece("kept", "".join(old[:start])), Piece("kept", "".join(old[len(old) - end :]))
            return _joined([kept[0], *_compared(*middle), kept[1]])
    return _joined([Piece("removed", before), Piece("added", after)])


def state_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[FieldDifference, ...]:
    """The fields of two states, as plain values, that are not the same."""
    changed = [name for name in before if name not in _UNTOLD and before[name] != after[name]]
    return tuple(_field_difference(name, before[name], after[name]) for name in changed)


def revision_of(history: Sequence[dict[str, Any]], revision: int) -> dict[str, Any]:
    """One revision out of a history; raises `NotFound`, for one that the history leaves out too."""
    found = next((item for item in history if item["revision"] == revision), None)
    if found is None:
        raise NotFound(f"The entry has no revision {revision}.")
    return found


def revision_differences(history: Sequence[dict[str, Any]], earlier: int, later: int) -> tuple[FieldDifference, ...]:
    """What is different from one revision of a history to another, in either direction; raises `NotFound`."""
    return state_differences(revision_of(history, earlier)["state"], revision_of(history, later)["state"])


def compare_revisions(history: Sequence[dict[str, Any]], earlier: int, later: int) -> ComparedRevisions:
    """Two revisions of a history, compared; raises `NotFound`."""
    changes = revision_differences(history, earlier, later)
    return ComparedRevisions(history[0]["entry_id"], earlier, later, changes)


def restore_preview(history: Sequence[dict[str, Any]], state: EntryState, would: EventBody | None) -> RestorePreview:
    """
    What the restore would change, within what the caller's history shows him.

    Raises:
        NotFound: the revision stands above the caller's tiers; its text is not his to preview.
    """
    if not isinstance(would, EntryRevisionRestored):
        raise TypeError("this is not what a restore would do")
    revision_of(history, would.restored_revision)
    before = {name: _plain(getattr(state, name)) for name in _TEXT_FIELDS}
    after = {name: _plain(getattr(would, name)) for name in _TEXT_FIELDS}
    return RestorePreview(state, would.restored_revision, would.revision, state_differences(before, after))


def _field_difference(name: str, before: Any, after: Any) -> FieldDifference:
    both_texts = isinstance(before, str) and isinstance(after, str)
    return FieldDifference(name, before, after, word_difference(before, after) if both_texts else None)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    shortest = min(len(old), len(new))
    return next((place for place in range(shortest) if old[place] != new[place]), shortest)


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[Piece]:
    # Words that are everywhere are no landmarks: it is what keeps the comparison of long texts short.
    for operation, old_start, old_end, new_start, new_end in SequenceMatcher(None, old, new).get_opcodes():
        if operation == "equal":
            yield Piece("kept", "".join(old[old_start:old_end]))
        else:
            yield Piece("removed", "".join(old[old_start:old_end]))
            yield Piece("added", "".join(new[new_start:new_end]))


def _joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    joined: list[Piece] = []
    for piece in pieces:
        if joined and piece.text and joined[-1].operation == piece.operation:
            joined[-1] = Piece(piece.operation, joined[-1].text + piece.text)
        elif piece.text:
            joined.append(piece)
    return tuple(joined)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return utc_text(value) if hasattr(value, "astimezone") else value

"""
Citations: which characters of which revision were quoted.

A revision never changes, so neither does what a citation points at, whatever becomes of the entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from grandbo.recall.answer import Match

_BETWEEN = "\n\n"


def stored_text(title: str, summary: str, body: str) -> str:
    """
    The text of a revision that citations count in: title, summary and body, with an empty line between them.

    Always all three, empty ones too, so that everyone who has the three fields counts alike.
    """
    return _BETWEEN.join((title, summary, body))


@dataclass(frozen=True, slots=True)
class Span:
    """Where a quotation stands: `stored_text` of the revision, from `start` up to `end`, in code points."""

    entry_id: UUID
    revision: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.entry_id}/{self.revision}#{self.start}-{self.end}"

    def of(self, text: str) -> str:
        """The quoted piece of the revision's stored text."""
        return text[self.start : self.end]


def citation(match: Match) -> str:
    """The stable name of what was found: entry, revision, position."""
    return f"{match.entry_id}/{match.revision}@{match.position}"

"""
Characters that a reader does not see: which of them a text keeps, which are taken out, and what detectors see.

An explicit list; the general category alone lets ten of forty-one known ones through.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

_JOINERS = "\u200c\u200d"
_SELECTORS = "\ufe0e\ufe0f"
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
# Line breaks that are none of ours, private use, and code points that are no characters.
_FOREIGN = "\u2028\u2029\ue000-\uf8ff\U000f0000-\U0010ffff\ufdd0-\ufdef\ufffe\uffff"
_BREAKS = "\u2028\u2029"
_MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
MARKS_IN_A_ROW = 3

_HIDDEN = re.compile(f"[{_INVISIBLE}{_FOREIGN}]")
_STACKED = re.compile(f"[{_MARKS}]{{{MARKS_IN_A_ROW + 1},}}")
# Scripts in which a joiner or non-joiner is spelling: Arabic, Syriac, and those of India and its neighbours.
_JOINED = re.compile("[\u0600-\u06ff\u0700-\u077f\u08a0-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff]")
_PICTURE = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u20e3\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299#*0-9\U0001f000-\U0001faff\ufe0f]"
)
# Long enough to carry a message: tag letters, variation selectors, or zero-width characters as bits.
_MESSAGE = re.compile(
    "(?<!\U0001f3f4)[\U000e0020-\U000e007e]{3,}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}"
    "|[\u200b-\u200f\u2060-\u2064\ufeff]{8,}"
)
_NOT_ASCII = re.compile("[^\x00-\x7f]+")


class Piece(NamedTuple):
    """A stretch of a text, and what kind of hidden thing it is."""

    kind: str
    start: int
    end: int


def hidden_pieces(text: str) -> Iterator[Piece]:
    """What of a text is not to be seen; runs of neighbours are one piece."""
    if text.isascii():
        return
    start = end = -1
    for at, beyond in sorted((*_unseen(text), *_surplus_marks(text))):
        if at != end:
            if end > start:
                yield Piece("invisible", start, end)
            start = at
        end = beyond
    if end > start:
        yield Piece("invisible", start, end)


def _unseen(text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _HIDDEN.finditer(text) if not _belongs(text, match))


def _surplus_marks(text: str) -> Iterator[tuple[int, int]]:
    return ((match.start() + MARKS_IN_A_ROW, match.end()) for match in _STACKED.finditer(text))


def messages(text: str) -> Iterator[Piece]:
    """Runs of hidden characters that are long enough to say something to a machine."""
    if not text.isascii():
        yield from (Piece("message", match.start(), match.end()) for match in _MESSAGE.finditer(text))


def visible(text: str) -> str:
    """The text without what is hidden in it; a line break that is none of ours becomes a space."""
    if text.isascii():
        return text
    shown: list[str] = []
    at = 0
    for piece in hidden_pieces(text):
        is_break = any(char in _BREAKS for char in text[piece.start : piece.end])
        shown += (text[at : piece.start], " " if is_break else "")
        at = piece.end
    return "".join((*shown, text[at:]))


def _belongs(text: str, match: re.Match[str]) -> bool:
    char, before = match.group(), text[max(0, match.start() - 1) : match.start()]
    if char in _JOINERS:
        after = text[match.end() : match.end() + 1]
        is_spelling = bool(_JOINED.match(before) and _JOINED.match(after))
        is_picture = char == "\u200d" and bool(_PICTURE.match(before) and _PICTURE.match(after))
        return is_spelling or is_picture
    return char in _SELECTORS and bool(_PICTURE.match(before)) and before not in _SELECTORS


class Skeleton:
    """
    What detectors see of a text: compatibility forms folded, format characters gone.

    `text` is that; `span` leads from its offsets back to those of the original.
    """

    def __init__(self, original: str) -> None:
        self._original = original
        self._from: list[int] = []
        self._to: list[int] = []
        self.text = original if original.isascii() else self._folded()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the original that a stretch of the skeleton stands for."""
        if not self._from:
            return start, end
        return self._back(start), self._back(end - 1, is_end=True)

    def _folded(self) -> str:
        parts: list[str] = []
        at = length = 0
        for run in _NOT_ASCII.finditer(self._original):
            parts.append(self._original[at : run.start()])
            length += run.start() - at
            for offset, char in enumerate(run.group(), start=run.start()):
                folded = _fold(char)
                self._from.append(length)
                self._to.append(offset)
                parts.append(folded)
                length += len(folded)
            at = run.end()
            self._from.append(length)
            self._to.append(at)
        parts.append(self._original[at:])
        return "".join(parts)

    def _back(self, offset: int, *, is_end: bool = False) -> int:
        """Every character beyond ASCII is a step of its own; between steps offsets run alike."""
        place = bisect_right(self._from, offset) - 1
        if place < 0:
            return offset + is_end
        start, origin = self._from[place], self._to[place]
        beyond = self._to[place + 1] if place + 1 < len(self._to) else len(self._original)
        back = min(origin + offset - start, beyond)
        return min(back + 1, max(beyond, origin + 1)) if is_end else back


def _fold(char: str) -> str:
    if unicodedata.category(char) in ("Cf", "Co", "Cs") or _HIDDEN.fullmatch(char):
        return ""
    return unicodedata.normalize("NFKC", char)

"""
The text recipe: windows of about 150 words with the title in front of each.

The local model reads 256 tokens and drops the rest, so a window is measured in estimated tokens: 150 words of prose,
fewer when they are identifiers, log lines or a script without spaces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple

from grandbo.errors import EmbedderRefused

RECIPE: Final = "title-window-150w-v1"
"""Part of every stamp: a change below that moves a window needs a new name here, and so new vectors."""

MAX_WINDOWS: Final = 12

# Costs are thirds of a token, so that 150 plain words (1.33 tokens each) and 200 tokens are the same budget.
_TOKEN: Final = 3
_BUDGET: Final = 200 * _TOKEN
_LEAST_WORD: Final = 4
_LONGEST_ATOM: Final = 24 * _TOKEN
_FREE_TITLE: Final = 24 * _TOKEN

_WORD: Final = re.compile(r"\S+")
# Each match is about one token of a WordPiece vocabulary: eight Latin letters, three digits, or any other character.
_TOKENS: Final = re.compile(r"[A-Za-z\u00c0-\u024f]{1,8}|[0-9]{1,3}|.", re.DOTALL)
_SENTENCE_ENDS: Final = frozenset(".!?…。！？．")  # noqa: RUF001
_CLOSERS: Final = "\"'”’)]}»」』）】"  # noqa: RUF001
_WIDE_ENDS: Final = frozenset("。！？，、；：")  # noqa: RUF001


@dataclass(frozen=True)
class Window:
    """
    One text for the model.

    `start` and `end` are character offsets into the text that was cut; `text` is what the model gets, title in front.
    """

    index: int
    start: int
    end: int
    text: str


class _Atom(NamedTuple):
    """What is never cut: a word, or a piece of a very long one."""

    start: int
    end: int
    cost: int


def windows(title: str, text: str) -> list[Window]:
    """
    Cut `text` into at most 12 windows that together hold every character of it except white space between them.

    A window ends at the end of a sentence where one is near, else between words, else (a script without spaces, a
    blob) within one. A text too long for 12 windows of the usual size gets larger ones. A blank text gives one window
    that holds the title. Raises `EmbedderRefused` when both are blank.
    """
    title = title.strip()
    atoms = list(_atoms(text))
    if not atoms:
        if not title:
            raise EmbedderRefused("There is nothing to embed: title and text are blank.")
        return [Window(index=0, start=0, end=0, text=title)]
    overlong_title = max(0, sum(atom.cost for atom in _atoms(title)) - _FREE_TITLE)
    budget = max(_BUDGET // 2, _BUDGET - overlong_title)
    spans = _pack(text, atoms, budget)
    while len(spans) > MAX_WINDOWS:
        budget += budget // 8
        spans = _pack(text, atoms, budget)
    front = f"{title}\n" if title else ""
    return [
        Window(index=index, start=start, end=end, text=front + text[start:end])
        for index, (start, end) in enumerate(spans)
    ]


def _pack(text: str, atoms: list[_Atom], budget: int) -> list[tuple[int, int]]:
    """Fill windows greedily; a short remainder joins the last one rather than being nearly all title."""
    until = list(accumulate((atom.cost for atom in atoms), initial=0))
    spans = []
    first = 0
    while first < len(atoms):
        if until[-1] - until[first] <= budget + budget // 8:
            last = len(atoms)
        else:
            last = first + 1
            while until[last + 1] - until[first] <= budget:
                last += 1
            last = _back_to_sentence(text, atoms, first, last, until, budget)
        spans.append((atoms[first].start, atoms[last - 1].end))
        first = last
    return spans


def _back_to_sentence(text: str, atoms: list[_Atom], first: int, last: int, until: list[int], budget: int) -> int:
    """Move the cut back to the end of a sentence or line, unless that gives up more than a third of the window."""
    for cut in range(last, first, -1):
        if until[cut] - until[first] < budget * 2 // 3:
            break
        head = text[atoms[cut - 1].start : atoms[cut - 1].end].rstrip(_CLOSERS)
        if head and head[-1] in _SENTENCE_ENDS:
            return cut
        if cut < len(atoms) and "\n" in text[atoms[cut - 1].end : atoms[cut].start]:
            return cut
    return last


def _atoms(text: str) -> Iterator[_Atom]:
    """Give the words of a text; very long ones in pieces, cut after wide punctuation and never before an accent."""
    for word in _WORD.finditer(text):
        start, cost = word.start(), 0
        for piece in _TOKENS.finditer(text, word.start(), word.end()):
            here = piece.start()
            if cost and (cost >= _LONGEST_ATOM or text[here - 1] in _WIDE_ENDS) and not _clings(text[here]):
                yield _Atom(start, here, cost)
                start, cost = here, 0
            cost += _TOKEN
        yield _Atom(start, word.end(), max(cost, _LEAST_WORD))


def _clings(character: str) -> bool:
    return character in _CLOSERS or character in _WIDE_ENDS or unicodedata.category(character).startswith("M")

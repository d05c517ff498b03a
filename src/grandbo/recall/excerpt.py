"""An excerpt: whole sentences around what matched, for an item that is too long to be quoted whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grandbo.text import terms

# What ends a sentence, with its closing quotes and the space behind them; the end of a line. Each form begins with a
# character of its own, so that the search skips from one to the next.
_BREAK = re.compile(r"""[.!?\u2026](["'\u201d\u2019)\]]*)[ \t]+|[\u3002\uff01\uff1f]|\n\s*""")
_LONGEST = 400
_SPACE = re.compile(r"\s")
MOST_WINDOWS = 4
_BEGINNING = 3


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, or a piece of one that is too long; `opens` and `closes` say which ends are the sentence's own."""

    start: int
    end: int
    opens: bool = True
    closes: bool = True


@dataclass(frozen=True, slots=True)
class Window:
    """Sentences that follow one another; `is_cut` where it begins or ends inside one."""

    start: int
    end: int
    is_cut: bool


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text, in order; what lies between them is white space."""
    found: list[Sentence] = []
    start = 0
    for gap in _BREAK.finditer(text):
        # Quotes that close belong to the sentence, as its last mark does.
        end = gap.start() if gap.group()[0] == "\n" else gap.start() + 1 + len(gap.group(1) or "")
        found += _pieces(text, start, end)
        start = gap.end()
    return found + _pieces(text, start, len(text))


def windows(
    text: str, matched: Sequence[str], room: int, cost: Callable[[str], int], *, window_cost: int, lead: int
) -> list[Window]:
    """
    The windows that fit, in the order of the text: its beginning, and what surrounds the rarest matched terms.

    Args:
        matched: terms, the most telling first.
        room: tokens that the windows may take, by `cost` a sentence and `window_cost` a window.
        lead: the sentences that begin before this place come first of all; nothing is given where they do not fit.
    """
    parts = sentences(text)
    choice = _Choice(text, parts, room, cost, window_cost)
    leading = [place for place, part in enumerate(parts) if part.start < lead]
    if not all(choice.add(place) for place in leading):
        return []
    for place in _by_worth(text, parts, matched, len(leading)):
        choice.add(place)
    choice.grow()
    return choice.windows()


class _Choice:
    """Which sentences are taken, and what room is left."""

    def __init__(
        self, text: str, parts: list[Sentence], room: int, cost: Callable[[str], int], window_cost: int
    ) -> None:
        self._text, self._parts, self._room = text, parts, room
        self._cost, self._window_cost = cost, window_cost
        self._taken: set[int] = set()
        self._count = 0

    def add(self, place: int) -> bool:
        """Take a sentence if it fits."""
        if place in self._taken:
            return True
        beside = ((place - 1) in self._taken) + ((place + 1) in self._taken)
        if not beside and self._count == MOST_WINDOWS:
            return False
        part = self._parts[place]
        # One that joins two windows saves the cost of one of them.
        price = self._cost(self._text[part.start : part.end]) + (1 - beside) * self._window_cost
        if price > self._room:
            return False
        self._taken.add(place)
        self._room -= price
        self._count += 1 - beside
        return True

    def grow(self) -> None:
        """Take what follows and what precedes the sentences that are taken, as far as there is room."""
        edges = sorted(self._taken)
        while edges:
            reached = []
            for place in edges:
                for beside in (place + 1, place - 1):
                    if 0 <= beside < len(self._parts) and beside not in self._taken and self.add(beside):
                        reached.append(beside)
            edges = reached

    def windows(self) -> list[Window]:
        """What is taken, joined where it touches."""
        made: list[Window] = []
        run: list[int] = []
        for place in [*sorted(self._taken), -1]:
            if run and place != run[-1] + 1:
                first, last = self._parts[run[0]], self._parts[run[-1]]
                made.append(Window(first.start, last.end, not (first.opens and last.closes)))
                run = []
            run.append(place)
        return made


def _by_worth(text: str, parts: list[Sentence], matched: Sequence[str], first: int) -> list[int]:
    """
    Sentences from the `first` on that add a matched term, those with the rarest first; each term counts once.

    What the sentences before hold does not count: a term of the title is looked for in the text all the same.
    """
    weights = {term: 1 / (1 + rank) for rank, term in enumerate(dict.fromkeys(matched))}
    # A stem begins as its word does, but for two letters: what has none of the beginnings need not be taken apart.
    whole = text.casefold()
    beginnings = {start for start in (term[: max(_BEGINNING, len(term) - 2)] for term in weights) if start in whole}
    held = []
    for place, part in enumerate(parts[first:], start=first):
        piece = text[part.start : part.end]
        lowered = piece.casefold()
        if any(beginning in lowered for beginning in beginnings):
            held.append((place, weights.keys() & set(terms(piece))))
    scored = sorted((-sum(sorted(weights[term] for term in has)), place, has) for place, has in held if has)
    chosen, covered = [], set[str]()
    for _, place, has in scored:
        if not has <= covered:
            chosen.append(place)
            covered |= has
    return chosen


def _pieces(text: str, start: int, end: int) -> list[Sentence]:
    """The sentence without the white space around it; cut at spaces where it is too long to be taken as one."""
    raw = text[start:end].rstrip()
    end = start + len(raw)
    start = end - len(raw.lstrip())
    if end - start <= _LONGEST:
        return [Sentence(start, end)] if raw else []
    pieces = []
    begins = start
    while end - begins > _LONGEST:
        limit = begins + _LONGEST
        spaces = [found.start() for found in _SPACE.finditer(text, begins + _LONGEST // 2, limit)]
        cut = spaces[-1] if spaces else limit
        pieces.append(Sentence(begins, cut, opens=begins == start, closes=False))
        begins = cut + (1 if spaces else 0)
    if end > begins:
        pieces.append(Sentence(begins, end, opens=begins == start))
    return pieces

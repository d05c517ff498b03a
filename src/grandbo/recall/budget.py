"""
How many tokens a text takes, estimated so that it is rather too many than too few.

Clients count with tokenizers of their own, which are not here. The estimate goes by runs of characters, each kind at
more tokens for its length than the tokenizers that it was held against make of it; docs/recall.md has the figures.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from grandbo.errors import InvalidInput

DEFAULT_BUDGET = 2_000
MIN_BUDGET = 200
MAX_BUDGET = 8_000

# What counts as one token: up to four letters of a part of a word, as identifiers have them; a capital among capitals
# and up to two digits, of which codes and hashes are made; a line break, a tab, a run of spaces, a sign. A single space
# belongs to its word.
_PIECE = re.compile(r"[A-Z][a-z]{1,3}|[a-z]{1,4}|[0-9]{1,2}|[A-Z]|[\t-\r]|  +|[\x00-\x08\x0e-\x1f!-/:-@\[-`{-\x7f]")
_REST = re.compile(r"[^\x00-\x7f]+")
_MARGIN = 12
# From about this length on, runs are counted sooner than found.
_LONG = 2_000
_NOT_ASCII, _LOWER, _UPPER, _DIGIT, _SPACE, _SIGN = 128, 1, 2, 3, 4, 5


def _kind(char: str) -> int:
    if char.islower():
        return _LOWER
    if char.isupper():
        return _UPPER
    if char.isdigit():
        return _DIGIT
    return _SPACE if char == " " else _SIGN


_KIND = np.array([*(_kind(chr(code)) for code in range(_NOT_ASCII)), 0], np.uint8)
# Of what is not white space no token has more.
_MOST_CHARACTERS = 4


def estimate_tokens(text: str) -> int:
    """Tokens of a text, rather too many than too few."""
    total = len(_PIECE.findall(text)) if len(text) < _LONG else _pieces(text)
    if not text.isascii():
        total += sum(len(run.encode("utf-8", "surrogatepass")) * 2 // 3 + 1 for run in _REST.findall(text))
    return total + (total + _MARGIN - 1) // _MARGIN


def _pieces(text: str) -> int:
    """How often `_PIECE` matches, from the lengths of runs: for a long text four times as fast as to find each."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    kinds = _KIND[np.minimum(codes, _NOT_ASCII)]
    starts, small = _runs(kinds == _LOWER)
    # A capital takes up to three small letters along.
    after_capital = (starts > 0) & (kinds[np.maximum(starts - 1, 0)] == _UPPER)
    small = np.maximum(small - 3 * after_capital, 0)
    _, digits = _runs(kinds == _DIGIT)
    _, spaces = _runs(kinds == _SPACE)
    single = np.count_nonzero((kinds == _UPPER) | (kinds == _SIGN))
    return int(single + np.sum(-(-small // 4)) + np.sum(-(-digits // 2)) + np.count_nonzero(spaces > 1))


def _runs(mask: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Where each run of true begins, and how long it is."""
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    return edges[::2], edges[1::2] - edges[::2]


def least_tokens(text: str) -> int:
    """What a text takes at least, by the same estimate; far sooner told."""
    return sum(map(len, text.split())) // _MOST_CHARACTERS


def takes_at_most(text: str, tokens: int) -> bool:
    """Whether a text takes no more than so many."""
    return least_tokens(text) <= tokens and estimate_tokens(text) <= tokens


def check_budget(given: object) -> int:
    """A budget in tokens, the default where none is given; raises `InvalidInput`."""
    if given is None:
        return DEFAULT_BUDGET
    if isinstance(given, bool) or not isinstance(given, int) or not MIN_BUDGET <= given <= MAX_BUDGET:
        raise InvalidInput(
            f"budget: it must be a whole number of tokens from {MIN_BUDGET} to {MAX_BUDGET}.", field="budget"
        )
    return given

"""
How many tokens a text takes, estimated so that it is rather too many than too few.

Clients count with tokenizers of their own, which are not here. The estimate goes by runs of characters, each kind at
more tokens for its length than the tokenizers that it was held against make of it; docs/recall.md has the figures.
"""

from __future__ import annotations

import re

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
# Of what is not white space no token has more.
_MOST_CHARACTERS = 4


def estimate_tokens(text: str) -> int:
    """Tokens of a text, rather too many than too few."""
    total = len(_PIECE.findall(text))
    if not text.isascii():
        total += sum(len(run.encode("utf-8", "surrogatepass")) * 2 // 3 + 1 for run in _REST.findall(text))
    return total + (total + _MARGIN - 1) // _MARGIN


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

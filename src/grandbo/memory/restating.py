"""
When an entry says nothing that another has not said. Pure, deterministic, and strict: a word more is something else.

The measure is the sequence of words, but for case, width, white space, articles and the punctuation around a word. It
is not a likeness: texts that share nine words in ten may say the opposite of each other.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

# A change of what counts as a restatement is another version; receipts keep the one that they were made under.
FOLD_VERSION = 1
_ARTICLES = frozenset({"a", "an", "the"})
# A question mark is no punctuation here: what is asked is not what is said. Nor is a sign in front of a number.
_AROUND = ".,;:!\"'`*_()[]{}\u2018\u2019\u201c\u201d"


@lru_cache(maxsize=8_192)
def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, in order, as the measure counts them."""
    words = (word.strip(_AROUND) for word in unicodedata.normalize("NFKC", text).casefold().split())
    return tuple(word for word in words if word and word not in _ARTICLES)


def says_the_same(title: str, summary: str, other_title: str, other_summary: str) -> bool:
    """Whether title and summary have the same words in the same order."""
    return words_of(title) == words_of(other_title) and words_of(summary) == words_of(other_summary)


def body_adds_nothing(body: str, kept: str) -> bool:
    """Whether a body says nothing, or what the other says."""
    return not body.strip() or words_of(body) == words_of(kept)

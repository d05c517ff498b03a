"""
Text rules: what may be stored, and which terms a text has.

Everything is a pure function of its argument. What `terms` gives is stored as postings, so a change here changes a
projection: raise `TERMS_RECIPE` with it and rebuild.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import Stemmer

from grandbo.errors import InvalidInput, LimitExceeded

TERMS_RECIPE = "words-v1"

# Control characters and lone surrogates; a text of several lines may have tabs and line breaks.
_BAD_IN_LINE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_BAD_IN_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_MAX_TERM = 64

# Words so common in English prose that a match on them says nothing. Identifiers and codes never pass through here.
STOP_WORDS = frozenset(
    """a about after again all also am an and any are as at be because been before being between both but by can could
    did do does doing down during each few for from further had has have having he her here hers him his how i if in
    into is it its itself just me more most my no nor not now of off on once only or other our ours out over own same
    she should so some such than that the their theirs them then there these they this those through to too under
    until up us very was we were what when where which while who whom why will with would you your yours""".split()  # noqa: SIM905  # a list of words reads best as words
)

# A run of letters, digits and the joints that hold identifiers together: svc-name_v2, api.example.com, /var/lib, E1234.
_TOKEN = re.compile(r"[^\W_]+(?:[-_.:/@+#]+[^\W_]+)*", re.UNICODE)
_JOINTS = re.compile(r"[-_.:/@+#]+")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
# Scripts written without spaces: their words are found as pairs of neighbouring characters.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f]+"
)

_stemmer = Stemmer.Stemmer("english", 0)  # no cache: it would make one stemmer unsafe to share between threads


def check_text(value: str, field: str, *, limit: int, single_line: bool = False) -> str:
    """
    Refuse what cannot be stored and shown as it is; give the text back unchanged otherwise.

    Args:
        limit: most characters (code points) allowed.
        single_line: refuse line breaks and tabs too.

    Raises:
        LimitExceeded: longer than `limit`.
        InvalidInput: no text at all, a control character or half a surrogate pair, with its code point and place.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{field}: it must be a text.", field=field)
    if len(value) > limit:
        raise LimitExceeded(
            f"{field}: {len(value)} characters, at most {limit} are allowed.",
            field=field,
            limit=limit,
            length=len(value),
        )
    bad = (_BAD_IN_LINE if single_line else _BAD_IN_TEXT).search(value)
    if bad is not None:
        code_point = ord(bad.group())
        what = "half a surrogate pair" if 0xD800 <= code_point <= 0xDFFF else "a control character"
        raise InvalidInput(
            f"{field}: {what} (U+{code_point:04X}) at character {bad.start()}; remove it and send again.", field=field
        )
    return value


def storable(value: str, *, single_line: bool = False) -> str:
    """The text with a space for each character that `check_text` refuses."""
    return (_BAD_IN_LINE if single_line else _BAD_IN_TEXT).sub(" ", value)


def terms(text: str) -> list[str]:
    """
    Terms of a text, in order, with repetitions.

    A plain word gives its stem. An identifier gives itself (lower case) and its parts, split at joints and humps. Text
    in unspaced scripts gives pairs of characters. Stop words give nothing.
    """
    found: list[str] = []
    for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text)):
        found.extend(_token_terms(match.group()))
    return found


def term_counts(text: str) -> Counter[str]:
    """How often each term occurs in a text."""
    return Counter(terms(text))


@lru_cache(maxsize=16_384)
def _token_terms(token: str) -> tuple[str, ...]:
    return tuple(_split_token(token))


def _split_token(token: str) -> Iterable[str]:
    if _UNSPACED.search(token):
        yield from _unspaced_terms(token)
        return
    lowered = token.casefold()
    parts = [hump for part in _JOINTS.split(token) for hump in _split_humps(part)]
    if len(parts) == 1:
        if lowered not in STOP_WORDS:
            yield _clip(_stemmer.stemWord(lowered))
        return
    yield _clip(lowered)
    for part in parts:
        small = part.casefold()
        if small not in STOP_WORDS and len(small) > 1:
            yield _clip(_stemmer.stemWord(small))


def _split_humps(part: str) -> list[str]:
    """OOMKilled → OOM, Killed; svc2 → svc, 2. Only ASCII has humps; anything else is one part."""
    if not part.isascii() or part.isdigit() or (part.islower() and part.isalpha()):
        return [part]
    humps = _HUMPS.findall(part)
    return humps if len(humps) > 1 and "".join(humps) == part else [part]


def _unspaced_terms(token: str) -> Iterable[str]:
    at = 0
    for run in _UNSPACED.finditer(token):
        if run.start() > at:
            yield from terms(token[at : run.start()])
        chars = run.group()
        yield from (chars[i : i + 2] for i in range(max(1, len(chars) - 1)))
        at = run.end()
    if at < len(token):
        yield from terms(token[at:])


def _clip(term: str) -> str:
    """A term is a key, not a text: what is longer than a key may be is told apart by its first characters alone."""
    return term[:_MAX_TERM]

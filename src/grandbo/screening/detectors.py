"""From a text to its hits: one pass that tells which rules have anything to say, then these rules alone."""

from __future__ import annotations

import base64
import binascii
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import re2

from grandbo.screening.hidden import Skeleton, hidden_pieces, messages
from grandbo.screening.personal import VALIDATORS
from grandbo.screening.rules import CONTEXT_KINDS, PLACEHOLDER, RULES, Rule, Signal

MARKER = re.compile(r"\[REDACTED:[a-z0-9@-]+(?::[0-9a-f]{8})?\]")
LONGEST_TEXT = 32 * 1024
LONGEST_WORD = 1_000
LEAST_ENTROPY = 4.4

_COMPILED = [re2.compile(rule.pattern) for rule in RULES]
# A run that could be a token without any name beside it, and a run that could be base64 of something.
_OPAQUE = r"[A-Za-z0-9_+=-]{36}"
_CODED = r"[A-Za-z0-9+/]{40}"
_placeholder = re2.compile(PLACEHOLDER)
_opaque = re.compile(r"(?<![A-Za-z0-9_+/=.:@%&?#$!-])[A-Za-z0-9_+=-]{36,256}(?![A-Za-z0-9_+/=.:@%-])")
_coded = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")
_CAPITALS = re.compile(r"[a-z][A-Z]{1,2}[a-z].*[a-z][A-Z]")
_word = re.compile(r"\S+")
_PREFILTERED = [
    *((pattern, frozenset(rule.words)) for pattern, rule in zip(_COMPILED, RULES, strict=True)),
    *((re2.compile(pattern), frozenset[str]()) for pattern in (_OPAQUE, _CODED)),
]
_WORDS = sorted({word for rule in RULES for word in rule.words})
_OWN = {"entropy": len(RULES), "coded": len(RULES) + 1}
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"(?:(?:\\n|\\r|\s)*(?:[A-Za-z-]+: [^\n]*|[A-Za-z0-9+/=]{16,}))*")
_DIGESTED = re.compile(r"(?:sha(?:1|224|256|384|512)|md5|digest|integrity|checksum)[\"' :=-]{0,4}$", re.IGNORECASE)
_WORD_OF_LETTERS = re.compile(r"[^\W\d_]{2,}")
_LATIN = re.compile("[A-Za-z]")
# Letters of other scripts that look like Latin ones.
_LOOKALIKE = re.compile(
    "[\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u0501\u051b\u051d\u0405\u0406\u0408\u0410\u0412"
    "\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f"
    "\u03a1\u03a4\u03a5\u03a7\u03b1\u03bf\u03bd\u03c1\u03c5\u03b9\u0578\u057d\u0585\u13aa\u13ac\u13f4]"
)


class Found(NamedTuple):
    """A hit in one text: which signal, which kind, where."""

    signal: Signal
    kind: str
    start: int
    end: int


def _word_finder() -> re2.Set:
    finder = re2.Set.SearchSet()
    for word in _WORDS:
        finder.Add(f"(?i){re2.escape(word)}")
    finder.Compile()
    return finder


_FINDER = _word_finder()


def rules_that_match(text: str) -> frozenset[int]:
    """
    Which rules have anything to say about a text.

    By their words first: all words are found in one pass, and few rules have one that is there.
    """
    there = {_WORDS[number] for number in _FINDER.Match(text) or ()}  # None where there is none
    return frozenset(
        number
        for number, (pattern, words) in enumerate(_PREFILTERED)
        if (not words or not words.isdisjoint(there)) and pattern.search(text)
    )


def hits_in(text: str, wanted: frozenset[int], *, is_text: bool = True) -> list[Found]:
    """
    All hits in one text, by place.

    Args:
        wanted: what `rules_that_match` said of this text, or of a longer one that holds its skeleton.
        is_text: prose, as against an identifier or an address, in which a long random part is nothing unusual.
    """
    skeleton = Skeleton(text)
    found = [
        Found(hit.signal, hit.kind, *skeleton.span(hit.start, hit.end)) for hit in _by_rules(skeleton.text, wanted)
    ]
    if _OWN["coded"] in wanted:
        found += (Found(hit.signal, hit.kind, *skeleton.span(hit.start, hit.end)) for hit in _inside(skeleton.text))
    if is_text and _OWN["entropy"] in wanted:
        secret = [hit for hit in found if hit.signal == "secrets"]
        found += (hit for hit in _opaque_words(text) if not any(_overlap(hit, other) for other in secret))
    if not text.isascii():
        hidden = [Found("hidden", *piece) for piece in hidden_pieces(text)]
        found += hidden
        found += (Found("smuggled", *piece) for piece in (messages(text) if hidden else ()))
        found += _mixed_words(text)
    if is_text:
        found += _sizes(text)
    return sorted(found, key=lambda hit: (hit.start, hit.end, hit.signal, hit.kind))


def _by_rules(text: str, wanted: Iterable[int]) -> Iterator[Found]:
    marked = [match.span() for match in MARKER.finditer(text)] if "[REDACTED:" in text else []
    for number in sorted(wanted):
        if number >= len(RULES):
            continue
        rule = RULES[number]
        for match in _COMPILED[number].finditer(text):
            start, end = match.span(1) if match.re.groups and match.span(1) != (-1, -1) else match.span()
            if rule.kind == "pem":
                end = _end_of_pem(text, end)
            place = bisect_right(marked, (start, end))
            if any(start < far and near < end for near, far in marked[max(0, place - 1) : place + 1]):
                continue
            if _counts(rule, text, start, end):
                yield Found(rule.signal, rule.kind, start, end)


def _counts(rule: Rule, text: str, start: int, end: int) -> bool:
    if rule.signal in ("personal", "hosts"):
        validator = VALIDATORS.get(rule.kind)
        return validator is None or validator(text, start, end)
    if rule.signal != "secrets":
        return True
    value = text[start:end]
    if "EXAMPLE" in value:
        return False
    if rule.kind in CONTEXT_KINDS and _placeholder.search(value):
        return False
    match rule.kind:
        case "keyed-hex":
            return entropy(value) >= 3.0
        case "keyed-opaque":
            return entropy(value) >= 3.3 and _is_random(value)
        case "http-authorization":
            return _is_random(value)
        case "password-prose":
            return any(not char.isalpha() for char in value.rstrip(".,;:!?)"))
    return True


def _is_random(value: str) -> bool:
    """Not a word, nor words joined: it has a digit, or capitals in the middle."""
    return any(char.isdigit() for char in value) or bool(_CAPITALS.search(value[:256]))


def _end_of_pem(text: str, after_header: int) -> int:
    """The end of a private key: its last line, or where what looks like one stops."""
    ending = _PEM_END.search(text, after_header)
    if ending is not None:
        return ending.end()
    body = _PEM_BODY.match(text, after_header)
    return body.end() if body else after_header


def _inside(text: str) -> Iterator[Found]:
    """Secrets and instructions that were coded once."""
    for match in _coded.finditer(text):
        plain = _decoded(match.group())
        if plain is None:
            continue
        for hit in _by_rules(plain, rules_that_match(plain)):
            if hit.signal in ("secrets", "instructions"):
                yield Found(hit.signal, f"{hit.kind}@b64", match.start(), match.end())
                break


def _decoded(run: str) -> str | None:
    padded = run.rstrip("=")
    padded += "=" * (-len(padded) % 4)
    try:
        plain = base64.b64decode(padded, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return None
    return plain if all(char.isprintable() or char in "\r\n\t" for char in plain) else None


def _opaque_words(text: str) -> Iterator[Found]:
    public = list(_public_blocks(text))
    for match in _opaque.finditer(text):
        value = match.group()
        if any(start < match.start() < end for start, end in public):
            continue
        classes = (any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit))
        if not all(classes) or entropy(value) < LEAST_ENTROPY or value.count("-") > 3:
            continue
        if not _DIGESTED.search(text[max(0, match.start() - 24) : match.start()]) and not _DIGESTED.match(value):
            yield Found("entropy", "opaque", match.start(), match.end())


def _public_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Certificates and public keys; a private key is a secret and found as one."""
    start = text.find("-----BEGIN ")
    while start >= 0 and (end := text.find("-----END ", start)) >= 0:
        yield start, end
        start = text.find("-----BEGIN ", end)


def _mixed_words(text: str) -> Iterator[Found]:
    if not _LOOKALIKE.search(text):
        return
    for match in _WORD_OF_LETTERS.finditer(text):
        word = match.group()
        if not word.isascii() and _LATIN.search(word) and _LOOKALIKE.search(word):
            yield Found("mixed_script", "mixed-script", match.start(), match.end())


def _sizes(text: str) -> Iterator[Found]:
    if len(text) > LONGEST_TEXT:
        yield Found("size", "long-text", 0, len(text))
    if len(text) > LONGEST_WORD and max(map(len, text.split()), default=0) > LONGEST_WORD:
        words = (match.span() for match in _word.finditer(text))
        yield from (Found("size", "long-word", start, end) for start, end in words if end - start > LONGEST_WORD)


def entropy(value: str) -> float:
    """Bits for each character."""
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)


def _overlap(one: Found, other: Found) -> bool:
    return one.start < other.end and other.start < one.end

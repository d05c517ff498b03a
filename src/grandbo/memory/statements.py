"""
From English prose to statements that can be compared: a subject, a slot, a value or a polarity. Pure.

Each sentence is one statement, or is left out with the reason: what is asked, supposed, quoted or hedged asserts
nothing, and guessing at it would be worse than saying that it was not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from grandbo.text import terms

Slot = Literal["owner", "version", "value", "claim"]
Tense = Literal["present", "past"]
STATEMENTS_LIMIT = 80
SENTENCE_LIMIT = 600


@dataclass(frozen=True, slots=True)
class Place:
    """Where in an entry it stands: characters of one of its fields."""

    field: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Statement:
    """
    What a sentence asserts.

    Attributes:
        subject: what it is about, as stems; of a claim, all that it says but for its polarity.
        value: who, which version, or how much, in base units; None for a claim.
        dimension: what kind of quantity a value is: values of different ones are not compared.
        since: from when on it says that it is so, if it does.
    """

    place: Place
    slot: Slot
    tense: Tense
    subject: frozenset[str]
    value: str | None
    dimension: str
    polarity: bool
    since: str | None


@dataclass(frozen=True, slots=True)
class Unread:
    """A sentence that was left out, and why."""

    place: Place
    reason: str


_SENTENCE = re.compile(r"[^.!?;\n]+(?:[.!?](?!\s|$)[^.!?;\n]*)*[.!?]*")
_QUESTION = re.compile(r"\?\s*$")
_SUPPOSED = re.compile(
    r"\b(?:if|unless|would|could|might|may|suppose|assuming|perhaps|possibly|probably|maybe|suspect(?:ed)?|hypothesis|"
    r"in case|propos(?:e|es|ed|al)|plan(?:s|ned)? to|were to|consider|should we)\b"
)
_QUOTED = re.compile(
    r"^\s*>|[\"\u201c](?:[^\"\u201d\s]+\s+){2,}[^\"\u201d]*[\"\u201d]|\b(?:said|says|claim(?:s|ed)|reported|"
    r"according to|believed|thought|assumed|wrongly|mistakenly|myth|told us)\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:sometimes|usually|rarely|often|mostly|occasionally|in most cases|typically)\b", re.IGNORECASE
)
_PAST = re.compile(
    r"\b(?:was|were|did|didn't|wasn't|weren't|had|used to|previously|formerly|originally|until|at the time|back then|"
    r"before the (?:fix|change|migration|upgrade))\b",
    re.IGNORECASE,
)
_PRESENT = re.compile(
    r"\b(?:is|are|isn't|aren't|does|doesn't|do|don't|has|have|must|can|cannot|can't|should|need|needs|never|always|"
    r"will|now|currently)\b",
    re.IGNORECASE,
)
# `failed uploads` is no verb: what follows one is an article, a preposition or the end.
_PAST_VERB = re.compile(
    r"^\W*(?:\w+\W+){1,6}?\w{2,}ed(?=\W*$|\s+(?:the|an?|its|their|this|that|by|in|at|on|to|from|after|when|no|all|it)\b)",
    re.IGNORECASE,
)
_DATE = r"(?:\d{4}-\d{2}(?:-\d{2})?|\d{4}|(?:\d{1,2} )?[A-Z][a-z]{2,8} \d{4})"
_SINCE = re.compile(
    r"[,(]?\s*\b(?i:since|as of|effective(?: from)?|starting(?: from)?|from)\s+(" + _DATE + r")(?:\s+on)?\)?,?",
)
_SINCE_NOW = re.compile(r"\bas of now\b|\bnowadays\b", re.IGNORECASE)
# What is named only to be ruled out says nothing of its own: `X, not Y`, `X instead of Y`, `not Y but X`.
_NOT_BUT = re.compile(r"\bnot\s+(?:\S+\s+){1,5}?but\s+", re.IGNORECASE)
_INSTEAD = re.compile(
    r"(?:,\s*(?:and\s+)?not|,?\s+rather than|,?\s+instead of|,?\s+as opposed to)\s+[^,]+", re.IGNORECASE
)

_WHO = r"(?P<o>[^,.]+?)"
_OWNERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^(?P<s>.+?)\s+(?:is|are|was|were)\s+(?P<n>not\s+|no longer\s+)?(?:now\s+|currently\s+)?"
        r"(?:owned|maintained|operated|looked after|run)\s+by\s+" + _WHO + r"\W*$",
        r"^(?:the\s+)?(?:owner|maintainer|contact|on-call|responsible team)\s+(?:of|for)\s+(?P<s>.+?)\s+"
        r"(?:is|are|was|were)\s+(?P<n>not\s+|no longer\s+)?(?:now\s+|currently\s+)?" + _WHO + r"\W*$",
        r"^"
        + _WHO
        + r"\s+(?P<n>no longer\s+)?(?:owns|maintains|operates|is responsible for|looks after)\s+(?P<s>.+?)\W*$",
        r"^(?P<s>.+?)\s+(?P<n>no longer\s+)?belongs\s+to\s+" + _WHO + r"\W*$",
        r"^(?P<s>.*?)\bowner:\s*(?P<n>)" + _WHO + r"\W*$",
    )
)
_WHO_IS_WEAK = frozenset({"team", "squad", "group", "crew", "folk", "engin"})

_UNITS: dict[str, tuple[str, int]] = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), ("time", 1)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("time", 1_000)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), ("time", 60_000)),
    **dict.fromkeys(("h", "hour", "hours"), ("time", 3_600_000)),
    **dict.fromkeys(("day", "days"), ("time", 86_400_000)),
    **dict.fromkeys(("week", "weeks"), ("time", 604_800_000)),
    **dict.fromkeys(("kb", "kib"), ("size", 1)),
    **dict.fromkeys(("mb", "mib"), ("size", 1_024)),
    **dict.fromkeys(("gb", "gib"), ("size", 1_024**2)),
    **dict.fromkeys(("tb", "tib"), ("size", 1_024**3)),
    **dict.fromkeys(("%", "percent"), ("share", 1)),
}
_COUNTED = (
    "request|connection|retry|retrie|attempt|time|replica|worker|thread|partition|node|pod|instance|consumer|shard|"
    "item|message|row|copie|copy|approval|key"
)
_WORD_NUMBERS = {w: str(n) for n, w in enumerate("zero one two three four five six seven eight nine ten".split())}  # noqa: SIM905  # a list of words reads best as words
_NUMBER = r"(?P<n>\d[\d,_]*(?:\.\d+)?|" + "|".join(_WORD_NUMBERS) + r")"
_UNIT = r"(?P<u>%|" + "|".join(sorted((u for u in _UNITS if u != "%"), key=len, reverse=True)) + r")"
_SET = (
    r"(?:is|are|was|were|be|=|:|to|at|after|every|of|on|has|have|had|uses|use|allows|takes|holds|keeps|keep|runs|run|"
    r"within|port|for|requires|needs|exceeds|makes|make|version|release|v)"
)
_ABOUT = (
    r"(?:\s*(?:now|currently|at most|at least|exactly|only|up to|about|set to|limited to|capped at|port|version|"
    r"release|a|kept|for|to|after)\s)*"
)
_COUNT = r"(?:" + _COUNTED + r")s?"
# A number by itself is a value where a verb or a preposition gives it; with a unit it is one anywhere.
_QUANTITY = re.compile(
    r"(?:^|(?<=\W))(?:"
    + _SET
    + r"\s*"
    + _ABOUT
    + r"\s*|(?="
    + _NUMBER.replace("?P<n>", "?:")
    + r"\s*(?:"
    + _UNIT.replace("?P<u>", "?:")
    + r"(?!\w)|"
    + _COUNT
    + r"\b)))(?P<q>"
    + _NUMBER
    + r"(?:\s*"
    + _UNIT
    + r"(?!\w)|\s+(?P<c>"
    + _COUNT
    + r")\b)?)(?![\w.]*\d)(?!-\w)",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"\bv?(?P<v>\d+\.\d+(?:\.\d+)*(?:-[a-z0-9.]+)?|\d+)(?![\w%]|\s*(?:ms|s|min|hours?|days?|%)\b)", re.IGNORECASE
)
_OF_VERSION = re.compile(
    r"\b(?:version|release|requires?|pinned|upgraded?|runs? on|running|needs?|depends on|v(?=\d)|"
    r"is on|are on|was on)\b",
    re.IGNORECASE,
)
_NO_VERSION_UNIT = re.compile(r"\d\s*(?:" + _COUNTED + r")s?\b", re.IGNORECASE)

# Stop words that carry a meaning here.
_ORDERING = re.compile(r"\b(before|after)\b", re.IGNORECASE)
_SWITCHED = re.compile(r"\b(?:turned|switched|is|are|stays?)\s+(on|off)\b", re.IGNORECASE)
_DURATION = re.compile(r"\b(?:after|before)\b(?=\s*(?:\d|$|\s{2}))", re.IGNORECASE)
_CONTRACTED = re.compile(r"\b(?:can|won)['\u2019]t\b", re.IGNORECASE)
_NEGATORS = re.compile(
    r"\b(?:no longer|not|never|cannot|without|neither|nor|no|none|fail(?:s|ed)? to|unable to|lacks?|nobody|nothing)\b"
    r"|n['\u2019]t\b",
    re.IGNORECASE,
)
_PAIRS = (
    "enable/disable on/off safe/unsafe safe/dangerous require/optional mandatory/optional support/unsupport "
    "allow/forbid allow/prohibit allow/deny permit/forbid encrypt/unencrypt synchronous/asynchronous healthy/unhealthy "
    "available/unavailable compatible/incompatible reliable/unreliable work/fail increase/decrease raise/lower "
    "accept/reject keep/drop retain/discard preserve/lose include/exclude start/stop valid/invalid "
    "necessary/unnecessary possible/impossible stateless/stateful public/private persistent/ephemeral "
    "writable/read-only idempotent/non-idempotent ordered/unordered before/after help/hurt shared/dedicated "
    "required/optional allowed/forbidden allowed/prohibited supported/unsupported encrypted/unencrypted "
    "encrypted/plaintext faster/slower survive/lose automatic/manual automatically/manually"
)
_SAME_WORDS = {"mandatori": "requir", "permit": "allow", "necessari": "requir", "surviv": "preserv"}
_WEAK = frozenset(
    """set default current exact valu configur config now still alway realli inde actual fulli simpli itself use make
    get time-out requir version releas run need depend pin upgrad keep kept take hold listen note fact case""".split()  # noqa: SIM905
)


@lru_cache(maxsize=1)
def _antonyms() -> dict[str, tuple[str, bool]]:
    """Stem to (base, whether it says the opposite of the base)."""
    found: dict[str, tuple[str, bool]] = {}
    for pair in _PAIRS.split():
        base, opposite = pair.split("/")
        base_stem = _stem(base)
        base_stem = found.get(base_stem, (base_stem, False))[0]
        base_stem = _SAME_WORDS.get(base_stem, base_stem)
        found.setdefault(_stem(base), (base_stem, False))
        found.setdefault(_stem(opposite), (base_stem, True))
    return found


def _stem(word: str) -> str:
    return (terms(word) or [word])[0]


@lru_cache(maxsize=256)
def statements_of(title: str, summary: str, body: str) -> tuple[tuple[Statement, ...], tuple[Unread, ...]]:
    """All statements of a text, in order, and what was left out; at most 80 sentences of 600 characters are read."""
    read: list[Statement] = []
    unread: list[Unread] = []
    for number, (place, sentence) in enumerate(_sentences(title, summary, body)):
        if number == STATEMENTS_LIMIT:
            unread.append(Unread(place, "too_long"))
            break
        reason = _why_unread(sentence)
        if reason is not None:
            unread.append(Unread(place, reason))
        else:
            read += _statements(place, sentence)
    return tuple(read), tuple(unread)


def subject_terms(text: str) -> frozenset[str]:
    """What a text is about, as stems, without words that tell nothing apart."""
    return frozenset(_same(term) for term in terms(text)) - _WEAK


def _sentences(title: str, summary: str, body: str) -> Iterator[tuple[Place, str]]:
    for field, text in (("title", title), ("summary", summary), ("body", body)):
        for found in _SENTENCE.finditer(text):
            sentence = found.group().strip()
            if len(sentence) > 2:
                start = found.start() + found.group().index(sentence)
                yield Place(field, start, start + len(sentence)), sentence


def _why_unread(sentence: str) -> str | None:
    if len(sentence) > SENTENCE_LIMIT:
        return "too_long"
    if _QUESTION.search(sentence):
        return "question"
    if _QUOTED.search(sentence):
        return "quoted"
    if _SUPPOSED.search(sentence[:1].lower() + sentence[1:]):
        return "hypothetical"
    if _HEDGED.search(sentence):
        return "hedged"
    return None


def _statements(place: Place, sentence: str) -> Iterator[Statement]:
    tense: Tense = "past" if _is_past(sentence) else "present"
    since = _SINCE.search(sentence)
    text = _SINCE_NOW.sub(" ", _SINCE.sub(" ", sentence)).strip()
    text = _INSTEAD.sub(" ", _NOT_BUT.sub("", text)).strip().rstrip(".!")
    on = since.group(1) if since else None
    owner = _owner(text)
    if owner is not None:
        subject, who, polarity = owner
        yield Statement(place, "owner", tense, subject, who, "owner", polarity, on)
        return
    subject, polarity = _claim(text)
    yield Statement(place, "claim", tense, subject, None, "", polarity, on)
    quantity = _quantity(text)
    if quantity is not None:
        slot, rest, value, dimension = quantity
        about, holds = _claim(rest)
        yield Statement(place, slot, tense, about, value, dimension, holds, on)


def _is_past(sentence: str) -> bool:
    if _PAST.search(sentence):
        return True
    return not _PRESENT.search(sentence) and bool(_PAST_VERB.search(sentence))


def _owner(text: str) -> tuple[frozenset[str], str, bool] | None:
    for pattern in _OWNERS:
        found = pattern.match(text)
        if found:
            who = sorted({term for term in terms(found["o"]) if term not in _WHO_IS_WEAK})
            subject = subject_terms(found["s"])
            if who and len(who) <= 4:
                return subject, " ".join(who), not found["n"]
    return None


def _quantity(text: str) -> tuple[Slot, str, str, str] | None:
    """The slot, the text without the value, the value in base units, its dimension; None unless there is just one."""
    if _OF_VERSION.search(text) and not _NO_VERSION_UNIT.search(text):
        versions = list(_VERSION.finditer(text))
        if len(versions) == 1:
            found = versions[0]
            value = re.sub(r"(?:\.0)+$", "", found["v"])
            return "version", f"{text[: found.start()]} {text[found.end() :]}", value, "version"
    quantities = list(_QUANTITY.finditer(text))
    if len(quantities) != 1:
        return None
    found = quantities[0]
    number = _WORD_NUMBERS.get(found["n"].lower(), found["n"]).replace(",", "").replace("_", "")
    unit, counted = found["u"], found["c"]
    dimension, factor = _UNITS[unit.lower()] if unit else (_stem(counted.lower()) if counted else "number", 1)
    value = f"{float(number) * factor:g}"
    start, end = found.span("q")
    return "value", f"{text[:start]} {text[end:]}", value, dimension


def _claim(text: str) -> tuple[frozenset[str], bool]:
    """What a text says but for its polarity, and that."""
    # `after 30 seconds` tells how long, not in which order.
    plain = _DURATION.sub(" ", _CONTRACTED.sub(" not ", text))
    negations = len(_NEGATORS.findall(plain))
    plain = _NEGATORS.sub(" ", plain)
    words = set(terms(plain))
    words |= {_stem(word.lower()) for word in _ORDERING.findall(plain)}
    words |= {_stem(word.lower()) for word in _SWITCHED.findall(plain)}
    flips = 0
    kept = set()
    for word in words:
        base, opposite = _antonyms().get(word, (word, False))
        flips += opposite
        kept.add(_same(base))
    return frozenset(kept) - _WEAK, (negations + flips) % 2 == 0


def _same(term: str) -> str:
    return _SAME_WORDS.get(term, term)

"""
Hidden characters made visible: what a reader cannot see, or takes for another letter, is spelled out as ⟨U+200B⟩.

Deterministic, and nothing is removed: from what is shown the stored text can be told, except that lines may end in any
way. Best effort against look-alikes: Latin, Cyrillic and Greek, whose letters are mixed in real attacks.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

# Other (control, format, surrogate, private, unassigned) and the two separators that end a line.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Blank or ignorable by default, whatever their category says.
_BLANK = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_UNUSUAL = re.compile(r"[^ -~\n]+")
_EMOJI_STYLE = "\ufe0e\ufe0f"
_JOINERS = "\u200c\u200d"
# Scripts whose spelling needs joiners between letters.
_JOINED_SCRIPTS = frozenset(
    "ARABIC DEVANAGARI BENGALI GURMUKHI GUJARATI ORIYA TAMIL TELUGU KANNADA MALAYALAM SINHALA KHMER MYANMAR".split()  # noqa: SIM905  # a list of words reads best as words
)
_MOST_MARKS = 3

_WORD = re.compile(r"[^\W\d_]+")
_CONFUSABLE = {
    "CYRILLIC": frozenset("аеорсухіјѕһԁԛԝьѵӏкмтвнзгпАВЕКМНОРСТХУІЈЅҺԌԜѴӀЗ"),  # look-alikes are what this is about
    "GREEK": frozenset("αονρυιτκχγωηεϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ"),  # look-alikes are what this is about
    "LATIN": frozenset("aeopcyxisjhdqwbkmtnrABEKMHOPCTXYISJGVZNu"),
}
# The same without those that only resemble: a word of these alone reads as a Latin word.
_TWINS = {
    "CYRILLIC": frozenset("аеорсухіјѕһԁԛԝѵӏАВЕКМНОРСТХУІЈЅԌԜѴӀ"),  # noqa: RUF001  # look-alikes are what this is about
    "GREEK": frozenset("ονιρυαΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳϹͿ"),  # noqa: RUF001  # look-alikes are what this is about
}
_SPELLING = re.compile("\u27e8(?=U\\+)")


def spelled(char: str) -> str:
    """A character by its number."""
    return f"\u27e8U+{ord(char):04X}\u27e9"


def visible(text: str) -> str:
    """
    The text with every hidden character, and every letter that poses as another script's, spelled out.

    Line breaks stay (CR LF counts as one), a tab is shown as a space. What spells a character already is spelled out
    itself, so that a text cannot claim to hold one that it does not.
    """
    text = text.replace("\r\n", "\n").replace("\t", " ")
    if not _UNUSUAL.search(text):
        return text
    hidden = _hidden_places(text)
    if not text.isascii():
        hidden |= _posing_places(text)
        hidden.update(found.start() for found in _SPELLING.finditer(text))
    if not hidden:
        return text
    return "".join(spelled(char) if place in hidden else char for place, char in enumerate(text))


def _hidden_places(text: str) -> set[int]:
    places = set()
    for run in _UNUSUAL.finditer(text):
        marks = 0
        for place, char in enumerate(run.group(), start=run.start()):
            category = _category(char)
            marks = marks + 1 if category in ("Mn", "Me") else 0
            is_hidden = category in _HIDDEN_CATEGORIES or marks > _MOST_MARKS or _BLANK.match(char)
            if is_hidden and not _is_needed(text, place):
                places.add(place)
    return places


def _is_needed(text: str, place: int) -> bool:
    """Whether what is hidden belongs to the spelling: a joiner between letters that join, the style of an emoji."""
    char = text[place]
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if char in _EMOJI_STYLE:
        return bool(before) and (_category(before) == "So" or before in "#*0123456789\u203c\u2049")
    if char not in _JOINERS or not before or not after:
        return False
    if _script(before) in _JOINED_SCRIPTS and _script(after) in _JOINED_SCRIPTS:
        return True
    is_emoji_before = _category(before) in ("So", "Sk") or before in _EMOJI_STYLE
    return char == "\u200d" and is_emoji_before and _category(after) == "So"


def _posing_places(text: str) -> set[int]:
    """Places of letters that stand among letters of another script and look like theirs, and of whole such words."""
    words = [(found.start(), found.group()) for found in _WORD.finditer(text) if not found.group().isascii()]
    scripts = [Counter(_script(char) for char in word) for _, word in words]
    at_home = {
        script
        for (_, word), counted in zip(words, scripts, strict=True)
        for script in counted
        if script in _TWINS and len(counted) == 1 and not _TWINS[script].issuperset(word)
    }
    places: set[int] = set()
    for (start, word), counted in zip(words, scripts, strict=True):
        mixed = [script for script in counted if script in _CONFUSABLE]
        if len(mixed) > 1:
            # The fewer pose; of as many, those that are not Latin.
            home = max(mixed, key=lambda script: (counted[script], script == "LATIN"))
            posing = [script for script in mixed if script != home]
        else:
            posing = [script for script in mixed if script in _TWINS and script not in at_home]
            posing = posing if len(word) > 1 and all(_TWINS[script].issuperset(word) for script in posing) else []
        places.update(
            start + place for place, char in enumerate(word) if any(char in _CONFUSABLE[script] for script in posing)
        )
    return places


@lru_cache(maxsize=8_192)
def _script(char: str) -> str:
    """The first word of a letter's name, which for letters is its script."""
    return unicodedata.name(char, "").partition(" ")[0]


@lru_cache(maxsize=8_192)
def _category(char: str) -> str:
    return unicodedata.category(char)

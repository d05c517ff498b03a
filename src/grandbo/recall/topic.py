"""The topic: the sentence that an investigator asks about."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from grandbo.errors import InvalidInput, TopicIsSlug, TopicTooShort
from grandbo.text import check_text, terms

TOPIC_LIMIT = 8_000
TERMS_LIMIT = 256
# A script without spaces has no words to count; this many letters of it say about as much as two words.
_UNSPACED_LETTERS = 4
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that is worth asking, and its terms, each once, in order of first occurrence."""

    text: str
    terms: tuple[str, ...]


def check_topic(text: object) -> Topic:
    """
    Refuse what is no topic.

    Raises:
        TopicTooShort, TopicIsSlug: with what to write instead.
        LimitExceeded: longer than 8,000 characters.
        InvalidInput: not text, or text that holds a control character.
    """
    if not isinstance(text, str):
        raise InvalidInput("topic: it must be text.", field="topic")
    check_text(text, "topic", limit=TOPIC_LIMIT)
    stripped = text.strip()
    words = [word for word in stripped.split() if any(char.isalnum() for char in word)]
    unspaced = len(_UNSPACED.findall(stripped))
    if len(words) < 2 and unspaced < _UNSPACED_LETTERS:
        if any(joint in stripped.strip("-_./:") for joint in "-_./:"):
            raise TopicIsSlug(field="topic")
        raise TopicTooShort(field="topic")
    found = tuple(dict.fromkeys(terms(unicodedata.normalize("NFC", stripped))))
    return Topic(stripped, found[:TERMS_LIMIT])

"""An entry cannot be written so that it stands in answers it has nothing to do with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import grandbo
from grandbo.finding_limits import TAGS_LIMIT
from grandbo.library import Grandbo, TenantMemory
from grandbo.text import terms
from tests.support.factories import make_finding
from tests.support.postgres import TestDatabase
from tests.support.providers import words_embedder

SAMPLE = Path(grandbo.__file__).parent / "data" / "sample-incidents.jsonl"
ENTRIES = 5
SHOWN = 5
# Of answers, that hold any of them: what a ranking by rarity and length was measured to let through.
MOST = 0.02


def _rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in SAMPLE.read_bytes().splitlines()]


def _topics() -> list[str]:
    """Of each incident some words of its own."""
    texts = (f"{row['title']} {row.get('summary') or row['body']}".split() for row in _rows())
    return [" ".join(words[:14])[:190] for words in texts if len(words) >= 14]


def _commonest() -> list[str]:
    """The words that most incidents have."""
    counts = Counter(word for row in _rows() for word in {*f"{row['title']} {row['body']}".lower().split()})
    return [word for word, _ in counts.most_common(2_000) if word.isalpha() and len(word) > 3 and terms(word)]


@pytest.fixture(scope="module")
def sample(database: TestDatabase) -> Iterator[TenantMemory]:
    """The sample incidents, by hashed words."""
    with Grandbo.open(settings=database.settings(), embedder=words_embedder()) as opened:
        opened.create_tenant("capture")
        memory = opened.tenant("capture", principal="human:tester")
        assert 0 == memory.import_lines(SAMPLE.read_bytes().splitlines(keepends=True), "finding").refused
        memory.embed()
        yield memory


def test_entries_with_the_commonest_words_for_tags_stand_in_hardly_any_answer(sample: TenantMemory) -> None:
    """By how many words are shared alone they would stand in many."""
    words, topics = _commonest(), _topics()
    stuffed = {}
    for number in range(ENTRIES):
        tags = words[number * TAGS_LIMIT : (number + 1) * TAGS_LIMIT]
        recorded = sample.record_finding(make_finding(title=f"A note of week {number}", summary="", tags=tags))
        stuffed[recorded.acknowledgement.entry_id] = {term for tag in tags for term in terms(tag)}
    sample.embed()

    answers = [sample.query_topic(topic, limit=SHOWN).matches for topic in topics]
    captured = sum(any(match.entry_id in stuffed for match in matches) for matches in answers)
    assert captured / len(topics) <= MOST

    tagged = [{term for tag in row.get("tags") or [] for term in terms(tag)} for row in _rows()]
    by_overlap = sum(
        max(len(asked & stuff) for stuff in stuffed.values()) > max(len(asked & own) for own in tagged)
        for asked in map(set, map(terms, topics))
    )
    assert by_overlap / len(topics) > 10 * MOST, "the attack would work where shared words are counted"

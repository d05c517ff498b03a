"""What it costs to ask about the past, and to leave a receipt."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from scripts.bench_timing import in_turn, progress, ratio, spread

from grandbo.library import Grandbo, TenantMemory

# Of each chapter's events half are records and corrections, and half the vectors of both.
CHAPTERS = 10
MOMENTS = (10, 50, 90)

Make = Callable[[int], dict[str, Any]]


def past(grandbo: Grandbo, finding: Make, sentence: Callable[[int], str], events: int, rounds: int) -> dict[str, Any]:
    """Recall as of 10, 50 and 90 % of a history, against live recall of the same topics, in turn."""
    memory = _history(grandbo, finding, sentence, events)
    head = memory.verify().events
    topics = [sentence(9) for _ in range(rounds)]
    for topic in topics:
        grandbo.meaning.of(topic)
    asked = [head * moment // 100 for moment in MOMENTS]

    def then(position: int) -> Callable[[int], Any]:
        return lambda number: memory.query_topic(topics[number], as_of_position=position)

    live, *moments = in_turn(rounds, lambda number: memory.query_topic(topics[number]), *map(then, asked))
    found: dict[str, Any] = {"events": head, "live_ms": spread(live)}
    for moment, times in zip(MOMENTS, moments, strict=True):
        found[f"as_of_{moment}_percent_ms"] = spread(times)
        found[f"as_of_{moment}_percent_ratio"] = ratio(times, live)
    return found


def receipts(grandbo: Grandbo, memory: TenantMemory, sentence: Callable[[int], str], rounds: int) -> dict[str, Any]:
    """Recall with its receipt against recall whose receipt is thrown away: blocks in turn, the writing included."""
    size = 10
    topics = [sentence(9) for _ in range(rounds)]
    for topic in topics:
        grandbo.meaning.of(topic)
    put = grandbo.receipts.put

    def block(number: int) -> None:
        for topic in topics[number * size : (number + 1) * size]:
            memory.query_topic(topic)
        grandbo.receipts.flush()

    def bare(number: int) -> None:
        grandbo.receipts.put = lambda receipt: None  # type: ignore[method-assign]
        try:
            block(number)
        finally:
            grandbo.receipts.put = put  # type: ignore[method-assign]

    kept, thrown_away = in_turn(rounds // size, block, bare)
    return {"receipts_ratio": ratio(kept, thrown_away)}


def _history(grandbo: Grandbo, finding: Make, sentence: Callable[[int], str], events: int) -> TenantMemory:
    grandbo.create_tenant("bench-past")
    memory = grandbo.tenant("bench-past", principal="human:bench")
    quarter = events // CHAPTERS // 4
    for chapter in range(CHAPTERS):
        numbers = range(chapter * quarter, (chapter + 1) * quarter)
        memory.import_lines([json.dumps(finding(number)).encode() for number in numbers], "finding")
        memory.embed()
        for entry_id in _some(memory, quarter):
            memory.correct(entry_id, {"summary": sentence(22)}, reason="bench")
        memory.embed()
        progress(f"history: {chapter + 1} of {CHAPTERS}")
    return memory


def _some(memory: TenantMemory, count: int) -> list[UUID]:
    found: list[UUID] = []
    after = None
    while len(found) < count:
        page = memory.list_entries(limit=min(200, count - len(found)), after=after)
        found += [UUID(item["entry_id"]) for item in page.entries]
        after = page.next
        if after is None:
            break
    return found

"""What it costs to seal what is about somebody, to forget them, and what their memories cost everybody's recall."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from scripts.bench_timing import in_turn, progress, ratio, spread

from grandbo.library import Grandbo, TenantMemory
from grandbo.memory import erasing

Sentence = Callable[[int], str]
SINGLE = 5


def people(grandbo: Grandbo, sentence: Sentence, entries: int, rounds: int) -> dict[str, Any]:
    """Sealed writes against plain ones, recall beside personal memories, and erasure of 1 and of `entries` entries."""
    grandbo.create_tenant("bench-people")
    memory = grandbo.tenant("bench-people", principal="human:bench")
    grandbo.create_tenant("bench-sealed")
    found = {"sealed_write_ratio": _writes(grandbo.tenant("bench-sealed", principal="human:bench"), sentence, rounds)}
    found |= _recall(grandbo, memory, sentence, entries, rounds)
    return found | _forgetting(grandbo, memory, sentence, entries)


def _finding(sentence: Sentence, number: int, subject: str | None) -> dict[str, Any]:
    return {
        "title": sentence(8),
        "summary": sentence(22),
        "body": sentence(30),
        "evidence": [{"type": "log", "uri": f"https://logs.example.com/{number}"}],
        "incident": {"source": "bench", "id": f"{subject}-{number}-{time.monotonic_ns()}"},
        **({"subject": subject} if subject else {}),
    }


def _writes(memory: TenantMemory, sentence: Sentence, rounds: int) -> float:
    """The same finding with and without a subject, in turn."""
    memory.register_subject("person", "bench", "Bench")
    sealed, plain = in_turn(
        rounds,
        lambda number: memory.record_finding(_finding(sentence, number, "bench")),
        lambda number: memory.record_finding(_finding(sentence, number, None)),
    )
    return ratio(sealed, plain)


def _recall(grandbo: Grandbo, memory: TenantMemory, sentence: Sentence, entries: int, rounds: int) -> dict[str, Any]:
    """The organisation's recall in a tenant that holds personal memories, against its twin that holds none."""
    grandbo.create_tenant("bench-people-twin")
    twin = grandbo.tenant("bench-people-twin", principal="human:bench")
    for number in range(entries):
        finding = _finding(sentence, number, None)
        memory.record_finding(finding)
        twin.record_finding(finding)
    memory.change_policy({"people": {"quota": 1_000}}, reason="bench")
    for person in range(10):
        memory.register_subject("person", f"person-{person}", "Somebody", principals=["human:bench"])
        for number in range(entries // 50):
            fact = {
                "subject": f"person-{person}",
                "memory_key": str(number),
                "title": sentence(8),
                "text": sentence(22),
            }
            memory.confirm_memory(memory.remember(fact).token)
        progress(f"people: {person + 1} of 10")
    memory.embed()
    twin.embed()
    topics = [sentence(9) for _ in range(rounds)]
    for topic in topics:
        grandbo.meaning.of(topic)
    with_people, without, personal = in_turn(
        rounds,
        lambda number: memory.query_topic(topics[number]),
        lambda number: twin.query_topic(topics[number]),
        lambda number: memory.query_topic(topics[number], kinds=["personal"]),
    )
    return {
        "recall_beside_personal_ms": spread(with_people),
        "recall_beside_personal_ratio": ratio(with_people, without),
        "personal_recall_ms": spread(personal),
    }


def _forgetting(grandbo: Grandbo, memory: TenantMemory, sentence: Sentence, entries: int) -> dict[str, Any]:
    """The transaction alone; then the whole verb, whose certificate replays and verifies the tenant's log."""
    singles = []
    for number in range(SINGLE):
        singles.append(_forget(grandbo, memory, _about(memory, sentence, f"single-{number}", 1)))
    many = _forget(grandbo, memory, _about(memory, sentence, "many", entries))
    subject = _about(memory, sentence, "whole", 1)
    started = time.perf_counter()
    memory.forget_subject(subject, "request")
    whole = time.perf_counter() - started
    single = sorted(singles)[len(singles) // 2]
    return {
        "forget_1_ms": round(single * 1000, 1),
        "forget_entries": entries,
        "forget_many_ms": round(many * 1000, 1),
        "forget_ms_an_entry": round((many - single) / (entries - 1) * 1000, 2),
        "forget_1_with_certificate_ms": round(whole * 1000),
        "events": memory.verify().events,
    }


def _about(memory: TenantMemory, sentence: Sentence, reference: str, entries: int) -> str:
    memory.register_subject("person", reference, "Somebody")
    for number in range(entries):
        memory.record_finding(_finding(sentence, number, reference))
    memory.embed()
    return reference


def _forget(grandbo: Grandbo, memory: TenantMemory, subject: str) -> float:
    policy = memory.policy().policy
    started = time.perf_counter()
    done = erasing.forget_subject(grandbo.database, memory.tenant_id, memory.principal, policy, subject, "request")
    assert done.position is not None
    return time.perf_counter() - started

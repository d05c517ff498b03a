"""The contradiction rules: the same in, the same out; precise before they are complete; what is left out is listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grandbo.memory.contradiction import CONTRADICTION_VERSION, Claim, judge

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "contradictions.jsonl").read_text(encoding="utf-8").splitlines()
]
# What version 1 of the rules must reach on the written set. Precision first: a false alarm costs a person's time.
LEAST_PRECISION = 0.95
LEAST_RECALL = 0.85


def claim(title: str, **fields: Any) -> Claim:
    """A reference that says one sentence."""
    base: dict[str, Any] = {
        "summary": "",
        "body": "",
        "kind": "reference",
        "service": "",
        "applicability": [],
        "occurred_at": None,
        "valid_from": None,
    }
    return Claim.of({"title": title, **base, **fields})


def found_between(pair: dict[str, Any]) -> bool:
    """Whether the rules find anything."""
    return bool(judge(Claim.of(pair["a"]), Claim.of(pair["b"])).findings)


class TestWrittenSet:
    def test_it_is_large_and_balanced(self) -> None:
        """At least sixty pairs, each once, and at least half of them only look contradictory."""
        apparent = [pair for pair in PAIRS if not pair["contradicts"]]

        assert len(PAIRS) >= 60
        assert len(apparent) * 2 >= len(PAIRS)
        assert len(PAIRS) == len({json.dumps([pair["a"], pair["b"]]) for pair in PAIRS})

    def test_precision_and_recall(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Both are printed, and are no worse than stated."""
        found = [pair for pair in PAIRS if found_between(pair)]
        right = [pair for pair in found if pair["contradicts"]]
        real = [pair for pair in PAIRS if pair["contradicts"]]
        precision, recall = len(right) / len(found), len(right) / len(real)
        with capsys.disabled():
            print(f"\ncontradiction rules {CONTRADICTION_VERSION}: precision {precision:.2f}, recall {recall:.2f}")

        assert precision >= LEAST_PRECISION
        assert recall >= LEAST_RECALL

    @pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair['id']} {pair['note']}")
    def test_the_order_of_the_two_decides_nothing(self, pair: dict[str, Any]) -> None:
        """From the other side the same is found, and a text never contradicts itself."""
        a, b = Claim.of(pair["a"]), Claim.of(pair["b"])

        assert {item.rule for item in judge(a, b).findings} == {item.rule for item in judge(b, a).findings}
        assert () == judge(a, a).findings
        assert judge(a, b) == judge(a, b)


class TestFindings:
    def test_a_finding_says_which_sentences(self) -> None:
        """Rule, subject, slot, both sentences, and where they stand."""
        a = claim("Gateway", body="Traffic is TLS. The idle timeout is 30 seconds.")
        b = claim("Gateway", summary="The idle timeout is 75 seconds.")

        (found,) = judge(a, b).as_dict()["findings"]

        assert {
            "rule": "value",
            "subject": "idl timeout",
            "slot": "value",
            "a": "The idle timeout is 30 seconds.",
            "b": "The idle timeout is 75 seconds.",
            "spans": [{"field": "body", "start": 16, "end": 47}, {"field": "summary", "start": 0, "end": 31}],
        } == found

    @pytest.mark.parametrize(
        ("a", "b", "rule"),
        [
            ("The limit is 5 seconds", "The limit is 6 seconds", "value"),
            ("The worker requires Python 3.11", "The worker requires Python 3.12", "version"),
            ("Team red owns the router", "The router is owned by team blue", "owner"),
            ("Workers can share a lease", "Workers cannot share a lease", "polarity"),
            ("The limit is 5 seconds", "Since 2026-02 the limit is 6 seconds", "superseding_date"),
        ],
    )
    def test_each_rule(self, a: str, b: str, rule: str) -> None:
        """A differing value, version or owner, the opposite, and what says from when on it is otherwise."""
        assert [rule] == [item.rule for item in judge(claim(a), claim(b)).findings]

    @pytest.mark.parametrize(
        ("sentence", "reason"),
        [
            ("Is the limit 6 seconds?", "question"),
            ("If the limit is 6 seconds, it holds", "hypothetical"),
            ("The vendor said the limit is 6 seconds", "quoted"),
            ("The limit is usually 6 seconds", "hedged"),
            ("The limit was 6 seconds", "past_and_present"),
        ],
    )
    def test_what_is_not_judged_is_listed(self, sentence: str, reason: str) -> None:
        """Nothing is found in it, and the reason stands in the answer."""
        judgement = judge(claim("The limit is 5 seconds"), claim(sentence))

        assert () == judgement.findings
        assert reason in {item["reason"] for item in judgement.unjudged}

    def test_other_services_and_versions_are_named(self) -> None:
        """A pair that cannot contradict says why."""
        a = claim("The limit is 5 seconds", service="red", applicability=["worker <4"])

        assert [{"reason": "other_service", "side": None, "span": None}] == list(
            judge(a, claim("The limit is 6 seconds", service="blue")).unjudged
        )
        assert [{"reason": "other_versions", "side": None, "span": None}] == list(
            judge(a, claim("The limit is 6 seconds", service="red", applicability=["worker >=4"])).unjudged
        )

    @pytest.mark.parametrize("text", ["", " ", ".", "???", "9" * 4_000, "not " * 500, "a.b" * 2_000, "\u202e\u0000x"])
    def test_no_text_is_too_odd(self, text: str) -> None:
        """Whatever is stored can be compared."""
        judge(claim("x", body=text), claim(text or "y", body=text * 2))

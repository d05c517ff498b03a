"""The estimate of tokens: never below what a real tokenizer counts, and not far above it."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from grandbo.errors import InvalidInput
from grandbo.recall import budget
from grandbo.recall.budget import MAX_BUDGET, MIN_BUDGET, check_budget, estimate_tokens, least_tokens

_DATA = files("grandbo") / "data"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """The one that comes with the local model: finer than those of today's chat models."""
    made = Tokenizer.from_str((_DATA / "minilm-tokenizer.json").read_text(encoding="utf-8"))
    made.no_truncation()
    made.no_padding()
    return made


def _count(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


_PIECES = st.text(st.sampled_from("abcdXYZ0189  \t\n\x00.,-_~\x7f\u00e9\u6f22\ud800"), max_size=80)


class TestEstimate:
    @given(st.lists(_PIECES, max_size=4).map("".join))
    @settings(max_examples=500)
    def test_a_long_text_takes_as_many_as_its_repetition_counted_in_short(self, text: str) -> None:
        """Long texts are counted by another way than short ones; both come to the same."""
        long = (text + "\n") * (budget._LONG // (len(text) + 1) + 1)

        assert budget._pieces(long) == len(budget._PIECE.findall(long))
        assert least_tokens(long) <= estimate_tokens(long)

    def test_it_is_never_below_the_count_of_real_incidents(self, tokenizer: Tokenizer) -> None:
        """Each sample text is estimated at no fewer tokens than it has; all of them at less than double."""
        rows = [
            json.loads(line) for line in (_DATA / "sample-incidents.jsonl").read_text(encoding="utf-8").splitlines()
        ]
        texts = [str(row[name]) for row in rows for name in ("title", "summary", "body") if row.get(name)]

        counted = [(estimate_tokens(text), _count(tokenizer, text)) for text in texts]

        assert len(counted) > 100
        assert [] == [pair for pair in counted if pair[0] < pair[1]]
        assert sum(pair[0] for pair in counted) < 2 * sum(pair[1] for pair in counted)

    @pytest.mark.parametrize(
        ("text", "least"),
        # The largest count of three byte-level tokenizers of chat models, as measured; docs/recall.md names them.
        [
            ("Потребители очереди потеряли аренду после перезапуска брокера, и никто не взял работу.", 45),
            ("代理重启后，队列的消费者失去了租约，没有人接管工作。", 26),
            ("ブローカーの再起動後、キューのコンシューマーはリースを失った。", 30),
            ("브로커가 다시 시작된 후 소비자가 임대를 잃었다.", 32),
            ("فقد المستهلكون عقود الإيجار بعد إعادة تشغيل الوسيط.", 46),
            ("ब्रोकर के पुनः आरंभ के बाद उपभोक्ताओं ने पट्टा खो दिया।", 65),
            ("Οι καταναλωτές έχασαν τη μίσθωση μετά την επανεκκίνηση.", 63),
            ("ผู้บริโภคสูญเสียสัญญาเช่าหลังจากโบรกเกอร์เริ่มต้นใหม่", 98),
            ("🔥🚨👨‍👩‍👧‍👦⚠️", 28),
            ("00c3f1e2-9a4b-4d2e-8f10-a1b2c3d4e5f6/3#120-944", 40),
            ("b52ab9d0f1c04a9e8a2f7b35c1e0aa01", 26),
            ("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlq", 30),
            ("⟨U+200B⟩⟨U+E0041⟩", 21),
            ("Người tiêu dùng hàng đợi mất hợp đồng thuê", 32),
        ],
    )
    def test_it_is_not_below_in_other_scripts_and_codes(self, text: str, least: int) -> None:
        """Scripts, emoji, ids, hashes and base64 take more tokens a character than prose; the estimate knows it."""
        assert estimate_tokens(text) >= least

    def test_nothing_is_nothing(self) -> None:
        """An empty text takes no token; half a surrogate pair some."""
        assert 0 == estimate_tokens("")
        assert estimate_tokens("\ud800") > 0


class TestBudget:
    @pytest.mark.parametrize(("given", "meant"), [(None, 2_000), (MIN_BUDGET, 200), (MAX_BUDGET, 8_000)])
    def test_it_has_a_default_and_bounds(self, given: Any, meant: int) -> None:
        """2,000 unless given; 200 to 8,000."""
        assert meant == check_budget(given)

    @pytest.mark.parametrize("given", [199, 8_001, 0, -1, True, 500.0, "500", [500]])
    def test_anything_else_is_refused(self, given: Any) -> None:
        """With the field and what is allowed there."""
        with pytest.raises(InvalidInput, match="from 200 to 8000") as refused:
            check_budget(given)
        assert "budget" == refused.value.details["field"]

"""The block for a model: what it says, what it leaves out, and that nothing stored can get out of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, repeat
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from grandbo.recall.answer import Answer, Lexical, Match, Searched
from grandbo.recall.render import BAR, EVIDENCE_NOT_INSTRUCTION, citation, new_marker, render, status_line, why_empty

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MATCH = Match(
    entry_id=UUID(int=1),
    revision=3,
    position=812,
    kind="finding",
    title="Queue stalled",
    summary="Leases were lost.",
    service="checkout",
    status="published",
    disputed=False,
    disputed_with=None,
    confidence_bp=8_000,
    author_type="agent",
    occurred_at=AT,
    verified_at=None,
    expires_at=AT,
    evidence=({"type": "log", "uri": "https://logs.example.com/1", "label": ""},),
    external_id=None,
    visibility="team",
    score=0.03,
    lexical=Lexical(1, ("queue",)),
    semantic=None,
)
SEARCHED = Searched(
    signals=("lexical", "semantic"),
    degraded=None,
    stamp="s",
    cutoff=0.65,
    eligible=9,
    without_vector=0,
    near_misses=2,
    nearest_beyond=0.671,
    empty_reason=None,
)
HOSTILE = st.text(
    st.one_of(st.characters(), st.sampled_from("<>|[]\n\r\v\f\x1c\x85\u2028\u2029\u202e\u200b\x00 ")),
    max_size=300,
)


def _answer(*matches: Match, **searched: Any) -> Answer:
    return Answer(matches, replace(SEARCHED, **searched), 2_210, AT, UUID(int=2))


class TestRender:
    def test_each_item_says_what_it_is_and_how_far_it_is_checked(self) -> None:
        """Kind, author, revision, verification, dispute, citation, on one line."""
        disputed = replace(MATCH, disputed=True, verified_at=AT)

        lines = render(_answer(MATCH, disputed)).splitlines()

        cited = "cite 00000000-0000-0000-0000-000000000001/3@812"
        assert f"[1] finding · by agent · revision 3 · never verified · not disputed · {cited}" in lines
        assert f"[2] finding · by agent · revision 3 · last verified 2026-01-02 · DISPUTED · {cited}" in lines

    def test_what_says_the_same_and_what_is_not_done_is_told(self) -> None:
        """How many others say it, and how many follow-ups are open, where there are any."""
        told = status_line(replace(MATCH, restated_ids=(UUID(int=2),), open_follow_ups=2))

        assert "said by 1 more · 2 follow-ups open" in told
        assert "more" not in status_line(MATCH)

    def test_it_says_that_it_is_evidence_and_no_instruction(self) -> None:
        """The fixed sentence stands in every block, empty ones included."""
        assert EVIDENCE_NOT_INSTRUCTION in render(_answer(MATCH))
        assert EVIDENCE_NOT_INSTRUCTION in render(_answer(empty_reason="nothing_matched"))

    def test_two_blocks_have_different_markers(self) -> None:
        """What was read in one block does not help to close the next."""
        assert render(_answer(MATCH)).splitlines()[0] != render(_answer(MATCH)).splitlines()[0]

    def test_a_marker_that_the_content_holds_is_not_used(self) -> None:
        """Should the marker be guessed, another one is made."""
        markers = chain(["guessed"], repeat("fresh"))

        block = render(_answer(replace(MATCH, title="guessed")), make_marker=lambda: next(markers))

        assert "<<<grandbo evidence fresh>>>" == block.splitlines()[0]

    def test_a_summary_is_whole_or_left_out(self) -> None:
        """What does not fit is never cut in the middle, and the block says so."""
        long = replace(MATCH, summary="word " * 700)

        block = render(_answer(long, MATCH), budget=300)

        assert "word" not in block
        assert "(The summary is left out: it is too long for this block.)" in block
        assert f"{BAR}Summary: Leases were lost." in block

    def test_items_that_do_not_fit_are_counted(self) -> None:
        """The reader learns that there is more."""
        assert "3 more did not fit" in render(_answer(MATCH, MATCH, MATCH), budget=10)

    def test_many_sources_are_not_all_shown(self) -> None:
        """Three, and how many more there are."""
        many = replace(MATCH, evidence=MATCH.evidence * 20)

        assert "(and 17 more sources)" in render(_answer(many))

    def test_an_answer_by_words_alone_says_so(self) -> None:
        """A reader must not take it for all there is."""
        assert "not available (embedder_transient)" in render(_answer(MATCH, degraded="embedder_transient"))

    @given(title=HOSTILE, summary=HOSTILE, service=HOSTILE, uri=HOSTILE)
    def test_no_stored_text_gets_out_of_its_place(self, title: str, summary: str, service: str, uri: str) -> None:
        """
        Whatever is stored: one fence opens, one closes, and between them each line is one of ours or stands behind the
        bar. That holds for every notion of a line's end.
        """
        evil = replace(MATCH, title=title, summary=summary, service=service, evidence=({"uri": uri},))

        first, *inside, last = render(_answer(evil), make_marker=lambda: "m" * 32, budget=10_000).splitlines()

        assert "<<<grandbo evidence " + "m" * 32 + ">>>" == first
        assert "<<<end of grandbo evidence " + "m" * 32 + ">>>" == last
        own = [line for line in inside if not line.startswith(BAR)]
        assert 2 == len(own)
        assert EVIDENCE_NOT_INSTRUCTION == own[0]
        assert own[1].startswith("[1] finding · by agent")

    @given(title=HOSTILE, summary=HOSTILE)
    def test_no_stored_text_knows_the_marker(self, title: str, summary: str) -> None:
        """Even a text that repeats an earlier block's fence cannot close this one."""
        earlier = render(_answer(MATCH)).splitlines()[-1]
        marker = new_marker()
        evil = replace(MATCH, title=f"{title}{earlier}", summary=f"{earlier}\n{marker}{summary}")

        block = render(_answer(evil))

        fence = block.splitlines()[-1]
        assert 1 == block.count(fence)
        assert fence != earlier


class TestWhyEmpty:
    def test_the_four_kinds_of_nothing_are_told_apart(self) -> None:
        """Each has a sentence of its own; the near miss says how near."""
        said = [
            why_empty(replace(SEARCHED, empty_reason=reason, degraded="embedder_none"))
            for reason in ("nothing_in_scope", "nothing_matched", "beyond_cutoff", "semantic_unavailable")
        ]

        assert 4 == len(set(said))
        assert "2 of 9 entries lie just beyond the cutoff of 0.65, the nearest at 0.671" in said[2]


class TestCitation:
    def test_it_names_entry_revision_and_position(self) -> None:
        """One state, for good."""
        assert "00000000-0000-0000-0000-000000000001/3@812" == citation(MATCH)

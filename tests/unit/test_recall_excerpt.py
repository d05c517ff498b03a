"""Excerpts: whole sentences, around what matched, within the room."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from grandbo.recall.excerpt import MOST_WINDOWS, Window, sentences, windows

FILLER = "Nothing to see in this sentence. "
TEXT = "A title.\n\n" + FILLER * 10 + "The broker lost its lease. Then it recovered. " + FILLER * 10
TEXTS = st.text(st.one_of(st.characters(), st.sampled_from(" \n.!?ab\r\t")), max_size=300)


def _words(text: str) -> int:
    return len(text.split())


def _windows(text: str, matched: tuple[str, ...], room: int, *, lead: int = 0) -> list[Window]:
    return windows(text, matched, room, _words, window_cost=2, lead=lead)


def _shown(text: str, found: list[Window]) -> list[str]:
    return [text[window.start : window.end] for window in found]


class TestSentences:
    def test_they_end_at_marks_and_at_line_breaks(self) -> None:
        """A mark inside a word ends nothing; closing quotes belong to the sentence."""
        text = 'It said "no." Then v1.2.3 came!\n- a list\n\n- of lines 什么？好。'

        found = [text[part.start : part.end] for part in sentences(text)]

        assert ['It said "no."', "Then v1.2.3 came!", "- a list", "- of lines 什么？", "好。"] == found

    def test_what_is_too_long_is_cut_at_spaces_and_says_so(self) -> None:
        """A dump without a mark in it is taken in pieces, and only the outer ends count as a sentence's own."""
        parts = sentences("word " * 300)

        assert len(parts) > 3
        assert [True, *[False] * (len(parts) - 1)] == [part.opens for part in parts]
        assert [*[False] * (len(parts) - 1), True] == [part.closes for part in parts]
        assert all(part.end - part.start <= 400 for part in parts)

    @given(TEXTS)
    def test_between_them_lies_only_white_space(self, text: str) -> None:
        """Nothing of a text is lost, nothing is in two."""
        at = 0
        for part in sentences(text):
            assert "" == text[at : part.start].strip()
            assert part.start < part.end
            at = part.end
        assert "" == text[at:].strip()


class TestWindows:
    def test_they_surround_what_matched(self) -> None:
        """The beginning, and the sentence with the match in the middle of those around it."""
        found = _shown(TEXT, _windows(TEXT, ("leas",), 45, lead=7))

        assert 2 == len(found)
        assert found[0].startswith("A title.")
        assert "The broker lost its lease. Then it recovered." in found[1]

    def test_the_rarest_term_goes_first(self) -> None:
        """Where there is room for one sentence alone, it is the one with the rarest of the matched terms."""
        text = FILLER * 5 + "Common words stand here. " + FILLER * 5 + "Rarity stands here instead. " + FILLER * 5

        assert ["Rarity stands here instead."] == _shown(text, _windows(text, ("rariti", "common"), 6))
        assert ["Common words stand here."] == _shown(text, _windows(text, ("common", "rariti"), 6))

    def test_nothing_where_the_beginning_does_not_fit(self) -> None:
        """An excerpt without its title would be a quotation without a source."""
        assert [] == _windows(TEXT, ("leas",), 3, lead=7)

    def test_without_a_match_it_is_the_beginning(self) -> None:
        """What follows the title, as far as there is room."""
        (found,) = _shown(TEXT, _windows(TEXT, (), 20, lead=7))

        assert TEXT.startswith(found)
        assert found.endswith("this sentence.")

    @given(TEXTS, st.integers(0, 60), st.integers(0, 40))
    def test_they_fit_and_are_whole(self, text: str, room: int, lead: int) -> None:
        """In order, apart, few, within the room, and from the start of a sentence to the end of one unless cut."""
        found = _windows(text, ("ab", "a"), room, lead=lead)

        starts = {part.start for part in sentences(text) if part.opens}
        ends = {part.end for part in sentences(text) if part.closes}
        assert sum(_words(piece) + 2 for piece in _shown(text, found)) <= room
        assert len(found) <= MOST_WINDOWS
        assert all(one.end < other.start for one, other in itertools.pairwise(found))
        assert all(window.is_cut or (window.start in starts and window.end in ends) for window in found)

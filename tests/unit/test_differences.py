"""What is different between two texts, and between two states."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grandbo.errors import NotFound
from grandbo.memory.differences import (
    LONGEST_COMPARED,
    Piece,
    revision_differences,
    revision_of,
    state_differences,
    word_difference,
)

_texts = st.lists(st.sampled_from(["lease", "queue", " ", "\n", "é", ".", "-", "\u200b", "x1"]), max_size=30).map(
    "".join
)


def _only(pieces: tuple[Piece, ...], *operations: str) -> str:
    return "".join(piece.text for piece in pieces if piece.operation in operations)


class TestWordDifference:
    def test_it_names_the_words_that_went_and_that_came(self) -> None:
        """A changed word is one piece removed and one added; what is around it is kept."""
        expected = (
            Piece("kept", "The lease "),
            Piece("removed", "renewal"),
            Piece("added", "lookup"),
            Piece("kept", " failed."),
        )

        assert expected == word_difference("The lease renewal failed.", "The lease lookup failed.")

    @given(before=_texts | st.text(max_size=40), after=_texts | st.text(max_size=40))
    def test_the_pieces_add_up_to_both_texts(self, before: str, after: str) -> None:
        """Without what was added it is the earlier text, without what was removed the later one, to the last space."""
        pieces = word_difference(before, after)

        assert before == _only(pieces, "kept", "removed")
        assert after == _only(pieces, "kept", "added")
        assert all(piece.text for piece in pieces)
        assert all(one.operation != two.operation for one, two in pairwise(pieces))

    @given(text=_texts)
    def test_equal_texts_have_no_difference(self, text: str) -> None:
        """All of it is kept, in one piece."""
        assert ((Piece("kept", text),) if text else ()) == word_difference(text, text)

    def test_a_text_from_or_to_nothing(self) -> None:
        """All of it was added, or removed."""
        assert (Piece("added", "a b"),) == word_difference("", "a b")
        assert (Piece("removed", "a b"),) == word_difference("a b", "")

    def test_a_change_in_a_very_long_text_is_still_found_by_words(self) -> None:
        """What begins and ends alike is set aside first."""
        around = "word " * LONGEST_COMPARED

        pieces = word_difference(f"{around}old {around}", f"{around}new {around}")

        assert [("removed", "old"), ("added", "new")] == [
            (piece.operation, piece.text) for piece in pieces if piece.operation != "kept"
        ]

    def test_very_long_changes_are_told_by_lines(self) -> None:
        """Past the limit of words a line that stayed is kept whole, and one that changed is changed whole."""
        line = "word " * 200 + "\n"
        before = "first\n" + "".join(f"{number} {line}" for number in range(50)) + "last"
        after = before.replace("first", "other").replace("0 word", "0 words").replace("last", "end")

        pieces = word_difference(before, after)

        assert "1 " + line in _only(pieces, "kept")
        assert "0 " + line in _only(pieces, "removed")
        assert (before, after) == (_only(pieces, "kept", "removed"), _only(pieces, "kept", "added"))

    def test_what_is_longer_than_that_is_told_as_a_whole(self) -> None:
        """Texts without a line in common to hold on to, past every limit, are removed and added whole."""
        before, after = ("".join(f"{mark}{n}\n" for n in range(LONGEST_COMPARED + 1)) for mark in "ab")

        assert (Piece("removed", before), Piece("added", after)) == word_difference(before, after)


class TestStateDifferences:
    def test_only_what_changed_is_named(self) -> None:
        """Texts come with their words; other values as they were and are; the time of the change says nothing."""
        before = {"title": "An old title", "tags": ["a"], "service": "s", "ended_at": None, "changed_at": "1"}
        after = {"title": "A new title", "tags": ["a", "b"], "service": "s", "ended_at": "2", "changed_at": "2"}

        found = [difference.as_dict() for difference in state_differences(before, after)]

        assert ["title", "tags", "ended_at"] == [item["field"] for item in found]
        assert ("An old title", "A new title") == (found[0]["before"], found[0]["after"])
        assert {"operation": "added", "text": "A"} in found[0]["words"]
        assert [None, None] == [item["words"] for item in found[1:]]


class TestRevisions:
    HISTORY = [{"revision": 1, "state": {"title": "one"}}, {"revision": 3, "state": {"title": "three"}}]  # noqa: RUF012

    def test_any_two_can_be_compared_in_either_direction(self) -> None:
        """What is before and what is after is for the caller to say."""
        (forth,), (back,) = (revision_differences(self.HISTORY, *pair) for pair in ((1, 3), (3, 1)))

        assert ("one", "three", "three", "one") == (forth.before, forth.after, back.before, back.after)

    def test_one_that_the_history_leaves_out_is_not_there(self) -> None:
        """The same answer as for one that never was."""
        for revision in (2, 4):
            with pytest.raises(NotFound) as caught:
                revision_of(self.HISTORY, revision)
            assert f"The entry has no revision {revision}." == caught.value.message

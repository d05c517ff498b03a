"""Terms and text rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grandbo.errors import InvalidInput, LimitExceeded
from grandbo.text import check_text, term_counts, terms


class TestTerms:
    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("running processes", ["run", "process"]),
            ("the of and", []),
            ("OOMKilled", ["oomkilled", "oom", "kill"]),
            ("svc-name_v2", ["svc-name_v2", "svc", "name"]),
            ("getUserById", ["getuserbyid", "get", "user", "id"]),
            ("/var/lib/x", ["var/lib/x", "var", "lib"]),
            ("E1234", ["e1234", "1234"]),
            ("v1.2.3", ["v1.2.3"]),
            ("データベース", ["デー", "ータ", "タベ", "ベー", "ース"]),
            ("数", ["数"]),
            ("Zoë naïve", ["zoë", "naïv"]),
            ("ＦＵＬＬ width", ["full", "width"]),
        ],
    )
    def test_words_identifiers_and_unspaced_scripts_have_their_terms(self, text: str, wanted: list[str]) -> None:
        """Plain words are stemmed, identifiers kept whole and split, unspaced scripts cut into pairs."""
        found = terms(text)

        assert [term for term in wanted if term in found] == wanted
        assert len(found) <= len(wanted) + 1

    @given(st.text(max_size=300))
    def test_any_text_has_bounded_terms_and_the_same_each_time(self, text: str) -> None:
        """No text breaks the splitter, and a term is never longer than a key may be."""
        found = terms(text)

        assert found == terms(text)
        assert all(0 < len(term) <= 64 for term in found)
        assert term_counts(text).total() == len(found)


class TestCheckText:
    @pytest.mark.parametrize("bad", ["\x00", "\x07", "\x1b", "\x7f", "\x85", "\ud800"])
    def test_what_cannot_be_stored_is_refused_with_its_code_point(self, bad: str) -> None:
        """A control character or half a surrogate pair is named by code point and place."""
        with pytest.raises(InvalidInput, match=rf"U\+{ord(bad):04X}\) at character 2"):
            check_text(f"ab{bad}", "title", limit=10)

    def test_a_limit_is_named(self) -> None:
        """What is too long is refused with the limit and its own length."""
        with pytest.raises(LimitExceeded, match="11 characters, at most 10"):
            check_text("x" * 11, "title", limit=10)

    @given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=200))
    def test_everything_else_comes_back_unchanged(self, text: str) -> None:
        """Any other text is given back as it is."""
        assert text == check_text(text, "title", limit=200)

"""Hidden and posing characters: what is spelled out, what stays, and that nothing can claim to be what it is not."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grandbo.recall.visible import visible

_SPELLED = re.compile("⟨U\\+([0-9A-F]{4,6})⟩")


def _read_back(shown: str) -> str:
    return _SPELLED.sub(lambda found: chr(int(found.group(1), 16)), shown)


class TestHidden:
    @pytest.mark.parametrize(
        "char",
        [
            *"\u200b\u200c\u200d\u200e\u200f\u2060\u2061\ufeff\u00ad\u034f\u061c\u180e",  # zero width
            *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",  # direction
            *"\U000e0001\U000e0041\U000e007f\U000e0100",  # tags, variation selectors
            *"\ufe00\ufe0e\ufe0f\u115f\u1160\u17b4\u17b5\u180b\u2800\u3164\uffa0\ufffc",  # blank letters
            *"\x00\x07\x0b\x0c\x1b\x1c\x7f\x85\u2028\u2029\r",  # controls, ends of lines
            *"\ue000\U0010ffff\ud800\u0378",  # private, no character, half a pair, unassigned
        ],
    )
    def test_a_hidden_character_is_spelled_out(self, char: str) -> None:
        """By its number, in its place."""
        assert f"ab⟨U+{ord(char):04X}⟩cd" == visible(f"ab{char}cd")

    @pytest.mark.parametrize(
        "text",
        [
            'plain text, with "signs" and <tags>',
            "two\nlines",
            "naïve façade, Ångström, 5 µs, 3 kΩ, Δt, λ",
            "Потребители очереди потеряли аренду, и он сам",
            "Οι καταναλωτές έχασαν τη μίσθωση",
            "代理重启后，消费者失去了租约。",
            "ブローカーの再起動",
            "می‌خواهم",  # a joiner that Persian spells with
            "क्‍ष",  # and Hindi
            "⚠️ 🔥 👨‍👩‍👧 1️⃣",  # the styles and joiners of emoji
            "angle ⟨brackets⟩ alone",
        ],
    )
    def test_what_belongs_to_the_spelling_stays(self, text: str) -> None:
        """Text in any script is shown as it is."""
        assert text == visible(text)

    def test_line_ends_and_tabs_become_plain(self) -> None:
        """CR LF is one line break, a tab a space."""
        assert "a\nb c" == visible("a\r\nb\tc")

    def test_marks_piled_up_are_spelled_out(self) -> None:
        """Three on a letter are spelling; more hide the text."""
        assert "e\u0301\u0301\u0301⟨U+0301⟩⟨U+0301⟩" == visible("e" + "\u0301" * 5)

    def test_a_spelling_in_the_text_is_spelled_out(self) -> None:
        """A text cannot claim to hold a hidden character that it does not hold."""
        assert "⟨U+27E8⟩U+200B⟩" == visible("⟨U+200B⟩")

    @given(st.text())
    def test_nothing_is_lost(self, text: str) -> None:
        """What is shown reads back to what was stored, but for the ends of lines and tabs."""
        assert text.replace("\r\n", "\n").replace("\t", " ") == _read_back(visible(text))

    @given(st.text())
    def test_no_line_end_but_one_is_left(self, text: str) -> None:
        """Every reader sees the same lines."""
        shown = visible(text)

        assert shown.split("\n") == (
            [*shown.splitlines(), ""] if shown.endswith("\n") or not shown else shown.splitlines()
        )
        assert all(char == "\n" or unicodedata.category(char) not in ("Cc", "Co", "Cn", "Zl", "Zp") for char in shown)


class TestPosing:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("раypal", "⟨U+0440⟩⟨U+0430⟩ypal"),
            ("log in at gооgle.com", "log in at g⟨U+043E⟩⟨U+043E⟩gle.com"),
            ("Κubernetes", "⟨U+039A⟩ubernetes"),
            ("пaроль", "п⟨U+0061⟩роль"),
            ("run сосо now", "run ⟨U+0441⟩⟨U+043E⟩⟨U+0441⟩⟨U+043E⟩ now"),
        ],
    )
    def test_a_letter_of_another_script_among_its_look_alikes_is_spelled_out(self, text: str, shown: str) -> None:
        """The fewer letters of a mixed word, and whole words that read as Latin in a text without that script."""
        assert shown == visible(text)

    def test_the_same_word_is_at_home_in_its_own_language(self) -> None:
        """A Russian text keeps its words, also those of letters that Latin has too."""
        text = "Оно упало, рост не помог"

        assert text == visible(text)

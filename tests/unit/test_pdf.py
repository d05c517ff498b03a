"""PDFs read as text, in a process of their own; and those that are refused, each with its reason."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grandbo.documents import pdf
from grandbo.documents.pdf import PAGE_LIMIT, PDF_LIMIT_BYTES, as_markdown, text_of_pdf
from grandbo.documents.postmortem import read_postmortem
from grandbo.errors import LimitExceeded, PdfRefused
from tests.support.pdf import bomb, encrypted, make_pdf

PAGES = (
    ["Uploads stood still", "Summary", "A disk was full and nobody was told.", "Root cause:", "Logs were not rotated."],
    [
        "Lessons learned",
        "The summary of this is long, and it is no heading.",
        "Action items",
        "\225 Alert at 80 percent",
    ],
)


class TestText:
    def test_a_post_mortem_is_read_into_its_parts(self) -> None:
        """The first line is the title; a line that names a part is its heading."""
        read = read_postmortem(text_of_pdf(make_pdf(*PAGES)), title="outage")

        assert ("Uploads stood still", "Logs were not rotated.") == (read.title, read.cause.strip())
        assert ("A disk was full and nobody was told.", ("Alert at 80 percent",)) == (read.summary, read.open_items)

    @given(st.text(max_size=300))
    @settings(max_examples=200, deadline=None)
    def test_no_word_is_left_out(self, text: str) -> None:
        """Marking headings and bullets takes nothing away but blanks, bullets and the colon of a heading."""
        kept = "".join(as_markdown(text).split()).replace("#", "").replace("-", "").replace(":", "")
        for bullet in pdf._BULLETS:
            text = text.replace(bullet, "")
        wanted = "".join(text.split()).replace("#", "").replace("-", "").replace(":", "")
        for bullet in pdf._BULLETS:
            kept = kept.replace(bullet, "")

        assert wanted == kept


class TestRefused:
    @pytest.mark.parametrize(
        ("raw", "reason"),
        [
            (encrypted(make_pdf(*PAGES)), "encrypted"),
            (b"%PDF-1.7 and nothing more", "broken"),
            (make_pdf(*PAGES)[:200], "broken"),
            (make_pdf(*[[]] * (PAGE_LIMIT + 1)), "pages"),
            (make_pdf([]), "no_text"),
            (make_pdf(*[["x" * 60_000]] * 20), "length"),
        ],
        ids=["encrypted", "no-pdf", "cut-off", "pages", "no-text", "length"],
    )
    def test_each_with_its_reason(self, raw: bytes, reason: str) -> None:
        """The code is one, `reason` says which, the message says what to do."""
        with pytest.raises(PdfRefused) as refused:
            text_of_pdf(raw)

        assert reason == refused.value.details["reason"]

    def test_a_bomb_goes_off_somewhere_else(self) -> None:
        """Packed to less than a megabyte, unpacked far more: refused, and this process has not grown by it."""
        packed = bomb(400)
        assert len(packed) < 1_000_000

        with pytest.raises(PdfRefused) as refused:
            text_of_pdf(packed)

        assert refused.value.details["reason"] in ("limits", "broken", "no_text")

    def test_one_that_does_not_end_is_ended(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The process that reads it has so many seconds."""
        monkeypatch.setattr(pdf, "SECONDS", 0.01)

        with pytest.raises(PdfRefused) as refused:
            text_of_pdf(make_pdf(*PAGES))

        assert "limits" == refused.value.details["reason"]

    def test_too_many_bytes(self) -> None:
        """Counted before anything is read."""
        with pytest.raises(LimitExceeded):
            text_of_pdf(b"%PDF-" + b"x" * PDF_LIMIT_BYTES)

    def test_without_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It says what to install."""
        monkeypatch.setattr(pdf, "find_spec", lambda _name: None)

        with pytest.raises(PdfRefused, match=r"grandbo\[pdf\]"):
            text_of_pdf(make_pdf(*PAGES))

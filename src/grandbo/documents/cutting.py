"""Cutting a text into parts that an entry holds: at headings, or where a section is too long, at paragraphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from grandbo.documents.markdown import sections

# Room that is left for the line that says which part it is.
PART_LIMIT_BYTES = 62 * 1024


def parts(text: str, limit: int = PART_LIMIT_BYTES) -> list[str]:
    """
    The text in parts of at most `limit` bytes of UTF-8, as few as the places to cut allow. All of it is there: joined
    by line breaks the parts are the text, but for blank lines at the cuts.
    """
    if _size(text) <= limit:
        return [text]
    pieces = (piece for section in sections(text) for piece in _pieces(section.source, limit))
    return list(_packed(pieces, limit))


def _pieces(text: str, limit: int) -> Iterator[str]:
    """A section whole; else its paragraphs, else their lines, else runs of characters."""
    if _size(text) <= limit:
        yield text
        return
    for block in _packed(text.split("\n"), limit):
        if _size(block) <= limit:
            yield block
        else:
            yield from _runs(block, limit)


def _packed(pieces: Iterable[str], limit: int) -> Iterator[str]:
    """Neighbours together as long as they fit."""
    kept: list[str] = []
    size = 0
    for piece in pieces:
        length = _size(piece) + 1
        if kept and size + length > limit:
            yield "\n".join(kept)
            kept, size = [], 0
        kept.append(piece)
        size += length
    if kept:
        yield "\n".join(kept)


def _runs(text: str, limit: int) -> Iterator[str]:
    # No character takes more than four bytes.
    step = limit // 4
    for start in range(0, len(text), step):
        yield text[start : start + step]


def _size(text: str) -> int:
    return len(text.encode("utf-8", errors="surrogatepass"))

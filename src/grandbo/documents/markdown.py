"""Markdown by its headings, by the lists in it and by the places that it points to. The text itself stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from grandbo.errors import LimitExceeded
from grandbo.screening import uri_problem

_URL = re.compile(r"https?://[^\s<>()\[\]\"'`|\\^{}]+")
_CHECKBOX = re.compile(r"^\[([ xX])\]\s*")
LINES_LIMIT = 20_000
_URL_LIMIT = 2_000
_INLINE_LIMIT = 4_000
_MARKUP = re.compile(r"[*_\[\]<>&\\!`]")
# Blocks alone: markup within lines is read only where a line is used, and only where it is short.
_BLOCKS = MarkdownIt("commonmark", {"maxNesting": 40}).enable("table").disable("inline")
_INLINE = MarkdownIt("commonmark")


@dataclass(frozen=True, slots=True)
class Section:
    """
    A heading and what stands below it, up to the next heading of whatever level.

    Attributes:
        level: 1 to 6; 0 for what stands in front of the first heading.
        heading: without markup.
        text: without the heading; `source` is with it, and all sources together are the document.
    """

    level: int
    heading: str
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Item:
    """A member of a list, or a row of a table."""

    text: str
    is_done: bool


def sections(text: str) -> list[Section]:
    """
    The sections, in order; the first has no heading and may be empty.

    Raises:
        LimitExceeded: more lines than anybody writes, which would take minutes to read.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if len(lines) > LINES_LIMIT:
        raise LimitExceeded(
            f"The document has {len(lines)} lines, at most {LINES_LIMIT} are read; split it.",
            limit=LINES_LIMIT,
            length=len(lines),
        )
    tokens = _BLOCKS.parse(text)
    starts: list[tuple[int, int, int, str]] = [(0, 0, 0, "")]
    for place, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            heading = _plain(tokens[place + 1])
            starts.append((token.map[0], token.map[1], int(token.tag[1]), heading))
    ends = [start for start, _, _, _ in starts[1:]] + [len(lines)]
    return [
        Section(level, heading, "\n".join(lines[below:end]).strip("\n"), "\n".join(lines[start:end]))
        for (start, below, level, heading), end in zip(starts, ends, strict=True)
    ]


def items(text: str) -> list[Item]:
    """The members of the outermost lists and the rows of the tables, without the tables' heads."""
    found: list[Item] = []
    tokens = _BLOCKS.parse(text)
    in_head = False
    row: list[str] | None = None
    depth = 0
    for token in tokens:
        if token.type == "list_item_open":
            depth += 1
            is_first = depth == 1
        elif token.type == "list_item_close":
            depth -= 1
        elif token.type == "thead_open":
            in_head = True
        elif token.type == "thead_close":
            in_head = False
        elif token.type == "tr_open":
            row = []
        elif token.type == "tr_close":
            if row and not in_head and any(row):
                found.append(Item(" · ".join(filter(None, row)), is_done=False))
            row = None
        elif token.type == "inline":
            if row is not None:
                row.append(_plain(token))
            elif depth == 1 and is_first:
                is_first = False
                found.append(_item(_plain(token)))
    return [item for item in found if item.text]


def links(text: str) -> list[str]:
    """The web addresses that a text names, each once, in order; those that evidence may not name are left out."""
    found = (match.group().rstrip(".,;:!?*_~") for match in _URL.finditer(text))
    fit = (url for url in found if len(url) <= _URL_LIMIT and uri_problem(url) is None)
    return list(dict.fromkeys(fit))


def without_comments(text: str) -> str:
    """The text without HTML comments, which templates use for hints."""
    return cut_out(text, "<!--", "-->").strip()


def cut_out(text: str, opening: str, closing: str) -> str:
    """The text without what stands between two marks, and without the marks; in one pass, whatever the text."""
    kept: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start + len(opening))) >= 0:
        kept.append(text[at:start])
        at = end + len(closing)
    return "".join([*kept, text[at:]])


def first_paragraph(text: str) -> str:
    """The first paragraph of prose, on one line; empty where there is none."""
    tokens = _BLOCKS.parse(without_comments(text))
    for place, token in enumerate(tokens):
        if token.type == "paragraph_open" and token.level == 0:
            said = _plain(tokens[place + 1])
            if any(char.isalpha() for char in said):
                return said
    return ""


def _item(text: str) -> Item:
    box = _CHECKBOX.match(text)
    return Item(_CHECKBOX.sub("", text), is_done=box is not None and box.group(1) != " ")


def _plain(token: Token) -> str:
    if len(token.content) > _INLINE_LIMIT or _MARKUP.search(token.content) is None:
        return " ".join(token.content.split())
    return " ".join("".join(_words(token.content)).split())


def _words(content: str) -> Iterator[str]:
    (line,) = _INLINE.parseInline(content)
    for child in line.children or ():
        if child.type in ("softbreak", "hardbreak"):
            yield " "
        elif child.type != "html_inline":
            yield child.content

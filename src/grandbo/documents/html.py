"""HTML as Markdown: only what carries text passes, scripts and styles do not, and neither do a template's blanks."""

from __future__ import annotations

import re
from html import unescape

import nh3
from markdownify import ATX, markdownify

from grandbo.documents.markdown import cut_out, sections
from grandbo.errors import InvalidInput, LimitExceeded

_TAGS = frozenset(
    """a b blockquote br code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong table tbody td th
    thead tr tt u ul""".split()  # noqa: SIM905  # a list of words reads best as words
)
HTML_TAGS_LIMIT = 20_000
_WITH_CONTENT = frozenset(
    {"script", "style", "noscript", "template", "head", "title", "iframe", "object", "svg", "nav", "footer"}
)
_ATTRIBUTES = {"a": {"href"}}
_SCHEMES = {"http", "https", "mailto"}
_BLANK_LINES = re.compile(r"\n{3,}")


def to_markdown(html: str) -> str:
    """
    Sanitise HTML and give it as Markdown, without Liquid placeholders and without headings that nothing stands below.

    Raises:
        InvalidInput: it is nested too deeply to be read. LimitExceeded: more tags than anybody writes; the time to read
            them grows with the square of their depth.
    """
    if (tags := html.count("<")) > HTML_TAGS_LIMIT:
        raise LimitExceeded(
            f"The HTML has {tags} tags, at most {HTML_TAGS_LIMIT} are read; split it.",
            limit=HTML_TAGS_LIMIT,
            length=tags,
        )
    clean = nh3.clean(
        html.encode("utf-8", errors="replace").decode("utf-8"),
        tags=set(_TAGS),
        clean_content_tags=set(_WITH_CONTENT),
        attributes={name: set(allowed) for name, allowed in _ATTRIBUTES.items()},
        url_schemes=set(_SCHEMES),
        link_rel=None,
        strip_comments=True,
    )
    try:
        converted: str = markdownify(clean, heading_style=ATX, bullets="-", escape_underscores=False)
    except RecursionError:
        raise InvalidInput("The HTML is nested too deeply.", field="file") from None
    return _without_empty_headings(_BLANK_LINES.sub("\n\n", _without_liquid(converted)).strip())


def html_title(html: str) -> str:
    """What the page calls itself; empty where it does not."""
    lowered = html.lower()
    start = lowered.find("<title")
    opened = lowered.find(">", start)
    end = lowered.find("</title", opened)
    # A letter whose lower case is longer would shift the places; then there is no title, and a heading is taken.
    if min(start, opened, end) < 0 or len(lowered) != len(html):
        return ""
    return " ".join(unescape(nh3.clean(html[opened + 1 : end], tags=set())).split())


def _without_liquid(text: str) -> str:
    return cut_out(cut_out(text, "{{", "}}"), "{%", "%}")


def _without_empty_headings(text: str) -> str:
    """A heading that is followed by one of its own level or a higher one says nothing; the first is the title."""
    kept = sections(text)
    changed = True
    while changed:
        changed = False
        for place in range(len(kept) - 1, 0, -1):
            following = kept[place + 1] if place + 1 < len(kept) else None
            is_last = following is None or following.level <= kept[place].level
            if kept[place].level > 1 and is_last and not kept[place].text.strip():
                del kept[place]
                changed = True
    return "\n".join(section.source for section in kept).strip()

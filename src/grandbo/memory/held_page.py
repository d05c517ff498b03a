"""The report of what is held about a subject as one HTML page that needs nothing else. Pure."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import nh3
from markdown_it import MarkdownIt

from grandbo.memory.held_report import render_held

_READER = MarkdownIt("commonmark", {"html": False, "linkify": False}).disable(["image", "link", "autolink"])
_TAGS = {"h1", "h2", "h3", "p", "ul", "li", "blockquote", "code", "strong", "em"}


def render_held_page(document: Mapping[str, Any]) -> str:
    """The report as a page; what was remembered is text in it, whatever it looks like."""
    subject = document["subject"]
    title = html.escape(f"What is held about {subject['name'] or subject['subject_id']}")
    body = nh3.clean(_READER.render(render_held(document)), tags=_TAGS, attributes={})
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body>\n{body}</body>\n</html>\n"
    )

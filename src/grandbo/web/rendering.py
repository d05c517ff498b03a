"""Templates: everything is escaped, times are UTC and say so, a link leads only to the web."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlsplit

import jinja2
import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup

from grandbo.types import from_utc_text

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
_ICONS = STATIC / "vendor" / "lucide"
_SVG = re.compile(r"<!--.*?-->\s*<svg[^>]*>(.*)</svg>", re.DOTALL)
_NEVER = "9999"
_REL = "noopener noreferrer"

_UNITS = {"h": "hour", "d": "day", "w": "week"}
WORDS = {
    "ruled_out": "ruled out",
    "entry_revision_restored": "text restored",
    "entry_expiry_set": "expiry set",
}
STATUS_ICONS = {
    "published": "circle-check",
    "archived": "archive",
    "superseded": "layers",
    "quarantined": "biohazard",
    "disputed": "scale",
    "expired": "hourglass",
    "pending": "clock",
    "approved": "circle-check",
    "rejected": "circle-x",
    "withdrawn": "ban",
    "received": "inbox",
    "mapped": "circle-check",
    "ignored": "circle-slash",
    "dead": "triangle-alert",
    "dropped": "ban",
    "requested": "clock",
    "erased": "ban",
    "certified": "shield-check",
    "overdue": "triangle-alert",
    "due": "clock",
    "expiring": "hourglass",
    "human": "user",
    "agent": "bot",
    "hook": "webhook",
    "system": "settings",
}


def environment() -> jinja2.Environment:
    """The templates of the pages."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "time": time,
        "day": day,
        "stated": stated,
        "spoken": spoken,
        "percent": percent,
        "short": short,
        "web": web_link,
        "plural": plural,
        "markdown": markdown,
        "span": span,
        "path": lambda part: quote(str(part), safe=""),
    }
    made.globals |= {"icon": icon, "static": static_url, "status_icon": lambda name: STATUS_ICONS.get(name, "flag")}
    return made


def time(text: str | None) -> Markup:
    """A time to the minute, in UTC."""
    if text is None:
        return Markup("never")
    if text.startswith(_NEVER):
        return Markup("without end")
    shown = from_utc_text(text).strftime("%Y-%m-%d %H:%M")
    return Markup('<time datetime="{}">{} UTC</time>').format(text, shown)


def stated(text: str | None) -> Markup | str:
    """A time as a source states it: an instant, or only a day, a month or a year."""
    return "—" if text is None else time(text) if len(text) > len("2026-01-02") else text


def day(text: str | None) -> Markup:
    """The day of a time, in UTC."""
    if text is None:
        return Markup("never")
    if text.startswith(_NEVER):
        return Markup("without end")
    return Markup('<time datetime="{}">{}</time>').format(text, from_utc_text(text).date().isoformat())


def spoken(name: str) -> str:
    """A name of the design in words: `entry_recorded` is `recorded`."""
    return WORDS.get(name) or name.removeprefix("entry_").replace("_", " ")


def percent(basis_points: int) -> str:
    """Basis points as a percentage."""
    return f"{basis_points / 100:g} %"


def short(identifier: str) -> str:
    """The end of an id, which is where two of one time differ."""
    kind, colon, rest = identifier.rpartition(":")
    return f"{kind}{colon}…{rest[-8:]}"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """A count with its noun."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def span(given: str) -> str:
    """A span such as `5w` in words."""
    number, unit = given[:-1], _UNITS.get(given[-1:])
    return plural(int(number), unit) if unit and number.isascii() and number.isdigit() and len(number) < 6 else given


def web_link(uri: str) -> Markup:
    """A URI as text, and as a link where it leads to the web: stored text must not become a script."""
    try:
        is_web = urlsplit(uri).scheme.lower() in ("http", "https")
    except ValueError:
        is_web = False
    if not is_web:
        return Markup("<code>{}</code>").format(uri)
    return Markup('<a href="{}" rel="noopener noreferrer external">{}</a>').format(uri, uri)


def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
    # The page has its own headings; those of a text are set as bold lines, and leave its outline alone.
    reader.add_render_rule("heading_open", lambda *_: "<p><strong>")
    reader.add_render_rule("heading_close", lambda *_: "</strong></p>\n")
    return reader


_MARKDOWN = _reader()
_TAGS = {"p", "strong", "em", "code", "pre", "ul", "ol", "li", "blockquote", "a", "hr", "br"} | {
    *("table", "thead", "tbody", "tr", "th", "td")
}
# What is longer stays as it is stored: a hostile text must not buy a long computation.
LONGEST_RENDERED = 64 * 1024


def markdown(text: str) -> Markup:
    """Stored text as Markdown, without images, HTML or headings of its own, and cleaned besides."""
    if len(text) > LONGEST_RENDERED:
        return Markup('<div class="stored">{}</div>').format(text)
    made = _MARKDOWN.render(text)
    clean = nh3.clean(made, tags=_TAGS, attributes={"a": {"href"}}, url_schemes={"http", "https"}, link_rel=_REL)
    return Markup(clean)  # noqa: S704  # only what was let through


@cache
def icon(name: str) -> Markup:
    """A vendored icon, for the eye alone: a word stands beside it."""
    drawing = _SVG.search((_ICONS / f"{name}.svg").read_text(encoding="utf-8"))
    assert drawing is not None
    return Markup(  # noqa: S704  # a file of the package
        '<svg class="icon" viewBox="0 0 24 24" width="16" height="16" fill="none" stroke="currentColor" '
        'stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false">'
        f"{drawing.group(1).strip()}</svg>"
    )


@cache
def static_url(name: str) -> str:
    """The address of a file of ours; another file, another address, so that browsers may keep it."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:16]
    return f"/static/{name}?v={digest}"

"""A post-mortem in Markdown, in any of the common templates, with or without front matter, read into its parts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from grandbo.documents.frontmatter import field_list, field_text, field_uri, split_front_matter
from grandbo.documents.headings import Part, named_part, part_of
from grandbo.documents.markdown import Item, Section, items, links, sections, without_comments
from grandbo.documents.times import read_time
from grandbo.types import Moment

_FACT_LIMIT = 500
_FACT = re.compile(
    r"^\s*(?:[-*+]\s+)?(?:\*\*|__)?([A-Za-z][A-Za-z /-]{1,30}?)(?:\*\*|__)?\s*:\s*(?:\*\*|__)?\s*(\S.*)$"
)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?\s?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?")
_WRITTEN = re.compile(
    r"(?:(?P<d1>\d{1,2})(?:st|nd|rd|th)?\s+(?P<m1>[A-Za-z]{3,9})|(?P<m2>[A-Za-z]{3,9})\s+(?P<d2>\d{1,2})(?:st|nd|rd|th)?),?"
    r"\s+(?P<y>\d{4})"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_STARTS = ("start_time", "started_at", "started", "start", "occurred_at", "date", "incident date", "start time")
_ENDS = ("end_time", "ended_at", "resolved_at", "ended", "end", "resolved", "end time")
_FACT_NAMES = {*_STARTS, *_ENDS, "severity", "service", "services", "component", "affected services", "status"}
_WHOLE_PARTS: tuple[Part, ...] = ("cause", "impact", "resolution", "timeline", "lessons")


@dataclass(frozen=True, slots=True)
class PostMortem:
    """
    What a post-mortem says. Empty where it says nothing of the kind; nothing is made up.

    Attributes:
        body: the whole text but for its front matter and its title; whatever the other fields hold stands here too.
        headings: which part each heading was taken for; None for those that are in the body alone.
        open_items: what is still to be done.
        own_id, uri: what the front matter calls the document, and where it says that it stands.
    """

    title: str
    summary: str
    cause: str
    impact: str
    resolution: str
    timeline: str
    lessons: str
    body: str
    headings: tuple[tuple[str, Part | None], ...]
    open_items: tuple[str, ...]
    links: tuple[str, ...]
    service: str
    severity: str
    tags: tuple[str, ...]
    started: Moment | None
    ended: Moment | None
    own_id: str
    uri: str


def read_postmortem(text: str, *, title: str = "") -> PostMortem:
    """
    Read a post-mortem.

    Args:
        title: of a text that has no title of its own.

    Raises:
        InvalidInput: its front matter cannot be read.
    """
    fields, rest = split_front_matter(text)
    found = sections(rest)
    own_title, body_sections = _title(found)
    named = _parts(body_sections)
    facts = _facts(fields, body_sections, named)
    texts: dict[Part, str] = {part: _joined(body_sections, named, part) for part in _WHOLE_PARTS}
    body = "\n".join(section.source for section in body_sections).strip("\n")
    return PostMortem(
        title=field_text(fields, "title") or own_title or title,
        summary=_summary(fields, body_sections, named),
        cause=texts["cause"] or _joined(body_sections, named, "background"),
        impact=texts["impact"],
        resolution=texts["resolution"],
        timeline=texts["timeline"],
        lessons=texts["lessons"],
        body=body,
        headings=tuple((s.heading, part) for s, part in zip(body_sections, named, strict=True) if s.level),
        open_items=tuple(item.text for item in _items(body_sections, named) if not item.is_done),
        links=tuple(links(rest)),
        service=facts["service"],
        severity=facts["severity"],
        tags=tuple(field_list(fields, "tags", "keywords", "categories", "labels")),
        started=_first_time(fields, facts, _STARTS),
        ended=_first_time(fields, facts, _ENDS),
        own_id=field_text(fields, "id", "uuid", "incident_id", "incident", "reference"),
        uri=field_uri(fields, "uri", "source_url", "url", "link", "permalink"),
    )


def read_date(text: str) -> Moment | None:
    """The first date of a text: `2015-10-21`, `21 October 2015`, `Oct 21st, 2015`; with its time if it has a zone."""
    iso = _ISO.search(text)
    if iso is not None:
        whole = iso.group()
        has_zone = re.search(r"(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})$", whole[10:]) is not None
        return read_time(whole if has_zone else whole[:10])
    written = _WRITTEN.search(text)
    month = ((written["m1"] or written["m2"]).lower()[:3]) if written else ""
    if written is None or month not in _MONTHS:
        return None
    try:
        day = int(written["d1"] or written["d2"])
        return Moment(datetime(int(written["y"]), _MONTHS.index(month) + 1, day, tzinfo=UTC), "day")
    except ValueError:
        return None


def _title(found: list[Section]) -> tuple[str, list[Section]]:
    """The first heading is the title where it is of the highest level and nothing but blank lines stands before it."""
    if len(found) < 2 or found[0].source.strip() or named_part(found[1].heading) is not None:
        return "", found
    first = found[1]
    if any(section.level <= first.level for section in found[2:]) and part_of(first.heading) is not None:
        return "", found
    if any(section.level < first.level for section in found[2:]):
        return "", found
    return first.heading, [Section(0, "", first.text, first.text), *found[2:]]


def _parts(found: list[Section]) -> list[Part | None]:
    """The part of each section: its own heading's, or that of the nearest heading above it that has one."""
    above: list[tuple[int, Part | None]] = []
    parts: list[Part | None] = []
    for section in found:
        while above and section.level and above[-1][0] >= section.level:
            above.pop()
        part = part_of(section.heading) if section.level else None
        if part is None and section.level:
            part = next((inherited for _, inherited in reversed(above) if inherited), None)
        above.append((section.level, part))
        parts.append(part)
    return parts


def _joined(found: list[Section], parts: list[Part | None], wanted: Part) -> str:
    """All text of a part; headings that name nothing but the part itself are left out."""
    told = [
        without_comments(section.source if part_of(section.heading) is None else section.text)
        for section, part in zip(found, parts, strict=True)
        if part == wanted
    ]
    return "\n\n".join(text for text in told if text)


def _summary(fields: dict[str, Any], found: list[Section], parts: list[Part | None]) -> str:
    """What it calls its summary; else its front matter's; else what it begins with."""
    own = _joined(found, parts, "summary")
    if own:
        return own
    given = field_text(fields, "summary", "description", "excerpt")
    if given:
        return given
    paragraphs = [
        block.strip() for block in without_comments(found[0].text).split("\n\n") if not _only_facts(block.strip())
    ]
    return paragraphs[0] if paragraphs else ""


def _only_facts(block: str) -> bool:
    return not block or all(_known_fact(line) for line in block.splitlines())


def _known_fact(line: str) -> tuple[str, str] | None:
    found = _FACT.match(line) if len(line) <= _FACT_LIMIT else None
    if found is None:
        return None
    name = " ".join(found[1].lower().split())
    known = name in _FACT_NAMES or name in ("authors", "author", "owner", "duration", "meeting", "call recording")
    return (name, found[2].strip().strip("*_ ")) if known else None


def _facts(fields: dict[str, Any], found: list[Section], parts: list[Part | None]) -> defaultdict[str, str]:
    """Facts from the front matter, from lines like `**Date:** 2015-10-21`, and from sections like `## Date`."""
    facts: defaultdict[str, str] = defaultdict(str)
    for name, said in _told_facts(found, parts):
        facts[name] = facts[name] or said
    service = field_text(fields, "service", "product", "component") or ", ".join(field_list(fields, "services"))
    facts["service"] = service or facts["service"] or facts["services"] or facts["component"]
    facts["severity"] = field_text(fields, "severity") or facts["severity"]
    return facts


def _told_facts(found: list[Section], parts: list[Part | None]) -> Iterator[tuple[str, str]]:
    for section, part in zip(found, parts, strict=True):
        if section.level == 0 or part in ("facts", "summary"):
            for line in section.text.splitlines():
                if (fact := _known_fact(line)) is not None:
                    yield fact
        if part == "facts" and section.text.strip():
            yield section.heading.strip(": ").lower(), section.text.strip().splitlines()[0]


def _first_time(fields: dict[str, Any], facts: dict[str, str], names: tuple[str, ...]) -> Moment | None:
    for name in names:
        for told in (fields.get(name), facts.get(name)):
            moment = read_date(told) if isinstance(told, str) else None
            if moment is not None:
                return moment
    return None


def _items(found: list[Section], parts: list[Part | None]) -> Iterator[Item]:
    for section, part in zip(found, parts, strict=True):
        if part == "follow_ups":
            yield from items(without_comments(section.text))

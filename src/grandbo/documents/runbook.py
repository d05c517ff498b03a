"""Runbooks in Markdown, HTML or YAML, and alerting rules, as guidance that can be remembered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from grandbo.documents import rules
from grandbo.documents.files import RUNBOOK_FORMATS, Format, format_of, text_of
from grandbo.documents.frontmatter import field_list, field_text, field_uri, split_front_matter
from grandbo.documents.headings import part_of
from grandbo.documents.html import html_title, to_markdown
from grandbo.documents.markdown import first_paragraph, sections
from grandbo.documents.yaml import load_all
from grandbo.errors import InvalidInput

_WORDS = re.compile(r"[-_\s]+")
_TITLES = ("title", "name", "alert")
_TEXTS = ("body", "content", "text", "procedure")
_SUMMARIES = ("summary", "description", "excerpt")
_READ = {*_TITLES, *_TEXTS, *_SUMMARIES, "service", "applies_to", "applicability", "tags", "owner", "url", "uri", "id"}


@dataclass(frozen=True, slots=True)
class Runbook:
    """
    One piece of guidance.

    Attributes:
        part: what tells it from others of its file; empty where it is the whole of it.
        applies_to: names of alerts and systems, and systems with versions such as `worker >=4`.
        uri: where it says that it stands itself.
    """

    title: str
    summary: str
    body: str
    part: str = ""
    service: str = ""
    owner: str = ""
    tags: tuple[str, ...] = ()
    applies_to: tuple[str, ...] = ()
    uri: str = ""


def read_runbooks(raw: bytes, path: str) -> list[Runbook]:
    """
    All guidance in a file, in order.

    Args:
        path: its suffix tells the format, and its name stands in for a title that is missing.

    Raises:
        InvalidInput, LimitExceeded: with the reason.
    """
    kind: Format = format_of(path)
    if kind not in RUNBOOK_FORMATS:
        raise InvalidInput("A runbook is Markdown, HTML or YAML; export the text of a PDF.", field="file")
    text = text_of(raw)
    if kind == "yaml":
        return list(_of_yaml(text, path))
    if kind == "html":
        title = html_title(text)
        return [_of_markdown(to_markdown(text), title or _named(path))]
    return [_of_markdown(text, _named(path))]


def title_of(text: str, name: str) -> str:
    """The first heading of the first level; where there is none, the name in words."""
    own = next((section.heading for section in sections(text) if section.level == 1 and section.heading), "")
    return own or _WORDS.sub(" ", name).strip()


def _of_markdown(text: str, fallback: str) -> Runbook:
    fields, rest = split_front_matter(text)
    found = sections(rest)
    own_title = found[1].heading if len(found) > 1 and found[1].level == 1 else ""
    has_title_first = bool(own_title) and not found[0].source.strip()
    body = "\n".join(section.source for section in found).strip("\n")
    if has_title_first:
        body = "\n".join([found[1].text, *(section.source for section in found[2:])]).strip("\n")
    if not body.strip() and not field_text(fields, *_SUMMARIES):
        raise InvalidInput("The runbook says nothing below its title.", field="file")
    summary = field_text(fields, *_SUMMARIES) or _summary(found[1:] if has_title_first else found)
    return _with_fields(Runbook(field_text(fields, "title") or own_title or fallback, summary, body), fields)


def _summary(found: list[Any]) -> str:
    """The first paragraph, or that of the section that is called so; `Meaning` is what alert runbooks call it."""
    called = [s for s in found if s.heading.lower() in ("meaning", "overview") or part_of(s.heading) == "summary"]
    return next((said for section in [*called, *found] if (said := first_paragraph(section.text))), "")


def _with_fields(runbook: Runbook, fields: dict[str, Any]) -> Runbook:
    return replace(
        runbook,
        service=field_text(fields, "service", "component") or ", ".join(field_list(fields, "services")),
        owner=field_text(fields, "owner", "team"),
        tags=tuple(field_list(fields, "tags", "keywords", "labels")),
        applies_to=tuple(field_list(fields, "applies_to", "alerts", "applicability")),
        uri=field_uri(fields, "uri", "source_url", "url", "permalink"),
    )


def _of_yaml(text: str, path: str) -> Iterator[Runbook]:
    documents = [document for document in load_all(text) if document is not None]
    found = [runbook for document in documents for runbook in _of_document(document, path)]
    if not found:
        raise InvalidInput(
            "The YAML holds neither alerting rules nor a runbook with a title and a body (or steps).", field="file"
        )
    counted: Counter[str] = Counter()
    for runbook in found:
        counted[runbook.part] += 1
        again = f"-{counted[runbook.part]}" if counted[runbook.part] > 1 else ""
        yield replace(runbook, part=f"{runbook.part}{again}")


def _of_document(document: Any, path: str) -> Iterator[Runbook]:
    if rules.is_rule_file(document):
        yield from map(_of_alert, rules.alerts(document))
        return
    many = document if isinstance(document, list) else None
    if isinstance(document, dict) and isinstance(document.get("runbooks"), list):
        many = document["runbooks"]
    for item in many if many is not None else [document]:
        if isinstance(item, dict):
            fields = {str(name).strip().lower(): value for name, value in item.items()}
            body = _yaml_body(fields)
            if body and field_text(fields, *_TITLES):
                part = _slug(field_text(fields, "id", *_TITLES)) if many is not None else ""
                title = field_text(fields, *_TITLES) or _named(path)
                runbook = Runbook(title, field_text(fields, *_SUMMARIES), body, part)
                yield _with_fields(runbook, fields)


def _of_alert(alert: dict[str, Any]) -> Runbook:
    annotations, labels = alert["annotations"], alert["labels"]
    summary = annotations.get("summary") or annotations.get("description") or annotations.get("message", "")
    return Runbook(
        alert["name"],
        " ".join(summary.split()),
        alert["text"],
        part=_slug(alert["name"]),
        service=labels.get("service", ""),
        owner=labels.get("team", ""),
        tags=tuple(filter(None, ["alert", labels.get("severity", "")])),
        applies_to=(alert["name"],),
        uri=field_uri(annotations, "runbook_url", "runbook"),
    )


def _yaml_body(fields: dict[str, Any]) -> str:
    """The texts, then the steps, then every field that has no other place: nothing is left out."""
    blocks = [fields[name].strip() for name in _TEXTS if isinstance(fields.get(name), str)]
    for name, value in fields.items():
        if name not in _READ:
            blocks.append(f"## {name.replace('_', ' ').capitalize()}\n\n{_markdown_of(value)}")
    return "\n\n".join(filter(None, blocks))


def _markdown_of(value: Any, depth: int = 0) -> str:
    if isinstance(value, dict):
        rows = [(f"{name}:", inner) for name, inner in value.items()]
    elif isinstance(value, list):
        rows = [("", inner) for inner in value]
    else:
        return "" if value is None else str(value).strip()
    indent = "  " * depth
    told = []
    for label, inner in rows:
        nested = _markdown_of(inner, depth + 1)
        is_block = isinstance(inner, dict | list)
        told.append(f"{indent}- {label}\n{nested}" if is_block else f"{indent}- {label} {nested}".replace("-  ", "- "))
    return "\n".join(told)


def _named(path: str) -> str:
    """A title out of a file's name; of an index page, of its folder's."""
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    stem = parts[-1].rpartition(".")[0] or parts[-1]
    if stem.lower() in ("readme", "index", "_index") and len(parts) > 1:
        stem = parts[-2]
    return _WORDS.sub(" ", stem).strip() or "Runbook"


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-")[:80]

"""The YAML in front of a Markdown text."""

from __future__ import annotations

import re
from typing import Any

from grandbo.documents.yaml import load_all
from grandbo.errors import InvalidInput
from grandbo.screening import uri_problem

_FENCED = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}:[^\s\x00-\x1f\x7f-\x9f]{1,1990}")


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """
    The fields in front, by names in lower case, and the text behind; no fields where there are none.

    Raises:
        InvalidInput: what stands there is no YAML, or no fields.
    """
    found = _FENCED.match(text)
    if found is None:
        return {}, text
    documents = load_all(found.group(1))
    fields = documents[0] if documents else {}
    if isinstance(fields, str) or fields is None:
        return {}, text  # a rule across the page and a paragraph
    if not isinstance(fields, dict) or len(documents) > 1:
        raise InvalidInput("The front matter is no list of fields.", field="file")
    return {str(name).strip().lower(): value for name, value in fields.items()}, text[found.end() :]


def field_text(fields: dict[str, Any], *names: str) -> str:
    """The first field of these names that is a text, or a number; on one line."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())
    return ""


def field_list(fields: dict[str, Any], *names: str) -> list[str]:
    """All members of the fields of these names; a text is split at commas."""
    found: list[str] = []
    for name in names:
        value = fields.get(name)
        members = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
        found += [" ".join(str(item).split()) for item in members if isinstance(item, str | int | float)]
    return list(dict.fromkeys(item for item in found if item))


def field_uri(fields: dict[str, Any], *names: str) -> str:
    """The first field of these names that evidence may name; a path within a site is none."""
    said = (field_text(fields, name) for name in names)
    return next((uri for uri in said if _URI.fullmatch(uri) and uri_problem(uri) is None), "")

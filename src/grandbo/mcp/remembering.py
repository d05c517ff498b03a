"""The tools that have things remembered about people and workspaces."""

from __future__ import annotations

from typing import Any

from grandbo.library import TenantMemory
from grandbo.mcp.answers import ToolAnswer
from grandbo.memory.personal import Preview, Remembered
from grandbo.recall.block import fence, new_marker, quoted

NOT_YET = "Nothing is stored yet: show this to the person and ask; a person confirms the token, you cannot."


def remember_about_person(memory: TenantMemory, given: dict[str, Any]) -> ToolAnswer:
    """Have something about a person wait for that person's confirmation."""
    return _answer(memory.remember(_fact(given)))


def remember_about_workspace(memory: TenantMemory, given: dict[str, Any]) -> ToolAnswer:
    """Have something about a workspace remembered, at once where the tenant's policy lets it in."""
    return _answer(memory.remember_workspace(_fact(given)))


def _fact(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "subject": given["subject"],
        "memory_key": given["memory_key"],
        "title": given["title"],
        "text": given["text"],
        "expires_at": given["expires_at"] or None,
    }


def _answer(done: Preview | Remembered) -> ToolAnswer:
    document = done.as_dict()
    if document["stored"]:
        what = "Remembered" if document["appended"] else "Known already"
        return ToolAnswer(f"{what} as entry {document['entry_id']}.", document)
    says = "an inference" if document["is_inference"] else "a statement"
    name = document["about"]["name"] or document["about"]["subject_id"]
    marker = new_marker()
    inside = [
        f"about: {quoted(name, marker)}",
        f"title: {quoted(document['title'], marker)}",
        f"text: {quoted(document['text'], marker)}",
        f"by: {document['author']['type']}, {says}; kept until {document['expires_at']}",
    ]
    text = f"{NOT_YET}\n{fence(inside, marker)}\ntoken: {document['token']} (until {document['waits_until']})"
    return ToolAnswer(text, document)

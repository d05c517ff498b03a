"""Rootly: events of incidents, and of their post-mortems."""

from __future__ import annotations

from typing import Any

from grandbo.documents.html import to_markdown
from grandbo.documents.postmortem import read_postmortem
from grandbo.errors import GrandboError
from grandbo.hooks.drafting import draft, follow_up, source
from grandbo.hooks.drafts import Draft, DraftEvent, DraftEvidence, Headers, Ignored, Mapped, Payload, Unmappable
from grandbo.hooks.reading import at, first_text, is_true, items, key, named, needed, needed_object, text, texts

_EVENTS: dict[str, DraftEvent] = {
    "incident.created": "opened",
    "incident.updated": "updated",
    "incident.mitigated": "updated",
    "incident.resolved": "resolved",
}
_POSTMORTEM = "incident_post_mortem."
_REAL_KINDS = frozenset({"", "normal", "normal_sub", "backfilled"})


def map(payload: Payload, headers: Headers) -> Mapped:
    """What an event says of its incident. People, chat channels and the timeline's chat lines are not read."""
    kind = needed(payload, "event.type")
    if kind in _EVENTS:
        return (_incident(_EVENTS[kind], needed_object(payload, "data")),)
    if not kind.startswith(_POSTMORTEM):
        return Ignored("rootly: this type of event teaches nothing")
    data = needed_object(payload, "data")
    if kind.endswith("deleted") or (kind != f"{_POSTMORTEM}published" and text(data, "status") != "published"):
        return Ignored("rootly: the post-mortem is not published")
    return (_postmortem(data),)


def delivery_key(payload: Payload, headers: Headers) -> str:
    """The id of the event."""
    return key(text(payload, "event.id"))


def _incident(event: DraftEvent, data: dict[str, Any]) -> Draft:
    return draft(
        event,
        needed(data, "id", within="data"),
        title=text(data, "title"),
        summary=text(data, "summary"),
        body=[
            f"{label}: {text(data, name)}"
            for label, name in (("Mitigation", "mitigation_message"), ("Resolution", "resolution_message"))
            if text(data, name)
        ],
        service=named(data, "services"),
        severity=first_text(data, "severity.name", "severity.severity", "severity"),
        tags=[*named(data, "environments").split(", "), *named(data, "functionalities").split(", ")],
        evidence=[
            source("incident", first_text(data, "url", "short_url"), f"Rootly incident {text(data, 'sequential_id')}"),
            source("postmortem", text(data, "incident_post_mortem.url"), "post-mortem"),
            *_follow_ups(data),
        ],
        started=at(data, "started_at"),
        ended=at(data, "resolved_at"),
        is_drill=text(data, "kind").lower() not in _REAL_KINDS,
        is_private=is_true(data, "private"),
    )


def _follow_ups(data: dict[str, Any]) -> list[DraftEvidence | None]:
    return [
        follow_up("rootly", text(item, "id"), first_text(item, "summary", "description"))
        for item in items(data, "action_items")
        if text(item, "status").lower() not in ("done", "completed", "cancelled") and text(item, "kind") != "task"
    ]


def _postmortem(data: dict[str, Any]) -> Draft:
    title = text(data, "title")
    try:
        read = read_postmortem(to_markdown(text(data, "content")), title=title or "post-mortem")
    except GrandboError as error:
        raise Unmappable(f"data.content cannot be read as a document: {error.code}.") from None
    return draft(
        "postmortem",
        needed(data, "incident_id", within="data"),
        title=title,
        summary=read.summary,
        body=read.body,
        cause=read.cause,
        tags=texts(data, "labels"),
        evidence=[source("postmortem", text(data, "url"), title)],
        started=at(data, "started_at"),
        ended=at(data, "resolved_at"),
        is_private=is_true(data, "private"),
    )

"""Sentry, an integration's webhook: issues."""

from __future__ import annotations

from typing import Any

from grandbo.hooks.drafting import bullet, draft, lines, source
from grandbo.hooks.drafts import DraftEvent, Headers, Ignored, Mapped, Payload
from grandbo.hooks.reading import at, first_text, header, is_true, key, needed, needed_object, text

_EVENTS: dict[str, DraftEvent] = {"created": "opened", "resolved": "resolved", "unresolved": "reopened"}
REGRESSED = "regressed"


def map(payload: Payload, headers: Headers) -> Mapped:
    """What an action says of its issue. The actor and the users that met it are not read."""
    if header(headers, "sentry-hook-resource") not in ("", "issue"):
        return Ignored("sentry: this type of resource teaches nothing")
    action = needed(payload, "action")
    if action not in _EVENTS:
        return Ignored("sentry: this action teaches nothing")
    issue = needed_object(payload, "data.issue")
    substatus = text(issue, "substatus")
    return (
        draft(
            "reopened" if substatus == REGRESSED else _EVENTS[action],
            needed(issue, "id", within="data.issue"),
            title=text(issue, "title"),
            body=lines(
                bullet("where", text(issue, "culprit")),
                bullet("seen", f"{text(issue, 'count')} times" if text(issue, "count") else ""),
                bullet("last seen", text(issue, "lastSeen")),
                *(_resolution(issue) if action == "resolved" else ()),
            ),
            service=first_text(issue, "project.slug", "project.name"),
            severity=text(issue, "level"),
            tags=[text(issue, "shortId"), *([REGRESSED] if substatus == REGRESSED else [])],
            evidence=[source("issue", first_text(issue, "web_url", "permalink"), text(issue, "shortId"))],
            started=at(issue, "firstSeen"),
            ended=at(issue, "lastSeen") if action == "resolved" else None,
        ),
    )


def delivery_key(payload: Payload, headers: Headers) -> str:
    """The id of the request; its time is not signed."""
    return key(header(headers, "request-id"))


def _resolution(issue: dict[str, Any]) -> list[str]:
    details = at(issue, "statusDetails")
    return [
        bullet("resolved in release", text(details, "inRelease")),
        bullet("resolved in commit", first_text(details, "inCommit.commit", "inCommit.id", "inCommit")),
        bullet("resolved in", "the next release" if is_true(details, "inNextRelease") else ""),
    ]

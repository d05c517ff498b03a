"""
What the deliveries of one incident say together, and the finding that this makes. Pure.

Deliveries come twice, late and in the wrong order. So what is kept is what a fold can be told again without becoming
another: the latest word of each field, times, evidence by its URI.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from grandbo.errors import GrandboError
from grandbo.finding_limits import (
    BODY_LIMIT_BYTES,
    EVIDENCE_LIMIT,
    NAME_LIMIT,
    SUMMARY_LIMIT,
    TAG_LIMIT,
    TAGS_LIMIT,
    TITLE_LIMIT,
    URI_LIMIT,
)
from grandbo.hooks.drafts import Draft
from grandbo.memory.finding import EvidenceItem
from grandbo.types import Moment, utc_text

EVIDENCE_KEPT = 200
_TEXTS = ("title", "summary", "body", "cause", "service", "severity")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_SPACES = re.compile(r"\s+")
_LENGTHS = {"year": 4, "month": 7, "day": 10}
_CUT = "\n\n[Cut here: the source says more than is kept; see the evidence.]"

Said = dict[str, Any]


def fold(said: Mapping[str, Any], draft: Draft, received_at: datetime) -> Said:
    """What is known of the incident after one more draft; the same draft again changes nothing."""
    seen = utc_text(received_at)
    # What came late fills gaps; it does not take back what was said after it. An alert only bears witness.
    is_latest = seen >= said.get("said_at", "") and draft.event != "alert"
    now: Said = dict(said)

    def take(name: str, value: Any) -> None:
        if value and (is_latest or not now.get(name)):
            now[name] = value

    for name in _TEXTS:
        take(name, _clean(getattr(draft, name)))
    take("tags", [line for tag in draft.tags if (line := _line(tag))])
    take("opened", _moment(draft.occurred_at, received_at))
    now["evidence"] = _together(said.get("evidence", []), draft)
    if draft.event == "opened" and not now.get("opened"):
        now["opened"] = seen
    elif draft.event == "resolved" and seen >= said.get("resolved_seen", ""):
        now |= {"resolved": _moment(draft.ended_at, received_at) or seen, "resolved_seen": seen}
    elif draft.event in ("reopened", "postmortem"):
        now[draft.event] = max(seen, said.get(draft.event, ""))
    if is_latest:
        now["said_at"] = seen
    return now


def is_closed(said: Mapping[str, Any]) -> bool:
    """Whether it has been closed once: from then on there is something to remember."""
    return bool(said.get("resolved") or said.get("postmortem"))


def is_open_again(said: Mapping[str, Any]) -> bool:
    """Whether it was opened again after its last close."""
    return bool(said.get("reopened", "") > said.get("resolved_seen", "") and is_closed(said))


def has_cause(said: Mapping[str, Any]) -> bool:
    """Whether the source says why it happened: in so many words, or in a published post-mortem."""
    return bool(said.get("cause") or (said.get("postmortem") and said.get("body")))


def document_of_incident(source: str, incident_id: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """The finding, as a document that `parse_finding` takes: whole fields, cut only with a word that says so."""
    title = _line(said.get("title", ""))
    shown, links = _evidence(source, incident_id, said)
    more = len(said.get("evidence", [])) - links
    body = _body(said, title if len(title) > TITLE_LIMIT else "", more)
    if len(body.encode()) > BODY_LIMIT_BYTES:
        body = body.encode()[: BODY_LIMIT_BYTES - len(_CUT.encode())].decode("utf-8", "ignore") + _CUT
    occurred, ended = said.get("opened"), said.get("resolved")
    return {
        "title": _shortened(title, TITLE_LIMIT)
        or _shortened(f"Incident {_line(incident_id)} of {source}", TITLE_LIMIT),
        "summary": _shortened(said.get("summary", ""), SUMMARY_LIMIT),
        "body": body,
        "service": _shortened(_line(said.get("service", "")), NAME_LIMIT),
        "tags": [tag for tag in dict.fromkeys(said.get("tags", [])) if len(tag) <= TAG_LIMIT][:TAGS_LIMIT],
        "evidence": shown,
        "incident": {"source": source, "id": incident_id},
        "occurred_at": occurred,
        # A day that ends before the minute in which it began is no end.
        "ended_at": None if is_open_again(said) or (occurred and ended and ended < occurred) else ended,
    }


def _body(said: Mapping[str, Any], whole_title: str, more: int) -> str:
    summary = said.get("summary", "")
    parts = [
        whole_title,
        f"## Cause\n\n{said['cause']}" if said.get("cause") else "",
        summary if len(summary) > SUMMARY_LIMIT else "",
        said.get("body", ""),
        "## Incident\n\n" + "\n".join(f"- {line}" for line in _facts(said, more)),
    ]
    return "\n\n".join(part for part in parts if part)


def _facts(said: Mapping[str, Any], more: int) -> list[str]:
    named = {"Severity": said.get("severity"), "Opened": said.get("opened"), "Resolved": said.get("resolved")}
    lines = [f"{name}: {_line(_readable(value))}" for name, value in named.items() if value]
    if said.get("reopened"):
        again = "; it is open again, and what is written here may not be the whole of it" if is_open_again(said) else ""
        lines.append(f"Reopened: {_readable(said['reopened'])}{again}")
    if said.get("postmortem"):
        lines.append(f"Post-mortem published: {_readable(said['postmortem'])}")
    return [*lines, *([f"The source has {more} more pieces of evidence."] if more > 0 else [])]


def _evidence(source: str, incident_id: str, said: Mapping[str, Any]) -> tuple[list[dict[str, str]], int]:
    """What a finding can have of it, and how many of those are the source's own."""
    links = [item for item in said.get("evidence", []) if _is_evidence(item)][:EVIDENCE_LIMIT]
    if links:
        return links, len(links)
    # The delivery itself, which was signed, is what bears witness.
    uri = f"urn:incident:{quote(source, safe='')}:{quote(incident_id, safe='')}"
    return [{"type": "incident", "uri": uri[:URI_LIMIT], "label": _shortened(_line(incident_id), NAME_LIMIT)}], 0


def _is_evidence(item: Mapping[str, str]) -> bool:
    try:
        EvidenceItem.model_validate(dict(item))
    except (GrandboError, ValueError):
        return False
    return not item["uri"].lower().startswith("grandbo:")


def _together(known: list[dict[str, str]], draft: Draft) -> list[dict[str, str]]:
    by_uri = {item["uri"]: item for item in known}
    for item in draft.evidence:
        uri = _line(item.uri)
        told = {"type": _line(item.type)[:NAME_LIMIT], "uri": uri, "label": _shortened(_line(item.label), NAME_LIMIT)}
        by_uri[uri] = {**told, "label": told["label"] or by_uri.get(uri, told)["label"]}
    return list(by_uri.values())[:EVIDENCE_KEPT]


def _moment(moment: Moment | None, received_at: datetime) -> str | None:
    if moment is None:
        return None
    # A sender whose clock is ahead of ours tells of no future.
    text = utc_text(min(moment.at, received_at))
    return text[: _LENGTHS.get(moment.precision, len(text))]


def _readable(text: str) -> str:
    return text.replace(".000000Z", "Z")


def _clean(text: str) -> str:
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def _line(text: str) -> str:
    return _SPACES.sub(" ", _clean(text)).strip()


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"

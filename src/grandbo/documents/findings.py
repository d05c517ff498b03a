"""What an entry of a document would say: plain values, within the limits of an entry, with nothing left out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from grandbo.documents.cutting import parts
from grandbo.documents.postmortem import PostMortem
from grandbo.documents.runbook import Runbook
from grandbo.finding_limits import (
    EVIDENCE_LIMIT,
    FOLLOW_UP,
    NAME_LIMIT,
    SUMMARY_LIMIT,
    TAG_LIMIT,
    TAGS_LIMIT,
    TITLE_LIMIT,
)
from grandbo.types import Moment

POSTMORTEMS = "postmortem"
_VERSIONED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}\s*[<>=!~].*")
_PRECISION_LENGTH = {"year": 4, "month": 7, "day": 10}
_FOLLOW_UPS_AT_MOST = 12


def postmortem_findings(read: PostMortem, *, document_id: str, uri: str, name: str) -> list[dict[str, Any]]:
    """
    A post-mortem as findings: one, or several where its text is longer than an entry.

    Args:
        document_id: what stays the same when the document changes.
        uri: where the document stands; its first evidence. Empty where that is not known.
        name: of the file, for people.
    """
    own = uri or f"urn:grandbo:document:{_digest(document_id)}"
    evidence = [_evidence(POSTMORTEMS if uri else "document", own, name or read.title)]
    evidence += [
        _evidence(FOLLOW_UP, _follow_up_uri(uri, document_id, number), text)
        for number, text in enumerate(read.open_items[:_FOLLOW_UPS_AT_MOST], start=1)
    ]
    evidence += [_evidence("link", link, "named in the post-mortem") for link in read.links if link != own]
    base = {
        "kind": "finding",
        "service": _line(read.service, NAME_LIMIT),
        "tags": _tags([*read.tags, read.severity]),
        "evidence": evidence[:EVIDENCE_LIMIT],
        "occurred_at": _time(read.started),
        "ended_at": _time(read.ended) if _is_after(read.started, read.ended) else None,
    }
    summary = _with_cause(read.summary, read.cause)
    return _in_parts(base, POSTMORTEMS, document_id, read.title, summary, read.body)


def runbook_findings(runbook: Runbook, *, path: str, collection: str, uri: str, service: str) -> list[dict[str, Any]]:
    """
    A runbook as findings: one, or several where its text is longer than an entry.

    Args:
        path: of its file within the collection; with the runbook's part it is its id.
        uri: of the file, where it is known; else what the runbook says itself.
    """
    document_id = f"{path}#{runbook.part}" if runbook.part else path
    own = uri or runbook.uri or f"urn:grandbo:document:{quote(collection, safe='')}:{quote(document_id, safe='/')}"
    sources = [_evidence("runbook", own, document_id)]
    if runbook.uri and runbook.uri != own:
        sources.append(_evidence("runbook", runbook.uri, "named in the document"))
    names = [item for item in runbook.applies_to if not _VERSIONED.fullmatch(item)]
    base = {
        "kind": "runbook",
        "service": _line(runbook.service or service, NAME_LIMIT),
        "tags": _tags([*names, *runbook.tags]),
        "evidence": sources,
        "applicability": [item for item in runbook.applies_to if _VERSIONED.fullmatch(item)],
        "owner": _line(runbook.owner, NAME_LIMIT) or None,
    }
    return _in_parts(base, f"runbooks:{collection}", document_id, runbook.title, runbook.summary, runbook.body)


def _in_parts(
    base: dict[str, Any], source: str, document_id: str, title: str, summary: str, body: str
) -> list[dict[str, Any]]:
    """One finding for each part of the body. What does not fit into title or summary stands whole in the body."""
    title, summary = " ".join(title.split()), summary.strip()
    overlong = [text for text, limit in ((title, TITLE_LIMIT), (summary, SUMMARY_LIMIT)) if len(text) > limit]
    cut = parts("\n\n".join([*(text for text in overlong if text not in body), body]).strip("\n"))
    found = []
    for number, part in enumerate(cut, start=1):
        place = f" (part {number} of {len(cut)})" if len(cut) > 1 else ""
        own_id = _own_id(document_id) + (f"#part-{number}" if number > 1 else "")
        found.append(
            base
            | {
                "title": _shortened(title, TITLE_LIMIT - len(place)) + place,
                "summary": _shortened(summary, SUMMARY_LIMIT) if number == 1 else f"Continues {_shortened(title, 200)}",
                "body": part,
                "incident": {"source": source, "id": own_id},
                "external_id": own_id,
            }
        )
    return found


def _own_id(document_id: str) -> str:
    """The id itself, or where it is too long for one, its digest."""
    return document_id if len(document_id) <= NAME_LIMIT - 20 else f"sha256:{_digest(document_id)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()


def _with_cause(summary: str, cause: str) -> str:
    """A finding has no field of its own for the cause, and it is what an investigator looks for first."""
    told = f"{summary}\n\nCause: {cause}".strip() if cause and cause not in summary else summary
    return told if len(told) <= SUMMARY_LIMIT else f"{summary}\n\nCause: {_shortened(cause, 1_500)}".strip()


def _follow_up_uri(uri: str, document_id: str, number: int) -> str:
    return (
        f"{uri.partition('#')[0]}#follow-up-{number}"
        if uri
        else f"urn:grandbo:document:{_digest(document_id)}#{number}"
    )


def _evidence(kind: str, uri: str, label: str) -> dict[str, str]:
    return {"type": kind, "uri": uri, "label": _shortened(" ".join(label.split()), NAME_LIMIT - 20)}


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _line(text: str, limit: int) -> str:
    return _shortened(" ".join(text.split()), limit)


def _tags(given: Iterable[str]) -> list[str]:
    fit = (" ".join(tag.split()) for tag in given)
    return list(dict.fromkeys(tag for tag in fit if tag and len(tag) <= TAG_LIMIT))[:TAGS_LIMIT]


def _is_after(start: Moment | None, end: Moment | None) -> bool:
    return end is not None and (start is None or end.at >= start.at)


def _time(moment: Moment | None) -> str | None:
    if moment is None:
        return None
    return moment.at.isoformat()[: _PRECISION_LENGTH.get(moment.precision)]

"""What is held about a subject, as a page that a person reads. Pure: from the document to Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# What Markdown could take for its own; what was remembered is text, whatever it looks like.
_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~&])")


def render_held(document: Mapping[str, Any]) -> str:
    """The report. The same document gives the same text."""
    return "\n".join(_lines(document)).rstrip() + "\n"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    subject = document["subject"]
    yield f"# What is held about {_plain(subject['name'] or subject['subject_id'])}"
    yield ""
    yield f"- id: `{subject['subject_id']}`, a {subject['kind']}, {subject['state']}"
    yield f"- registered: {subject['registered_at'] or 'not known any more'}"
    own = ", ".join(f"{one['type']} {_plain(one['name'])}" for one in subject["principals"]) or "nobody"
    yield f"- told to: {own}"
    if subject["hold"]:
        yield f"- on hold since {subject['hold']['since']}: {_plain(subject['hold']['reason'])}"
    if subject["erased_at"]:
        yield f"- erased: {subject['erased_at']}"
    if document["erasure"]:
        yield f"- erasure: {document['erasure']['state']} ({document['erasure']['reason']})"
    yield f"- purpose: {_plain(document['purpose'])}"
    yield "- to have it erased, ask whoever administers this memory: `grandbo subject forget`"
    for entry in document["entries"]:
        yield from _entry(entry)
    for candidate in document["candidates"]:
        yield from _candidate(candidate)
    if document["waiting"]:
        yield from ("", "## Waits to be confirmed", "")
        for waits in document["waiting"]:
            yield f"- asked {waits['asked_at']} by a {waits['asked_by']['type']}, until {waits['until']}"
    if document["deliveries"]:
        yield from ("", "## Delivered by tools", "")
        for item in document["deliveries"]:
            yield f"- {item['received_at']} by {_plain(item['source'])}, {item['state']}, {item['bytes']} bytes"


def _entry(entry: Mapping[str, Any]) -> Iterator[str]:
    said = "inferred, not said by a person" if entry["is_inference"] else "said by a person"
    yield from ("", f"## {_plain(entry['revisions'][-1]['title'])}", "")
    yield f"- {entry['kind']} `{entry['entry_id']}`, {entry['status']}, {said}"
    if entry["memory_key"] is not None:
        yield f"- under the key {_plain(entry['memory_key'])}"
    yield f"- recorded {entry['recorded_at']}, kept until {entry['expires_at']}, seen by {_plain(entry['seen_by'])}"
    for revision in entry["revisions"]:
        why = f": {_plain(revision['reason'])}" if revision["reason"] else ""
        yield from ("", f"### Revision {revision['revision']}, {revision['at']}", "")
        yield f"{revision['event_type']} by a {revision['by']['type']}{why}"
        if revision["erased"]:
            yield from ("", "Its words were erased.")
        for name in ("title", "summary", "body"):
            if revision[name]:
                yield from ("", *(f"> {_plain(line)}" for line in revision[name].splitlines()))
        for item in revision["evidence"]:
            yield from ("", f"- source: {_plain(item['type'])}, {_plain(item['uri'])} {_plain(item['label'])}".rstrip())
    yield from ("", "Shown:" if entry["shown"] else "Shown to nobody.", "")
    for shown in entry["shown"]:
        roles = ", ".join(shown["roles"]) or "no role"
        whom = f"{shown['to']['type']} {_plain(shown['to']['name'])}"
        yield f"- {shown['at']} to {whom} ({_plain(roles)}), revision {shown['revision']}"


def _candidate(candidate: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"## Proposed: {_plain(candidate['title'])}", "")
    said = "said by a person" if candidate["author_type"] == "human" else "inferred, not said by a person"
    by = f"{candidate['proposed_by']['type']} {_plain(candidate['proposed_by']['name'])}"
    yield f"- {candidate['kind']} `{candidate['candidate_id']}`, {candidate['status']}, {candidate['proposed_at']}"
    yield f"- {said}, proposed by {by}, seen by {_plain(candidate['seen_by'])}"
    if candidate["memory_key"] is not None:
        yield f"- under the key {_plain(candidate['memory_key'])}"
    for name in ("summary", "body"):
        if candidate[name]:
            yield from ("", *(f"> {_plain(line)}" for line in candidate[name].splitlines()))


def _plain(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)

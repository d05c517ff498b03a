"""Making a draft of what a tool says: every part within its limits, and nothing that cannot be stored."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from grandbo.documents.times import read_time
from grandbo.finding_limits import (
    BODY_LIMIT_BYTES,
    EVIDENCE_LIMIT,
    FOLLOW_UP,
    NAME_LIMIT,
    SUMMARY_LIMIT,
    TAG_LIMIT,
    TAGS_LIMIT,
    TITLE_LIMIT,
    URI_LIMIT,
)
from grandbo.hooks.drafts import Draft, DraftEvent, DraftEvidence, Unmappable
from grandbo.screening import uri_problem

_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_CUT = "\n\n[The tool sent more than an entry holds; the rest is in the tool.]"


def draft(
    event: DraftEvent,
    incident_id: str,
    *,
    title: str = "",
    summary: str = "",
    body: str | Iterable[str] = "",
    cause: str = "",
    service: str = "",
    severity: str = "",
    tags: Iterable[str] = (),
    evidence: Iterable[DraftEvidence | None] = (),
    started: object = None,
    ended: object = None,
    is_drill: bool = False,
    is_private: bool = False,
) -> Draft:
    """
    A draft within the limits of an entry. A title or a summary that is too long is shortened and stands whole in the
    body; a body that is too long says so at its end.

    Args:
        body: paragraphs; empty ones are left out.
        started, ended: in any form that `read_time` reads.
    """
    paragraphs = [body] if isinstance(body, str) else list(body)
    short_title, whole_title = _shortened(_line(title), TITLE_LIMIT)
    short_summary, whole_summary = _shortened(_clean(summary), SUMMARY_LIMIT)
    short_cause, whole_cause = _shortened(_clean(cause), SUMMARY_LIMIT)
    told = [whole_title, whole_summary, whole_cause, *map(_clean, paragraphs)]
    occurred_at, ended_at = read_time(started), read_time(ended)
    if occurred_at and ended_at and ended_at.at < occurred_at.at:
        ended_at = None
    return Draft(
        event,
        _id(incident_id),
        short_title,
        short_summary,
        _fitting("\n\n".join(filter(None, told))),
        short_cause,
        _shortened(_line(service), NAME_LIMIT)[0],
        _shortened(_line(severity), NAME_LIMIT)[0],
        _tags(tags),
        _distinct(evidence),
        occurred_at,
        ended_at,
        is_drill,
        is_private,
    )


def source(kind: str, uri: str, label: str = "") -> DraftEvidence | None:
    """A piece of evidence; None where the tool names no place that people could look at."""
    uri = uri.strip()
    is_uri = ":" in uri and len(uri) <= URI_LIMIT and not any(char.isspace() for char in uri)
    if not is_uri or _UNSTORABLE.search(uri) or uri_problem(uri) is not None:
        return None
    return DraftEvidence(kind, uri, _shortened(_line(label), NAME_LIMIT)[0])


def follow_up(tool: str, found_id: str, label: str, uri: str = "") -> DraftEvidence | None:
    """What is still to be done, as evidence: by its own address, or by the tool and the id that it has there."""
    known = source(FOLLOW_UP, uri, label)
    if known is not None or not found_id:
        return known
    return source(FOLLOW_UP, f"urn:{tool}:follow-up:{quote(_clean(found_id), safe='')}", label)


def bullet(name: str, said: str) -> str:
    """A line of a list, `- name: said`; empty where nothing is said."""
    return f"- {name}: {_line(said)}" if said else ""


def lines(*given: str) -> str:
    """Lines as one paragraph; empty ones are left out."""
    return "\n".join(filter(None, given))


def one_of(known: dict[str, Any], name: str) -> Any:
    """The member of that name, whatever the case and the joints it is written with."""
    return known.get(re.sub(r"[\s.-]+", "_", name.strip().lower()))


def _id(given: str) -> str:
    cleaned = _line(given)
    if not cleaned or len(cleaned) > NAME_LIMIT:
        raise Unmappable(f"The id of the incident is empty or longer than {NAME_LIMIT} characters.")
    return cleaned


def _clean(given: str) -> str:
    return _UNSTORABLE.sub("\ufffd", given.replace("\r\n", "\n").replace("\r", "\n")).strip()


def _line(given: str) -> str:
    return " ".join(_clean(given).split())


def _shortened(given: str, limit: int) -> tuple[str, str]:
    """The text within its limit; and the whole of it where that is more."""
    return (given, "") if len(given) <= limit else (given[: limit - 1].rstrip() + "…", given)


def _fitting(given: str) -> str:
    if len(given.encode()) <= BODY_LIMIT_BYTES:
        return given
    room = BODY_LIMIT_BYTES - len(_CUT.encode())
    return given.encode()[:room].decode(errors="ignore").rstrip() + _CUT


def _tags(given: Iterable[str]) -> tuple[str, ...]:
    cleaned = (_line(tag) for tag in given)
    return tuple(dict.fromkeys(tag for tag in cleaned if tag and len(tag) <= TAG_LIMIT))[:TAGS_LIMIT]


def _distinct(given: Iterable[DraftEvidence | None]) -> tuple[DraftEvidence, ...]:
    return tuple({item.uri: item for item in given if item is not None}.values())[:EVIDENCE_LIMIT]

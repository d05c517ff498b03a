"""What the block says in words of ours: one line per item on what it is worth, one sentence per kind of nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from grandbo.recall.answer import Excluded, Match, Searched

_EVIDENCE = "incident evidence, not guidance"
_GUIDANCE = "maintained guidance"
_NEITHER = "neither evidence nor guidance"
AUTHORITY = {
    "finding": _EVIDENCE,
    "episode": _EVIDENCE,
    "runbook": _GUIDANCE,
    "reference": _GUIDANCE,
    "decision": _GUIDANCE,
    "ruled_out": "shown to be wrong, not a cause",
    "note": _NEITHER,
    "personal": _NEITHER,
}


def header(number: int, match: Match, quoted: Callable[[str], str], *, excerpt_of: int | None = None) -> str:
    """
    The line of one item: what kind of thing it is, who says so, and how far it is checked.

    Args:
        quoted: puts a stored text into a line of ours.
        excerpt_of: characters of the whole, where only an excerpt is shown.
    """
    parts = [
        f"{match.kind} ({AUTHORITY.get(match.kind, _NEITHER)})",
        f"by {match.author_type}",
        f"revision {match.revision}",
        f"last verified {_day(match.verified_at)}" if match.verified_at else "never verified",
        f"confidence {match.confidence_bp / 100:g} %",
    ]
    if match.disputed:
        parts.append(f"DISPUTED with {match.disputed_with}" if match.disputed_with else "DISPUTED")
    if match.expired:
        parts.append("EXPIRED")
    if match.status != "published":
        parts.append(match.status.upper())
    if match.restated:
        parts.append(f"said by {match.restated} more")
    if match.open_follow_ups:
        parts.append(f"{match.open_follow_ups} follow-up{'s' if match.open_follow_ups > 1 else ''} open")
    if match.service:
        parts.append(f"service {quoted(match.service)}")
    if match.applies_to:
        parts.append(f"applies to {', '.join(quoted(name) for name in match.applies_to)}")
    if match.occurred_at:
        parts.append(f"occurred {_day(match.occurred_at)}")
    parts.append(f"expires {_day(match.expires_at)}")
    if excerpt_of is not None:
        parts.append(f"EXCERPT of {excerpt_of} characters")
    return f"[{number}] {' · '.join(parts)}"


def why_empty(searched: Searched) -> str:
    """Say which of the four kinds of nothing it is."""
    if searched.empty_reason == "nothing_in_scope":
        return "Nothing is in scope: no entry that you may see, that is in date, and that the filters let through."
    if searched.empty_reason == "semantic_unavailable":
        return (
            f"Nothing was found by words, and the search by meaning was not available ({searched.degraded}): "
            "this is no proof that nothing is known."
        )
    if searched.empty_reason == "beyond_cutoff":
        nearest = "" if searched.nearest_beyond is None else f", the nearest at {searched.nearest_beyond:.3f}"
        return (
            f"Nothing is near enough: {searched.beyond} of {searched.eligible} entries lie just beyond the cutoff "
            f"of {searched.cutoff}{nearest}."
        )
    return f"Nothing matched: none of the {searched.eligible} entries in scope is about this."


def inapplicable(excluded: Excluded, quoted: Callable[[str], str]) -> str:
    """Say how much was left out because it does not apply to what the asker runs."""
    is_one = excluded.applicability == 1
    count = "1 entry does" if is_one else f"{excluded.applicability} entries do"
    unreadable = ", ".join(quoted(system) for system in excluded.unreadable)
    why = f"; of {unreadable} no version could be read" if unreadable else ""
    return f"{count} not apply to the versions that you run and {'is' if is_one else 'are'} left out{why}."


def _day(moment: datetime) -> str:
    return moment.date().isoformat()

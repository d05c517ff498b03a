"""
The review queue: what waits for a person, what is near it, and the decision.

A decision names the version that it was formed on. Where somebody decided or amended first, the page says who and how,
and what was typed is still there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from grandbo.errors import CandidateDecided, GrandboError, InvalidInput, NotFound
from grandbo.memory.candidacy import CANDIDATE_ALLOWED, CANDIDATE_STATUSES
from grandbo.memory.policy import visible_tiers
from grandbo.memory.proposal import OWN_NAMES
from grandbo.memory.reviewing import cursor_behind, read_cursor
from grandbo.types import KINDS, ORGANISATION_KINDS, new_id
from grandbo.web.call import (
    Answer,
    Call,
    Page,
    Redirect,
    View,
    address,
    id_field,
    id_of,
    number,
    raw_text,
    text,
    ticked,
)
from grandbo.web.verbs import evidence_lines, read_evidence, read_lines, unix_lines

_PLAIN = ("title", "summary", "body", "service", "kind", "visibility", "owner", "expires_at")
_LISTED = ("tags", "applicability")


def _text_of(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda content: str(content[name] or "")


def _lines_of(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda content: "\n".join(content[name])


# What may be set, with what stands in the field and how it is read back.
_INITIAL: dict[str, Callable[[Mapping[str, Any]], str]] = {
    **{name: _text_of(name) for name in _PLAIN},
    **{name: _lines_of(name) for name in _LISTED},
    "evidence": evidence_lines,
}
_READ: dict[str, Callable[[str], Any]] = {"tags": read_lines, "applicability": read_lines, "evidence": read_evidence}
FIELDS: dict[str, tuple[str, ...]] = {
    "approve": ("kind", "visibility", "owner", "applicability", "expires_at"),
    "amend": ("title", "summary", "body", "service", "tags", "evidence"),
    "merge": (),
    "reject": (),
    "withdraw": (),
    "reopen": (),
}


def show_queue(call: Call) -> View:
    """The riskiest first, and of these the oldest."""
    status, kind = text(call.query, "status") or "pending", text(call.query, "kind")
    limit = number(call.query, "limit")
    found = call.memory.candidates(
        status=status,
        kind=kind,
        mine=ticked(call.query, "mine"),
        limit=limit,
        after=read_cursor(text(call.query, "after")),
    )
    shown = {"asked": call.query, "statuses": CANDIDATE_STATUSES, "kinds": KINDS, "status": status}
    return View("queue.html", {"candidates": found, "next": cursor_behind(found, limit)}, shown)


def show_candidate(call: Call) -> View:
    """One candidate with all that a decision needs."""
    return _view(call, call.memory.candidate(call.id_in_path("candidate_id")))


def decide(call: Call) -> Answer:
    """Amend, approve, merge, reject, withdraw or reopen."""
    candidate_id, verb = call.id_in_path("candidate_id"), call.path["verb"]
    if verb not in FIELDS:
        raise NotFound(f"There is no such decision; there are {', '.join(FIELDS)}.")
    try:
        decided = getattr(call.memory, f"{verb}_candidate")(candidate_id, **_options(call, verb, candidate_id))
    except GrandboError as error:
        if error.http_status in (401, 404) or error.http_status >= 500:
            raise
        return _view(call, call.memory.candidate(candidate_id), verb=verb, error=error)
    if verb == "approve" and decided.status == "pending":
        return Redirect(address(f"/review/{candidate_id}", done="approve_first"))
    if verb in ("amend", "reopen"):
        return Redirect(address(f"/review/{candidate_id}", done=verb))
    return Redirect(address("/review", done=verb, entry=decided.entry_id))


def _options(call: Call, verb: str, candidate_id: UUID) -> dict[str, Any]:
    version = number(call.form, "expected_version")
    if version is None:
        raise InvalidInput("expected_version: the form lacks the version it was begun on; open it again.")
    options: dict[str, Any] = {"reason": raw_text(call.form, "reason"), "expected_version": version}
    command_id = id_of(call.form.get("command_id"))
    if command_id is not None and command_id.version != 5:
        options["command_id"] = command_id
    if FIELDS[verb]:
        content = call.memory.candidate(candidate_id)["content"]
        options["changes"] = _changes(call, verb, content)
    if verb == "merge" and (into := id_field(call.form, "into")) is not None:
        options["into"] = into
        options["expected_revision"] = number(call.form, f"revision_{into}")
    return options


def _changes(call: Call, verb: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """The fields whose text is no more what the candidate says."""
    changes = {}
    for name in FIELDS[verb]:
        typed = raw_text(call.form, name)
        if name in call.form and typed != unix_lines(_INITIAL[name](content)):
            changes[name] = _READ.get(name, str)(typed)
    return changes


def _view(call: Call, found: dict[str, Any], *, verb: str | None = None, error: GrandboError | None = None) -> View:
    content = found["content"]
    values = {name: initial(content) for name, initial in _INITIAL.items()}
    values |= {"reason": "", "into": found["into"] or "", "command_id": str(new_id())}
    typed: dict[str, str] = {}
    if verb is not None:
        typed = {name: raw_text(call.form, name) for name in (*FIELDS[verb], "reason", "into") if name in call.form}
    is_own = found["proposed_by"] == call.memory.principal.ref
    possible = [
        name for name in FIELDS if found["status"] in CANDIDATE_ALLOWED[name] and _is_offered(call, name, found, is_own)
    ]
    if found["disputes"]:
        possible = [name for name in possible if name not in ("amend", "merge")]
    shown = {
        "values": values,
        "typed": typed,
        "tried": verb,
        "possible": possible,
        "is_own": is_own,
        "kinds": ORGANISATION_KINDS,
        "is_personal": content["kind"] == "personal",
        "is_about": content["kind"] in OWN_NAMES,
        "tiers": visible_tiers(call.memory.tenant.policy, call.memory.principal),
        "decided_first": isinstance(error, CandidateDecided),
        "has_first": bool(found["approved_by"]) and found["status"] == "pending",
    }
    data = {"candidate": found, "error": error.as_dict() if error else None}
    return View("candidate.html", data, shown, error.http_status if error else 200)


def _is_offered(call: Call, verb: str, found: Mapping[str, Any], is_own: bool) -> bool:
    if verb == "withdraw":
        return is_own and not call.memory.principal.read_only
    if verb == "amend":
        return bool(found["may_decide"]) or call.may("govern") or (is_own and not call.memory.principal.read_only)
    return bool(found["may_decide"]) or (is_own and verb == "reopen" and call.may("govern"))


PAGES = (
    Page("/review", show_queue),
    Page("/review/{candidate_id}", show_candidate),
    Page("/review/{candidate_id}/{verb}", send=decide),
)

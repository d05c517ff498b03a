"""Search: a topic, and why each match is there; as it stands, as it stood, as another role, as an agent is given it."""

from __future__ import annotations

from typing import Any

from grandbo.errors import GrandboError
from grandbo.memory.policy import ROLES
from grandbo.recall.answer import MODES
from grandbo.recall.question import ASKABLE_STATUSES
from grandbo.types import KINDS
from grandbo.web.call import Call, Page, View, chosen, moment, number, text, ticked

_LIMITS = (5, 10, 20)


def show_search(call: Call) -> View:
    """The form, and the answer where something was asked."""
    topic = text(call.query, "topic")
    shown: dict[str, Any] = {
        "asked": call.query,
        "kinds": KINDS,
        "modes": MODES,
        "statuses": ASKABLE_STATUSES,
        "roles": ROLES,
        "limits": _LIMITS,
        "error": None,
        "block": None,
        "difference": None,
        "wanted_kinds": call.query.getlist("kind"),
        "wanted_statuses": call.query.getlist("status"),
    }
    if topic is None:
        return View("search.html", {"answer": None}, shown)
    try:
        return _answered(call, topic, shown)
    except GrandboError as error:
        if error.http_status >= 500:
            raise
        return View("search.html", {"answer": None, **error.as_dict()}, shown | {"error": error}, error.http_status)


def _answered(call: Call, topic: str, shown: dict[str, Any]) -> View:
    asked: Any = {
        "limit": number(call.query, "limit"),
        "kinds": chosen(call.query, "kind"),
        "statuses": chosen(call.query, "status"),
        "service": text(call.query, "service"),
        "namespace": text(call.query, "namespace"),
        "mode": text(call.query, "mode"),
        "as_of": moment(call.query, "as_of"),
        "as_of_position": number(call.query, "as_of_position"),
        "valid_at": moment(call.query, "valid_at"),
        "as_role": text(call.query, "as_role"),
    }
    data: dict[str, Any] = {}
    if ticked(call.query, "diff"):
        compared = call.memory.query_topic_diff(topic, **asked)
        answer, difference = compared.then, compared.as_dict()
        data["difference"] = {name: difference[name] for name in ("added", "dropped", "reordered", "revised")}
        shown |= {"difference": data["difference"]}
    else:
        answer = call.memory.query_topic(topic, **asked)
    data["answer"] = answer.as_dict()
    if ticked(call.query, "block"):
        data["block"] = call.memory.context_block(answer, topic).as_dict()
        shown |= {"block": data["block"]}
    return View("search.html", data, shown)


PAGES = (Page("/search", show_search),)

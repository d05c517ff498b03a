"""Where one begins: the search box, what waits, and on a first day without data the sample to try it with."""

from __future__ import annotations

from typing import Any

from grandbo.memory.policy import require
from grandbo.sample import TOPICS, sample_lines
from grandbo.web.call import Call, Page, Redirect, View, address


def show_start(call: Call) -> View:
    """What waits for whoever asks."""
    memory = call.memory
    found = memory.list_entries(limit=1) if call.may("recall") else None
    is_empty = found is not None and not found.entries
    data: dict[str, Any] = {
        "tenant": {"tenant_id": str(memory.tenant_id), "name": memory.tenant.name},
        "is_empty": is_empty,
        "waiting": len(memory.candidates(limit=100)) if call.may("govern") else None,
        "due": len(memory.due(limit=100).due) if call.may("recall") else None,
    }
    return View("start.html", data, {"topics": TOPICS, "tenant": memory.tenant.name})


def load_sample(call: Call) -> Redirect:
    """Record the incidents that ship with the package; again it changes nothing."""
    require(call.memory.principal, "record")
    report = call.memory.import_lines(sample_lines(), "finding")
    return Redirect(address("/", done="sample", count=report.recorded))


PAGES = (Page("/", show_start), Page("/sample", send=load_sample))

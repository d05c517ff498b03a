"""A piece of long work: how far it is, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from grandbo.memory.policy import Act, require
from grandbo.types import new_id
from grandbo.web.call import Call, Page, View


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a kind of work is called, who may look at it, and the page that it was begun on."""

    words: str
    act: Act
    back: str
    back_words: str


_KINDS = {
    "verify": _Kind("verify the log", "audit", "/audit", "Audit"),
    "rebuild": _Kind("check that the projections follow from the log", "audit", "/audit", "Audit"),
    "sign": _Kind("sign the log as it stands", "audit", "/audit", "Audit"),
    "embed": _Kind("embed what lacks a vector", "administer", "/admin/stamps", "Spaces of vectors"),
    "calibrate": _Kind("measure the cutoff", "administer", "/admin/stamps", "Spaces of vectors"),
}


def show_work(call: Call) -> View:
    """How far a piece of work is, and what came of it."""
    job = call.jobs.find(call.memory.tenant_id, call.id_in_path("job_id"))
    kind = _KINDS[job.what]
    require(call.memory.principal, kind.act)
    is_measured = job.what == "calibrate" and job.result is not None
    shown = {
        "kind": kind,
        "command_id": str(new_id()),
        "position": call.memory.policy().position if is_measured else None,
    }
    return View("work.html", {"job": job.as_dict()}, shown, refresh=1 if job.is_running else None)


PAGES = (Page("/work/{job_id}", show_work),)

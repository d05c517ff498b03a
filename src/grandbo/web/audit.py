"""Audit: the log as a list, whether it is what was written, what was signed, and whether the pages follow from it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from grandbo.errors import Forbidden, InvalidInput, NotFound
from grandbo.events.listing import COLUMNS
from grandbo.events.registry import EVENT_TYPES
from grandbo.memory.policy import require, require_writing, visible_tiers
from grandbo.web.call import Answer, Call, Download, Page, Redirect, View, address, id_field, number, text, ticked
from grandbo.web.jobs import Job, Progress

DEFAULT_PAGE = 100
MAX_PAGE = 1_000
EXPORTED = 100_000
CHECKPOINTS = 20
# A cell that begins so is taken for a formula by spreadsheets.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_CHECKS = ("verify", "rebuild")


def show_audit(call: Call) -> View:
    """The badge, a page of events, the checkpoints."""
    memory = call.memory
    limit = min(number(call.query, "limit") or DEFAULT_PAGE, MAX_PAGE)
    found = list(memory.events(**_wanted(call), after=number(call.query, "after") or 0, limit=limit))
    head = memory.head()
    jobs = {name: call.jobs.last(memory.tenant_id, name) for name in _CHECKS}
    data = {
        "head": head,
        "verified": _told(jobs["verify"]),
        "rebuilt": _told(jobs["rebuild"]),
        "events": found,
        "next": found[-1]["position"] if len(found) == limit else None,
        "checkpoints": memory.list_checkpoints(limit=CHECKPOINTS),
    }
    shown = {
        "asked": call.query,
        "types": sorted(EVENT_TYPES),
        "ends": _ends(call, limit, head["position"]),
        "sees_all": _sees_all(call),
    }
    return View("audit.html", data, shown)


def show_event(call: Call) -> View:
    """One event, with what it says."""
    position = call.number_in_path("position")
    try:
        found = list(call.memory.events(after=position - 1, limit=1, bodies=True))
    except Forbidden:
        found = [
            event | {"body_state": "withheld", "body": None}
            for event in call.memory.events(after=position - 1, limit=1)
        ]
    if not found or found[0]["position"] != position:
        raise NotFound("The log has no such position.")
    head = call.memory.head()["position"]
    body = json.dumps(found[0]["body"], indent=2, ensure_ascii=False)
    return View("event.html", {"event": found[0]}, {"head": head, "body": body})


def export_events(call: Call) -> Download:
    """The events that the filters let through, as CSV or JSON Lines."""
    kind = text(call.query, "as") or "csv"
    if kind not in ("csv", "jsonl"):
        raise InvalidInput("as: it must be csv or jsonl.", field="as")
    bodies = kind == "jsonl" and ticked(call.query, "bodies")
    events = list(call.memory.events(**_wanted(call), limit=EXPORTED + 1, bodies=bodies))
    if len(events) > EXPORTED:
        raise InvalidInput(
            f"These are more than {EXPORTED} events; narrow the time, or use `grandbo audit export`.", field="since"
        )
    name = f"{call.memory.tenant.name}-events.{kind}"
    if kind == "jsonl":
        return Download(name, "application/jsonl", "".join(json.dumps(event) + "\n" for event in events))
    return Download(name, "text/csv", _as_csv(events))


def begin_work(call: Call) -> Redirect:
    """Begin to verify, or to check the projections; the page of the work shows how far it is."""
    require(call.memory.principal, "audit")
    what = call.path["what"]
    memory = call.memory

    def verify(progress: Progress) -> dict[str, Any]:
        head = memory.head()["position"]
        found = memory.verify(progress=lambda done: progress(done, head))
        return found.as_dict() | {"ok": found.first_bad is None}

    def rebuild(progress: Progress) -> dict[str, Any]:
        head = memory.head()["position"]
        result = memory.check_rebuild(progress=lambda done: progress(done, head))
        differences = [difference.as_dict() for difference in result.differences[:100]]
        return {"ok": result.ok, "position": result.position, "digest": result.digest, "differences": differences}

    work = {"verify": verify, "rebuild": rebuild}.get(what)
    if work is None:
        raise NotFound
    job = call.jobs.begin(memory.tenant_id, memory.principal.ref, what, work)
    return Redirect(f"/work/{job.job_id}")


def sign_checkpoint(call: Call) -> Redirect:
    """Sign the log as it stands; with the digest of the projections it replays all of it, and its page says how far."""
    memory = call.memory
    require(memory.principal, "audit")
    require_writing(memory.principal)
    if ticked(call.form, "quick"):
        memory.checkpoint(projections=False)
        return Redirect(address("/audit", done="checkpoint"))

    def sign(progress: Progress) -> dict[str, Any]:
        head = memory.head()["position"]
        signed = memory.checkpoint(progress=lambda done: progress(done, head))
        return {"ok": True, "size": signed.checkpoint.size, "root": signed.checkpoint.root.hex()}

    job = call.jobs.begin(memory.tenant_id, memory.principal.ref, "sign", sign)
    return Redirect(f"/work/{job.job_id}")


def download_checkpoint(call: Call) -> Answer:
    """A note as it was signed."""
    size = call.number_in_path("size")
    found = [note for note in call.memory.list_checkpoints(limit=1, before=size + 1) if note["size"] == size]
    if not found:
        raise NotFound("There is no checkpoint of this size.")
    return Download(f"{call.memory.tenant.name}-{size}.note", "text/plain", found[0]["note"])


def _wanted(call: Call) -> dict[str, Any]:
    return {
        "actor": text(call.query, "actor"),
        "event_type": text(call.query, "type"),
        "entry_id": id_field(call.query, "entry"),
        "since": text(call.query, "since"),
        "until": text(call.query, "until"),
    }


def _told(job: Job | None) -> dict[str, Any] | None:
    return job.as_dict() if job else None


def _ends(call: Call, limit: int, head: int) -> dict[str, str]:
    """The addresses of the export and of the newest page."""
    asked = {name: value for name, value in call.query.multi_items() if name not in ("after", "limit", "done")}
    return {
        "csv": address("/audit/export", **{**asked, "as": "csv"}),
        "jsonl": address("/audit/export", **{**asked, "as": "jsonl"}),
        "bodies": address("/audit/export", **{**asked, "as": "jsonl", "bodies": 1}),
        "newest": address("/audit", **asked, after=max(head - limit, 0)),
        "oldest": address("/audit", **asked),
    }


def _sees_all(call: Call) -> bool:
    policy = call.memory.tenant.policy
    return set(visible_tiers(policy, call.memory.principal)) == set(policy.tiers)


def _as_csv(events: Iterable[Mapping[str, Any]]) -> str:
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(COLUMNS)
    for event in events:
        writer.writerow([_cell(event[name]) for name in COLUMNS])
    return written.getvalue()


def _cell(value: Any) -> str:
    said = "" if value is None else str(value)
    return f"'{said}" if said.startswith(_FORMULA) else said


PAGES = (
    Page("/audit", show_audit),
    Page("/audit/export", export_events),
    Page("/audit/begin/{what}", send=begin_work),
    Page("/audit/checkpoints", send=sign_checkpoint),
    Page("/audit/checkpoints/{size}", download_checkpoint),
    Page("/audit/events/{position}", show_event),
)

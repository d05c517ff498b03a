"""The spaces of vectors: how complete each is, which recall uses, and the way from one model to another by steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grandbo.errors import ConfigurationError, GrandboError, InvalidInput
from grandbo.evaluation import calibration
from grandbo.memory.policy import require
from grandbo.types import new_id
from grandbo.web.call import Answer, Call, Page, Redirect, View, address, id_of, number, raw_text, text
from grandbo.web.jobs import Progress
from grandbo.workers.spaces import Space


def show_stamps(call: Call) -> View:
    """The spaces, and where the change of a model stands."""
    require(call.memory.principal, "administer")
    return _view(call)


def act_on_stamp(call: Call) -> Answer:
    """Put a space into force, or take it out."""
    require(call.memory.principal, "administer")
    stamp, act = text(call.form, "stamp") or "", call.form.get("act")
    command_id = id_of(call.form.get("command_id"))
    options: dict[str, Any] = {
        "reason": raw_text(call.form, "reason"),
        "expected_position": number(call.form, "expected_position"),
        "command_id": command_id if command_id is not None and command_id.version != 5 else None,
    }
    try:
        if act == "use":
            call.memory.use_stamp(stamp, cutoff_bp=number(call.form, "cutoff_bp"), **options)
        elif act == "retire":
            call.memory.retire_stamp(stamp, **options)
        else:
            raise InvalidInput("act: there are use and retire.", field="act")
    except GrandboError as error:
        if error.http_status == 401 or error.http_status >= 500:
            raise
        return _view(call, error=error)
    return Redirect(address("/admin/stamps", done=f"stamp_{act}"))


def begin_embedding(call: Call) -> Redirect:
    """Embed what lacks a vector, those that were given up too."""
    memory = _embedding(call)

    def embed(progress: Progress) -> dict[str, Any]:
        counts = memory.embed(retry_dead=True, progress=lambda now: progress(now.embedded, now.entries))
        return {"ok": not counts.pending and not counts.dead, "pending": counts.pending, "dead": counts.dead}

    job = call.jobs.begin(memory.tenant_id, memory.principal.ref, "embed", embed)
    return Redirect(f"/work/{job.job_id}")


def begin_measuring(call: Call) -> Redirect:
    """Measure where the cutoff of this process's space should stand; nothing is changed by it."""
    memory = _embedding(call)

    def measure(progress: Progress) -> dict[str, Any]:
        return {"ok": True, **calibration.calibrate(memory, progress=progress).as_dict()}

    job = call.jobs.begin(memory.tenant_id, memory.principal.ref, "calibrate", measure)
    return Redirect(f"/work/{job.job_id}")


def step_of(spaces: Sequence[Space]) -> str:
    """
    Where the change of a model stands.

    `fill`: a space that recall does not use yet gets its vectors. `restart`: the newest in force is another one than
    this process embeds in. `retire`: older ones are still in force beside it. Else `quiet`.
    """
    in_force = [space for space in spaces if space.place is not None]
    if any(
        space.place is None and (space.is_own or space.counts.embedded) and not space.is_complete for space in spaces
    ):
        return "fill"
    if in_force and not in_force[0].is_own and any(space.is_own for space in spaces):
        return "restart"
    return "retire" if len(in_force) > 1 else "quiet"


def _embedding(call: Call) -> Any:
    require(call.memory.principal, "administer")
    if not call.memory.embeds:
        raise ConfigurationError("GRANDBO_EMBEDDER is `none`: nothing is embedded, recall goes by words alone.")
    return call.memory


def _view(call: Call, *, error: GrandboError | None = None) -> View:
    memory = call.memory
    policy = memory.policy()
    spaces = memory.stamps()
    jobs = {name: call.jobs.last(memory.tenant_id, name) for name in ("embed", "calibrate")}
    data = {
        "stamps": [space.as_dict() for space in spaces],
        "step": step_of(spaces),
        "embeds": memory.embeds,
        "position": policy.position,
        "error": error.as_dict() if error else None,
    }
    shown = {
        "typed": call.form,
        "command_id": call.form.get("command_id") or str(new_id()),
        "running": {name: job.as_dict() for name, job in jobs.items() if job is not None and job.is_running},
        "ways": {space.stamp: _ways(space, spaces) for space in spaces},
    }
    return View("admin_stamps.html", data, shown, error.http_status if error else 200)


def _ways(space: Space, spaces: Sequence[Space]) -> tuple[str, ...]:
    """What may be done with a space as things stand."""
    others = [other for other in spaces if other.place is not None and other.stamp != space.stamp]
    use = ("use",) if space.is_complete and space.counts.entries else ()
    return (*use, *(("retire",) if space.place is not None and others and not space.is_own else ()))


PAGES = (
    Page("/admin/stamps", show_stamps, act_on_stamp),
    Page("/admin/stamps/embed", send=begin_embedding),
    Page("/admin/stamps/measure", send=begin_measuring),
)

"""`grandbo rebuild`, and the place of `grandbo audit`: what can be proved, and by whom else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grandbo.cli.audit import audit
from grandbo.cli.call import CHECK_FAILED, Call, command
from grandbo.cli.output import print_json, say
from grandbo.cli.progress import progress
from grandbo.errors import InvalidInput

if TYPE_CHECKING:
    from grandbo.library import Grandbo, TenantMemory


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(audit, name="audit")
    command(app, "rebuild", example="grandbo rebuild --check --tenant acme")(rebuild)


def rebuild(
    call: Call,
    check: Annotated[bool, typer.Option("--check", help="Compare only; change nothing.")] = False,
    until: Annotated[
        int | None, typer.Option("--until", metavar="P", help="With --check: as of this position of the tenant's log.")
    ] = None,
) -> None:
    """
    Replay the log into the projections.

    For one tenant, or for all when none is named. With --check it replays beside them and compares row by row; it
    exits with 1 when anything differs. With --until too, it gives the digest of then, and compares it with the
    checkpoint of that size and the rows with what the live tables say of then.
    """
    settings = call.settings()
    wanted = call.tenant or settings.tenant
    if until is not None:
        _check_until(check, wanted)
    with call.open(settings) as grandbo:
        found = [_replayed(call, memory, check, until) for memory in _memories(call, grandbo, wanted)]
    ok = all(item.get("ok", True) for item in found)
    if call.json:
        print_json(found[0] if wanted else ({"ok": ok} if check else {}) | {"tenants": found})
    else:
        for item in found:
            _say_replayed(item)
    if not ok:
        raise typer.Exit(CHECK_FAILED)


def _check_until(check: bool, wanted: str | None) -> None:
    if not check:
        raise InvalidInput("--until goes with --check alone: what is rebuilt is always the whole log.", field="until")
    if not wanted:
        raise InvalidInput("--until is a position of one tenant's log; name it with --tenant.", field="tenant")


def _memories(call: Call, grandbo: Grandbo, wanted: str | None) -> list[TenantMemory]:
    names = [wanted] if wanted else [str(tenant.tenant_id) for tenant in grandbo.tenants()]
    return [grandbo.tenant(name, principal=call.principal) for name in names]


def _replayed(call: Call, memory: TenantMemory, check: bool, until: int | None) -> dict[str, Any]:
    started = time.perf_counter()
    with progress("Replaying", None, shown=not call.json) as update:
        if check:
            result = memory.check_rebuild(until=until, progress=update)
            signed = (
                None if result.signed is None else {"digest": result.signed, "equal": result.signed == result.digest}
            )
            return {
                "ok": result.ok,
                "tenant_id": str(result.tenant_id),
                "position": result.position,
                "digest": result.digest,
                "differences": [item.as_dict() for item in result.differences],
            } | ({} if until is None else {"checkpoint": signed})
        events = memory.rebuild(progress=update)
    seconds = time.perf_counter() - started
    return {
        "tenant_id": str(memory.tenant_id),
        "events": events,
        "seconds": round(seconds, 3),
        "events_per_second": round(events / seconds) if seconds else None,
    }


def _say_replayed(item: dict[str, Any]) -> None:
    if "ok" not in item:
        rate = f"{item['seconds']} s, {item['events_per_second']} events a second"
        say(f"{item['tenant_id']}  {item['events']} events replayed in {rate}")
        return
    differing = len(item["differences"])
    state = f"{differing} DIFFERENCES" if differing else "rebuild equals live"
    say(f"{item['tenant_id']}  position {item['position']}: {state}", f"digest {item['digest']}")
    if signed := item.get("checkpoint"):
        same = "it is the digest that" if signed["equal"] else "it is NOT the digest that"
        say(f"{same} the checkpoint of size {item['position']} states")
    elif "checkpoint" in item:
        say(f"no checkpoint of size {item['position']} states a digest")
    for difference in item["differences"]:
        key = " ".join(f"{name}={value}" for name, value in sorted(difference["key"].items()))
        say(f"  {difference['table']}, in {difference['side']} only: {key}")

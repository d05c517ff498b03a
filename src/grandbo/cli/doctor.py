"""`grandbo doctor`: what is wrong, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from grandbo.cli.call import CHECK_FAILED, Call, command
from grandbo.cli.output import plain, print_json, say
from grandbo.errors import GrandboError

if TYPE_CHECKING:
    from grandbo.cli.checks import Check
    from grandbo.settings import Settings

_MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    command(app, "doctor")(doctor)


def doctor(call: Call) -> None:
    """
    Say what is wrong and how to mend it.

    Looks at settings, server, login, walls, schema, clock, embedder, backlog and log. Exits with 1 when a check fails;
    warnings leave it at 0. With --tenant it looks at that tenant alone.
    """
    found: list[Check] = []
    for check in _checks(call, call.settings()):
        found.append(check)
        if not call.json:
            say(f"{_MARKS[check.state]}  {check.name}: {plain(check.found)}")
            if check.mend and check.state != "ok":
                say(f"        {check.mend}")
    ok = all(check.state != "fail" for check in found)
    if call.json:
        print_json({"ok": ok, "checks": [check.as_dict() for check in found]})
    if not ok:
        raise typer.Exit(CHECK_FAILED)


def _checks(call: Call, settings: Settings) -> Iterator[Check]:
    from grandbo.cli import checks
    from grandbo.storage import inspection

    yield from checks.check_environment(settings)
    try:
        with inspection.reachable_conninfo(settings) as conninfo:
            facts = inspection.inspect_server(conninfo)
            for check in (
                checks.check_server,
                checks.check_vacuum,
                checks.check_login,
                checks.check_schema,
                checks.check_clock,
            ):
                yield from check(facts)
            with call.open(settings) as grandbo:
                yield from checks.check_embedder(grandbo)
                yield from checks.check_tenants(grandbo, call.tenant or settings.tenant)
    except GrandboError as error:
        # Whatever keeps the memory from being opened is a finding, not a failure of the doctor.
        yield checks.Check("open", "fail", error.message)

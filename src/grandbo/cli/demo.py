"""`grandbo demo`: from nothing to five answered topics, on a database of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from grandbo.cli.call import CHECK_FAILED, Call, command
from grandbo.cli.output import print_json, say, tell
from grandbo.cli.progress import progress
from grandbo.cli.reading import say_answer

if TYPE_CHECKING:
    from grandbo.library import Grandbo, TenantMemory
    from grandbo.memory.importing import ImportReport
    from grandbo.settings import Settings
    from grandbo.workers.backlog import BacklogCounts

TENANT = "demo"
SHOWN = 3


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    command(app, "demo")(demo)


def demo(call: Call) -> None:
    """
    Import real incidents and ask about them.

    Run again it finds everything there already. Its database is in GRANDBO_HOME, or in a folder of its own, and never
    GRANDBO_DATABASE_URL. The tenant is `demo` unless --tenant names another.
    """
    settings = _settings(call)
    tell(f"Starting PostgreSQL in {settings.home} …")
    with call.open(settings) as grandbo:
        memory = _memory(call, grandbo)
        report = _import(call, memory)
        counts = _embed(call, memory) if grandbo.embedder is not None else None
        topics = _ask(call, memory)
    if call.json:
        embedded = None if counts is None else {name: getattr(counts, name) for name in ("pending", "embedded", "dead")}
        print_json({"home": str(settings.home), "import": report.as_dict(), "embed": embedded, "topics": topics})
    else:
        _say_how_to_go_on(settings, memory.tenant.name)
    if report.refused or (counts is not None and (counts.pending or counts.dead)):
        raise typer.Exit(CHECK_FAILED)


def demo_home() -> Path:
    """Where the demo lives unless GRANDBO_HOME says otherwise; beside the default home, never in it."""
    from grandbo.settings import default_home

    home = default_home()
    return home.with_name(f"{home.name}-demo")


def _settings(call: Call) -> Settings:
    settings = call.settings(bulk=True)
    home = settings.home.absolute() if "home" in settings.model_fields_set else demo_home()
    # A demo must not write into the database that somebody works with.
    return settings.model_copy(update={"home": home, "database_url": None, "admin_database_url": None})


def _memory(call: Call, grandbo: Grandbo) -> TenantMemory:
    name = call.tenant or TENANT
    if name not in {tenant.name for tenant in grandbo.tenants()}:
        grandbo.create_tenant(name)
    return grandbo.tenant(name, principal=call.principal)


def _import(call: Call, memory: TenantMemory) -> ImportReport:
    from grandbo.sample import sample_lines

    lines = sample_lines()
    with progress("Importing real incidents", len(lines), shown=not call.json) as update:

        def note(report: ImportReport) -> None:
            update(report.read)

        report = memory.import_lines(lines, "finding", progress=note)
    tell(f"{report.recorded} recorded, {report.unchanged + report.corroborated} unchanged, {report.refused} refused.")
    return report


def _embed(call: Call, memory: TenantMemory) -> BacklogCounts:
    before = memory.backlog()
    with progress("Embedding them", before.entries, shown=not call.json and before.pending > 0) as update:

        def note(counts: BacklogCounts) -> None:
            update(counts.embedded)

        return memory.embed(progress=note)


def _ask(call: Call, memory: TenantMemory) -> list[dict[str, Any]]:
    from grandbo.sample import TOPICS

    asked = []
    for topic in TOPICS:
        answer = memory.query_topic(topic, limit=SHOWN)
        asked.append({"topic": topic, "answer": answer.as_dict()})
        if not call.json:
            say("", f"=== {topic}", "")
            say_answer(answer)
    return asked


def _say_how_to_go_on(settings: Settings, tenant: str) -> None:
    program = _program()
    say(
        "",
        "How to go on, with what is stored now:",
        f"  export GRANDBO_HOME={shlex.quote(str(settings.home))} GRANDBO_TENANT={shlex.quote(tenant)}",
        f'  {program} recall "an operator ran the teardown against the wrong environment and wiped a live cluster"',
        f"  {program} audit verify            # every event of the log, checked",
        f"  {program} rebuild --check         # what is shown follows from the log alone",
        f"  {program} up                      # pages and HTTP on {settings.http_host}:{settings.http_port}",
        f"  {program} --help",
    )
    if settings.home == demo_home():
        # Not of a home that was named: it may be a folder that held other things before us.
        say(f"Remove it all with: rm -r {shlex.quote(str(settings.home))}")


def _program() -> str:
    """How this very program can be called again from a shell."""
    called = Path(sys.argv[0]).absolute()
    found = shutil.which("grandbo")
    if found and Path(found).absolute() == called:
        return "grandbo"
    return shlex.quote(str(called)) if called.name == "grandbo" and os.access(called, os.X_OK) else "grandbo"

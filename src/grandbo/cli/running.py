"""`grandbo up`, `worker`, `migrate`: what runs, and what has to happen before it can."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import structlog
import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import print_json, say, tell
from grandbo.errors import ConfigurationError, InvalidInput

if TYPE_CHECKING:
    from grandbo.library import Grandbo
    from grandbo.settings import Settings

log = structlog.get_logger(__name__)


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    command(app, "up", example="grandbo up --port 8420")(up)
    command(app, "migrate")(migrate)
    command(app, "worker")(worker)


def up(
    call: Call,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on; else GRANDBO_HTTP_HOST.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65_535, help="Port; 0 picks one; else GRANDBO_HTTP_PORT.")
    ] = None,
) -> None:
    """
    Serve: database, worker, HTTP, and the pages.

    Starts the embedded PostgreSQL if no database is named, migrates, embeds in the background, and listens. Runs until
    SIGTERM, which ends it with 0, or Ctrl-C.
    """
    settings = call.settings(serving=True)
    # Until the HTTP server takes the signal over, and after it has given it back, SIGTERM ends us in good order.
    signal.signal(signal.SIGTERM, _leave)
    if settings.database_url is not None and settings.admin_database_url is not None:
        migrate_database(settings)
    from grandbo.http.server import serve

    with call.open(settings) as grandbo:
        _warn_of_known_flaws(grandbo)
        grandbo.start_worker()
        serve(
            grandbo,
            host=settings.http_host if host is None else host,
            port=settings.http_port if port is None else port,
            on_ready=_tell_next_steps,
            allowed_hosts=[name.strip() for name in settings.http_allowed_hosts.split(",") if name.strip()],
        )


def _warn_of_known_flaws(grandbo: Grandbo) -> None:
    """A server below the versions that fix known flaws is served from, and named: the embedded wheel may be below."""
    from grandbo.cli.checks import check_server
    from grandbo.storage.inspection import inspect_server

    for check in check_server(inspect_server(str(grandbo.database.pool.conninfo))):
        if check.state != "ok":
            log.warning("version_below_floor", what=check.name, found=check.found, mend=check.mend)


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _tell_next_steps(url: str) -> None:
    tell(
        f"Grandbo listens on {url}",
        "",
        "A key to call it with (elsewhere, with the same settings):",
        "  grandbo tenant create acme",
        "  grandbo key create --tenant acme --principal me --type human --role admin",
        f"Then open {url}/ in a browser and sign in with it, or:",
        f"  curl -s {url}/v1/recall -H 'Authorization: Bearer gbk_…' -H 'Content-Type: application/json' \\",
        '    -d \'{"topic": "certificates that expired and stopped logins"}\'',
    )


def worker(call: Call) -> None:
    """
    Embed what lacks a vector, map what hooks delivered, tell subscriptions, look for contradictions, note expiries.

    For all tenants, until SIGTERM, which ends it with 0, or Ctrl-C.
    """
    settings = call.settings(serving=True, bulk=True)
    from grandbo.workers.background import Background
    from grandbo.workers.embedding import EmbeddingWorker

    with call.open(settings) as grandbo:
        background = Background(grandbo.database, settings, grandbo.clock)
        signal.signal(signal.SIGTERM, _leave)
        background.start()
        tell(f"The worker (process {os.getpid()}) watches the backlog of all tenants.")
        try:
            if grandbo.embedder is None:
                # Nothing is embedded; all else is still to be done.
                while True:
                    signal.pause()
            running = EmbeddingWorker(grandbo.database, grandbo.embedder, clock=grandbo.clock)

            def stop(_number: int, _frame: FrameType | None) -> None:
                running.stop()

            signal.signal(signal.SIGTERM, stop)
            running.run()
        finally:
            background.stop()


def migrate(
    call: Call,
    distribute: Annotated[
        bool, typer.Option("--distribute", help="Then spread the tables over the nodes of a Citus cluster, by tenant.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --distribute: check that the schema fits, print the statements.")
    ] = False,
) -> None:
    """
    Create or upgrade the schema.

    Safe when several processes do it at once. On your own server it connects with GRANDBO_ADMIN_DATABASE_URL, which
    may create roles and extensions, and sets up the login of GRANDBO_DATABASE_URL. The embedded server is migrated
    whenever it is opened.

    With --distribute it needs the extension citus in the database; run it again after each upgrade.
    """
    if dry_run and not distribute:
        raise InvalidInput("--dry-run says what --distribute would do; give both.", field="dry_run")
    settings = call.settings()
    if distribute and settings.database_url is None:
        raise ConfigurationError("The embedded server is one machine; set GRANDBO_DATABASE_URL to distribute another.")
    if dry_run:
        _say_distribution(call, _planned(settings))
        return
    before, after = migrate_database(settings)
    if distribute:
        from grandbo.storage import distributing

        _say_distribution(call, distributing.distribute(_admin(settings)))
        return
    if call.json:
        print_json({"before": before, "after": after})
    elif before == after:
        say(f"The schema is at revision {after} already.")
    else:
        say(f"Migrated from {before or 'nothing'} to revision {after}.")


def _planned(settings: Settings) -> list[str]:
    from grandbo.storage import distributing

    return distributing.planned(_admin(settings))


def _admin(settings: Settings) -> str:
    url = settings.admin_database_url or settings.database_url
    assert url is not None
    return url.get_secret_value()


def _say_distribution(call: Call, statements: list[str]) -> None:
    if call.json:
        print_json({"statements": statements})
        return
    for statement in statements:
        say(f"{statement};")


def migrate_database(settings: Settings) -> tuple[str | None, str]:
    """Migrate what the settings name; give the revision before and after."""
    from grandbo.storage import inspection
    from grandbo.storage import migrate as migrations

    if settings.database_url is None:
        return inspection.migrate_embedded(settings)
    service = settings.database_url.get_secret_value()
    if settings.admin_database_url is None:
        return migrations.migrate(service)
    return migrations.migrate(settings.admin_database_url.get_secret_value(), service_conninfo=service)

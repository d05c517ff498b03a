"""What every command shares: its options, opening the memory, and how an error becomes a line and an exit code."""

from __future__ import annotations

import contextlib
import inspect
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec

import typer

from grandbo.errors import GrandboError, InvalidInput

if TYPE_CHECKING:
    from grandbo.library import Grandbo, TenantMemory
    from grandbo.settings import Settings

P = ParamSpec("P")
Body = Callable[Concatenate["Call", P], None]

CHECK_FAILED = 1
UNEXPECTED = 70
INTERRUPTED = 130
PIPE_CLOSED = 141
_BULK_THREADS = 2

_JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON: one object, or one a line where it lists.")]
_TenantOption = Annotated[
    str | None, typer.Option("--tenant", metavar="NAME|ID", help="The tenant; else GRANDBO_TENANT.", show_default=False)
]
_AsOption = Annotated[str, typer.Option("--as", metavar="PRINCIPAL", help="Who acts: `[type:]name`.")]


@dataclass(frozen=True, slots=True)
class Call:
    """One invocation: the options that every command takes."""

    json: bool
    tenant: str | None
    principal: str

    def settings(self, *, serving: bool = False, bulk: bool = False) -> Settings:
        """
        Read the settings and set the logs up.

        Args:
            serving: log as the settings say; a command that answers and ends logs warnings alone unless it was asked.
            bulk: embed on two threads unless the settings say how many.
        """
        from grandbo.settings import Settings

        settings = Settings.load()
        if bulk and "embedder_threads" not in settings.model_fields_set:
            settings = Settings.load(embedder_threads=min(_BULK_THREADS, os.cpu_count() or 1))
        _set_logs_up(settings, quiet=not serving and "log_level" not in settings.model_fields_set)
        return settings

    @contextlib.contextmanager
    def open(self, settings: Settings | None = None) -> Iterator[Grandbo]:
        """Open the memory; close it, whatever happens."""
        from grandbo.library import Grandbo

        with Grandbo.open(settings=settings or self.settings()) as opened:
            yield opened

    @contextlib.contextmanager
    def memory(self, settings: Settings | None = None) -> Iterator[TenantMemory]:
        """Open the memory of the tenant that was named."""
        settings = settings or self.settings()
        wanted = self.tenant or settings.tenant
        if not wanted:
            raise InvalidInput("Which tenant? Give --tenant NAME, or set GRANDBO_TENANT.", field="tenant")
        with self.open(settings) as opened:
            yield opened.tenant(wanted, principal=self.principal)


def command(app: typer.Typer, name: str, *, example: str | None = None) -> Callable[[Body[P]], Body[P]]:
    """Register a command; it takes the shared options too, after its own."""

    def register(body: Body[P]) -> Body[P]:
        epilog = f"Example: {example}" if example else None
        app.command(name, epilog=epilog)(_with_shared_options(body))
        return body

    return register


def group_command(app: typer.Typer, *, example: str) -> Callable[[Body[P]], Body[P]]:
    """Register what a group does by itself, where none of its commands is named."""

    def register(body: Body[P]) -> Body[P]:
        run = _with_shared_options(body)

        def run_alone(context: typer.Context, **values: Any) -> None:
            if context.invoked_subcommand is None:
                run(**values)

        own = list(inspect.signature(run).parameters.values())
        first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        run_alone.__signature__ = inspect.Signature([first, *own])  # type: ignore[attr-defined]  # as below
        run_alone.__annotations__ = {item.name: item.annotation for item in (first, *own)}
        run_alone.__doc__ = inspect.getdoc(body)
        app.callback(invoke_without_command=True, epilog=f"Example: {example}")(run_alone)
        return body

    return register


def _with_shared_options(body: Callable[..., None]) -> Callable[..., None]:
    def run(**values: Any) -> None:
        call = Call(values.pop("as_json"), values.pop("tenant"), values.pop("principal"))
        with _exit_codes(call):
            body(call, **values)
            sys.stdout.flush()

    own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter("tenant", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_TenantOption),
        inspect.Parameter("principal", inspect.Parameter.KEYWORD_ONLY, default="human:local", annotation=_AsOption),
        inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_JsonOption),
    ]
    parameters = [*(item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in own), *shared]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads options from
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    run.__doc__ = inspect.getdoc(body)
    run.__name__ = body.__name__
    return run


def _set_logs_up(settings: Settings, *, quiet: bool) -> None:
    from grandbo.logs import configure_logs

    configure_logs("WARNING" if quiet else settings.log_level)
    if quiet:
        # Beside an error that it raises, the driver warns of the pipeline that the error broke off; ours says enough.
        logging.getLogger("psycopg").setLevel(logging.ERROR)


@contextlib.contextmanager
def _exit_codes(call: Call) -> Iterator[None]:
    """Turn whatever ends a command into a line on stderr and an exit code."""
    try:
        yield
    except typer.Exit:
        raise
    except GrandboError as error:
        tell_error(call, error.as_dict())
        raise typer.Exit(error.exit_code) from None
    except BrokenPipeError:
        # Whoever read our output has seen enough. Nothing more may be written, not even by the exit itself.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:  # noqa: BLE001  # the last line of defence: a short message instead of a traceback
        tell_unexpected(call, error)
        raise typer.Exit(UNEXPECTED) from None


def tell_error(call: Call, problem: dict[str, Any]) -> None:
    """Write an error to stderr: one line for people, one object with --json."""
    if call.json:
        line = json.dumps({"error": problem}, ensure_ascii=False, default=str)
    else:
        line = f"error [{problem['code']}] {' '.join(str(problem['message']).split())}"
    print(line, file=sys.stderr)  # noqa: T201


def tell_unexpected(call: Call, error: Exception) -> None:
    """
    Say that something went wrong that should not have.

    The exception's own text stays out: it may hold what was stored. The traceback is there for who asks for it.
    """
    if os.environ.get("GRANDBO_LOG_LEVEL", "").upper() == "DEBUG":
        traceback.print_exception(error)
    message = f"Unexpected {type(error).__name__}; run it again with GRANDBO_LOG_LEVEL=DEBUG for the traceback."
    tell_error(call, {"code": "internal_error", "message": message})

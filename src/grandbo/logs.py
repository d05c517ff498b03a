"""
Logs: one JSON object a line on stderr, each with a constant event name; those of libraries go the same way.

Of an exception only its type and the places it passed are written: a message may quote a row, a text or a credential.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping, MutableMapping
from types import TracebackType
from typing import Any, TextIO

import structlog

# Below WARNING these write URLs, headers or bodies of the requests they make.
_QUIET = ("botocore", "boto3", "urllib3", "httpcore2", "httpx2", "httpcore", "httpx", "alembic.runtime.plugins", "mcp")
_PLACES = 8

EventDict = MutableMapping[str, Any]


def quiet_unless_configured() -> None:
    """
    Hand the log lines of the library to the standard logging of the program that uses it, unless it set structlog up.

    Left alone, structlog prints to stdout, into whatever the program itself has to say there.
    """
    if not structlog.is_configured():
        structlog.configure(
            processors=[structlog.stdlib.add_log_level, structlog.stdlib.render_to_log_kwargs],
            wrapper_class=structlog.stdlib.BoundLogger,
            logger_factory=structlog.stdlib.LoggerFactory(),
        )


def configure_logs(level: str) -> None:
    """
    Send everything that this process logs to stderr as JSON, from `level` upwards; calling it again changes the level.

    Args:
        level: `DEBUG`, `INFO`, `WARNING` or `ERROR`.
    """
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
        _exception_without_values,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        # Not through the standard logging: on the way of a request its part would cost more than the line itself.
        logger_factory=_StderrLogger,
        # A cached logger would keep the configuration that was in force at its first line.
        cache_logger_on_first_use=False,
    )
    handler = _StderrHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, _constant_event],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
            keep_exc_info=False,
            keep_stack_info=False,
        )
    )
    root = logging.getLogger()
    for earlier in [known for known in root.handlers if isinstance(known, _StderrHandler)]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    root.setLevel(threshold)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(threshold, logging.WARNING))
    logging.captureWarnings(True)
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _log_thread_failure


def describe_exception(error: BaseException) -> dict[str, Any]:
    """What may be logged of an exception: its type, and innermost last the places it passed; never its message."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    places = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        module = trace.tb_frame.f_globals.get("__name__", "?")
        places.append(f"{module}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return {"error": name, "at": places[-_PLACES:]}


class _StderrLogger:
    """Writes finished lines, one at a time, to what `sys.stderr` is at that moment."""

    _one_at_a_time = threading.Lock()

    def __init__(self, name: str = "grandbo") -> None:
        self.name = name

    def msg(self, line: str) -> None:
        with self._one_at_a_time:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    debug = info = warning = error = critical = exception = log = msg


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to what `sys.stderr` is at that moment."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # looked up anew for every line
        return sys.stderr


def _exception_without_values(_logger: object, _method: str, event_dict: EventDict) -> EventDict:
    given = event_dict.pop("exc_info", None)
    event_dict.pop("stack_info", None)
    if given is True:
        given = sys.exc_info()
    error = given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        event_dict.update(describe_exception(error))
    return event_dict


def _constant_event(_logger: object, _method: str, event_dict: EventDict) -> EventDict:
    """A library's sentence becomes a field; the event keeps a name that can be searched for."""
    event_dict["message"] = event_dict["event"]
    event_dict["event"] = "library_message"
    return event_dict


def _log_thread_failure(args: threading.ExceptHookArgs) -> None:
    """The default hook prints the message, which may hold values."""
    described: Mapping[str, Any] = describe_exception(args.exc_value) if args.exc_value else {}
    structlog.get_logger(__name__).critical(
        "thread_failed", thread=args.thread.name if args.thread else None, **described
    )

"""Logs of a process: JSON on stderr, constant names, no values out of exceptions, quiet libraries."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

PRELUDE = """
import logging, threading, warnings
import structlog
from grandbo.logs import configure_logs

log = structlog.get_logger("grandbo.part")
configure_logs({level!r})
"""


def _lines(program: str, level: str = "INFO") -> list[dict[str, Any]]:
    run = subprocess.run(
        [sys.executable, "-c", PRELUDE.format(level=level) + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "" == run.stdout
    return [json.loads(line) for line in run.stderr.splitlines()]


class TestConfigureLogs:
    def test_an_event_is_one_json_object_with_time_level_and_name(self) -> None:
        """The time is UTC, the bound context is in it, the fields are as they were given."""
        (line,) = _lines(
            "structlog.contextvars.bind_contextvars(request_id='r-1')\n"
            "log.info('thing_done', count=3, text='half \\ud800')"
        )

        moment = datetime.fromisoformat(line.pop("timestamp"))
        assert UTC == moment.tzinfo
        assert {
            "event": "thing_done",
            "level": "info",
            "logger": "grandbo.part",
            "count": 3,
            "text": "half \ud800",
            "request_id": "r-1",
        } == line

    def test_the_level_holds_for_ours_and_for_libraries(self) -> None:
        """What lies below it is not written."""
        program = """
for logger in (log, logging.getLogger("uvicorn.error")):
    logger.debug("a"); logger.info("b"); logger.warning("c"); logger.error("d")
"""

        assert 8 == len(_lines(program, "DEBUG"))
        assert ["warning", "error"] * 2 == [line["level"] for line in _lines(program, "WARNING")]

    def test_a_library_s_sentence_is_a_field_of_a_constant_event(self) -> None:
        """So that logs can be searched by name; warnings of Python go the same way."""
        first, second = _lines("logging.getLogger('alembic').info('Running %s', 'upgrade')\nwarnings.warn('old')")

        assert ("library_message", "alembic", "Running upgrade") == (first["event"], first["logger"], first["message"])
        assert ("library_message", "py.warnings") == (second["event"], second["logger"])

    def test_what_libraries_say_of_their_requests_is_not_written(self) -> None:
        """At DEBUG and INFO they write URLs, headers and bodies."""
        program = """
for name in ("botocore.endpoint", "httpcore2.connection", "httpx2", "urllib3.connectionpool"):
    logger = logging.getLogger(name)
    logger.debug("Authorization: secret"); logger.info("GET https://secret"); logger.warning("trouble")
"""

        assert ["trouble"] * 4 == [line["message"] for line in _lines(program, "DEBUG")]

    def test_an_exception_is_told_by_type_and_place_alone(self) -> None:
        """Its message may quote a row; it is left out for ours, for libraries, and for a thread that dies."""
        program = """
def fail():
    raise ValueError("a secret of the row")

try:
    fail()
except ValueError:
    log.exception("part_failed")
    logging.getLogger("psycopg.pool").exception("pool trouble")
thread = threading.Thread(target=fail, name="worker")
thread.start()
thread.join()
"""

        lines = _lines(program)

        assert ["part_failed", "library_message", "thread_failed"] == [line["event"] for line in lines]
        assert ["ValueError"] * 3 == [line["error"] for line in lines]
        assert all(line["at"][-1].startswith("__main__:") and line["at"][-1].endswith(" fail") for line in lines)
        assert "secret" not in json.dumps(lines)

    def test_a_second_call_changes_the_level_and_doubles_nothing(self) -> None:
        """Whoever configures last decides, also for loggers that have written already."""
        program = (
            "log.info('a')\nconfigure_logs('ERROR')\nlog.info('b')\nlog.error('c')\nlogging.getLogger('x').error('d')"
        )

        assert ["a", "c", "d"] == [line.get("message", line["event"]) for line in _lines(program)]

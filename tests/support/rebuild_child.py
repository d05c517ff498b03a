"""Checks a rebuild in a process of another time zone, hash seed and date, and prints the digest."""

from __future__ import annotations

import json
import logging
import sys

import structlog
from freezegun import freeze_time

from grandbo.library import Grandbo
from grandbo.settings import Settings


def main(conninfo: str, tenant: str) -> None:
    """Freeze the date long before the first event, then replay."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    with Grandbo.open(settings=Settings.load(database_url=conninfo, embedder="none")) as opened:
        memory = opened.tenant(tenant, principal="human:tester")
        with freeze_time("1969-07-20 20:17:40", ignore=["psycopg", "psycopg_pool", "threading"]):
            result = memory.check_rebuild()
    print(json.dumps({"ok": result.ok, "digest": result.digest, "position": result.position}))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A process that is killed: `python -m tests.support.crash_child ROLE HOME TENANT`. Prints what was acknowledged."""

from __future__ import annotations

import itertools
import json
import logging
import os
import sys
import time
from pathlib import Path

import structlog

from grandbo.errors import GrandboError
from grandbo.library import Grandbo
from grandbo.settings import Settings
from tests.support.factories import make_finding
from tests.support.providers import words_embedder


def main(role: str, home: str, tenant: str) -> None:
    """Write or embed for ever; an outage is waited out, anything else ends the process with a trace."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    settings = Settings.load(home=Path(home), embedder="none", pool_size=2, pool_timeout=2.0)
    with Grandbo.open(settings=settings, embedder=words_embedder()) as grandbo:
        print("ready", flush=True)
        if role == "worker":
            grandbo.start_worker()
            while True:
                time.sleep(60)
        for number in itertools.count():
            finding = make_finding(incident={"source": f"crash-{os.getpid()}", "id": str(number)})
            _record_until_acknowledged(grandbo, tenant, finding)


def _record_until_acknowledged(grandbo: Grandbo, tenant: str, finding: dict[str, object]) -> None:
    while True:
        try:
            recorded = grandbo.tenant(tenant, principal="hook:crash").record_finding(finding)
        except GrandboError as error:
            if error.http_status != 503:
                raise
            time.sleep(0.02)
        else:
            print(json.dumps(recorded.acknowledgement.as_dict()), flush=True)
            return


if __name__ == "__main__":
    main(*sys.argv[1:])

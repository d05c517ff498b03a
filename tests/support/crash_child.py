"""A process that is killed: `python -m tests.support.crash_child ROLE HOME TENANT`. Prints what was acknowledged."""

from __future__ import annotations

import itertools
import json
import logging
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import structlog

from grandbo.errors import GrandboError
from grandbo.hooks import signatures
from grandbo.library import Grandbo
from grandbo.settings import Settings
from tests.support.factories import make_finding
from tests.support.hooks import payload
from tests.support.providers import words_embedder


def main(role: str, home: str, tenant: str) -> None:
    """Write or embed for ever; an outage is waited out, anything else ends the process with a trace."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    settings = Settings.load(home=Path(home), embedder="none", pool_size=4, pool_timeout=2.0, send_internal=True)
    with Grandbo.open(settings=settings, embedder=words_embedder()) as grandbo:
        print("ready", flush=True)
        if role == "worker":
            grandbo.start_worker()
            while True:
                time.sleep(60)
        if role.startswith("tool "):
            _deliver_for_ever(grandbo, *role.split()[1:])
        for number in itertools.count():
            finding = make_finding(incident={"source": f"crash-{os.getpid()}", "id": str(number)})
            _record_until_acknowledged(grandbo, tenant, finding)


def _deliver_for_ever(grandbo: Grandbo, hook_id: str, secret: str) -> None:
    """Tell of one closed incident after the other, each again until it is taken in."""
    for number in itertools.count():
        body = json.dumps(
            payload("resolved", f"{os.getpid()}-{number}", cause=f"Cause {os.getpid()} {number}.")
        ).encode()
        identity = f"{os.getpid()}-{number}"
        while True:
            headers = signatures.sign("standard-webhooks", body, identity, secret, datetime.now(UTC))
            try:
                delivery = grandbo.receive("grandbo", hook_id, headers, body)
            except GrandboError as error:
                if error.http_status != 503:
                    raise
                time.sleep(0.02)
            else:
                print(json.dumps({"delivery_id": str(delivery.delivery_id)}), flush=True)
                # Incidents do not close faster; what was taken in has to be mapped and told in the end.
                time.sleep(0.05)
                break


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

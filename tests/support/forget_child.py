"""A process that is killed while it forgets: `python -m tests.support.forget_child URL HOME SUBJECT STEP`."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path

import structlog

import grandbo.erasing
from grandbo.library import Grandbo
from grandbo.memory import erasing, forgetting
from grandbo.settings import Settings

# Where a step is looked up when it is called.
PLACES = {
    "forgetting": forgetting,
    "erasing": erasing,
    "append_listed": grandbo.erasing,
    "sign_certificate": grandbo.erasing,
    "keep_certificate": erasing,
}


def main(url: str, home: str, subject: str, step: str) -> None:
    """Forget the subject; die by kill -9 as soon as the step is reached."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    place, _, name = step.partition(".")
    setattr(PLACES[place], name or place, _die)
    settings = Settings.load(database_url=url, home=Path(home), embedder="none")
    with Grandbo.open(settings=settings) as grandbo:
        grandbo.tenant("acme", principal="human:admin").forget_subject(subject, "request")


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])

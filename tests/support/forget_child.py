"""A process that is killed while it forgets a subject, or confirms what somebody else asked for."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path
from uuid import UUID

import structlog

import grandbo.erasing
from grandbo.library import Grandbo
from grandbo.memory import erasing, erasing_revisions, forgetting
from grandbo.settings import Settings

# Where a step is looked up when it is called.
PLACES = {
    "forgetting": forgetting,
    "erasing": erasing,
    "erasing_revisions": erasing_revisions,
    "append_listed": grandbo.erasing,
    "sign_certificate": grandbo.erasing,
    "keep_certificate": erasing,
}


def main(url: str, home: str, what: str, step: str) -> None:
    """
    Forget the subject, or confirm the request; die by kill -9 as soon as the step is reached.

    Args:
        what: the subject, or `erasure:` and the id of the request.
    """
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    place, _, name = step.partition(".")
    setattr(PLACES[place], name or place, _die)
    settings = Settings.load(database_url=url, home=Path(home), embedder="none")
    with Grandbo.open(settings=settings) as grandbo:
        admin = grandbo.tenant("acme", principal="human:admin")
        _, is_asked, erasure = what.partition("erasure:")
        admin.confirm_erasure(UUID(erasure)) if is_asked else admin.forget_subject(what, "request")


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)

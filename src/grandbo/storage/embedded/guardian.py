"""The thread that brings a killed server back."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from grandbo.errors import EmbeddedServerError

LONGEST_PAUSE_SECONDS = 30.0

_log = structlog.get_logger(__name__)


class Guardian:
    """Calls `ensure` again and again until told to stop; after a failure it pauses longer each time."""

    def __init__(self, ensure: Callable[[], bool], interval: float) -> None:
        self._ensure = ensure
        self._interval = interval
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="embedded-server-guardian", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no longer; a restart that is under way is waited for."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        pause = self._interval
        while not self._stopping.wait(pause):
            try:
                restarted = self._ensure()
            except EmbeddedServerError as error:
                if self._stopping.is_set():
                    return
                # A full disk, say: four attempts a second would only add to the trouble.
                pause = min(max(pause, 0.1) * 2, LONGEST_PAUSE_SECONDS)
                _log.error("embedded_server_restart_failed", error=error.message, next_attempt_in=pause)
            else:
                pause = self._interval
                if restarted:
                    _log.warning("embedded_server_restarted")

"""The server: listens, says where, and ends without dropping what it has begun."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Generator, Sequence
from types import FrameType

import structlog
import uvicorn

from grandbo.errors import ConfigurationError
from grandbo.http.app import build_app
from grandbo.http.health import Readiness
from grandbo.library import Grandbo

# How long `/readyz` says no before connections are refused, so that whoever probes can send requests elsewhere.
NOTICE_SECONDS = 0.5
DRAIN_SECONDS = 30
BACKLOG = 512

log = structlog.get_logger(__name__)


def serve(
    grandbo: Grandbo,
    *,
    host: str,
    port: int,
    on_ready: Callable[[str], None] | None = None,
    allowed_hosts: Sequence[str] = (),
) -> None:
    """
    Serve until SIGTERM or SIGINT, then finish the requests in hand and return. The memory stays open: close it next.

    Args:
        port: 0 picks a free one.
        on_ready: gets the base URL once requests are accepted.
        allowed_hosts: host names to answer under, besides `host`, the configured host and the loopback names.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    HttpServer(grandbo, host=host, port=port, on_ready=on_ready, allowed_hosts=allowed_hosts).run()


class HttpServer:
    """One listening server; `run` blocks, `stop` may be called from any thread."""

    def __init__(
        self,
        grandbo: Grandbo,
        *,
        host: str,
        port: int,
        on_ready: Callable[[str], None] | None = None,
        allowed_hosts: Sequence[str] = (),
    ) -> None:
        readiness = Readiness(grandbo)
        self._socket = listen(host, port)
        bound = self._socket.getsockname()
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{bound[1]}"
        app = build_app(grandbo, allowed_hosts=[shown, *allowed_hosts], readiness=readiness, public_url=self.url)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="on",
            ws="none",
            backlog=BACKLOG,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        self._server = _Server(config, readiness, lambda: self._started(on_ready))

    def run(self) -> None:
        """Serve until stopped."""
        self._server.run(sockets=[self._socket])
        log.info("http_stopped")

    def stop(self) -> None:
        """Begin the end, as SIGTERM does."""
        self._server.begin_end()

    def _started(self, on_ready: Callable[[str], None] | None) -> None:
        log.info("http_listening", url=self.url)
        if on_ready is not None:
            on_ready(self.url)


class _Server(uvicorn.Server):
    """uvicorn's server, which tells its readiness first and leaves with exit code 0 when it was asked to."""

    def __init__(self, config: uvicorn.Config, readiness: Readiness, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._readiness = readiness
        self._on_started = on_started

    def begin_end(self) -> None:
        self._readiness.stop()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._readiness.stop()
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        # The original raises the signals it obeyed again at the end, and so ends the process before it has cleaned up.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        earlier = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if not self.force_exit:
            await asyncio.sleep(NOTICE_SECONDS)
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """
    Listen on an address; port 0 picks a free one.

    Raises:
        ConfigurationError: the address is not this machine's, or is taken.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
        # The protocol must be named: asyncio turns Nagle's delay, 40 ms an answer, off only where it reads TCP.
        listening = socket.socket(family, kind, socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
        return listening
    except OSError as error:
        raise ConfigurationError(
            f"Cannot listen on {host}:{port}: {error.strerror}. Set GRANDBO_HTTP_HOST or GRANDBO_HTTP_PORT to a free "
            "address of this machine."
        ) from None

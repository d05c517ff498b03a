"""Someone outside who is told of events: a real server on a loopback port that verifies, keeps and answers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks.webhooks import Webhook


@dataclass(slots=True)
class Received:
    """One delivery as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        """What it says."""
        document: dict[str, Any] = json.loads(self.body)
        return document

    @property
    def position(self) -> int:
        """Of the event that it tells of."""
        position: int = self.document["data"]["position"]
        return position

    def verify(self, secret: str) -> None:
        """As a receiver verifies it, with the library that others use; raises where it is not genuine."""
        Webhook(secret).verify(self.body, self.headers)


@dataclass(slots=True)
class Receiver:
    """Where it listens, what came, and what it answers: by default 204 to everything."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    answer: Callable[[Received], int | tuple[int, dict[str, str]]] = lambda _received: 204
    # Seconds between the bytes of an answer that never ends; None answers at once.
    drips: float | None = None

    @property
    def url(self) -> str:
        """What a subscription is made with."""
        return f"http://127.0.0.1:{self.port}/in?from=grandbo"

    @property
    def positions(self) -> list[int]:
        """Of what came, in the order in which it came."""
        return [item.position for item in self.received]


@contextmanager
def listening() -> Iterator[Receiver]:
    """A receiver for the length of a test."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            item = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            receiver.received.append(item)
            if receiver.drips is not None:
                self._drip(receiver.drips)
                return
            answer = receiver.answer(item)
            status, headers = answer if isinstance(answer, tuple) else (answer, {})
            self.send_response(status)
            for name, value in {"content-length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def _drip(self, seconds: float) -> None:
            try:
                for piece in [b"HTTP/1.1 200 OK\r\n", *[b"x-more: 1\r\n"] * 200]:
                    self.wfile.write(piece)
                    self.wfile.flush()
                    time.sleep(seconds)
            except OSError:
                return

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test says what it saw."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)

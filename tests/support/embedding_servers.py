"""Loopback HTTP servers that answer like an embedding provider, one scripted reply a request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Request:
    """What arrived."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Reply:
    """What to send back: `body` as JSON unless it is bytes; `hang` waits until the server is closed instead."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False


Script = Sequence[Reply] | Callable[[Request], Reply]


class EmbeddingServer:
    """
    Answers with the replies in turn, the last one for ever, or with what a function makes of the request.

    Use it as a context manager; `url` has no trailing slash, `requests` is what arrived so far.
    """

    def __init__(self, script: Script) -> None:
        self.requests: list[Request] = []
        self._script = script
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> EmbeddingServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _reply(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            if callable(self._script):
                return self._script(request)
            return self._script[min(len(self.requests), len(self._script)) - 1]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = server._reply(Request(path=self.path, headers=headers, body=json.loads(content)))
                if reply.hang:
                    server._closing.wait(30)
                    self.close_connection = True
                    return
                answer = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                # Idle connections would keep handler threads, and so the test, waiting for the client to go.
                self.send_header("connection", "close")
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        return Handler


def openai_reply(vectors: Sequence[Any], *, order: Sequence[int] | None = None) -> Reply:
    """Answer like `POST /embeddings`; `order` is the order in which the items are listed."""
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return Reply({"object": "list", "data": [data[index] for index in order or range(len(data))]})


def titan_reply(vector: Sequence[float]) -> Reply:
    """Answer like Titan Text Embeddings V2."""
    return Reply({"embedding": list(vector), "embeddingsByType": {"float": list(vector)}, "inputTextTokenCount": 4})


def aws_error(code: str, status: int, message: str = "no", headers: dict[str, str] | None = None) -> Reply:
    """Answer like an AWS service that refuses or fails."""
    return Reply({"message": message}, status, {"x-amzn-ErrorType": code, **(headers or {})})

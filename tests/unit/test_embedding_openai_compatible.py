"""OpenAI-compatible endpoints, against a loopback server."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from freezegun import freeze_time

from grandbo.embedding import Embedder
from grandbo.embedding.openai_compatible import PROBE, OpenAICompatibleProvider
from grandbo.embedding.retry_after import parse_retry_after
from grandbo.errors import EmbedderError, EmbedderMisconfigured, EmbedderRefused, EmbedderTransient
from tests.support.embedding_servers import EmbeddingServer, Reply, Request, Script, openai_reply

KEY = "sk-very-secret"
PROBED = openai_reply([[1.0, 0.0, 0.0]])


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


class Connected:
    """A server with a script and an embedder that talks to it."""

    def __init__(self) -> None:
        self.open: list[Any] = []

    def __call__(
        self,
        script: Script,
        *,
        model: str = "bge-small",
        timeout: float = 5.0,
        path: str = "/v1",
        key: str | None = KEY,
    ) -> tuple[EmbeddingServer, Embedder]:
        server = EmbeddingServer(script)
        server.__enter__()
        provider = OpenAICompatibleProvider(model=model, url=server.url + path, api_key=key, timeout=timeout)
        embedder = Embedder(provider)
        self.open.append((server, embedder))
        return server, embedder

    def close(self) -> None:
        for server, embedder in self.open:
            embedder.close()
            server.__exit__(None, None, None)


@pytest.fixture
def connect() -> Iterator[Connected]:
    connected = Connected()
    yield connected
    connected.close()


def base64_vector(numbers: list[float]) -> str:
    return base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()


class TestRequest:
    def test_form(self, connect: Connected) -> None:
        """The request goes below the base URL with the key, the model, the texts, and no dimensions."""
        server, embedder = connect([PROBED, openai_reply([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])])
        embedder.embed(["disk full", "pool"], "document")

        assert ["/v1/embeddings"] * 2 == [request.path for request in server.requests]
        assert f"Bearer {KEY}" == server.requests[1].headers["authorization"]
        assert [
            {"model": "bge-small", "input": [PROBE], "encoding_format": "float"},
            {"model": "bge-small", "input": ["disk full", "pool"], "encoding_format": "float"},
        ] == [request.body for request in server.requests]

    @pytest.mark.parametrize("path", ["/v1", "/v1/", "/openai/v1?api-version=1"])
    def test_base_url(self, connect: Connected, path: str) -> None:
        """A trailing slash does not matter and a query stays."""
        server, embedder = connect([PROBED], path=path)
        embedder.embed(["pool"], "document")

        expected = {"/v1": "/v1/embeddings", "/v1/": "/v1/embeddings"}.get(path, "/openai/v1/embeddings?api-version=1")
        assert expected == server.requests[0].path

    def test_no_key(self, connect: Connected) -> None:
        """A server without keys gets none."""
        server, embedder = connect([PROBED], key=None)
        embedder.embed(["pool"], "document")

        assert "authorization" not in server.requests[0].headers

    def test_dimensions(self, connect: Connected) -> None:
        """A text-embedding-3 model is told to give 1024 and is not asked first."""
        server, embedder = connect([openai_reply([[1.0] * 1024])], model="text-embedding-3-large")

        assert (1, 1024) == embedder.embed(["pool"], "document").shape
        assert [1024] == [request.body["dimensions"] for request in server.requests]

    def test_revision_is_not_sent(self, connect: Connected) -> None:
        """A revision after @ goes into the stamp and not to the server."""
        server, embedder = connect([PROBED], model="bge-small@2026-11")

        assert "openai/bge-small@2026-11/3/title-window-150w-v1" == embedder.stamp.id
        assert "bge-small" == server.requests[0].body["model"]

    def test_name_that_begins_with_at(self, connect: Connected) -> None:
        """A model whose name begins with @ keeps it."""
        server, embedder = connect([PROBED], model="@cf/baai/bge")

        assert 3 == embedder.stamp.native_dimensions
        assert "@cf/baai/bge" == server.requests[0].body["model"]

    @pytest.mark.parametrize(
        "url", ["", "host/v1", "ftp://host/v1", "https://", "http://[", "http://a:b:c", "http://a:secret@b"]
    )
    def test_impossible_url(self, url: str) -> None:
        """A URL that can never work is named by its setting at once."""
        with pytest.raises(EmbedderMisconfigured, match="GRANDBO_EMBEDDER_URL") as caught:
            OpenAICompatibleProvider(model="m", url=url or " ")

        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize("key", ["sk-vérysecret", "sk-very\nsecret", "sk-very secret", "sk-very\ud800secret"])
    def test_impossible_key(self, key: str) -> None:
        """A key that no header may carry is refused without being quoted."""
        with pytest.raises(EmbedderMisconfigured, match="GRANDBO_EMBEDDER_API_KEY") as caught:
            OpenAICompatibleProvider(model="m", api_key=key)

        assert "secret" not in str(caught.value)


class TestProbe:
    def test_once(self, connect: Connected) -> None:
        """The length is asked for once, even by eight threads at the same time."""
        server, embedder = connect([PROBED])
        start = threading.Barrier(8)

        def ask(_: int) -> str:
            start.wait(10)
            return embedder.stamp.id

        with ThreadPoolExecutor(8) as pool:
            ids = set(pool.map(ask, range(8)))

        assert {"openai/bge-small@unversioned/3/title-window-150w-v1"} == ids
        assert 1 == len(server.requests)

    @pytest.mark.parametrize(
        "failure", [Reply(status=503), Reply(status=400), Reply(b"<html>"), openai_reply([])], ids=str
    )
    def test_failure_is_forgotten(self, connect: Connected, failure: Reply) -> None:
        """A failed question is transient and the next one may succeed."""
        _, embedder = connect([failure, PROBED])
        with pytest.raises(EmbedderTransient):
            _ = embedder.stamp

        assert 3 == embedder.stamp.native_dimensions

    @pytest.mark.parametrize("length", [0, 1025, 3072])
    def test_length_that_cannot_be_stored(self, connect: Connected, length: int) -> None:
        """A model whose vectors do not fit is a matter of configuration, not of the texts."""
        _, embedder = connect([openai_reply([[1.0] * length])])
        with pytest.raises(EmbedderMisconfigured, match=str(length)):
            _ = embedder.stamp

    def test_credentials(self, connect: Connected) -> None:
        """Refused credentials are a matter of configuration here too."""
        _, embedder = connect([Reply(status=401)])
        with pytest.raises(EmbedderMisconfigured):
            _ = embedder.stamp


class TestAnswer:
    def test_floats(self, connect: Connected) -> None:
        """Lists of numbers are read, whole ones too, and normalised."""
        _, embedder = connect([PROBED, openai_reply([[3, 4, 0], [0.0, 0.0, 2.5]])])

        assert pytest.approx(np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])) == embedder.embed(["a", "b"], "document")

    def test_base64(self, connect: Connected) -> None:
        """Base64 of float32 is read whether asked for or not."""
        _, embedder = connect([PROBED, openai_reply([base64_vector([3.0, 4.0, 0.0])])])

        assert pytest.approx(np.array([[0.6, 0.8, 0.0]])) == embedder.embed(["a"], "document")

    def test_out_of_order(self, connect: Connected) -> None:
        """Vectors go to their texts by index, not by place."""
        unit = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        _, embedder = connect([PROBED, openai_reply(unit, order=[2, 0, 1])])

        assert np.array_equal(np.eye(3), embedder.embed(["a", "b", "c"], "document"))

    def test_padded(self, connect: Connected) -> None:
        """A shorter native length is padded to 1024."""
        _, embedder = connect([PROBED])

        assert [1.0] + [0.0] * 1023 == embedder.embed_topic("pool").tolist()

    def test_many_texts(self, connect: Connected) -> None:
        """More texts than one request takes become several."""

        def numbered(request: Request) -> Reply:
            return openai_reply([[1.0, float(len(text)), 0.0] for text in request.body["input"]])

        server, embedder = connect(numbered)
        texts = ["x" * (number + 1) for number in range(130)]
        vectors = embedder.embed(texts, "document")

        assert [1, 64, 64, 2] == [len(request.body["input"]) for request in server.requests]
        assert pytest.approx(np.arange(1, 131), rel=1e-5) == vectors[:, 1] / vectors[:, 0]

    @pytest.mark.parametrize(
        "reply",
        [
            openai_reply([[1.0, 0.0, 0.0]]),
            openai_reply([[1.0, 0.0, 0.0]] * 3),
            openai_reply([]),
            openai_reply([[1.0, 0.0, 0.0], [1.0, 0.0]]),
            openai_reply([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
            openai_reply([[1.0, 0.0, 0.0], [float("nan"), 0.0, 0.0]]),
            openai_reply([[1.0, 0.0, 0.0], [float("inf"), 0.0, 0.0]]),
            openai_reply([[1.0, 0.0, 0.0], [True, False, False]]),
            openai_reply([[1.0, 0.0, 0.0], ["1", "0", "0"]]),
            openai_reply([[1.0, 0.0, 0.0], [10**400, 0, 0]]),
            openai_reply([[1.0, 0.0, 0.0], None]),
            openai_reply([[1.0, 0.0, 0.0], "not base64!"]),
            openai_reply([[1.0, 0.0, 0.0], "AAAAAAA="]),
            openai_reply([[1.0, 0.0, 0.0], base64_vector([float("nan"), 0.0, 1.0])]),
            Reply({"data": [{"index": 0, "embedding": [1.0, 0.0, 0.0]}] * 2}),
            Reply({"data": [{"embedding": [1.0, 0.0, 0.0]}] * 2}),
            Reply({"data": [{"index": [], "embedding": [1.0, 0.0, 0.0]}] * 2}),
            Reply({"data": None}),
            Reply({}),
            Reply([]),
            Reply(b""),
            Reply(b"<html>disk full</html>"),
            Reply(b"\xff\xfe"),
            Reply(b"[" * 100_000),
            Reply(b"no gzip", headers={"content-encoding": "gzip"}),
        ],
        ids=lambda reply: str(reply.body)[:60],
    )
    def test_answers_that_are_none(self, connect: Connected, reply: Reply) -> None:
        """A 200 that does not hold one good vector for each text is refused."""
        _, embedder = connect([PROBED, reply])
        with pytest.raises(EmbedderRefused) as caught:
            embedder.embed(["disk full", "pool"], "document")

        assert "disk full" not in str(caught.value)


class TestFailure:
    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            (400, EmbedderRefused),
            (413, EmbedderRefused),
            (422, EmbedderRefused),
            (401, EmbedderMisconfigured),
            (403, EmbedderMisconfigured),
            (404, EmbedderMisconfigured),
            (405, EmbedderMisconfigured),
            (302, EmbedderMisconfigured),
            (204, EmbedderMisconfigured),
            (408, EmbedderTransient),
            (429, EmbedderTransient),
            (500, EmbedderTransient),
            (502, EmbedderTransient),
            (529, EmbedderTransient),
        ],
    )
    def test_status(self, connect: Connected, status: int, expected: type[EmbedderError]) -> None:
        """Each status is sorted, sent once, and what the server or the key says stays out of the message."""
        content = b"" if status == 204 else f"disk full {KEY}".encode()
        server, embedder = connect([PROBED, Reply(content, status)])
        with pytest.raises(expected) as caught:
            embedder.embed(["disk full"], "document")

        assert 2 == len(server.requests)
        assert str(status) in str(caught.value)
        assert "disk full" not in str(caught.value)
        assert KEY not in str(caught.value)

    def test_retry_after(self, connect: Connected) -> None:
        """The pause that the server asks for is passed on."""
        _, embedder = connect([PROBED, Reply(status=429, headers={"retry-after": "17"})])
        with pytest.raises(EmbedderTransient) as caught:
            embedder.embed(["pool"], "document")

        assert 17.0 == caught.value.retry_after

    def test_hang(self, connect: Connected) -> None:
        """A server that never answers costs the time allowed."""
        _, embedder = connect([PROBED, Reply(hang=True)], timeout=0.2)
        with pytest.raises(EmbedderTransient, match="ReadTimeout"):
            embedder.embed(["pool"], "document")

    def test_nobody_there(self) -> None:
        """A closed port is transient, for the stamp too."""
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
            embedder = Embedder(OpenAICompatibleProvider(model="m", url=url))
            with pytest.raises(EmbedderTransient, match="ConnectError"):
                _ = embedder.stamp
            embedder.close()

    def test_works_again(self, connect: Connected) -> None:
        """After a failure the next call is as good as any."""
        _, embedder = connect([PROBED, Reply(status=500), PROBED])
        with pytest.raises(EmbedderTransient):
            embedder.embed_topic("pool")

        assert 1.0 == embedder.embed_topic("pool")[0]


class TestRetryAfter:
    @freeze_time("2026-11-29 12:00:00")
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (None, None),
            ("", None),
            ("soon", None),
            ("-5", None),
            ("1.5", None),
            ("٣", None),
            ("0", 0.0),
            (" 20 ", 20.0),
            ("9" * 400, 3600.0),
            ("Sun, 29 Nov 2026 12:00:30 GMT", 30.0),
            ("Sun, 29 Nov 2026 11:00:00 GMT", 0.0),
            ("Sun, 29 Nov 2099 11:00:00 GMT", 3600.0),
        ],
    )
    def test_value(self, value: str | None, expected: float | None) -> None:
        """Seconds and dates are read, nonsense is not, and no wait is longer than an hour."""
        assert expected == parse_retry_after(value)

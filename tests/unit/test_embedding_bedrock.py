"""Titan V2: with botocore's Stubber, and against a loopback server that exercises paths, time-outs and parsing."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import stamina
from botocore.response import StreamingBody
from botocore.stub import Stubber
from structlog.testing import capture_logs

from grandbo.embedding import Embedder
from grandbo.embedding.bedrock import BedrockProvider
from grandbo.errors import EmbedderError, EmbedderMisconfigured, EmbedderRefused, EmbedderTransient
from tests.support.embedding_servers import EmbeddingServer, Reply, aws_error, titan_reply

VECTOR = [0.6, 0.8] + [0.0] * 1022
MODEL = "amazon.titan-embed-text-v2:0"
EXPECTED = {
    "modelId": MODEL,
    "contentType": "application/json",
    "accept": "application/json",
    "body": '{"inputText": "disk full", "dimensions": 1024, "normalize": true}',
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give made-up credentials, no proxy and no back-off."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "made-up")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up-secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with stamina.set_testing(True, attempts=3, cap=True):
        yield


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    client = boto3.session.Session().client(
        "bedrock-runtime", region_name="eu-west-1", aws_access_key_id="made-up", aws_secret_access_key="made-up"
    )
    yield client
    client.close()


@pytest.fixture
def stubber(client: Any) -> Iterator[Stubber]:
    with Stubber(client) as stubber:
        yield stubber


@pytest.fixture
def embedder(client: Any) -> Embedder:
    return Embedder(BedrockProvider(client=client))


def answer(stubber: Stubber, content: Any = None) -> None:
    payload = content if isinstance(content, bytes) else json.dumps(content or {"embedding": VECTOR}).encode()
    response = {"body": StreamingBody(io.BytesIO(payload), len(payload)), "contentType": "application/json"}
    stubber.add_response("invoke_model", response, EXPECTED)


def refuse(stubber: Stubber, code: str, status: int, headers: dict[str, str] | None = None) -> None:
    stubber.add_client_error(
        "invoke_model",
        code,
        "disk full",
        status,
        response_meta={"HTTPHeaders": headers or {}},
        expected_params=EXPECTED,
    )


class TestStubbed:
    def test_success(self, stubber: Stubber, embedder: Embedder) -> None:
        """The request has exactly the documented form, and the vector comes back."""
        answer(stubber)
        vectors = embedder.embed(["disk full"], "document")

        assert (1, 1024) == vectors.shape
        assert pytest.approx(VECTOR) == vectors[0]
        stubber.assert_no_pending_responses()

    def test_one_text_a_call(self, stubber: Stubber, embedder: Embedder) -> None:
        """Titan takes no list, so two texts are two calls."""
        answer(stubber)
        answer(stubber)

        assert (2, 1024) == embedder.embed(["disk full", "disk full"], "document").shape
        stubber.assert_no_pending_responses()

    @pytest.mark.parametrize(
        ("code", "status"),
        [
            ("ModelTimeoutException", 408),
            ("ModelErrorException", 424),
            ("ThrottlingException", 429),
            ("ModelNotReadyException", 429),
            ("InternalServerException", 500),
            ("ServiceUnavailableException", 503),
        ],
    )
    def test_passing_troubles_are_retried(self, stubber: Stubber, embedder: Embedder, code: str, status: int) -> None:
        """What may pass is tried twice more, with the same request."""
        refuse(stubber, code, status)
        refuse(stubber, code, status)
        answer(stubber)

        assert (1, 1024) == embedder.embed(["disk full"], "document").shape
        stubber.assert_no_pending_responses()

    def test_lasting_trouble_is_transient(self, stubber: Stubber, embedder: Embedder) -> None:
        """After three tries the text goes back to the backlog, and the message does not quote it."""
        for _ in range(3):
            refuse(stubber, "ModelTimeoutException", 408)
        with pytest.raises(EmbedderTransient, match="ModelTimeoutException, HTTP 408") as caught:
            embedder.embed(["disk full"], "document")

        assert "disk full" not in str(caught.value)
        stubber.assert_no_pending_responses()

    def test_retries_are_logged_without_the_text(self, stubber: Stubber, embedder: Embedder) -> None:
        """A retry is in the log, the text that it is about is not."""
        refuse(stubber, "ModelErrorException", 424)
        answer(stubber)
        with capture_logs() as logs:
            embedder.embed(["disk full"], "document")

        assert ["stamina.retry_scheduled"] == [entry["event"] for entry in logs]
        assert "disk full" not in repr(logs)

    @pytest.mark.parametrize(
        ("code", "status", "expected"),
        [
            ("ValidationException", 400, EmbedderRefused),
            ("AccessDeniedException", 403, EmbedderMisconfigured),
            ("ResourceNotFoundException", 404, EmbedderMisconfigured),
            ("UnrecognizedClientException", 403, EmbedderMisconfigured),
            ("ExpiredTokenException", 400, EmbedderMisconfigured),
            ("SomethingNew", 403, EmbedderMisconfigured),
            ("SomethingNew", 400, EmbedderRefused),
        ],
    )
    def test_final_answers_are_not_retried(
        self, stubber: Stubber, embedder: Embedder, code: str, status: int, expected: type[EmbedderError]
    ) -> None:
        """A bad text and bad credentials are told apart at the first try."""
        refuse(stubber, code, status)
        with pytest.raises(expected) as caught:
            embedder.embed(["disk full"], "document")

        assert "disk full" not in str(caught.value)
        stubber.assert_no_pending_responses()

    def test_long_pause_is_left_to_the_backlog(self, stubber: Stubber, embedder: Embedder) -> None:
        """A pause longer than the time allowed is passed on instead of waited for."""
        refuse(stubber, "ThrottlingException", 429, {"retry-after": "30"})
        with pytest.raises(EmbedderTransient) as caught:
            embedder.embed(["disk full"], "document")

        assert 30.0 == caught.value.retry_after
        stubber.assert_no_pending_responses()

    def test_quota(self, stubber: Stubber, embedder: Embedder) -> None:
        """A used-up quota asks for a long pause."""
        refuse(stubber, "ServiceQuotaExceededException", 400)
        with pytest.raises(EmbedderTransient) as caught:
            embedder.embed(["disk full"], "document")

        assert 300.0 == caught.value.retry_after

    @pytest.mark.parametrize(
        "content",
        [b"", b"<html>", b"[]", b"{}", b'{"embedding": "x"}', b'{"embedding": [1.0]}', b"[" * 100_000, b"\xff"],
        ids=lambda content: repr(content[:20]),
    )
    def test_answers_that_are_none(self, stubber: Stubber, embedder: Embedder, content: bytes) -> None:
        """An answer without a usable vector is refused."""
        answer(stubber, content)
        with pytest.raises(EmbedderRefused):
            embedder.embed(["disk full"], "document")

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "0.0"])
    def test_vectors_that_are_none(self, stubber: Stubber, embedder: Embedder, number: str) -> None:
        """NaN, infinity and zeros are refused."""
        answer(stubber, f'{{"embedding": [{", ".join([number] * 1024)}]}}'.encode())
        with pytest.raises(EmbedderRefused):
            embedder.embed(["disk full"], "document")


def local_embedder(url: str, timeout: float = 5.0, region: str | None = "eu-west-1") -> Embedder:
    return Embedder(BedrockProvider(region=region, endpoint_url=url, timeout=timeout))


class TestOverHTTP:
    def test_success(self) -> None:
        """The path escapes the colon of the model id and the request is signed."""
        with EmbeddingServer([titan_reply(VECTOR)]) as server:
            embedder = local_embedder(server.url)
            vectors = embedder.embed(["disk full"], "document")
            embedder.close()

        assert pytest.approx(VECTOR) == vectors[0]
        assert ["/model/amazon.titan-embed-text-v2%3A0/invoke"] == [request.path for request in server.requests]
        assert server.requests[0].headers["authorization"].startswith("AWS4-HMAC-SHA256 ")
        assert {"inputText": "disk full", "dimensions": 1024, "normalize": True} == server.requests[0].body

    def test_retried_three_times_in_all(self) -> None:
        """botocore adds no retries to ours, so a failing service sees three requests."""
        with EmbeddingServer([aws_error("ServiceUnavailableException", 503)]) as server:
            embedder = local_embedder(server.url)
            with pytest.raises(EmbedderTransient, match="ServiceUnavailableException"):
                embedder.embed(["disk full"], "document")
            embedder.close()

        assert 3 == len(server.requests)

    def test_model_timeout_then_success(self) -> None:
        """The model's own time-out, which botocore never retries, is tried again."""
        with EmbeddingServer([aws_error("ModelTimeoutException", 408), titan_reply(VECTOR)]) as server:
            embedder = local_embedder(server.url)

            assert (1, 1024) == embedder.embed(["disk full"], "document").shape
            embedder.close()

    @pytest.mark.parametrize(
        ("reply", "expected"),
        [
            (aws_error("ValidationException", 400, "disk full"), EmbedderRefused),
            (aws_error("AccessDeniedException", 403, "disk full"), EmbedderMisconfigured),
            (aws_error("ThrottlingException", 429, "disk full", {"retry-after": "30"}), EmbedderTransient),
            (Reply(b"<html>disk full</html>", 502), EmbedderTransient),
            (Reply(b"<html>disk full</html>", 200), EmbedderRefused),
        ],
        ids=["validation", "denied", "throttled", "proxy error", "html"],
    )
    def test_failures(self, reply: Reply, expected: type[EmbedderError]) -> None:
        """Each failure is sorted, and no message quotes what the service said."""
        with EmbeddingServer([reply]) as server:
            embedder = local_embedder(server.url)
            with pytest.raises(expected) as caught:
                embedder.embed(["disk full"], "document")
            embedder.close()

        assert "disk full" not in str(caught.value)

    def test_hang(self) -> None:
        """A service that never answers costs the time allowed, once."""
        with stamina.set_testing(False), EmbeddingServer([Reply(hang=True)]) as server:
            embedder = local_embedder(server.url, timeout=0.2)
            with pytest.raises(EmbedderTransient, match="ReadTimeoutError"):
                embedder.embed(["disk full"], "document")
            embedder.close()

        assert 1 == len(server.requests)

    def test_nobody_there(self) -> None:
        """A closed port is transient."""
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            embedder = local_embedder(f"http://127.0.0.1:{unused.getsockname()[1]}")
            with pytest.raises(EmbedderTransient, match="cannot be reached"):
                embedder.embed(["disk full"], "document")
            embedder.close()

    def test_no_region(self) -> None:
        """A missing region is a matter of configuration, named as such."""
        with pytest.raises(EmbedderMisconfigured, match="GRANDBO_EMBEDDER_REGION"):
            Embedder(BedrockProvider()).embed(["disk full"], "document")

    def test_no_credentials(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Missing credentials are a matter of configuration."""
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        embedder = local_embedder("http://127.0.0.1:9")
        with pytest.raises(EmbedderMisconfigured, match="NoCredentialsError"):
            embedder.embed(["disk full"], "document")
        embedder.close()


class TestStamp:
    @pytest.mark.parametrize(
        ("model", "expected"),
        [
            (None, "bedrock/amazon.titan-embed-text-v2@0/1024/title-window-150w-v1"),
            (f"arn:aws:bedrock:eu-west-1::foundation-model/{MODEL}", "bedrock/amazon.titan-embed-text-v2@0/1024/"),
            ("arn:aws:bedrock:eu-west-1:123456789012:provisioned-model/abc", "bedrock/provisioned-model/abc@0/1024/"),
        ],
    )
    def test_id(self, model: str | None, expected: str) -> None:
        """The stamp names the model and its version, never an account."""
        assert BedrockProvider(model=model).stamp.id.startswith(expected)

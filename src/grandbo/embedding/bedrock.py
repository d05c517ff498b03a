"""
Amazon Titan Text Embeddings V2 through `bedrock-runtime` `InvokeModel`: one text a call, 1024 dimensions.

Nobody has measured a cutoff for Titan here, and no guess ships: unless `GRANDBO_EMBEDDER_CUTOFF_BP` gives one, it is
20,000 basis points, the largest cosine distance there is, so that **nothing is cut** and every query has semantic
matches, far ones included. Calibrate it on your own findings.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Final

import stamina

from grandbo.embedding.provider import Kind
from grandbo.embedding.recipe import RECIPE
from grandbo.embedding.retry_after import parse_retry_after
from grandbo.embedding.stamp import DIMENSIONS, UNCALIBRATED_CUTOFF_BP, Stamp
from grandbo.errors import EmbedderError, EmbedderMisconfigured, EmbedderRefused, EmbedderTransient

MODEL_ID: Final = "amazon.titan-embed-text-v2:0"

_TRIES: Final = 3
_QUOTA_PAUSE: Final = 300.0

_REFUSED: Final = frozenset({"ValidationException", "ValidationError"})
_MISCONFIGURED: Final = frozenset(
    {
        "AccessDeniedException",
        "ResourceNotFoundException",
        "UnrecognizedClientException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "IncompleteSignature",
        "MissingAuthenticationTokenException",
        "ExpiredTokenException",
        "ExpiredToken",
        "NotAuthorized",
        "OptInRequired",
    }
)


class BedrockProvider:
    """
    Titan V2 behind a boto3 client, which is made at first use; safe to share between threads.

    botocore's own retries are off: they know neither `ModelTimeoutException` nor `ModelErrorException`, and their
    waits add up to many times the time allowed. What may pass is tried at most twice more here instead, and no try
    starts once `timeout` seconds are over.
    """

    max_texts = 1

    def __init__(
        self,
        *,
        model: str | None = None,
        region: str | None = None,
        endpoint_url: str | None = None,
        timeout: float = 5.0,
        cutoff_bp: int | None = None,
        client: Any = None,
    ) -> None:
        """
        Credentials, and the region if not given, come from where boto3 looks for them.

        Raises `EmbedderMisconfigured` when boto3 is not installed.
        """
        if client is None and find_spec("boto3") is None:
            raise EmbedderMisconfigured('Bedrock needs boto3: `pip install "grandbo[bedrock]"`.')
        self._model_id = model or MODEL_ID
        self._region = region
        self._endpoint_url = endpoint_url
        self._timeout = timeout
        self._lock = threading.Lock()
        self._client = client
        name, _, revision = _model_name(self._model_id).rpartition(":")
        self.stamp = Stamp(
            provider="bedrock",
            model=name or _model_name(self._model_id),
            revision=revision if name else "0",
            native_dimensions=DIMENSIONS,
            recipe=RECIPE,
            cutoff_bp=cutoff_bp or UNCALIBRATED_CUTOFF_BP,
        )

    def embed(self, texts: Sequence[str], kind: Kind) -> list[list[float]]:  # noqa: ARG002  # Titan makes no difference
        """
        Give a list of 1024 floats for each text, one call after the other.

        Raises `EmbedderTransient` for throttling, time-outs and server errors, `EmbedderRefused` for a text that the
        model does not take and for an answer that is none, `EmbedderMisconfigured` for credentials, region and model.
        """
        return [self._embed_one(text) for text in texts]

    def close(self) -> None:
        """Close the client's connections."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _embed_one(self, text: str) -> list[float]:
        # A fixed key order: the body is compared as text wherever requests are recorded.
        body = json.dumps({"inputText": text, "dimensions": DIMENSIONS, "normalize": True})
        # Not a retrying caller: that one writes its arguments, and so the text, into the log of retries.
        for attempt in stamina.retry_context(
            on=self._worth_another_try,
            attempts=_TRIES,
            timeout=self._timeout,
            wait_initial=0.1,
            wait_max=max(0.1, self._timeout / 2),
            wait_jitter=0.1,
        ):
            with attempt:
                return self._invoke(body)
        raise AssertionError("the last attempt returns or raises")

    def _worth_another_try(self, error: Exception) -> bool | float:
        """Wait as long as the service asks, but leave long waits to whoever keeps the backlog."""
        if not isinstance(error, EmbedderTransient):
            return False
        if error.retry_after is None:
            return True
        return error.retry_after if error.retry_after < self._timeout else False

    def _invoke(self, body: str) -> list[float]:
        client = self._connected()
        # Imported once there is a client: without boto3 there is none.
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            response = client.invoke_model(
                modelId=self._model_id, contentType="application/json", accept="application/json", body=body
            )
            with response["body"] as stream:
                answer = stream.read()
        except ClientError as error:
            raise _from_service(error) from None
        except BotoCoreError as error:
            raise _from_botocore(error) from None
        return _embedding(answer)

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = _client(self._region, self._endpoint_url, self._timeout)
            return self._client


def _client(region: str | None, endpoint_url: str | None, timeout: float) -> Any:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    config = Config(
        retries={"mode": "standard", "total_max_attempts": 1},
        connect_timeout=min(timeout, 2.0),
        read_timeout=timeout,
        max_pool_connections=32,
    )
    try:
        # A session of its own: the default one is shared and not safe to build clients from in several threads.
        return boto3.session.Session().client(
            "bedrock-runtime", region_name=region, endpoint_url=endpoint_url, config=config
        )
    except (BotoCoreError, ValueError) as error:
        raise EmbedderMisconfigured(
            f"No Bedrock client can be made ({type(error).__name__}); check GRANDBO_EMBEDDER_REGION,"
            " GRANDBO_EMBEDDER_URL and the AWS credentials."
        ) from None


def _from_service(error: Any) -> EmbedderError:
    """Sort what the service answered; its message may quote the text and is left out."""
    code = str(error.response.get("Error", {}).get("Code", "")) or "no code"
    metadata = error.response.get("ResponseMetadata", {})
    status = int(metadata.get("HTTPStatusCode") or 0)
    described = f"{code[:60]}, HTTP {status}"
    if code in _MISCONFIGURED:
        return EmbedderMisconfigured(f"Bedrock refuses the credentials or the model ({described}).")
    if code in _REFUSED:
        return EmbedderRefused(f"Bedrock does not take this text ({described}).")
    retry_after = parse_retry_after(metadata.get("HTTPHeaders", {}).get("retry-after"))
    if code == "ServiceQuotaExceededException":
        return EmbedderTransient(f"A Bedrock quota is used up ({described}).", retry_after=retry_after or _QUOTA_PAUSE)
    if status in {401, 403, 404}:
        return EmbedderMisconfigured(f"Bedrock refuses the credentials or the model ({described}).")
    if status in {400, 413, 422} and not code.startswith("Throttl"):
        return EmbedderRefused(f"Bedrock does not take this text ({described}).")
    return EmbedderTransient(f"Bedrock is throttling, slow or down ({described}).", retry_after=retry_after)


def _from_botocore(error: Exception) -> EmbedderError:
    """Sort what went wrong before there was an answer."""
    from botocore import exceptions

    passing = (
        exceptions.ConnectionError,
        exceptions.HTTPClientError,
        exceptions.ResponseStreamingError,
        exceptions.IncompleteReadError,
        exceptions.CredentialRetrievalError,
        exceptions.MetadataRetrievalError,
        exceptions.TokenRetrievalError,
    )
    name = type(error).__name__
    if isinstance(error, passing):
        return EmbedderTransient(f"Bedrock cannot be reached ({name}).")
    return EmbedderMisconfigured(f"Bedrock cannot be called as configured ({name}); check region and AWS credentials.")


def _embedding(answer: bytes) -> list[float]:
    try:
        embedding = json.loads(answer)["embedding"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise EmbedderRefused("Bedrock's answer holds no embedding.") from None
    if not isinstance(embedding, list):
        raise EmbedderRefused("Bedrock's answer holds no embedding.")
    return embedding


def _model_name(model_id: str) -> str:
    """Take an ARN's resource only: a stamp is stored and shown, an account number is not."""
    if model_id.startswith("arn:"):
        model_id = model_id.split(":", 5)[-1]
    return model_id.removeprefix("foundation-model/")

"""
Any endpoint that speaks OpenAI's `POST /embeddings`: OpenAI, Azure, vLLM, Text Embeddings Inference, Ollama and others.

The URL is the base with its version, e.g. ``https://api.openai.com/v1``. The model may be written ``name@revision``:
the revision is never sent, it only goes into the stamp, because these servers do not say which weights they run. Give a
new one whenever the weights behind a name change; otherwise vectors of two spaces share a stamp.

No cutoff has been measured for these models and none is guessed: without `GRANDBO_EMBEDDER_CUTOFF_BP` nothing is cut.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

import httpx2
import numpy as np
import numpy.typing as npt

from grandbo.embedding.provider import Kind
from grandbo.embedding.recipe import RECIPE
from grandbo.embedding.retry_after import parse_retry_after
from grandbo.embedding.stamp import DIMENSIONS, UNCALIBRATED_CUTOFF_BP, Stamp
from grandbo.errors import EmbedderError, EmbedderMisconfigured, EmbedderRefused, EmbedderTransient

DEFAULT_URL: Final = "https://api.openai.com/v1"
UNVERSIONED: Final = "unversioned"
PROBE: Final = "incident"

_MOST_BYTES: Final = 32 * 1024 * 1024
_REFUSED: Final = frozenset({400, 413, 422})
_TRANSIENT: Final = frozenset({408, 409, 425, 429})

_Vector = npt.NDArray[np.float64]


class OpenAICompatibleProvider:
    """
    One HTTP client; safe to share between threads. It never retries: the backlog does, and a topic cannot wait.

    The length of the vectors is asked for once, with one fixed word, when the stamp is first needed. A model of the
    `text-embedding-3` family is told to give 1024 and need not be asked.
    """

    max_texts = 64

    def __init__(
        self,
        *,
        model: str,
        url: str | None = None,
        api_key: str | None = None,
        timeout: float = 5.0,
        cutoff_bp: int | None = None,
    ) -> None:
        """Raise `EmbedderMisconfigured` for a model, URL or key that can never work; nothing is sent yet."""
        name, _, revision = model.strip().rpartition("@")
        # A name may itself begin with @, as those of some hosted catalogues do.
        self._model, self._revision = (name, revision or UNVERSIONED) if name else (model.strip(), UNVERSIONED)
        if not self._model:
            raise EmbedderMisconfigured("GRANDBO_EMBEDDER_MODEL must name the model for `openai`.")
        self._endpoint = _endpoint(url or DEFAULT_URL)
        self._timeout = timeout
        self._cutoff_bp = cutoff_bp or UNCALIBRATED_CUTOFF_BP
        self._sends_dimensions = self._model.rpartition("/")[2].startswith("text-embedding-3-")
        self._lock = threading.Lock()
        self._known_stamp = self._stamp(DIMENSIONS) if self._sends_dimensions else None
        self._client = httpx2.Client(
            headers=_headers(api_key), timeout=httpx2.Timeout(timeout, connect=min(timeout, 2.0))
        )

    @property
    def stamp(self) -> Stamp:
        """
        The space; the first use may ask the server for the length of its vectors.

        Raises `EmbedderTransient` when that fails (a failed question says nothing about the dimensions and is asked
        again), `EmbedderMisconfigured` when the server refuses the credentials or has vectors longer than 1024.
        """
        stamp = self._known_stamp
        if stamp is None:
            with self._lock:
                stamp = self._known_stamp
                if stamp is None:
                    stamp = self._known_stamp = self._stamp(self._probe())
        return stamp

    def embed(self, texts: Sequence[str], kind: Kind) -> list[_Vector]:  # noqa: ARG002  # the protocol has no such switch
        """
        Give one vector of the model's own length for each text.

        Raises `EmbedderTransient` for 429, 5xx, time-outs and broken connections, `EmbedderRefused` for 400, 413, 422
        and for an answer that is none, `EmbedderMisconfigured` for every other status.
        """
        request: dict[str, Any] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if self._sends_dimensions:
            request["dimensions"] = DIMENSIONS
        return _vectors(self._post(request), len(texts))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _stamp(self, dimensions: int) -> Stamp:
        return Stamp(
            provider="openai",
            model=self._model,
            revision=self._revision,
            native_dimensions=dimensions,
            recipe=RECIPE,
            cutoff_bp=self._cutoff_bp,
        )

    def _probe(self) -> int:
        try:
            dimensions = len(self.embed([PROBE], "document")[0])
        except EmbedderRefused as error:
            raise EmbedderTransient(
                f"The length of the vectors could not be learnt; check model and URL. {error.message}"
            ) from None
        if not 1 <= dimensions <= DIMENSIONS:
            raise EmbedderMisconfigured(f"The model has {dimensions} dimensions; 1 to {DIMENSIONS} can be stored.")
        return dimensions

    def _post(self, request: dict[str, Any]) -> bytes:
        # The client's time-outs are for each read; a server that drips bytes would never meet them.
        deadline = time.monotonic() + self._timeout
        answer = bytearray()
        try:
            with self._client.stream("POST", self._endpoint, json=request) as response:
                if response.status_code != 200:
                    raise _from_status(response.status_code, response.headers.get("retry-after"))
                for chunk in response.iter_bytes():
                    answer += chunk
                    if len(answer) > _MOST_BYTES:
                        raise EmbedderRefused("The embedding endpoint's answer is far too long.")
                    if time.monotonic() > deadline:
                        raise EmbedderTransient("The embedding endpoint took too long to answer.")
        except httpx2.DecodingError:
            raise EmbedderRefused("The embedding endpoint's answer cannot be decoded.") from None
        except (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL) as error:
            raise EmbedderMisconfigured(f"The request cannot be made as configured ({type(error).__name__}).") from None
        except httpx2.HTTPError as error:
            raise EmbedderTransient(f"The embedding endpoint cannot be reached ({type(error).__name__}).") from None
        return bytes(answer)


def _endpoint(url: str) -> str:
    try:
        parsed = httpx2.URL(url.strip().rstrip("/"))
    except httpx2.InvalidURL:
        parsed = httpx2.URL("")
    if parsed.scheme not in {"http", "https"} or not parsed.host or "%" in parsed.host:
        raise EmbedderMisconfigured("GRANDBO_EMBEDDER_URL must be an http or https URL such as https://host/v1.")
    if parsed.userinfo:
        # The HTTP library logs the URL of every request.
        raise EmbedderMisconfigured("GRANDBO_EMBEDDER_URL must hold no password; GRANDBO_EMBEDDER_API_KEY is for that.")
    return str(parsed.copy_with(path=f"{parsed.path.rstrip('/')}/embeddings"))


def _headers(api_key: str | None) -> dict[str, str]:
    """Check the key here: the HTTP library quotes a header that it refuses."""
    if api_key is None or not (key := api_key.strip()):
        return {}
    if not all("!" <= character <= "~" for character in key):
        raise EmbedderMisconfigured("GRANDBO_EMBEDDER_API_KEY holds characters that no HTTP header may carry.")
    return {"Authorization": f"Bearer {key}"}


def _from_status(status: int, retry_after: str | None) -> EmbedderError:
    if status in _TRANSIENT or status >= 500:
        return EmbedderTransient(
            f"The embedding endpoint is throttling, slow or down (HTTP {status}).",
            retry_after=parse_retry_after(retry_after),
        )
    if status in _REFUSED:
        return EmbedderRefused(f"The embedding endpoint does not take this text (HTTP {status}).")
    return EmbedderMisconfigured(f"The embedding endpoint refuses the credentials, model or URL (HTTP {status}).")


def _vectors(answer: bytes, count: int) -> list[_Vector]:
    """Put the vectors into the order of the texts; each index from 0 must be there once."""
    try:
        items = json.loads(answer)["data"]
        by_index = {item["index"]: _vector(item["embedding"]) for item in items}
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        raise EmbedderRefused("The embedding endpoint's answer holds no embeddings.") from None
    if len(items) != count or set(by_index) != set(range(count)):
        raise EmbedderRefused(f"The embedding endpoint did not give exactly one vector for each of {count} texts.")
    return [by_index[index] for index in range(count)]


def _vector(embedding: object) -> _Vector:
    """Read a list of numbers, or base64 of little-endian float32; raise `ValueError` for anything else."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float64)
    if not isinstance(embedding, list) or not all(type(number) in (int, float) for number in embedding):
        raise ValueError("not a vector")
    return np.array(embedding, np.float64)

"""The wrapper that every provider goes through, and the factory."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from grandbo.embedding import DIMENSIONS, RECIPE, Embedder, Kind, Stamp, build_embedder, pad
from grandbo.errors import (
    EmbedderError,
    EmbedderMisconfigured,
    EmbedderRefused,
    EmbedderTransient,
)
from grandbo.settings import Settings

STAMP = Stamp("fake", "numbers", "1", 3, RECIPE, 5000)


class FakeProvider:
    """Answers with what `answer` makes of the texts and remembers what it was asked."""

    stamp = STAMP

    def __init__(self, answer: Callable[[Sequence[str]], Any], max_texts: int = 4) -> None:
        self.answer = answer
        self.max_texts = max_texts
        self.asked: list[tuple[list[str], Kind]] = []
        self.closed = False

    def embed(self, texts: Sequence[str], kind: Kind) -> Any:
        self.asked.append((list(texts), kind))
        return self.answer(texts)

    def close(self) -> None:
        self.closed = True


def by_length(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0, 0.0] for text in texts]


def always(vector: Any) -> Callable[[Sequence[str]], Any]:
    return lambda texts: [vector for _ in texts]


def failing(error: Exception) -> Callable[[Sequence[str]], Any]:
    def answer(texts: Sequence[str]) -> Any:
        raise error

    return answer


class TestEmbed:
    def test_unit_rows_in_order(self) -> None:
        """Vectors come back in the order of the texts, of length 1, as float32."""
        provider = FakeProvider(by_length, max_texts=2)
        vectors = Embedder(provider).embed(["a", "bb", "ccc", "dddd", "eeeee"], "document")

        assert (5, 3) == vectors.shape
        assert np.float32 == vectors.dtype
        assert pytest.approx([1, 2, 3, 4, 5]) == vectors[:, 0] / vectors[:, 1]
        assert pytest.approx(np.ones(5)) == np.linalg.norm(vectors, axis=1)

    def test_batches(self) -> None:
        """No call has more texts than the provider takes, and the kind is passed on."""
        provider = FakeProvider(by_length, max_texts=2)
        Embedder(provider).embed(["a", "b", "c", "d", "e"], "query")

        assert [(["a", "b"], "query"), (["c", "d"], "query"), (["e"], "query")] == provider.asked

    def test_no_texts(self) -> None:
        """No texts give no rows and no call."""
        provider = FakeProvider(by_length)

        assert (0, 3) == Embedder(provider).embed([], "document").shape
        assert [] == provider.asked

    def test_lone_surrogates(self) -> None:
        """Half a surrogate pair, which no UTF-8 holds, is replaced before the provider sees it."""
        provider = FakeProvider(by_length)
        Embedder(provider).embed(["pool \ud800 full"], "document")

        assert [(["pool ? full"], "document")] == provider.asked

    @pytest.mark.parametrize("blank", ["", " \n\t"])
    def test_blank_text(self, blank: str) -> None:
        """A blank text is refused by its index and nothing is sent."""
        provider = FakeProvider(by_length)
        with pytest.raises(EmbedderRefused) as caught:
            Embedder(provider).embed(["pool", blank], "document")

        assert {"index": 1} == caught.value.details
        assert [] == provider.asked

    def test_a_string_is_not_texts(self) -> None:
        """A bare string is a mistake of the caller, not a list of letters."""
        with pytest.raises(TypeError):
            Embedder(FakeProvider(by_length)).embed("pool", "document")

    @pytest.mark.parametrize(
        "vector",
        [
            [0.0, 0.0, 0.0],
            [1e-12, 0.0, 0.0],
            [math.nan, 1.0, 0.0],
            [math.inf, 1.0, 0.0],
            [1e200, 1e200, 0.0],
            [1.0, 2.0],
            [1.0, 2.0, 3.0, 4.0],
            [],
            [[1.0, 2.0, 3.0]],
            [[1.0], [2.0, 3.0]],
            ["1", "2", "3"],
            [True, True, False],
            [None, 1.0, 2.0],
            [10**400, 1.0, 2.0],
            None,
            "abc",
        ],
        ids=str,
    )
    def test_impossible_vectors(self, vector: Any) -> None:
        """A vector that cannot be one is refused, and the error says which text it was for."""
        provider = FakeProvider(lambda texts: [vector if text == "bad" else [1.0, 2.0, 3.0] for text in texts], 2)
        with pytest.raises(EmbedderRefused) as caught:
            Embedder(provider).embed(["a", "b", "c", "bad"], "document")

        assert {"index": 3} == caught.value.details

    @pytest.mark.parametrize("answer", [[], [[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]] * 3])
    def test_wrong_count(self, answer: list[list[float]]) -> None:
        """More or fewer vectors than texts are refused: nobody knows whose they are."""
        with pytest.raises(EmbedderRefused):
            Embedder(FakeProvider(lambda texts: answer)).embed(["a", "b"], "document")

    @pytest.mark.parametrize(
        "error", [EmbedderTransient(retry_after=3.0), EmbedderRefused(), EmbedderMisconfigured()], ids=repr
    )
    def test_known_errors_pass(self, error: EmbedderError) -> None:
        """What a provider says in our words is passed on as it is."""
        with pytest.raises(EmbedderError) as caught:
            Embedder(FakeProvider(failing(error))).embed(["a"], "document")

        assert error is caught.value

    @pytest.mark.parametrize("answer", [failing(KeyError("secret topic")), lambda texts: None, lambda texts: 3])
    def test_surprises_are_transient(self, answer: Callable[[Sequence[str]], Any]) -> None:
        """Anything else becomes transient, and what it said is left out."""
        with pytest.raises(EmbedderTransient) as caught:
            Embedder(FakeProvider(answer)).embed(["secret topic"], "document")

        assert "secret topic" not in str(caught.value)

    def test_neighbours_do_not_matter(self) -> None:
        """A vector has the same bits whatever shares its batch."""
        rows = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
        provider = FakeProvider(lambda texts: rows[[int(text) for text in texts]], 40)
        embedder = Embedder(provider)
        together = embedder.embed([str(number) for number in range(40)], "document")

        assert all(
            embedder.embed([str(number)], "document")[0].tobytes() == together[number].tobytes() for number in range(40)
        )

    def test_close(self) -> None:
        """Closing reaches the provider."""
        provider = FakeProvider(by_length)
        Embedder(provider).close()

        assert provider.closed


class TestPad:
    def test_cosine_stays(self) -> None:
        """Zeros at the end change no inner product, and so no rank."""
        short = np.random.default_rng(7).normal(size=(50, 384)).astype(np.float32)
        short /= np.linalg.norm(short, axis=1, keepdims=True)
        padded = pad(short)

        assert (50, DIMENSIONS) == padded.shape
        assert np.float32 == padded.dtype
        assert pytest.approx(short @ short.T, abs=1e-6) == padded @ padded.T
        assert not padded[:, 384:].any()

    def test_full_length(self) -> None:
        """A vector of full length is left as it is."""
        assert np.array_equal(np.ones((2, DIMENSIONS)), pad(np.ones((2, DIMENSIONS))))

    def test_too_long(self) -> None:
        """A longer one is refused, never cut."""
        with pytest.raises(EmbedderRefused):
            pad(np.ones((1, DIMENSIONS + 1)))


class TestTopics:
    def test_once_a_topic(self) -> None:
        """The same topic again costs no call, and its vector has 1024 numbers that nobody can change."""
        provider = FakeProvider(by_length)
        embedder = Embedder(provider)
        first = embedder.embed_topic("pool exhausted")

        assert first is embedder.embed_topic("pool exhausted")
        assert (DIMENSIONS,) == first.shape
        assert not first.flags.writeable
        assert 1 == embedder.topics_embedded
        assert [(["pool exhausted"], "query")] == provider.asked

    def test_failures_are_forgotten(self) -> None:
        """After a failure the next question asks the provider again."""
        answers = iter([failing(EmbedderTransient()), always([0.0, 0.0, 0.0]), by_length])
        provider = FakeProvider(lambda texts: next(answers)(texts))
        embedder = Embedder(provider)
        with pytest.raises(EmbedderTransient):
            embedder.embed_topic("pool")
        with pytest.raises(EmbedderRefused):
            embedder.embed_topic("pool")

        assert (DIMENSIONS,) == embedder.embed_topic("pool").shape
        assert 3 == embedder.topics_embedded

    def test_bounded(self) -> None:
        """Only the topics used last are kept."""
        embedder = Embedder(FakeProvider(by_length), topics_kept=2)
        for topic in ["a", "b", "a", "c", "a", "b"]:
            embedder.embed_topic(topic)

        assert 4 == embedder.topics_embedded

    def test_many_askers_one_call(self) -> None:
        """Threads that ask for one topic at the same time share one call."""
        release = threading.Event()
        entered = threading.Event()

        def answer(texts: Sequence[str]) -> list[list[float]]:
            entered.set()
            release.wait(10)
            return by_length(texts)

        embedder = Embedder(FakeProvider(answer))
        with ThreadPoolExecutor(8) as pool:
            futures = [pool.submit(embedder.embed_topic, "pool exhausted") for _ in range(8)]
            entered.wait(10)
            release.set()
            vectors = [future.result(10) for future in futures]

        assert 1 == embedder.topics_embedded
        assert 1 == len({vector.tobytes() for vector in vectors})

    def test_a_shared_failure(self) -> None:
        """Threads that share a failing call all learn of it, and the next one starts afresh."""
        release = threading.Event()
        started = threading.Barrier(5)

        def answer(texts: Sequence[str]) -> list[list[float]]:
            release.wait(10)
            raise EmbedderTransient

        embedder = Embedder(FakeProvider(answer))

        def ask() -> str:
            started.wait(10)
            with pytest.raises(EmbedderTransient):
                embedder.embed_topic("pool")
            return "failed"

        with ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(ask) for _ in range(4)]
            started.wait(10)
            release.set()

            assert ["failed"] * 4 == [future.result(10) for future in futures]

    def test_no_plain_topic_is_kept(self) -> None:
        """What is remembered is found by a keyed digest; the topic itself is nowhere, and each process has its key."""
        one, other = Embedder(FakeProvider(by_length)), Embedder(FakeProvider(by_length))
        one.embed_topic("customer data lost")
        other.embed_topic("customer data lost")

        assert "customer" not in repr(vars(one))
        assert set(one._topics) != set(other._topics)

    def test_forget(self) -> None:
        """After forgetting, the topic is asked for again."""
        embedder = Embedder(FakeProvider(by_length))
        embedder.embed_topic("pool")
        embedder.forget_topics()
        embedder.embed_topic("pool")

        assert 2 == embedder.topics_embedded

    def test_forgotten_while_running(self) -> None:
        """A vector that was under way while topics were forgotten is given but not kept."""
        provider = FakeProvider(by_length)
        embedder = Embedder(provider)

        def answer(texts: Sequence[str]) -> list[list[float]]:
            embedder.forget_topics()
            return by_length(texts)

        provider.answer = answer
        embedder.embed_topic("pool")
        provider.answer = by_length
        embedder.embed_topic("pool")

        assert 2 == embedder.topics_embedded

    def test_interrupt(self) -> None:
        """An interrupt reaches the thread it belongs to and leaves nothing stuck."""
        answers: list[Callable[[Sequence[str]], Any]] = [interrupted, by_length]
        embedder = Embedder(FakeProvider(lambda texts: answers.pop(0)(texts)))
        with pytest.raises(KeyboardInterrupt):
            embedder.embed_topic("pool")

        assert (DIMENSIONS,) == embedder.embed_topic("pool").shape


def interrupted(texts: Sequence[str]) -> Any:
    raise KeyboardInterrupt


class TestBuildEmbedder:
    def test_none(self) -> None:
        """`none` means words only."""
        assert build_embedder(Settings(embedder="none")) is None

    def test_local(self) -> None:
        """The default is the local model with its own cutoff, and its stamp needs no model in memory."""
        embedder = build_embedder(Settings())

        assert embedder is not None
        assert "local/all-minilm-l6-v2@8199be6f/384/title-window-150w-v1" == embedder.stamp.id
        assert 6500 == embedder.stamp.cutoff_bp

    def test_bedrock(self) -> None:
        """Titan's cutoff is unknown, so nothing is cut unless a setting says so."""
        embedder = build_embedder(Settings(embedder="bedrock", embedder_region="eu-west-1"))

        assert embedder is not None
        assert "bedrock/amazon.titan-embed-text-v2@0/1024/title-window-150w-v1" == embedder.stamp.id
        assert 20_000 == embedder.stamp.cutoff_bp

    def test_cutoff_setting(self) -> None:
        """A cutoff from the settings wins, and the space stays the same."""
        plain = build_embedder(Settings(embedder="bedrock"))
        tuned = build_embedder(Settings(embedder="bedrock", embedder_cutoff_bp=7000))

        assert plain is not None
        assert tuned is not None
        assert 7000 == tuned.stamp.cutoff_bp
        assert plain.stamp.id == tuned.stamp.id

    def test_openai(self) -> None:
        """A model that is told its dimensions has a stamp before anything is sent."""
        embedder = build_embedder(Settings(embedder="openai", embedder_model="text-embedding-3-small"))

        assert embedder is not None
        assert "openai/text-embedding-3-small@unversioned/1024/title-window-150w-v1" == embedder.stamp.id
        embedder.close()

    def test_openai_needs_a_model(self) -> None:
        """No model is guessed."""
        with pytest.raises(EmbedderMisconfigured, match="GRANDBO_EMBEDDER_MODEL"):
            build_embedder(Settings(embedder="openai"))

    def test_local_file_needs_its_hash(self) -> None:
        """Another model file is taken only with its SHA-256."""
        with pytest.raises(EmbedderMisconfigured, match="GRANDBO_EMBEDDER_MODEL_SHA256"):
            build_embedder(Settings(embedder_model="somewhere"))

    def test_bedrock_needs_boto3(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without boto3 the error says what to install."""
        monkeypatch.setitem(sys.modules, "boto3", None)
        with pytest.raises(EmbedderMisconfigured, match=r"grandbo\[bedrock\]"):
            build_embedder(Settings(embedder="bedrock"))

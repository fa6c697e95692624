"""Two embedders: `static`, from weights installed on this machine, and `openai:MODEL`, remote."""

from __future__ import annotations

import copy
import importlib.util
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from docpager.errors import ModelError, UserError
from docpager.models.endpoint import Endpoint, OnWait, TimeLeft
from docpager.models.replies import UnusableReply, field
from docpager.protocols import TokenCounter, Vectors
from docpager.types import PROBE_TEXT, EmbedderIdentity
from docpager.unicode import repaired

_LARGEST = 1e30
"""A number in a vector beyond this, or none at all, is nonsense; squares of it still are finite."""


@dataclass(frozen=True, slots=True)
class _StaticParts:
    tokenizer: Any
    weights: npt.NDArray[np.float32]
    """Shape (vocabulary, 256)."""


class StaticEmbedder:
    """The mean of the text's token vectors: WordLlama's 256-d weights, without any network.

    Weights and tokenizer are read from the files of the installed `wordllama` distribution at
    first use; the package itself, which would look for a hub, is never imported. The tokenizer is
    Llama 2's: common Chinese characters are tokens, rare ones three bytes each, so nothing is
    unknown to it. A text's vector does not depend on what it is embedded together with.
    """

    name = "static"
    dimension = 256
    batch_size = 256

    def __reduce__(self) -> tuple[type[StaticEmbedder], tuple[()]]:
        # A worker process reads the installed files itself rather than be sent 32 MB.
        return type(self), ()

    @cached_property
    def identity(self) -> EmbedderIdentity:
        """Name, dimension and probe, by which other weights of the same name are noticed."""
        probe = self.embed([PROBE_TEXT])[0]
        return EmbedderIdentity(
            self.name, self.dimension, normalised=True, probe=tuple(map(float, probe))
        )

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), 256); equal texts give equal bytes."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        parts = self._parts
        for start in range(0, len(texts), self.batch_size):
            batch = [_spaced(repaired(text)) for text in texts[start : start + 256]]
            encoded = parts.tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            for row, tokens in enumerate(encoded, start):
                # One text at a time stays in the processor's cache: 8 times faster than a
                # gather of the whole batch.
                parts.weights.take(tokens.ids, axis=0).sum(axis=0, out=vectors[row])
        return _unit(vectors)

    @cached_property
    def _parts(self) -> _StaticParts:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
        from tokenizers.normalizers import Sequence as Sequential

        folder = _installed_folder("wordllama")
        try:
            weights = load_file(folder / "weights" / "l2_supercat_256.safetensors")
            tokenizer = Tokenizer.from_file(
                str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
            )
        except (OSError, SafetensorError) as error:
            raise UserError(
                f"The static embedder's weights in {folder} cannot be read: {error}. "
                "Reinstall docpager with its pinned dependencies."
            ) from error
        # `_spaced` does what its normalizer would, at once for a text: a seventh of the time less.
        tokenizer.normalizer = Sequential([])
        tokenizer.encode_special_tokens = True  # `<s>` in a document is text
        return _StaticParts(tokenizer, weights["embedding.weight"].astype(np.float32))


class OpenAIEmbedder:
    """Vectors of any OpenAI-compatible `/v1/embeddings`; the dimension is the endpoint's own.

    Requests are bounded by count and by tokens; each returns before the next is sent, so a
    caller that hands over `batch_size` texts at a time can keep what was paid for.

    Args:
        model: As the endpoint calls it; the embedder's name is `openai:MODEL`.
        dimension: Of the vectors, where it is known (from an archive): it saves a call.
        batch_tokens: Of all texts of one request; OpenAI's limit is 300,000.
        text_tokens: Of one text, which is cut there: OpenAI's limit is 8,192.
    """

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        counter: TokenCounter,
        *,
        dimension: int | None = None,
        batch_size: int = 64,
        batch_tokens: int = 100_000,
        text_tokens: int = 8_000,
    ) -> None:
        self._model = model
        self._endpoint = endpoint
        self._counter = counter
        self._dimension = dimension
        self._batch_size = batch_size
        self._batch_tokens = batch_tokens
        self._text_tokens = text_tokens
        self._settling = threading.Lock()

    def for_run(self, on_wait: OnWait, time_left: TimeLeft | None = None) -> OpenAIEmbedder:
        """The same embedder, which tells `on_wait` of every second that it waits, and no request
        of which takes more than `time_left`."""
        other = copy.copy(self)
        other._endpoint = self._endpoint.for_run(on_wait, time_left)
        return other

    @property
    def name(self) -> str:
        """`openai:MODEL`."""
        return f"openai:{self._model}"

    @property
    def batch_size(self) -> int:
        """How many texts go into one request."""
        return self._batch_size

    @property
    def identity(self) -> EmbedderIdentity:
        """Name and dimension, for which one text is embedded if nothing was before; no probe.

        Raises:
            ModelError: the endpoint had to be asked for the dimension and fails.
        """
        if self._dimension is None:
            self.embed([PROBE_TEXT])
        assert self._dimension is not None
        return EmbedderIdentity(self.name, self._dimension, normalised=True)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dimension), in order."""
        batches = [self._embed_batch(batch) for batch in self._batches(texts)]
        if not batches:
            return np.zeros((0, self.identity.dimension), dtype=np.float32)
        return np.concatenate(batches)

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        filled = 0
        for text in texts:
            # An endpoint refuses an empty input; a blank one has a vector like any other.
            sendable = self._counter.cut(repaired(text), self._text_tokens) or " "
            tokens = self._counter.count(sendable)
            if batch and (len(batch) >= self._batch_size or filled + tokens > self._batch_tokens):
                yield batch
                batch, filled = [], 0
            batch.append(sendable)
            filled += tokens
        if batch:
            yield batch

    def _embed_batch(self, batch: list[str]) -> Vectors:
        # Without a format some SDKs ask for base64, which not every server can.
        body = {"model": self._model, "input": batch, "encoding_format": "float"}
        vectors = self._endpoint.post("/embeddings", body, lambda reply: self._read(reply, batch))
        with self._settling:
            if self._dimension is None:
                self._dimension = vectors.shape[1]
        if vectors.shape[1] != self._dimension:
            raise ModelError(
                f"{self.name} at {self._endpoint.url} gives vectors of {vectors.shape[1]} numbers "
                f"where {self._dimension} were expected. Was the model behind the name changed?"
            )
        return vectors

    def _read(self, reply: object, batch: list[str]) -> Vectors:
        items = field(reply, "data")
        if not isinstance(items, list) or len(items) != len(batch):
            found = len(items) if isinstance(items, list) else "no"
            raise self._unusable(f"{found} vectors for {len(batch)} texts")
        try:
            places = [int(item.get("index", place)) for place, item in enumerate(items)]
            rows = np.array([item["embedding"] for item in items], dtype=np.float64)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._unusable("something that is no list of vectors of one length") from error
        if sorted(places) != list(range(len(batch))) or rows.ndim != 2:
            raise self._unusable("vectors that cannot be told apart")
        if rows.shape[1] == 0 or not (np.abs(rows) < _LARGEST).all():
            raise self._unusable("a vector that is empty or not finite")
        norms = np.linalg.norm(rows, axis=1)
        if not (norms > 0).all():
            raise self._unusable("a zero vector")
        vectors = np.empty(rows.shape, dtype=np.float32)
        vectors[places] = rows / norms[:, np.newaxis]
        return vectors

    def _unusable(self, what: str) -> UnusableReply:
        return UnusableReply(
            f"{self.name} at {self._endpoint.url} answers with {what}. "
            "Check that it is an embedding model."
        )


def _installed_folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise UserError(
            f"The static embedder needs the distribution {package}, which is not installed. "
            "Reinstall docpager with its dependencies."
        )
    return Path(next(iter(found.submodule_search_locations)))


def _spaced(text: str) -> str:
    """A text as the tokenizer's vocabulary has it: `▁` before it and for each space."""
    return "▁" + text.replace(" ", "▁") if text else ""


def _unit(vectors: Vectors) -> Vectors:
    """Rows of norm 1; a row without length (an empty text) becomes one fixed direction."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    flat = norms[:, 0] < 1e-9
    vectors[flat] = 1.0
    norms[flat] = vectors.shape[1] ** 0.5
    vectors /= norms
    return vectors

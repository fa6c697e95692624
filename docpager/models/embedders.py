"""Embedders: `static`, which runs on this machine from installed weights."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from docpager.errors import UserError
from docpager.protocols import Vectors
from docpager.types import PROBE_TEXT, EmbedderIdentity

_SURROGATE = re.compile("[\ud800-\udfff]")


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
            batch = [_SURROGATE.sub("\ufffd", text) for text in texts[start : start + 256]]
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
        return _StaticParts(tokenizer, weights["embedding.weight"].astype(np.float32))


def _installed_folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise UserError(
            f"The static embedder needs the distribution {package}, which is not installed. "
            "Reinstall docpager with its dependencies."
        )
    return Path(next(iter(found.submodule_search_locations)))


def _unit(vectors: Vectors) -> Vectors:
    """Rows of norm 1; a row without length (an empty text) becomes one fixed direction."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    flat = norms[:, 0] < 1e-9
    vectors[flat] = 1.0
    norms[flat] = vectors.shape[1] ** 0.5
    vectors /= norms
    return vectors

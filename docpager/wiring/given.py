"""Models of the caller's own, in place of those that the settings name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docpager.config import Config
from docpager.errors import ModelError
from docpager.types import EmbedderIdentity
from docpager.wiring.chats import (
    OpenModel,
    given_model,
    given_name,
    model_name,
    open_model,
    own_faults,
)
from docpager.wiring.embedders import check_same_model, matching_embedder

if TYPE_CHECKING:
    from docpager.models.cache import CallCache
    from docpager.models.throttle import Throttle
    from docpager.protocols import Chat, Embedder, Vectors

_NORM_TOLERANCE = 1e-3
"""Of float32, and of vectors that were kept in half precision."""


@dataclass(frozen=True, slots=True)
class GivenModels:
    """A chat model and an embedder of the caller's own; None is that of the settings."""

    chat: Chat | None = None
    embedder: Embedder | None = None

    def model_name(self, config: Config) -> str:
        """The name of the model that answers.

        Raises:
            UserError: none is given, and none is configured.
        """
        return model_name(config) if self.chat is None else given_name(config, self.chat)

    @contextmanager
    def open_model(
        self, config: Config, cache: CallCache | None, throttle: Throttle | None
    ) -> Iterator[OpenModel]:
        """The model that answers, ready to be called; an embedded one runs until the end.

        Raises:
            UserError: none is configured, or its weights or runtime are missing.
            ModelError: the embedded one cannot be loaded.
        """
        if self.chat is not None:
            yield given_model(config, self.chat)
            return
        with open_model(config, cache, throttle) as model:
            yield model

    def matching_embedder(
        self, config: Config, kept: EmbedderIdentity | None, throttle: Throttle | None = None
    ) -> Embedder:
        """The embedder, refused where it did not make the archive's vectors.

        Raises:
            UserError: name, dimension or probe differ from the archive's.
        """
        if self.embedder is None:
            return matching_embedder(config, kept, throttle)
        embedder = GivenEmbedder(self.embedder)
        if kept is not None:
            check_same_model(kept, embedder.identity)
        return embedder


class GivenEmbedder:
    """An embedder of the caller's own; what it gives is checked, and its faults are errors."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def identity(self) -> EmbedderIdentity:
        """That of the embedder.

        Raises:
            ModelError: it fails, or gives none.
        """
        with own_faults(self._embedder, "identity"):
            identity = self._embedder.identity
        if not isinstance(identity, EmbedderIdentity):
            raise self._unfit("identity must be an EmbedderIdentity", identity)
        return identity

    @property
    def batch_size(self) -> int:
        """That of the embedder."""
        size = self._embedder.batch_size
        if not isinstance(size, int) or size < 1:
            raise self._unfit("batch_size must be a whole number of at least 1", size)
        return size

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of `texts`, shape (len(texts), dimension), each of norm 1.

        Raises:
            ModelError: the embedder fails, or its vectors have another shape or norm.
        """
        import numpy as np

        with own_faults(self._embedder, "embed"):
            given = self._embedder.embed(texts)
            vectors = np.asarray(given, dtype=np.float32)
        wanted = (len(texts), self.identity.dimension)
        if vectors.shape != wanted and len(texts):
            raise self._unfit(f"embed must return an array of shape {wanted}", vectors.shape)
        norms = np.linalg.norm(vectors, axis=-1)
        if not (abs(norms - 1) < _NORM_TOLERANCE).all():
            worst = norms[np.argmax(abs(norms - 1))]
            raise self._unfit("embed must return rows of norm 1", worst)
        return vectors

    def _unfit(self, wanted: str, given: object) -> ModelError:
        name = type(self._embedder).__name__
        return ModelError(f"{name}.{wanted}, not {given!s:.60}. Mend it.")

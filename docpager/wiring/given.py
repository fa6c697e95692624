"""Models of the caller's own, in place of those that the settings name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docpager.config import Config
from docpager.types import EmbedderIdentity
from docpager.wiring.chats import OpenModel, given_model, given_name, model_name, open_model
from docpager.wiring.embedders import check_same_model, matching_embedder

if TYPE_CHECKING:
    from docpager.models.cache import CallCache
    from docpager.models.throttle import Throttle
    from docpager.protocols import Chat, Embedder


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
        if kept is not None:
            check_same_model(kept, self.embedder.identity)
        return self.embedder

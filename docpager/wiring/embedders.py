"""Embedders by their names, checked against the archive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from docpager.config import Config
from docpager.errors import UserError
from docpager.types import PROBE_TEXT, EmbedderIdentity
from docpager.wiring.endpoints import make_counter, make_endpoint, require_endpoint

if TYPE_CHECKING:
    from docpager.models.throttle import Throttle
    from docpager.protocols import Embedder

STATIC = "static"


def embedder_name(config: Config, kept: EmbedderIdentity | None) -> str:
    """The embedder that was asked for, else the archive's own (`kept`), else the static one."""
    return config.embedder or (kept.name if kept else STATIC)


def calls_endpoint(config: Config, kept: EmbedderIdentity | None) -> bool:
    """Whether the embedder of the settings is one at an endpoint."""
    return embedder_name(config, kept) != STATIC


def make_embedder(
    config: Config, kept: EmbedderIdentity | None, throttle: Throttle | None = None
) -> Embedder:
    """The embedder of that name."""
    name = embedder_name(config, kept)
    if name == STATIC:
        from docpager.models.embedders import StaticEmbedder

        return StaticEmbedder()
    kind, _, model = name.partition(":")
    if kind != "openai" or not model:
        raise UserError(
            f"This archive was made with the embedder {name!r}, which this docpager does not know. "
            "Make another archive, or upgrade docpager."
        )
    from docpager.models.embedders import OpenAIEmbedder

    if not config.replay:
        require_endpoint(config, f"The embedder {name}")
    dimension = kept.dimension if kept and kept.name == name else None
    counter = make_counter(config, model)
    return OpenAIEmbedder(model, make_endpoint(config, throttle), counter, dimension=dimension)


def matching_embedder(
    config: Config, kept: EmbedderIdentity | None, throttle: Throttle | None = None
) -> Embedder:
    """As `make_embedder`, refused where it did not make the archive's vectors.

    Raises:
        UserError: name, dimension or probe differ from the archive's.
    """
    embedder = make_embedder(config, kept, throttle)
    if kept is not None:
        check_same_model(kept, embedder.identity)
    return embedder


def check_same_model(kept: EmbedderIdentity, given: EmbedderIdentity) -> None:
    """Refuse another embedder, or one whose model has changed, as far as a probe can tell.

    Raises:
        UserError: name, dimension or probe differ.
    """
    from docpager.retrieval.vectors import check_identity, check_probe

    check_identity(kept, given)
    check_probe(kept, given)


def probed_identity(embedder: Embedder) -> EmbedderIdentity:
    """The embedder's identity with its vector of the probe sentence, which may cost a call."""
    identity = embedder.identity
    if identity.probe:
        return identity
    vector = embedder.embed([PROBE_TEXT])[0]
    return replace(identity, probe=tuple(float(value) for value in vector))

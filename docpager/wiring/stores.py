"""The archive of the settings, and what stands beside it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from docpager.clocks import SystemClock
from docpager.config import Config
from docpager.types import Document, Removal

if TYPE_CHECKING:
    from docpager.stores.duckdb.reader import DuckDBReader

LOCK_WAIT_S = 5.0
"""How long a lock is waited for unless `--wait` says for ever."""
EMPTY = "The archive is empty. Run `docpager ingest PATH` first."


@contextmanager
def open_store(config: Config) -> Iterator[DuckDBReader]:
    """The archive, read-only; others may read it at the same time.

    Raises:
        ArchiveError: it is missing, damaged, too new, or held by a writer.
    """
    from docpager.stores.duckdb.reader import DuckDBReader

    with DuckDBReader.open(
        config.archive, clock=SystemClock(), wait_s=lock_wait(config)
    ) as archive:
        yield archive


def lock_wait(config: Config) -> float | None:
    """Seconds to wait for a held lock; None is for ever."""
    return None if config.wait else LOCK_WAIT_S


def remove_documents(config: Config, names: Sequence[str]) -> Removal:
    """Forget documents by their names or unique ends: all of them, or none where one is unknown.

    What is attached to them goes with them.
    """
    from docpager.documents.attachments import with_attachments
    from docpager.stores.duckdb.writer import open_writer

    with open_store(config):
        pass  # a missing archive is an error here, where the writer would make a new one
    clock, wait_s = SystemClock(), lock_wait(config)
    with open_writer(config.archive, None, clock=clock, wait_s=wait_s) as writer:
        documents = writer.documents()
        found = [_full_name(documents, name) for name in names]
        going = with_attachments(found, [document.name for document in documents])
        return Removal(going, writer.remove(going))


def _full_name(documents: Sequence[Document], name: str) -> str:
    """The name of a document in any state, failed ones too."""
    from docpager.stores.catalogue import find_document

    names = [document.name for document in documents]
    ends = [known for known in names if known.endswith(f"/{name}")]
    found = [name] if name in names else ends
    # Where it is not one, the catalogue says so with the nearest names.
    return found[0] if len(found) == 1 else find_document(documents, name).name


def side_folder(config: Config) -> Path:
    """Where runs, sessions and settled modes go: beside the archive, or in the user's state folder
    where that place cannot be written."""
    beside, state = _side_folders(config)
    nearest = beside if beside.exists() else beside.parent
    return beside if nearest.is_dir() and os.access(nearest, os.W_OK) else state


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

"""What there is: in an archive, and of the embedded model (`docpager status`, `docpager model`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from docpager.types import Document, EmbedderIdentity


@dataclass(frozen=True, slots=True)
class Overview:
    """An archive in numbers, with the files that are not in it and why."""

    archive: Path
    size: int
    """Bytes of the archive's file."""
    ready: int
    failed: tuple[Document, ...]
    duplicates: int
    pages: int
    passages: int
    embedder: EmbedderIdentity | None
    """None before the first document is stored."""
    generation: int
    """Grows with every committed change."""


def summarize_archive(
    archive: Path,
    documents: tuple[Document, ...],
    embedder: EmbedderIdentity | None,
    generation: int,
) -> Overview:
    """Count what `documents` hold; pages of files without pages do not count as pages."""
    ready = [document for document in documents if document.state == "ready"]
    return Overview(
        archive=archive,
        size=archive.stat().st_size,
        ready=len(ready),
        failed=tuple(document for document in documents if document.state == "failed"),
        duplicates=sum(document.state == "duplicate" for document in documents),
        pages=sum(document.pages for document in ready if document.paged),
        passages=sum(document.passages for document in ready),
        embedder=embedder,
        generation=generation,
    )


@dataclass(frozen=True, slots=True)
class WeightsState:
    """Whose the embedded model's weights are, and what of it is on this machine."""

    name: str
    path: Path
    """Where the weights belong, there or not."""
    present: bool
    checked: bool
    """Whether the file's hash was compared just now."""
    size: int
    """Bytes of the publisher's file."""
    sha256: str
    publisher: str
    licence: str
    runtime_installed: bool
    parts_installed: bool

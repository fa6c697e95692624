"""An archive in memory, a folder of files, and an ingest that brings them together."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from docpager.documents.loaders import ParsedFile, ParseTask
from docpager.errors import DocumentError
from docpager.ingest.committing import FlushAt, Writing
from docpager.ingest.run import Options, ingest
from docpager.protocols import ArchiveWriter, Vectors
from docpager.testing import CharacterCounter, FrozenClock, HashEmbedder, InMemoryStore
from docpager.types import Document, EmbedderIdentity, IngestCounts, IngestReport

TASK = ParseTask(CharacterCounter())


class CountingEmbedder:
    """A HashEmbedder that notes what it is asked for and fails when told to."""

    batch_size = 4

    def __init__(self) -> None:
        self._inner = HashEmbedder()
        self.asked: list[str] = []
        self.failures: dict[int, Exception] = {}
        self.calls = 0

    @property
    def identity(self) -> EmbedderIdentity:
        return self._inner.identity

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        if self.calls in self.failures:
            raise self.failures[self.calls]
        self.asked += texts
        return self._inner.embed(texts)


class Bench:
    """An archive in memory, a folder of files, and an ingest that brings them together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "corpus"
        self.folder.mkdir()
        self.embedder = CountingEmbedder()
        self.archive = InMemoryStore(self.embedder.identity)
        self.parsed: list[str] = []
        self.bursts = 0
        self.open = False
        self.seen: list[IngestCounts] = []
        self.clock = FrozenClock()

    def put(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    @contextmanager
    def open_writer(self) -> Iterator[ArchiveWriter]:
        assert not self.open
        self.open, self.bursts = True, self.bursts + 1
        try:
            yield self.archive
        finally:
            self.open = False

    def parse(self, paths: Iterable[str]) -> Generator[ParsedFile | DocumentError, None, None]:
        for path in paths:
            self.parsed.append(os.path.basename(path))
            try:
                yield TASK(path)
            except DocumentError as error:
                yield error

    def run(
        self,
        *paths: Path,
        flush: FlushAt | None = None,
        paid: bool = False,
        options: Options | None = None,
    ) -> IngestReport:
        self.parsed, self.embedder.asked = [], []
        return ingest(
            [str(path) for path in paths or (self.folder,)],
            known=self.archive.documents(),
            writing=Writing(self.open_writer, self.embedder, paid, flush or FlushAt()),
            parse=self.parse,
            clock=self.clock,
            progress=self.seen.append,
            options=options,
        )

    @property
    def rows(self) -> dict[str, Document]:
        return {document.name: document for document in self.archive.documents()}

    @property
    def ready(self) -> list[str]:
        return [name for name, row in self.rows.items() if row.state == "ready"]

    def statuses(self, report: IngestReport) -> dict[str, str]:
        return {outcome.path: outcome.reason or outcome.status for outcome in report.files}

"""Commits steps in the order of the walk, in short bursts, and has the following ones embedded.

What a step asks for is decided in `plan`; what is to be written, and with which vectors, here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from docpager.documents.loaders import ParsedFile
from docpager.errors import DocumentError, ModelAuthError, ModelError
from docpager.ingest.plan import PASSING, Step, row_of
from docpager.ingest.stopwatch import Stopwatch
from docpager.ingest.walk import FoundFile
from docpager.protocols import ArchiveWriter, Embedder, Vectors
from docpager.types import (
    Chunk,
    FileOutcome,
    IngestCounts,
)

OpenWriter = Callable[[], AbstractContextManager[ArchiveWriter]]
Progress = Callable[[IngestCounts], None]
"""Told how far it is, from the thread that writes."""

_FAILED_BATCHES = 3
"""So many embedding calls failed in a row are the endpoint's fault, not the documents'."""


@dataclass(frozen=True, slots=True)
class FlushAt:
    """How much may be pending before the archive is opened to commit it.

    What comes to that while the commit before is still at work goes on growing: a commit of three
    times as much takes hardly longer, as most of it goes into closing the file.
    """

    seconds: float = 2.0
    passages: int = 1_000
    most_passages: int = 3_000
    """Reading waits when so many are pending behind a commit."""
    characters: int = 16_000_000
    """Here too."""
    vectors: int = 8_000
    """Of passages that wait for the rest of their documents' vectors."""


# -- between reading and writing -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pending:
    """A step that waits to be committed, with what was parsed for it."""

    step: Step
    result: ParsedFile | DocumentError | None

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks to store; none for what was not parsed or failed."""
        return self.result.chunks if isinstance(self.result, ParsedFile) else ()


# -- commits: what is done about it ---------------------------------------------------------------


@dataclass(slots=True)
class Embedded:
    """What embedding the pending documents came to."""

    vectors: dict[str, Vectors] = field(default_factory=dict)
    """By text hash; what the archive has already is not in it."""
    failed: dict[str, ModelError] = field(default_factory=dict)
    """By text hash."""
    untried: list[str] = field(default_factory=list)
    """Text hashes that are still to be embedded."""
    fatal: ModelError | None = None

    def failure_of(self, chunks: Sequence[Chunk]) -> ModelError | None:
        """Why the first of the chunks without a vector has none; None where all are well."""
        if not self.failed:
            return None
        hashes = (chunk.text_hash for chunk in chunks)
        return next((self.failed[name] for name in hashes if name in self.failed), None)


class Embedding:
    """Steps on their way to be committed: their texts are embedded by a thread beside others."""

    def __init__(self, pending: Sequence[Pending]) -> None:
        self.pending = pending
        self.texts = {
            chunk.text_hash: chunk.indexed_text for item in pending for chunk in item.chunks
        }
        """By hash."""
        self.embedded = Embedded()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return not all(item.step.recorded for item in self.pending)

    def start(self, embed: Callable[[Embedding], None]) -> None:
        """Have `embed` work on this beside the caller."""

        def run() -> None:
            try:
                embed(self)
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                self._error = error

        # A daemon, as the thread that writes is.
        self._thread = threading.Thread(target=run, name="docpager-embedder", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return as soon as all is embedded.

        Raises:
            DocpagerError: what ended the thread.
        """
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error


@dataclass(frozen=True, slots=True)
class Writing:
    """Where documents are written, and with which vectors."""

    open_writer: OpenWriter
    """Opens the archive (and creates it) for a burst of commits."""
    embedder: Embedder
    paid_embeddings: bool = False
    """Commit vectors after each call of the embedder, so that none that was paid for is lost; else
    after as many as a burst has."""
    flush_at: FlushAt = field(default_factory=FlushAt)


class Committer:
    """Commits steps in order, in short bursts, and has those after them embedded meanwhile."""

    def __init__(
        self,
        writing: Writing,
        watch: Stopwatch,
        progress: Progress,
        reader: str,
        total: int,
    ) -> None:
        self._open_writer = writing.open_writer
        self._embedder = writing.embedder
        self._watch = watch
        self._paid = writing.paid_embeddings
        self._flush_at = writing.flush_at
        self._progress = progress
        self._reader = reader
        self._total = total
        self._failed_batches = 0
        self._failed = 0
        self._opening = threading.Lock()
        self._stop = threading.Event()
        self._committed: dict[str, str | DocumentError] = {}
        """By name, what this ingest stored (the content hash) or why it could not."""
        self.outcomes: list[FileOutcome] = []
        self.passages = 0
        self.pages = 0
        self.sections = 0
        self.bytes = 0

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Begin nothing more: what is in work is finished, the rest is left for the next time."""
        self._stop.set()

    def announce(self, files: Sequence[FoundFile]) -> None:
        """Keep that these files are to be read, so that an ingest cut short is seen to be."""
        if not files:
            return
        with self._burst() as writer, writer.together():
            for file in files:
                writer.record(row_of(Step(file, "added", attempts=0), "pending"))

    def advance(self, ready: Embedding | None, following: Sequence[Pending]) -> Embedding | None:
        """Commit `ready` when it is embedded; meanwhile begin with the steps that follow, if any.

        Raises:
            ModelError: embedding cannot go on; what was complete before it is committed.
        """
        ready = ready or Embedding(())
        ready.wait()
        fatal = ready.embedded.fatal
        begun = Embedding(following) if following and fatal is None else None
        # What is in work is not asked for again.
        wanted = [] if begun is None else [name for name in begun.texts if name not in ready.texts]
        if wanted or ready.changes:
            with self._burst() as writer:
                if begun is not None and wanted:
                    begun.embedded.untried = _in_order(wanted, writer.missing_vectors(wanted))
                    begun.start(self._embed)
                outcomes = self._commit_burst(ready, writer)
        else:
            outcomes = _as_recorded(ready.pending)
        for outcome in outcomes:
            self._finish(outcome)
        if fatal is not None:
            raise fatal
        rest = ready.pending[len(outcomes) :]
        if rest and not self.stopped:
            if begun is not None:
                begun.wait()
            self.advance(self.advance(None, rest), ())
        return begun

    def finish(self, gone: Sequence[str], dropped: Sequence[str], prune: bool) -> None:
        """Forget what is dropped, and what is gone if that was asked for; compact the archive."""
        names = [*dropped, *(gone if prune else ())]
        if names or self.passages:
            with self._burst() as writer:
                if names:
                    writer.remove(names)
                writer.compact()
        self.outcomes += [FileOutcome(name, "removed" if prune else "gone") for name in gone]

    @contextmanager
    def _burst(self) -> Iterator[ArchiveWriter]:
        """The archive, open for as long as it takes to write something."""
        # The thread that embeds keeps what was paid for, while the one that writes commits.
        with self._opening, self._watch.stage("write"), self._open_writer() as writer:
            yield writer

    # ---- vectors

    def _embed(self, batch: Embedding) -> None:
        embedded = batch.embedded
        while embedded.untried and embedded.fatal is None and not self.stopped:
            hashes = embedded.untried[: self._embedder.batch_size]
            self._embed_batch(hashes, [batch.texts[name] for name in hashes], embedded)
            if embedded.fatal is None:
                del embedded.untried[: len(hashes)]
            full = len(embedded.vectors) >= self._flush_at.vectors and embedded.untried
            if embedded.vectors and (self._paid or full):
                with self._burst() as writer:
                    _put(writer, embedded.vectors)
                embedded.vectors.clear()
        if embedded.fatal is not None:
            # The endpoint is at fault, so no document is blamed for what it did not answer.
            embedded.failed.clear()

    def _embed_batch(self, hashes: Sequence[str], texts: Sequence[str], embedded: Embedded) -> None:
        try:
            with self._watch.stage("embed"):
                rows = self._embedder.embed(texts)
        except ModelError as error:
            self._failed_batches += 1
            if isinstance(error, ModelAuthError) or self._failed_batches >= _FAILED_BATCHES:
                embedded.fatal = error
            else:
                embedded.failed |= dict.fromkeys(hashes, error)
        else:
            self._failed_batches = 0
            embedded.vectors |= dict(zip(hashes, rows, strict=True))

    # ---- documents

    def _commit_burst(self, ready: Embedding, writer: ArchiveWriter) -> list[FileOutcome]:
        """Commit steps in order; returns what came of them, which is all but in rare cases."""
        if not ready.changes:
            return _as_recorded(ready.pending)
        _put(writer, ready.embedded.vectors)
        committable = self._committable(ready, writer)
        with writer.together():
            return [self._commit(item, ready.embedded, writer) for item in committable]

    def _committable(self, ready: Embedding, writer: ArchiveWriter) -> Sequence[Pending]:
        """The first of the pending steps, up to one that lacks vectors."""
        # What was there a moment ago may have gone with a document that someone else removed, or
        # failed with the batch before.
        lacking = writer.missing_vectors(tuple(ready.texts)) - ready.embedded.failed.keys()
        if not lacking:
            return ready.pending
        for done, item in enumerate(ready.pending):
            if not lacking.isdisjoint(chunk.text_hash for chunk in item.chunks):
                return ready.pending[:done]
        return ready.pending

    def _commit(self, item: Pending, embedded: Embedded, writer: ArchiveWriter) -> FileOutcome:
        step, result = item.step, item.result
        if step.gone:
            writer.remove(step.gone)
        error = step.error or self._error_of_original(step)
        if isinstance(result, DocumentError):
            error = result
        elif failure := embedded.failure_of(item.chunks):
            error = DocumentError("embedding_failed", f"No vectors for the text: {failure}")
        in_vain = error is not None and step.again
        if error is not None:
            if in_vain:
                error = self._keep(step, error, writer)
            else:
                self._committed[step.file.name] = error
        if step.recorded or in_vain:
            pass
        elif error is not None:
            row = replace(row_of(step, "failed"), reason=error.reason, message=str(error))
            writer.record(replace(row, reader=self._reader))
        elif isinstance(result, ParsedFile):
            self._store(step, result, writer)
        elif step.status == "moved":
            writer.rename(step.other, row_of(step, "ready"))
        elif step.other:
            writer.record(replace(row_of(step, "duplicate"), duplicate_of=step.other))
        else:
            writer.record(row_of(step, "ready"))
        warnings = result.parsed.warnings if isinstance(result, ParsedFile) else ()
        return _outcome(step, error, warnings)

    def _keep(self, step: Step, error: DocumentError, writer: ArchiveWriter) -> DocumentError:
        """Leave what is stored as it is, and remember that reading it again was in vain."""
        self._committed[step.file.name] = step.content_hash
        if error.reason not in PASSING:
            writer.record(replace(row_of(step, "ready"), reader=self._reader))
        return DocumentError(error.reason, f"{error} What was read of it before is kept.")

    def _error_of_original(self, step: Step) -> DocumentError | None:
        """Why a duplicate fails: because the document that it is a copy of did in this ingest."""
        if step.status != "duplicate":
            return None
        original = self._committed.get(step.other)
        if isinstance(original, DocumentError) or original in (None, step.content_hash):
            return original if isinstance(original, DocumentError) else None
        return DocumentError(
            "unreadable", "A file with the same bytes changed meanwhile. Run the ingest again."
        )

    def _store(self, step: Step, result: ParsedFile, writer: ArchiveWriter) -> None:
        row = replace(
            row_of(step, "ready"),
            content_hash=result.content_hash,
            size=result.size,
            mtime_ns=result.mtime_ns,
            reader=self._reader,
        )
        stored = writer.store(row, result.parsed, result.chunks)
        self._committed[step.file.name] = result.content_hash
        self._watch.add("read", result.seconds)
        self.passages += stored.passages
        self.pages += stored.pages
        self.sections += 0 if stored.paged else stored.pages
        self.bytes += result.size

    def _finish(self, outcome: FileOutcome) -> None:
        self.outcomes.append(outcome)
        self._failed += outcome.status == "failed"
        self._progress(
            IngestCounts(
                len(self.outcomes),
                # Attachments come on top of the files that were counted.
                max(self._total, len(self.outcomes)),
                self.pages,
                self.passages,
                self._failed,
            )
        )


def _in_order(hashes: Sequence[str], chosen: frozenset[str]) -> list[str]:
    return [name for name in hashes if name in chosen]


def _as_recorded(pending: Sequence[Pending]) -> list[FileOutcome]:
    return [_outcome(item.step, item.step.error) for item in pending]


def _put(writer: ArchiveWriter, vectors: dict[str, Vectors]) -> None:
    if vectors:
        writer.put_vectors(tuple(vectors), np.stack(tuple(vectors.values())))


def _outcome(
    step: Step, error: DocumentError | None, warnings: tuple[str, ...] = ()
) -> FileOutcome:
    if error is None:
        return FileOutcome(step.file.name, step.status, warnings=warnings)
    return FileOutcome(step.file.name, "failed", error.reason, str(error), tried=not step.recorded)


def silent(_counts: IngestCounts) -> None:
    """Tell nobody."""

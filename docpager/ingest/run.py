"""Files become stored documents: walk, plan, parse in workers, embed, commit in walk order.

    walk ──> plan ──> parse and chunk ──> batch ══> embed ══> commit
           (by hash)   (worker pool,     (bounded  (a batch  (short
                        in order)         queue)    ahead)    bursts)

The main thread walks, plans and collects what the workers have parsed. One thread behind it
writes: while it commits a batch, the next one is embedded beside it. None waits for another until
what is between them is full. What is in work is bounded everywhere, hence memory is flat.

The archive is open in short bursts only, so that others can read it meanwhile. A burst is one
transaction of whole documents, committed in the order of the walk, so the numbers of passages
depend neither on the number of workers nor on what was killed. Vectors are kept as they come,
whether or not their document is finished.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from docpager.documents.attachments import with_attachments
from docpager.documents.formats import READ
from docpager.documents.loaders import ParsedFile
from docpager.errors import DocumentError, ModelAuthError, ModelError, NothingToDo
from docpager.ingest.ignore import PathFilter
from docpager.ingest.plan import PASSING, Families, Plan, Retries, Step, hash_file, row_of
from docpager.ingest.walk import FoundFile, Walk, walk
from docpager.protocols import ArchiveWriter, Clock, Embedder, Vectors
from docpager.types import (
    Chunk,
    Document,
    FileOutcome,
    IngestCounts,
    IngestProfile,
    IngestReport,
)

__all__ = ["FileOutcome", "FlushAt", "IngestReport", "Options", "Parse", "Progress", "ingest"]

OpenWriter = Callable[[], AbstractContextManager[ArchiveWriter]]
Progress = Callable[[IngestCounts], None]
"""Told how far it is, from the thread that writes."""

_FAILED_BATCHES = 3
"""So many embedding calls failed in a row are the endpoint's fault, not the documents'."""
_LEAVE_S = 5.0
"""How long an ingest that was interrupted waits for the commit or the call it is in."""
_LOOK_EVERY_S = 0.1


class Parse(Protocol):
    """Parses and chunks files elsewhere; the results come in the order of the paths."""

    def __call__(self, paths: Iterable[str]) -> Generator[ParsedFile | DocumentError, None, None]:
        """For each path what was read, or why it could not be."""


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


@dataclass(frozen=True, slots=True)
class Options:
    """What a person may ask of an ingest."""

    selection: PathFilter = field(default_factory=PathFilter)
    prune: bool = False
    """Forget documents whose file is gone from the folders walked."""
    retries: Retries = field(default_factory=Retries)


def ingest(
    paths: Sequence[str],
    *,
    known: Sequence[Document],
    open_writer: OpenWriter,
    embedder: Embedder,
    parse: Parse,
    clock: Clock,
    progress: Progress | None = None,
    paid_embeddings: bool = False,
    flush_at: FlushAt | None = None,
    options: Options | None = None,
) -> IngestReport:
    """Bring the archive up to date with files and folders.

    A file whose size and time are as before costs nothing; else its bytes decide. What cannot be
    read is a failed row, and the others go on. Whatever ends it early, committed documents stay.

    Args:
        known: All documents that the archive holds.
        open_writer: Opens the archive (and creates it) for a burst of commits.
        paid_embeddings: Commit vectors after each call of the embedder, so that none that was
            paid for is lost; else after as many as a burst has.

    Raises:
        UserError: a path does not exist.
        NothingToDo: there is no document under the paths, and nothing to forget.
        ModelError: the embedder refuses, or failed several times in a row.
        ArchiveError: the archive cannot be opened or written.
    """
    options = options or Options()
    watch = _Stopwatch(clock)
    with watch.stage("walk"):
        found = walk(paths, known, options.selection)
    families = Families(known, found.files, options.retries)
    hashing = watch.timed("hash", hash_file)
    plan = Plan(families.files.values(), options.retries, families.unsettled, hashing)
    if not found.files and not (options.prune and any(plan.gone(found))):
        raise NothingToDo(_nothing(found))
    committer = _Committer(
        open_writer,
        embedder,
        watch,
        paid_embeddings,
        flush_at or FlushAt(),
        progress or _silent,
        options.retries.signature,
        len(found.files),
    )
    committer.announce(tuple(plan.unknown(found.files)))
    with _Behind(committer) as behind:
        batch = _Batch(clock, flush_at or FlushAt())
        with closing(_parsed(plan.steps(found.files), parse)) as results:
            for step, result in watch.waits(results):
                for member, outcome in families.members(step, result):
                    batch.add(_Pending(member, outcome))
                if batch.is_full or (batch.is_due and behind.is_free):
                    with watch.stage("wait to write"):
                        behind.put(batch.take())
        with watch.stage("wait to write"):
            behind.put(batch.take())
            behind.finish()
    gone, dropped = plan.gone(found)
    with_theirs = with_attachments(gone, [document.name for document in known])
    committer.finish(with_theirs, dropped, options.prune)
    return _report(committer, found, watch)


def _nothing(found: Walk) -> str:
    if found.left_out:
        return (
            f"No documents were found, and {len(found.left_out)} entries left out. `-v` lists them."
        )
    return f"No documents were found. Name files or folders with {READ} files."


def _parsed(
    steps: Iterator[Step], parse: Parse
) -> Generator[tuple[Step, ParsedFile | DocumentError | None], None, None]:
    """Each step with what parsing gave, in order; None where there was nothing to parse."""
    planned: deque[Step] = deque()

    def to_parse() -> Iterator[str]:
        for step in steps:
            planned.append(step)
            if step.parse:
                yield step.file.path

    with closing(parse(to_parse())) as results:
        for result in results:
            while not planned[0].parse:
                yield planned.popleft(), None
            yield planned.popleft(), result
        while planned:
            yield planned.popleft(), None


# -- between reading and writing -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pending:
    """A step that waits to be committed, with what was parsed for it."""

    step: Step
    result: ParsedFile | DocumentError | None

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return self.result.chunks if isinstance(self.result, ParsedFile) else ()


class _Batch:
    """Steps that come together until it is time to commit them."""

    def __init__(self, clock: Clock, flush_at: FlushAt) -> None:
        self._clock = clock
        self._flush_at = flush_at
        self._began = clock.monotonic()
        self._items: list[_Pending] = []
        self._passages = 0
        self._characters = 0

    def add(self, item: _Pending) -> None:
        """Add a step."""
        self._items.append(item)
        self._passages += len(item.chunks)
        self._characters += sum(len(chunk.text) for chunk in item.chunks)

    @property
    def is_due(self) -> bool:
        """Whether it is worth a commit."""
        waited = self._clock.monotonic() - self._began
        return self._passages >= self._flush_at.passages or waited >= self._flush_at.seconds

    @property
    def is_full(self) -> bool:
        """Whether nothing more may come before it is handed over."""
        return (
            self._passages >= self._flush_at.most_passages
            or self._characters >= self._flush_at.characters
        )

    def take(self) -> list[_Pending]:
        """What has come together, and begin anew."""
        items, self._items = self._items, []
        self._passages = self._characters = 0
        self._began = self._clock.monotonic()
        return items


class _Behind:
    """The thread that writes: a batch is committed while the next is embedded, and one waits."""

    def __init__(self, committer: _Committer) -> None:
        self._committer = committer
        self._batches: queue.Queue[list[_Pending] | None] = queue.Queue(maxsize=1)
        self._error: BaseException | None = None
        self._ended = threading.Event()
        # A daemon: a call to a dead endpoint must not keep an interrupted program alive.
        self._thread = threading.Thread(target=self._run, name="docpager-writer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._committer.stop()
        # Not `join`: in Python 3.11 an interrupt in it marks a thread that runs as ended.
        self._ended.wait(_LEAVE_S)

    @property
    def is_free(self) -> bool:
        """Whether a batch would not have to wait before it is taken."""
        return not self._batches.full()

    def put(self, batch: list[_Pending] | None) -> None:
        """Hand a batch over, as soon as the one before it is in work.

        Raises:
            DocpagerError: what ended the thread.
        """
        while True:
            self._raise()
            try:
                return self._batches.put(batch, timeout=_LOOK_EVERY_S)
            except queue.Full:
                continue

    def finish(self) -> None:
        """Wait until all that was handed over is committed.

        Raises:
            DocpagerError: what ended the thread.
        """
        self.put(None)
        while not self._ended.wait(_LOOK_EVERY_S):
            pass
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            embedding: _Embedding | None = None
            batch: Sequence[_Pending] | None = ()
            while batch is not None and not self._committer.stopped:
                try:
                    batch = self._batches.get(timeout=_LOOK_EVERY_S)
                except queue.Empty:
                    batch = ()
                if batch or embedding is not None:
                    embedding = self._committer.advance(embedding, batch or ())
            if embedding is not None:  # stopped: what is whole of it is kept
                self._committer.advance(embedding, ())
        except BaseException as error:  # noqa: BLE001 - it is raised where the ingest is waited for
            self._error = error
        finally:
            self._ended.set()


# -- commits: what is done about it ---------------------------------------------------------------


@dataclass(slots=True)
class _Embedded:
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


class _Embedding:
    """Steps on their way to be committed: their texts are embedded by a thread beside others."""

    def __init__(self, pending: Sequence[_Pending]) -> None:
        self.pending = pending
        self.texts = {
            chunk.text_hash: chunk.indexed_text for item in pending for chunk in item.chunks
        }
        """By hash."""
        self.embedded = _Embedded()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return not all(item.step.recorded for item in self.pending)

    def start(self, embed: Callable[[_Embedding], None]) -> None:
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


class _Committer:
    """Commits steps in order, in short bursts, and has those after them embedded meanwhile."""

    def __init__(
        self,
        open_writer: OpenWriter,
        embedder: Embedder,
        watch: _Stopwatch,
        paid_embeddings: bool,
        flush_at: FlushAt,
        progress: Progress,
        reader: str,
        total: int,
    ) -> None:
        self._open_writer = open_writer
        self._embedder = embedder
        self._watch = watch
        self._paid = paid_embeddings
        self._flush_at = flush_at
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

    def advance(self, ready: _Embedding | None, following: Sequence[_Pending]) -> _Embedding | None:
        """Commit `ready` when it is embedded; meanwhile begin with the steps that follow, if any.

        Raises:
            ModelError: embedding cannot go on; what was complete before it is committed.
        """
        ready = ready or _Embedding(())
        ready.wait()
        fatal = ready.embedded.fatal
        begun = _Embedding(following) if following and fatal is None else None
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

    def _embed(self, batch: _Embedding) -> None:
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

    def _embed_batch(
        self, hashes: Sequence[str], texts: Sequence[str], embedded: _Embedded
    ) -> None:
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

    def _commit_burst(self, ready: _Embedding, writer: ArchiveWriter) -> list[FileOutcome]:
        """Commit steps in order; returns what came of them, which is all but in rare cases."""
        if not ready.changes:
            return _as_recorded(ready.pending)
        _put(writer, ready.embedded.vectors)
        committable = self._committable(ready, writer)
        with writer.together():
            return [self._commit(item, ready.embedded, writer) for item in committable]

    def _committable(self, ready: _Embedding, writer: ArchiveWriter) -> Sequence[_Pending]:
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

    def _commit(self, item: _Pending, embedded: _Embedded, writer: ArchiveWriter) -> FileOutcome:
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


def _as_recorded(pending: Sequence[_Pending]) -> list[FileOutcome]:
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


def _silent(_counts: IngestCounts) -> None:
    """Tell nobody."""


# -- what came of it ------------------------------------------------------------------------------


class _Stopwatch:
    """Seconds by stage; each stage is of one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self.seconds: dict[str, float] = {}

    @property
    def elapsed(self) -> float:
        return self._clock.monotonic() - self._began

    def add(self, stage: str, seconds: float) -> None:
        """Add time that was measured elsewhere."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time within it to a stage."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self.add(name, self._clock.monotonic() - began)

    def timed(self, name: str, function: Callable[[str], str]) -> Callable[[str], str]:
        """`function` with its time counted to a stage."""

        def run(argument: str) -> str:
            with self.stage(name):
                return function(argument)

        return run

    def waits(
        self, results: Iterator[tuple[Step, ParsedFile | DocumentError | None]]
    ) -> Iterator[tuple[Step, ParsedFile | DocumentError | None]]:
        """`results`, with the time that each is waited for counted, but for what hashing took."""
        while True:
            began, hashed = self._clock.monotonic(), self.seconds.get("hash", 0.0)
            result = next(results, None)
            waited = self._clock.monotonic() - began
            self.add("wait to read", waited - (self.seconds.get("hash", 0.0) - hashed))
            if result is None:
                return
            yield result


def _report(committer: _Committer, found: Walk, watch: _Stopwatch) -> IngestReport:
    counts = Counter(outcome.status for outcome in committer.outcomes)
    return IngestReport(
        added=counts["added"],
        updated=counts["updated"],
        unchanged=counts["unchanged"],
        moved=counts["moved"],
        removed=counts["removed"],
        duplicate=counts["duplicate"],
        failed=counts["failed"],
        gone=counts["gone"],
        ignored=len(found.left_out),
        passages=committer.passages,
        pages=committer.pages,
        sections=committer.sections,
        elapsed_s=watch.elapsed,
        files=tuple(committer.outcomes),
        left_out=found.left_out,
        profile=IngestProfile(dict(watch.seconds), committer.bytes),
    )

"""Files become stored documents: walk, plan, parse in workers, embed, commit in walk order.

    walk ──> plan ──> parse and chunk ──> pending ──> embed ──> commit
           (by hash)   (worker pool,      (in order)          (short bursts)
                        in order)

The archive is open in short bursts only, so that others can read it meanwhile. Every document
is one transaction, and documents are committed in the order of the walk, so the numbers of
passages depend neither on the number of workers nor on what was killed.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from docpager.documents.attachments import attached_to
from docpager.documents.formats import READ
from docpager.documents.loaders import AttachedFile, ParsedFile, unreadable
from docpager.documents.walking import FoundFile, Walk, path_of, walk
from docpager.errors import DocumentError, FailureReason, ModelAuthError, ModelError, NothingToDo
from docpager.protocols import ArchiveWriter, Clock, Embedder, Vectors
from docpager.types import (
    Chunk,
    Document,
    DocumentState,
    FileOutcome,
    FileStatus,
    IngestReport,
)

__all__ = ["FileOutcome", "FlushAt", "IngestReport", "Parse", "Progress", "ingest"]

OpenWriter = Callable[[], AbstractContextManager[ArchiveWriter]]

_PASSING: frozenset[FailureReason] = frozenset(
    {"unreadable", "timed_out", "out_of_memory", "embedding_failed"}
)
"""Reasons that may be gone at the next run: such a file is tried again, unchanged or not."""
_FAILED_BATCHES = 3
"""So many embedding calls failed in a row are the endpoint's fault, not the documents'."""
_HASH_BLOCK = 1 << 20


class Parse(Protocol):
    """Parses and chunks files elsewhere; the results come in the order of the paths."""

    def __call__(self, paths: Iterable[str]) -> Generator[ParsedFile | DocumentError, None, None]:
        """For each path what was read, or why it could not be."""


class Progress(Protocol):
    """Is told how far an ingest is."""

    def __call__(self, done: int, total: int, passages: int) -> None:
        """`done` of `total` files are finished, with so many passages stored."""


@dataclass(frozen=True, slots=True)
class FlushAt:
    """How much may be pending before the archive is opened to commit it."""

    seconds: float = 2.0
    passages: int = 1_000
    characters: int = 64_000_000


def ingest(
    paths: Sequence[str],
    *,
    open_writer: OpenWriter,
    embedder: Embedder,
    parse: Parse,
    clock: Clock,
    progress: Progress | None = None,
    paid_embeddings: bool = False,
    flush_at: FlushAt | None = None,
    retry: frozenset[FailureReason] = frozenset(),
) -> IngestReport:
    """Bring the archive up to date with files and folders.

    A file whose size and time are as before costs nothing; else its bytes decide. What cannot be
    read is a failed row, and the others go on. Whatever ends it early, committed documents stay.

    Args:
        open_writer: Opens the archive (and creates it) for a burst of commits.
        paid_embeddings: Commit vectors after each call of the embedder, so that none that was
            paid for is lost.
        retry: Reasons of earlier failures that may be gone now: such files are read again.

    Raises:
        UserError: a path does not exist.
        NothingToDo: there is no document under the paths.
        ModelError: the embedder refuses, or failed several times in a row.
        ArchiveError: the archive cannot be opened or written.
    """
    began = clock.monotonic()
    with open_writer() as writer:
        known = {document.name: document for document in writer.documents()}
    found = walk(paths, known.values())
    if not found.files:
        raise NothingToDo(f"No documents were found. Name files or folders with {READ} files.")
    committer = _Committer(
        open_writer,
        embedder,
        clock,
        paid_embeddings,
        flush_at or FlushAt(),
        progress or _silent,
        len(found.files),
    )
    passing = _PASSING | retry
    families = _Families(known, found.files, passing)
    steps = _Plan(families.files, families.unsettled, passing).steps(found.files)
    with closing(_parsed(steps, parse)) as results:
        for step, result in results:
            for member, outcome in families.members(step, result):
                committer.take(member, outcome)
    committer.flush()
    return _report(committer, found, clock.monotonic() - began)


# -- the plan: what each file asks for -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Step:
    """What is to be done about one file."""

    file: FoundFile
    status: FileStatus
    content_hash: str = ""
    parse: bool = False
    other: str = ""
    """The old name of what moved, or the name of what it is a duplicate of."""
    error: DocumentError | None = None
    recorded: bool = False
    """Whether the archive knows all of this already."""
    heir: str = ""
    """The duplicate that takes over the text which this name held so far."""
    gone: tuple[str, ...] = ()
    """Names of what was attached to the file and is no more."""


class _Plan:
    """Decides by name, size, time and content what each file asks for.

    It keeps account of what the archive will hold when a step is committed, since steps are
    committed in the order in which they are planned.
    """

    def __init__(
        self,
        known: dict[str, Document],
        unsettled: frozenset[str],
        passing: frozenset[FailureReason],
    ) -> None:
        """`unsettled` names files of which something attached is worth another try, `passing`
        reasons for which a file itself is."""
        self._known = known
        self._passing = passing
        self._unsettled = unsettled
        self._stored: dict[str, str] = {}
        """Content hash -> name of the document that holds its text."""
        self._copies: dict[str, set[str]] = {}
        """Name of a document -> names of its duplicates."""
        for document in known.values():
            if document.state == "ready":
                self._stored[document.content_hash] = document.name
            elif document.duplicate_of:
                self._copies.setdefault(document.duplicate_of, set()).add(document.name)

    def steps(self, files: Iterable[FoundFile]) -> Iterator[_Step]:
        """One step for each file, in order."""
        return map(self._step, files)

    def _step(self, file: FoundFile) -> _Step:
        row = self._known.get(file.name)
        if row and row.size == file.size and row.mtime_ns == file.mtime_ns and row.content_hash:
            return self._unchanged(file, row) or self._anew(file, row.content_hash)
        try:
            content_hash = _hash_file(file.path)
        except OSError as error:
            heir = self._forget(file.name)
            return _Step(file, "failed", error=unreadable(error), heir=heir)
        if row and row.content_hash == content_hash:
            step = self._unchanged(file, row)
            if step:
                return replace(step, recorded=False)
        return self._anew(file, content_hash)

    def _unchanged(self, file: FoundFile, row: Document) -> _Step | None:
        """The step for the same bytes under the same name; None if they must be read again."""
        if row.state == "failed":
            if row.reason is None or row.reason in self._passing:
                return None
            error = DocumentError(row.reason, row.message or "")
            return _Step(file, "failed", row.content_hash, error=error, recorded=True)
        holder = self._stored.get(row.content_hash)
        if holder is None or file.name in self._unsettled:
            return None
        other = "" if holder == file.name else holder
        recorded = row.state == "ready" or not other or row.duplicate_of == other
        return _Step(file, "unchanged", row.content_hash, other=other, recorded=recorded)

    def _anew(self, file: FoundFile, content_hash: str) -> _Step:
        """The step for bytes that are new under this name."""
        heir = self._forget(file.name)
        other = self._stored.get(content_hash)
        if other is None:
            self._stored[content_hash] = file.name
            row = self._known.get(file.name)
            status: FileStatus = "updated" if row and row.state != "failed" else "added"
            return _Step(file, status, content_hash, parse=True, heir=heir)
        holder = self._known.get(other)
        if holder is not None and not Path(path_of(holder)).exists():
            self._stored[content_hash] = file.name
            self._copies[file.name] = self._copies.pop(other, set())
            return _Step(file, "moved", content_hash, other=other, heir=heir)
        self._copies.setdefault(other, set()).add(file.name)
        return _Step(file, "duplicate", content_hash, other=other, heir=heir)

    def _forget(self, name: str) -> str:
        """What `name` held is replaced; the duplicate that keeps its text, if there is one."""
        for copies in self._copies.values():
            copies.discard(name)
        row = self._known.get(name)
        if row is None or self._stored.get(row.content_hash) != name:
            return ""
        del self._stored[row.content_hash]
        copies = self._copies.pop(name, set())
        if not copies:
            return ""
        heir = min(copies)
        self._stored[row.content_hash] = heir
        self._copies[heir] = copies - {heir}
        return heir


def _hash_file(path: str) -> str:
    with Path(path).open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(_HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _parsed(
    steps: Iterator[_Step], parse: Parse
) -> Generator[tuple[_Step, ParsedFile | DocumentError | None], None, None]:
    """Each step with what parsing gave, in order; None where there was nothing to parse."""
    planned: deque[_Step] = deque()

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


# -- families: a file and what is attached to it ---------------------------------------------------


class _Families:
    """Gives what is attached to files its own steps, each family ending with the file itself.

    So a file is never stored before all that is attached to it is: after a kill it is parsed
    again, and finds what was stored already unchanged.
    """

    def __init__(
        self,
        known: dict[str, Document],
        found: Iterable[FoundFile],
        passing: frozenset[FailureReason],
    ) -> None:
        names = frozenset(file.name for file in found)
        holders = {
            name: holder
            for name, holder in attached_to(known, names).items()
            # A name that is a file's now was that of an attachment once, and is no more.
            if name not in names
        }
        self.files = {name: row for name, row in known.items() if name not in holders}
        """Rows of files by name."""
        self._held: dict[str, dict[str, Document]] = {}
        """Of each file, the rows of what is attached to it, by what follows its own name."""
        for name, holder in sorted(holders.items()):
            self._held.setdefault(holder, {})[name[len(holder) :]] = known[name]
        self.unsettled = frozenset(
            holder
            for holder, rows in self._held.items()
            if any(row.state == "failed" and row.reason in passing for row in rows.values())
        )
        """Files of which something attached failed for a reason that may be gone."""

    def members(
        self, step: _Step, result: ParsedFile | DocumentError | None
    ) -> Iterator[tuple[_Step, ParsedFile | DocumentError | None]]:
        """The steps of a file's attachments, then its own."""
        if step.heir:
            yield from self._moved(step.file.name, self.files[step.heir])
        if step.status == "unchanged" or (step.status == "failed" and step.recorded):
            yield from self._kept(step)
            yield step, result
            return
        if step.status == "moved":
            yield from self._moved(step.other, _row(step, "ready"))
            yield step, result
            return
        before = self._held.pop(step.file.name, {})
        now = result.attachments if isinstance(result, ParsedFile) else ()
        for attached in now:
            yield self._attached(step, attached, before.pop(f"/{attached.name}", None))
        yield replace(step, gone=tuple(step.file.name + end for end in before)), result

    def _kept(self, step: _Step) -> Iterator[tuple[_Step, None]]:
        for end, row in self._held.get(step.file.name, {}).items():
            file = _member_of(step.file, step.file.name + end, row.size)
            error = None
            if row.state == "failed":
                error = DocumentError(row.reason or "damaged", row.message or "")
            status: FileStatus = "failed" if error else "unchanged"
            yield _Step(file, status, row.content_hash, error=error, recorded=True), None

    def _moved(self, old: str, holder: Document) -> Iterator[tuple[_Step, None]]:
        rows = self._held.pop(old, {})
        self._held[holder.name] = rows
        for end, row in rows.items():
            place = FoundFile(path_of(holder), holder.name, holder.root, 0, holder.mtime_ns)
            file = _member_of(place, holder.name + end, row.size)
            if row.state == "ready":
                yield _Step(file, "moved", row.content_hash, other=old + end), None
            else:
                error = DocumentError(row.reason or "damaged", row.message or "")
                yield _Step(file, "failed", row.content_hash, error=error, gone=(old + end,)), None

    def _attached(
        self, step: _Step, attached: AttachedFile, row: Document | None
    ) -> tuple[_Step, ParsedFile | DocumentError | None]:
        name = f"{step.file.name}/{attached.name}"
        file = _member_of(step.file, name, attached.size)
        ready = row is not None and row.state == "ready"
        if row and ready and row.content_hash == attached.content_hash:
            return _Step(file, "unchanged", row.content_hash, recorded=True), None
        status: FileStatus = "updated" if ready else "added"
        return _Step(file, status, attached.content_hash, parse=True), attached.outcome


def _member_of(holder: FoundFile, name: str, size: int) -> FoundFile:
    return FoundFile(holder.path, name, holder.root, size, holder.mtime_ns)


# -- commits: what is done about it ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pending:
    """A step that waits to be committed, with what was parsed for it."""

    step: _Step
    result: ParsedFile | DocumentError | None

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return self.result.chunks if isinstance(self.result, ParsedFile) else ()


@dataclass(frozen=True, slots=True)
class _Embedded:
    """What embedding the pending documents came to."""

    vectors: dict[str, Vectors]
    """By text hash; what the archive had before is not in it."""
    failed: dict[str, ModelError]
    """By text hash."""
    untried: frozenset[str]
    fatal: ModelError | None


class _Committer:
    """Collects steps, and commits them in order in short bursts."""

    def __init__(
        self,
        open_writer: OpenWriter,
        embedder: Embedder,
        clock: Clock,
        paid_embeddings: bool,
        flush_at: FlushAt,
        progress: Progress,
        total: int,
    ) -> None:
        self._open_writer = open_writer
        self._embedder = embedder
        self._clock = clock
        self._paid = paid_embeddings
        self._flush_at = flush_at
        self._progress = progress
        self._total = total
        self._pending: list[_Pending] = []
        self._pending_passages = 0
        self._pending_characters = 0
        self._flushed_at = clock.monotonic()
        self._failed_batches = 0
        self._committed: dict[str, str | DocumentError] = {}
        """By name, what this ingest stored (the content hash) or why it could not."""
        self.outcomes: list[FileOutcome] = []
        self.passages = 0
        self.pages = 0

    def take(self, step: _Step, result: ParsedFile | DocumentError | None) -> None:
        """Add a step; commit when enough has come together."""
        item = _Pending(step, result)
        self._pending.append(item)
        self._pending_passages += len(item.chunks)
        self._pending_characters += sum(len(chunk.text) for chunk in item.chunks)
        if (
            self._pending_passages >= self._flush_at.passages
            or self._pending_characters >= self._flush_at.characters
            or self._clock.monotonic() - self._flushed_at >= self._flush_at.seconds
        ):
            self.flush()

    def flush(self) -> None:
        """Embed what is pending, then commit it in order.

        Raises:
            ModelError: embedding cannot go on; what was complete before it is committed.
        """
        pending, self._pending = self._pending, []
        self._pending_passages = self._pending_characters = 0
        while pending:
            embedded = self._embed(pending)
            done = self._commit_burst(pending, embedded)
            if embedded.fatal is not None:
                raise embedded.fatal
            pending = pending[done:]
        self._flushed_at = self._clock.monotonic()

    def _commit_burst(self, pending: Sequence[_Pending], embedded: _Embedded) -> int:
        """Commit pending steps in order; returns how many, which is all but in rare cases."""
        if all(item.step.recorded for item in pending):
            for item in pending:
                self._finish(item.step, item.step.error)
            return len(pending)
        with self._open_writer() as writer:
            self._put(writer, embedded.vectors)
            return self._commit_all(pending, embedded, writer)

    def _embed(self, pending: Sequence[_Pending]) -> _Embedded:
        texts = {chunk.text_hash: chunk.indexed_text for item in pending for chunk in item.chunks}
        if not texts:
            return _Embedded({}, {}, frozenset(), None)
        with self._open_writer() as writer:
            missing = writer.missing_vectors(tuple(texts))
        untried = [text_hash for text_hash in texts if text_hash in missing]
        vectors: dict[str, Vectors] = {}
        failed: dict[str, ModelError] = {}
        fatal: ModelError | None = None
        while untried and fatal is None:
            batch = untried[: self._embedder.batch_size]
            try:
                rows = self._embedder.embed([texts[text_hash] for text_hash in batch])
            except ModelError as error:
                self._failed_batches += 1
                if isinstance(error, ModelAuthError) or self._failed_batches >= _FAILED_BATCHES:
                    fatal = error
                    break
                failed |= dict.fromkeys(batch, error)
            else:
                self._failed_batches = 0
                fresh = dict(zip(batch, rows, strict=True))
                vectors |= fresh
                if self._paid:
                    with self._open_writer() as writer:
                        self._put(writer, fresh)
            del untried[: len(batch)]
        if fatal is not None:
            # The endpoint is at fault, so no document is blamed for what it did not answer.
            untried, failed = [*failed, *untried], {}
        return _Embedded({} if self._paid else vectors, failed, frozenset(untried), fatal)

    def _put(self, writer: ArchiveWriter, vectors: dict[str, Vectors]) -> None:
        if vectors:
            writer.put_vectors(tuple(vectors), np.stack(tuple(vectors.values())))

    def _commit_all(
        self, pending: Sequence[_Pending], embedded: _Embedded, writer: ArchiveWriter
    ) -> int:
        replaced = False
        for done, item in enumerate(pending):
            hashes = [chunk.text_hash for chunk in item.chunks]
            if not embedded.untried.isdisjoint(hashes):
                return done
            error = next((embedded.failed[key] for key in hashes if key in embedded.failed), None)
            # subtle: the text that went just now may have been the last to use a vector that
            # this document shares. Then the burst ends, and what is missing is embedded anew.
            if hashes and error is None and replaced and writer.missing_vectors(hashes):
                return done
            self._commit(item, error, writer)
            replaced = replaced or item.step.status != "added" or bool(item.step.gone)
        return len(pending)

    def _commit(self, item: _Pending, failure: ModelError | None, writer: ArchiveWriter) -> None:
        step, result = item.step, item.result
        if step.gone:
            writer.remove(step.gone)
        error = step.error or self._error_of_original(step)
        if isinstance(result, DocumentError):
            error = result
        elif failure is not None:
            error = DocumentError("embedding_failed", f"No vectors for the text: {failure}")
        if step.recorded:
            pass
        elif error is not None:
            writer.record(replace(_row(step, "failed"), reason=error.reason, message=str(error)))
        elif isinstance(result, ParsedFile):
            self._store(step, result, writer)
        elif step.status == "moved":
            writer.rename(step.other, _row(step, "ready"))
        elif step.other:
            writer.record(replace(_row(step, "duplicate"), duplicate_of=step.other))
        else:
            writer.record(_row(step, "ready"))
        warnings = result.parsed.warnings if isinstance(result, ParsedFile) else ()
        self._finish(step, error, warnings)

    def _error_of_original(self, step: _Step) -> DocumentError | None:
        """Why a duplicate fails: because the document that it is a copy of did in this ingest."""
        if step.status != "duplicate":
            return None
        original = self._committed.get(step.other)
        if isinstance(original, DocumentError) or original in (None, step.content_hash):
            return original if isinstance(original, DocumentError) else None
        return DocumentError(
            "unreadable", "A file with the same bytes changed meanwhile. Run the ingest again."
        )

    def _store(self, step: _Step, result: ParsedFile, writer: ArchiveWriter) -> None:
        row = replace(
            _row(step, "ready"),
            content_hash=result.content_hash,
            size=result.size,
            mtime_ns=result.mtime_ns,
        )
        stored = writer.store(row, result.parsed, result.chunks)
        self._committed[step.file.name] = result.content_hash
        self.passages += stored.passages
        self.pages += stored.pages

    def _finish(
        self, step: _Step, error: DocumentError | None, warnings: tuple[str, ...] = ()
    ) -> None:
        name = step.file.name
        if error is None:
            self.outcomes.append(FileOutcome(name, step.status, warnings=warnings))
        else:
            self._committed[name] = error
            self.outcomes.append(FileOutcome(name, "failed", error.reason, str(error)))
        # Attachments come on top of the files that were counted.
        self._progress(len(self.outcomes), max(self._total, len(self.outcomes)), self.passages)


def _row(step: _Step, state: DocumentState) -> Document:
    return Document(
        name=step.file.name,
        state=state,
        content_hash=step.content_hash,
        size=step.file.size,
        root=step.file.root,
        mtime_ns=step.file.mtime_ns,
    )


def _silent(done: int, total: int, passages: int) -> None:
    """Tell nobody."""


def _report(committer: _Committer, found: Walk, elapsed: float) -> IngestReport:
    counts = Counter(outcome.status for outcome in committer.outcomes)
    return IngestReport(
        added=counts["added"],
        updated=counts["updated"],
        unchanged=counts["unchanged"],
        moved=counts["moved"],
        removed=0,
        duplicate=counts["duplicate"],
        failed=counts["failed"],
        ignored=found.ignored,
        passages=committer.passages,
        pages=committer.pages,
        elapsed_s=elapsed,
        files=tuple(committer.outcomes),
    )

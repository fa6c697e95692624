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

from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol

from docpager.documents.attachments import with_attachments
from docpager.documents.formats import READ
from docpager.documents.loaders import ParsedFile
from docpager.errors import DocumentError, NothingToDo
from docpager.ingest.committing import Committer, Pending, Progress, Writing, silent
from docpager.ingest.families import Families
from docpager.ingest.ignore import PathFilter
from docpager.ingest.plan import Plan, Retries, Step, hash_file
from docpager.ingest.stopwatch import Stopwatch
from docpager.ingest.walk import Walk, walk
from docpager.ingest.writer_thread import Batch, WriterThread
from docpager.protocols import Clock
from docpager.types import (
    Document,
    IngestProfile,
    IngestReport,
)


class Parse(Protocol):
    """Parses and chunks files elsewhere; the results come in the order of the paths."""

    def __call__(self, paths: Iterable[str]) -> Generator[ParsedFile | DocumentError, None, None]:
        """For each path what was read, or why it could not be."""


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
    writing: Writing,
    parse: Parse,
    clock: Clock,
    progress: Progress = silent,
    options: Options | None = None,
) -> IngestReport:
    """Bring the archive up to date with files and folders.

    A file whose size and time are as before costs nothing; else its bytes decide. What cannot be
    read is a failed row, and the others go on. Whatever ends it early, committed documents stay.

    Args:
        known: All documents that the archive holds.

    Raises:
        UserError: a path does not exist.
        NothingToDo: there is no document under the paths, and nothing to forget.
        ModelError: the embedder refuses, or failed several times in a row.
        ArchiveError: the archive cannot be opened or written.
    """
    options = options or Options()
    watch = Stopwatch(clock)
    with watch.stage("walk"):
        found = walk(paths, known, options.selection)
    families = Families(known, found.files, options.retries)
    hashing = watch.timed("hash", hash_file)
    plan = Plan(families.files.values(), options.retries, families.unsettled, hashing)
    if not found.files and not (options.prune and any(plan.gone(found))):
        raise NothingToDo(_nothing(found))
    reader, total = options.retries.signature, len(found.files)
    committer = Committer(writing, watch, progress, reader, total)
    committer.announce(tuple(plan.unknown(found.files)))
    batch, steps = Batch(clock, writing.flush_at), plan.steps(found.files)
    with WriterThread(committer) as writer, closing(_parsed(steps, parse)) as results:
        _hand_over(families, watch.waits(results), writer, batch, watch)
    gone, dropped = plan.gone(found)
    with_theirs = with_attachments(gone, [document.name for document in known])
    committer.finish(with_theirs, dropped, options.prune)
    return _report(committer, found, watch)


def _hand_over(
    families: Families,
    results: Iterator[tuple[Step, ParsedFile | DocumentError | None]],
    writer: WriterThread,
    batch: Batch,
    watch: Stopwatch,
) -> None:
    """Give what was parsed to the thread that writes, batch by batch, and wait for the last."""
    for step, result in results:
        for member, outcome in families.members(step, result):
            batch.add(Pending(member, outcome))
        if batch.is_full or (batch.is_due and writer.is_free):
            with watch.stage("wait to write"):
                writer.put(batch.take())
    with watch.stage("wait to write"):
        writer.put(batch.take())
        writer.finish()


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


def _report(committer: Committer, found: Walk, watch: Stopwatch) -> IngestReport:
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

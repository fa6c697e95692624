"""What an archive holds: its documents, and those that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from docpager.batch.answers import SCHEMA
from docpager.files import megabytes
from docpager.render.terminal import plural, printable
from docpager.types import (
    Document,
    JSONValue,
)

if TYPE_CHECKING:
    from docpager.types import ArchiveStatus


def document_record(document: Document) -> dict[str, JSONValue]:
    """A document as `ls --json` lists it."""
    return {
        "document": document.name,
        "state": document.state,
        "pages": document.pages if document.paged else None,
        "passages": document.passages,
        "size": document.size,
        "sha256": document.content_hash or None,
        "attempts": document.attempts,
        "reader": document.reader or None,
        "title": document.title,
        "author": document.author,
        "reason": document.reason,
        "message": document.message,
        "duplicate_of": document.duplicate_of,
    }


_COUNTS_WIDTH = len("123456 sections  1234567 passages")


def document_line(document: Document) -> str:
    """One line of `ls`: pages, passages, name; or why the document is not searched."""
    if document.state == "failed":
        return f"{f'failed: {document.reason}':>{_COUNTS_WIDTH}}  {printable(document.name)}"
    if document.state == "pending":
        return f"{'pending':>{_COUNTS_WIDTH}}  {printable(document.name)}"
    if document.state == "duplicate":
        same = printable(document.duplicate_of or "")
        return f"{'duplicate':>{_COUNTS_WIDTH}}  {printable(document.name)} = {same}"
    unit = plural(document.pages, "page" if document.paged else "section")
    counts = f"{document.pages:6} {unit:8}  {document.passages:7} "
    counts += plural(document.passages, "passage")
    return f"{counts:{_COUNTS_WIDTH}}  {printable(document.name)}"


def status_record(archive: str, status: ArchiveStatus) -> dict[str, JSONValue]:
    """What `status --json` prints."""
    embedder = status.embedder
    return {
        "schema": SCHEMA,
        "archive": archive,
        "bytes": status.bytes,
        "documents": {
            "ready": status.ready,
            "pending": status.pending,
            "failed": len(status.failed),
            "duplicate": status.duplicates,
        },
        "pages": status.pages,
        "passages": status.passages,
        "embedder": None
        if embedder is None
        else {"name": embedder.name, "dimension": embedder.dimension},
        "generation": status.generation,
        "failed": [
            {
                "path": document.name,
                "reason": document.reason,
                "message": document.message,
                "attempts": document.attempts,
                "reader": document.reader,
            }
            for document in status.failed
        ],
    }


def status_text(archive: str, status: ArchiveStatus) -> str:
    """Counts, embedder and size, then the failed files by reason."""
    embedder = status.embedder
    vectors = f"{embedder.name}, {embedder.dimension} dimensions" if embedder else "none yet"
    pending = f", {status.pending} pending (ingest again to go on)" if status.pending else ""
    lines = [
        f"archive     {printable(archive)}, {megabytes(status.bytes, 1)}",
        f"documents   {status.ready} ready, {len(status.failed)} failed, "
        f"{status.duplicates} duplicates{pending}",
        f"pages       {status.pages - status.sections}{_sections(status.sections)}",
        f"passages    {status.passages}",
        f"embedder    {vectors}",
    ]
    rows = [(item.reason or "", item.name, item.message or "") for item in status.failed]
    if rows:
        lines += ["", printable(failures_text(rows))]
    return "\n".join(lines)


def _sections(count: int) -> str:
    return f", and {count} {plural(count, 'section')} of files without pages" if count else ""


def failed_text(status: ArchiveStatus) -> str:
    """The failed files by reason, each with what to do, how often it was tried and by what."""
    rows = [
        (item.reason or "", item.name, f"{item.message or ''} ({_tries(item)})")
        for item in status.failed
    ]
    return printable(failures_text(rows))


def _tries(document: Document) -> str:
    times = "tried once" if document.attempts == 1 else f"tried {document.attempts} times"
    return f"{times} with {document.reader}" if document.reader else times


def failures_text(failed: Iterable[tuple[str, str, str]]) -> str:
    """A table of (reason, name, message), grouped by reason, the most frequent first."""
    rows = list(failed)
    lines = []
    for reason, count in Counter(reason for reason, _, _ in rows).most_common():
        lines.append(f"{reason} ({count})")
        for _, name, message in (row for row in rows if row[0] == reason):
            lines.append(f"  {name}: {message}")
    return "\n".join(lines)

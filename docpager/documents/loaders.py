"""A file becomes page texts and chunks, or says for which reason it cannot."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from docpager.documents.chunking import ChunkSize, chunk_document
from docpager.documents.formats import HEAD_BYTES, detect, looks_binary
from docpager.documents.outline import OutlinedDocument
from docpager.documents.pacing import pages_over
from docpager.documents.walking import open_regular
from docpager.errors import DocumentError
from docpager.protocols import TokenCounter
from docpager.types import Chunk, ParsedDocument


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """How large a file may be, and what comes out of it; more is `too_large`."""

    file_bytes: int = 1 << 30
    page_characters: int = 10_000_000

    @property
    def text_bytes(self) -> int:
        """Of a file that is text itself, which takes many times its size while it is cut."""
        return self.file_bytes // 4


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What came of one file, with the identity of the very bytes that were read."""

    content_hash: str
    """SHA-256, hexadecimal."""
    size: int
    mtime_ns: int
    parsed: ParsedDocument
    chunks: tuple[Chunk, ...]
    seconds: float = field(default=0.0, compare=False)
    """What it took to read and cut, as its worker measured it."""


@dataclass(frozen=True, slots=True)
class ParseTask:
    """The unit of work of ingestion: a path in, a `ParsedFile` out; picklable, pure."""

    counter: TokenCounter
    """Picklable itself."""
    size: ChunkSize = field(default_factory=ChunkSize)
    limits: SizeLimits = field(default_factory=SizeLimits)

    def __call__(self, path: str) -> ParsedFile:
        """Read, parse and chunk the file.

        Raises:
            DocumentError: with the reason why it cannot be.
        """
        began = time.perf_counter()
        data, status = self._read(path)
        outlined = parse_bytes(Path(path).name, data)
        pages_over()
        self._refuse_long_pages(outlined)
        chunks = chunk_document(outlined, self.counter, self.size)
        if not chunks:
            raise _empty()
        return ParsedFile(
            hashlib.sha256(data).hexdigest(),
            len(data),
            status.st_mtime_ns,
            outlined.document,
            chunks,
            time.perf_counter() - began,
        )

    def _read(self, path: str) -> tuple[bytes, os.stat_result]:
        try:
            with open_regular(path) as file:
                status = os.fstat(file.fileno())
                self._refuse_large(Path(path).name, file.read(HEAD_BYTES), status.st_size)
                file.seek(0)
                return file.read(), status
        except OSError as error:
            raise unreadable(error) from error

    def _refuse_large(self, name: str, head: bytes, size: int) -> None:
        kind = detect(name, head)
        limit = self.limits.file_bytes if kind == "pdf" else self.limits.text_bytes
        if size > limit:
            raise DocumentError(
                "too_large",
                f"The file has {size / 1e6:,.0f} MB, {limit / 1e6:,.0f} MB is the limit. "
                "Split it into smaller files, or allow more with --max-file-size.",
            )

    def _refuse_long_pages(self, outlined: OutlinedDocument) -> None:
        limit = self.limits.page_characters
        for page in outlined.document.pages:
            if len(page.text) > limit:
                raise DocumentError(
                    "too_large",
                    f"Page {page.page_number} has {len(page.text):,} characters, {limit:,} is the "
                    "limit. Split it, or allow more with --max-page-characters.",
                )


def parse_file(path: str) -> OutlinedDocument:
    """The pages and headings of one file, whatever its size.

    Raises:
        DocumentError: with the reason why there are none.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise unreadable(error) from error
    return parse_bytes(Path(path).name, data)


def parse_bytes(name: str, data: bytes) -> OutlinedDocument:
    """The pages and headings of a file of that name with these bytes.

    Raises:
        DocumentError: with the reason why there are none.
    """
    if not data.strip():
        raise _empty()
    match detect(name, data[:HEAD_BYTES]):
        case "pdf":
            return _read_pdf(name, data)
        case "markdown":
            from docpager.documents.text import read_markdown

            return read_markdown(data)
        case "text":
            from docpager.documents.text import read_text

            return read_text(data)
        case None:
            raise DocumentError(
                "unsupported_format",
                "docpager reads .pdf, .txt and .md files. Convert it to one of them.",
            )


def _read_pdf(name: str, data: bytes) -> OutlinedDocument:
    if b"%PDF-" not in data[:HEAD_BYTES] and not looks_binary(data[:HEAD_BYTES]):
        raise DocumentError(
            "not_a_document",
            f"The name ends in {Path(name).suffix}, but there is no PDF in the file: it may be a "
            "web page or an error message. Download it again.",
        )
    from docpager.documents.pdf import read_pdf

    return read_pdf(data)


def unreadable(error: OSError) -> DocumentError:
    """A file that the system will not hand out, with the system's own words."""
    what = error.strerror or type(error).__name__
    return DocumentError("unreadable", f"The file cannot be read: {what}. Check its permissions.")


def _empty() -> DocumentError:
    return DocumentError("empty", "There is nothing in the file. Leave it out, or get it anew.")

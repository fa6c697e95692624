"""A file becomes page texts and chunks, or says for which reason it cannot."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from docpager.documents.attachments import Attachment, AttachmentLimits, place_name
from docpager.documents.chunking import ChunkSize, chunk_document
from docpager.documents.formats import HEAD_BYTES, Format, detect, identify
from docpager.documents.outline import OutlinedDocument
from docpager.documents.pdf.options import PdfOptions
from docpager.documents.progress import pages_over
from docpager.documents.sandbox import not_understood
from docpager.errors import DocumentError
from docpager.files import megabytes
from docpager.protocols import TokenCounter
from docpager.types import Chunk, ParsedDocument

_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """How large a file may be, and what comes out of it; more is `too_large`."""

    file_bytes: int = 1 << 30
    """Of a PDF."""
    page_characters: int = 10_000_000
    unpacked_bytes: int = 1 << 30
    """Of all that an archive (Office, OpenDocument, EPUB) unpacks to."""

    @property
    def other_bytes(self) -> int:
        """Of a file of another format, which takes many times its size while it is cut."""
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
    attachments: tuple[AttachedFile, ...] = ()
    """All files inside it, at any depth: those of an attachment come after it."""


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """What came of a file inside another file."""

    name: str
    """Below the name of the file that holds it: `report.pdf`, `inner.eml/report.pdf`."""
    content_hash: str
    size: int
    outcome: ParsedFile | DocumentError


@dataclass(frozen=True, slots=True)
class ParseTask:
    """The unit of work of ingestion: a path in, a `ParsedFile` out; picklable, pure."""

    counter: TokenCounter
    """Picklable itself."""
    size: ChunkSize = field(default_factory=ChunkSize)
    limits: SizeLimits = field(default_factory=SizeLimits)
    attachments: AttachmentLimits = field(default_factory=AttachmentLimits)
    pdf: PdfOptions = field(default_factory=PdfOptions)

    def __call__(self, path: str) -> ParsedFile:
        """Read, parse and chunk the file and what is attached to it.

        Raises:
            DocumentError: with the reason why it cannot be.
        """
        began = time.perf_counter()
        data, status = self._read(path)
        mtime_ns = status.st_mtime_ns
        file, attachments = self._parse(Path(path).name, data, mtime_ns)
        unpacking = _Unpacking(
            lambda name, data: self._parse(name, data, mtime_ns), self.attachments
        )
        unpacking.add(attachments)
        warnings = (*file.parsed.warnings, *unpacking.warnings)
        return replace(
            file,
            parsed=replace(file.parsed, warnings=warnings),
            attachments=tuple(unpacking.files),
            seconds=time.perf_counter() - began,
        )

    def _parse(
        self, name: str, data: bytes, mtime_ns: int
    ) -> tuple[ParsedFile, tuple[Attachment, ...]]:
        outlined = parse_bytes(name, data, self.pdf, self.limits)
        pages_over()
        self._refuse_long_pages(outlined)
        chunks = chunk_document(outlined, self.counter, self.size)
        if not chunks:
            raise _empty()
        content_hash = hashlib.sha256(data).hexdigest()
        file = ParsedFile(content_hash, len(data), mtime_ns, outlined.document, chunks)
        return file, outlined.attachments

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
        limit = self.limits.file_bytes if kind == "pdf" else self.limits.other_bytes
        if size > limit:
            raise DocumentError(
                "too_large",
                f"The file has {megabytes(size)}, {megabytes(limit)} is the limit. "
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


class _Unpacking:
    """Parses attachments and theirs, as far as the limits allow."""

    def __init__(
        self,
        parse: Callable[[str, bytes], tuple[ParsedFile, tuple[Attachment, ...]]],
        limits: AttachmentLimits,
    ) -> None:
        self._parse = parse
        self._limits = limits
        self._bytes = 0
        self._unknown: list[str] = []
        self._beyond: list[str] = []
        self.files: list[AttachedFile] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, and why."""
        told = (
            (self._unknown, "of no format that docpager reads"),
            (self._beyond, "beyond the limits of number, size and depth"),
        )
        return tuple(
            f"{len(names)} attachments are {why}, and left out: {_listed(names)}."
            for names, why in told
            if names
        )

    def add(self, attachments: Iterable[Attachment], below: str = "", depth: int = 1) -> None:
        """Parse attachments of one file, each followed by its own."""
        taken: set[str] = set()
        for attachment in attachments:
            own = place_name(attachment.name, taken)
            taken.add(own)
            name = f"{below}{own}"
            if detect(own, attachment.data[:HEAD_BYTES]) is None:
                self._unknown.append(name)
            elif self._is_beyond(attachment, depth):
                self._beyond.append(name)
            else:
                self._bytes += len(attachment.data)
                self._add_one(name, attachment.data, depth)

    def _is_beyond(self, attachment: Attachment, depth: int) -> bool:
        return (
            depth > self._limits.depth
            or len(self.files) >= self._limits.count
            or self._bytes + len(attachment.data) > self._limits.total_bytes
        )

    def _add_one(self, name: str, data: bytes, depth: int) -> None:
        outcome: ParsedFile | DocumentError
        inner: tuple[Attachment, ...] = ()
        try:
            outcome, inner = self._parse(name.rsplit("/", 1)[-1], data)
        except DocumentError as error:
            outcome = error
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - one attachment must not cost the others
            outcome = not_understood(error)
        content_hash = hashlib.sha256(data).hexdigest()
        self.files.append(AttachedFile(name, content_hash, len(data), outcome))
        self.add(inner, f"{name}/", depth + 1)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def parse_bytes(
    name: str, data: bytes, pdf: PdfOptions | None = None, limits: SizeLimits | None = None
) -> OutlinedDocument:
    """The pages and headings of a file of that name with these bytes.

    Of `limits`, that of what is unpacked: the others are for the file before it is read, and for
    its pages.

    Raises:
        DocumentError: with the reason why there are none.
    """
    if not data.strip():
        raise _empty()
    found = identify(name, data)
    outlined = _read(found.format, data, pdf, limits or SizeLimits())
    if found.warning is None:
        return outlined
    document = outlined.document
    warned = replace(document, warnings=(found.warning, *document.warnings))
    return replace(outlined, document=warned)


_READERS: dict[Format, tuple[str, str]] = {
    "text": ("text.reader", "read_text"),
    "markdown": ("text.reader", "read_markdown"),
    "html": ("web.html", "read_html"),
    "docx": ("office.word", "read_docx"),
    "pptx": ("office.slides", "read_pptx"),
    "xlsx": ("office.sheets", "read_xlsx"),
    "odf": ("office.odf", "read_odf"),
    "epub": ("web.epub", "read_epub"),
    "rtf": ("office.rtf", "read_rtf"),
    "mail": ("web.mail", "read_mail"),
    "delimited": ("text.delimited", "read_delimited"),
    "json": ("text.structured", "read_json"),
    "jsonl": ("text.structured", "read_json_lines"),
    "xml": ("web.xml", "read_xml"),
    "further": ("office.unstructured", "read_further"),
}
"""Module and function of each format's reader: a module is loaded for the first file of it."""


_UNPACKING: frozenset[Format] = frozenset({"docx", "pptx", "xlsx", "odf", "epub"})
"""Formats that are archives: their readers are told how much may come out of one."""


def _read(
    kind: Format, data: bytes, pdf: PdfOptions | None, limits: SizeLimits
) -> OutlinedDocument:
    if kind == "pdf":
        from docpager.documents.pdf.reader import read_pdf

        return read_pdf(data, pdf)
    reader = _reader(kind)
    return reader(data, limits.unpacked_bytes) if kind in _UNPACKING else reader(data)


def _reader(kind: Format) -> Callable[..., OutlinedDocument]:
    module, function = _READERS[kind]
    reader: Callable[..., OutlinedDocument] = getattr(
        import_module(f"docpager.documents.{module}"), function
    )
    return reader


def open_regular(path: str) -> BinaryIO:
    """The file at `path`, open for reading; a FIFO or device in its place is not waited for.

    Raises:
        DocumentError: it is no regular file (`unreadable`).
        OSError: it cannot be opened.
    """
    file = os.fdopen(os.open(path, _OPEN_FLAGS), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise DocumentError("unreadable", "It is not a regular file. Leave it out.")
    return file


def unreadable(error: OSError) -> DocumentError:
    """A file that the system will not hand out, with the system's own words."""
    what = error.strerror or type(error).__name__
    return DocumentError("unreadable", f"The file cannot be read: {what}. Check its permissions.")


def _empty() -> DocumentError:
    return DocumentError("empty", "There is nothing in the file. Leave it out, or get it anew.")

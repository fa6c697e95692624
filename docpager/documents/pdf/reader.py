"""A PDF's pages as text: pdfium first, pypdf for a page that looks wrong, pikepdf to mend a file.

pdfium is not thread-safe and can crash on a hostile file: the sandbox runs this in a process of
its own.
"""

from __future__ import annotations

import ctypes
import functools
import io
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING

import pikepdf
import pypdfium2
import pypdfium2.raw as pdfium_c

from docpager.documents.attachments import Attachment
from docpager.documents.outline import OutlinedDocument, TableSpan
from docpager.documents.pdf import ocr
from docpager.documents.pdf.forms import is_xfa, open_forms, read_notes, read_xfa
from docpager.documents.pdf.furniture import find_furniture
from docpager.documents.pdf.headings import Bookmark, Sheet, find_headings, printed_title
from docpager.documents.pdf.options import PdfOptions
from docpager.documents.pdf.page import RawPage, clean_line
from docpager.documents.pdf.quality import GARBLED_BELOW, ink, quality
from docpager.documents.pdf.tables import RawTable
from docpager.documents.progress import page_begun, page_recognised
from docpager.documents.text.normalise import one_line
from docpager.errors import DocumentError
from docpager.types import PAGE_SEPARATOR, PageText, ParsedDocument

if TYPE_CHECKING:
    import pypdf

_NO_TITLE = re.compile(
    r"untitled.*|document\d*|title|slide \d+|powerpoint presentation|microsoft \w+ - .*|\W*|\d+"
    r"|\S*\.(docx?|pdf|tex|dvi|indd|pptx?|xlsx?|qxd|rtf|txt)",
    re.IGNORECASE,
)
_NO_AUTHOR = re.compile(r"\W*|user|admin(istrator)?|author|unknown|anonymous", re.IGNORECASE)
_VAIN = 20
"""Second opinions: after so many that were no better, none is asked for."""
_MOST_BOOKMARKS = 20_000
_ALMOST_NOTHING = 50
"""Characters of ink beside a picture that fills the page."""
_ADVICE = "Read it with --ocr, or make it searchable with an OCR program first."


def read_pdf(data: bytes, options: PdfOptions | None = None) -> OutlinedDocument:
    """The pages of a PDF, its headings and attachments.

    A file that is encrypted without a password opens; for others those of `options` are tried.

    Raises:
        DocumentError: `encrypted`, `damaged`, `empty`, `too_large` or `no_text_layer`.
    """
    options = options or PdfOptions()
    opened = _open(data, options.passwords)
    with closing(opened.document) as document:
        _refuse_long(document, options.max_pages)
        open_forms(document)
        reader = _PageReader(opened, options)
        read = [reader.read(index) for index in range(len(document))]
        bookmarks = tuple(islice(_bookmarks(document), _MOST_BOOKMARKS))
        title = _metadata(document, "Title", _NO_TITLE)
        author = _metadata(document, "Author", _NO_AUTHOR)
        attachments, left_out = _attachments(document, options.max_attached_bytes)
        if is_xfa(document):
            read[:1] = [_with_xfa(page, document) for page in read[:1]]
    sheets = tuple(page.sheet() for page in read)
    furniture = find_furniture(
        [page.lines for page in read], [page.text.page_label for page in read]
    )
    pages = tuple(
        replace(page.text, text="\n".join(sheet.lines), furniture=spans)
        for page, sheet, spans in zip(read, sheets, furniture, strict=True)
    )
    _refuse_without_text(pages, options.ocr)
    headings = find_headings(sheets, bookmarks)
    parsed = ParsedDocument(
        pages,
        paged=True,
        title=title or printed_title(sheets, headings),
        author=author,
        warnings=(*_warnings(pages), *left_out),
    )
    tables = tuple(_tables(read, pages))
    return OutlinedDocument(parsed, headings, tables=tables, attachments=attachments)


def _tables(read: Sequence[_ReadPage], pages: Sequence[PageText]) -> Iterator[TableSpan]:
    """The pages' tables as spans of the document's text."""
    start = 0
    for own, page in zip(read, pages, strict=True):
        if own.tables:
            ends = list(accumulate(len(line) + 1 for line in own.lines))
            for table in own.tables:
                begin = start + (ends[table.header - 1] if table.header else 0)
                body = start + ends[table.header]
                yield TableSpan(begin, start + ends[table.end - 1] - 1, body, table.names)
        start += len(page.text) + len(PAGE_SEPARATOR)


# -- opening --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Opened:
    document: pypdfium2.PdfDocument
    data: bytes
    password: str
    mended: bool


def _open(data: bytes, passwords: tuple[str, ...]) -> _Opened:
    for password in ("", *passwords):
        try:
            return _Opened(pypdfium2.PdfDocument(data, password), data, password, mended=False)
        except pypdfium2.PdfiumError as error:
            if error.err_code != pdfium_c.FPDF_ERR_PASSWORD:
                return _open_mended(data, passwords, error)
            refused = error
    raise _encrypted(passwords) from refused


def _open_mended(
    data: bytes, passwords: tuple[str, ...], refused: pypdfium2.PdfiumError
) -> _Opened:
    """The file written anew by qpdf, which finds objects that the cross references lost.

    What it writes has no password any more.
    """
    for password in ("", *passwords):
        mended = io.BytesIO()
        try:
            with pikepdf.open(io.BytesIO(data), password=password) as pdf:
                pdf.save(mended, encryption=False)
            document = pypdfium2.PdfDocument(mended.getvalue())
        except pikepdf.PasswordError:
            continue
        except (
            pikepdf.PdfError,
            pypdfium2.PdfiumError,
            ValueError,
            TypeError,
            RuntimeError,
        ) as error:
            raise _damaged() from error
        return _Opened(document, mended.getvalue(), "", mended=True)
    raise _encrypted(passwords) from refused


def _encrypted(passwords: tuple[str, ...]) -> DocumentError:
    if passwords:
        return DocumentError(
            "encrypted",
            "The PDF opens with none of the passwords given. Give its own with --password, "
            "or save a copy of it without one.",
        )
    return DocumentError(
        "encrypted",
        "The PDF opens with a password only. Give it with --password, or save a copy without one.",
    )


def _damaged() -> DocumentError:
    return DocumentError(
        "damaged", "The PDF is damaged beyond mending. Get the file anew from where it came from."
    )


def _refuse_long(document: pypdfium2.PdfDocument, limit: int) -> None:
    if len(document) > limit:
        raise DocumentError(
            "too_large",
            f"The PDF has {len(document):,} pages, {limit:,} is the limit. "
            "Split it into smaller files.",
        )


# -- pages ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ReadPage:
    """A page as it was read; its text is put together when notes and the like are known."""

    text: PageText
    """Without its text."""
    lines: tuple[str, ...]
    heights: tuple[float, ...]
    notes: tuple[str, ...]
    """Lines that are not printed, but put on the page."""
    tables: tuple[RawTable, ...] = ()

    def sheet(self) -> Sheet:
        """All lines of the page."""
        return Sheet((*self.lines, *self.notes), (*self.heights, *(0.0,) * len(self.notes)))


class _PageReader:
    """Reads pages of one document with whichever engine reads them best."""

    def __init__(self, opened: _Opened, options: PdfOptions) -> None:
        self._document = opened.document
        self._second = _SecondOpinion(opened)
        self._flags = ("repaired",) if opened.mended else ()
        self._ocr = options.ocr
        # Labels are given from the first page on, or not at all.
        self._labelled = bool(self._document.get_page_label(0)) if len(self._document) else False

    def read(self, index: int) -> _ReadPage:
        """A page by its 0-based number; what cannot be read is an empty page with a flag."""
        page_begun(index + 1)
        label = self._label(index)
        blank = PageText(index + 1, "", label, "pdfium", self._flags)
        try:
            page = self._document[index]
        except (pypdfium2.PdfiumError, AssertionError, RecursionError):
            return self._without_pdfium(blank)
        with closing(page):
            try:
                raw = RawPage.read(page)
                notes = tuple(read_notes(page))
            except (pypdfium2.PdfiumError, AssertionError, RecursionError):
                return self._without_pdfium(blank)
            return self._judged(blank, page, raw, notes)

    def _label(self, index: int) -> str | None:
        return one_line(self._document.get_page_label(index)) or None if self._labelled else None

    def _without_pdfium(self, blank: PageText) -> _ReadPage:
        # One bad page does not cost the others.
        lines = self._second.lines(blank.page_number - 1)
        flags = (*blank.flags, "damaged")
        text = replace(
            blank, engine="pypdf", flags=flags, quality=quality("\n".join(lines)) if lines else 0.0
        )
        return _ReadPage(text, lines, (0.0,) * len(lines), ())

    def _judged(
        self, blank: PageText, page: pypdfium2.PdfPage, raw: RawPage, notes: tuple[str, ...]
    ) -> _ReadPage:
        """The page in the best reading there is, with what is to be doubted about it."""
        own_words = "\n".join(raw.lines)
        best = _Reading("pdfium", raw.lines, raw.heights, quality(own_words))
        garbled = best.quality < GARBLED_BELOW
        if garbled or raw.low:
            best = self._second.better(blank.page_number - 1, best)
        missing = not raw.blank and not any(best.lines) and not notes
        if self._ocr and (missing or garbled or raw.pictured):
            page_recognised(blank.page_number, len(self._document))
            best = _recognised(page, best)
        flags = [*blank.flags]
        if best.engine == ocr.ENGINE:
            flags.append("recognised")
        elif missing:
            flags.append("no_text_layer")
        elif best.engine == "pdfium" and (raw.low or _is_picture(raw)):
            flags.append("low_text")
        if best.quality < GARBLED_BELOW:
            flags.append("garbled")
        notes = _unprinted(notes, best.lines)
        # A page of which nothing could be read is no good page.
        value = 0.0 if "no_text_layer" in flags else best.quality
        text = replace(blank, engine=best.engine, flags=tuple(flags), quality=value)
        tables = raw.tables if best.engine == "pdfium" else ()
        return _ReadPage(text, best.lines, best.heights, notes, tables)


def _is_picture(raw: RawPage) -> bool:
    return raw.pictured and sum(map(ink, raw.lines)) < _ALMOST_NOTHING


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one engine makes of a page."""

    engine: str
    lines: tuple[str, ...]
    heights: tuple[float, ...]
    quality: float

    @classmethod
    def of_lines(cls, engine: str, lines: tuple[str, ...]) -> _Reading:
        return cls(engine, lines, (0.0,) * len(lines), quality("\n".join(lines)))


def _recognised(page: pypdfium2.PdfPage, other: _Reading) -> _Reading:
    """The page by character recognition, if that finds more, or what looks less wrong."""
    try:
        lines = tuple(map(clean_line, _recogniser().read(page).split("\n")))
    except (pypdfium2.PdfiumError, RuntimeError, ValueError):
        return other
    found = _Reading.of_lines(ocr.ENGINE, lines)
    more = _amount(found) > 2 * _amount(other)
    better = other.quality < GARBLED_BELOW <= found.quality and _amount(found)
    return found if more or better else other


@functools.cache
def _recogniser() -> ocr.Recogniser:
    return ocr.Recogniser()


def _amount(reading: _Reading) -> int:
    return sum(map(ink, reading.lines))


def _unprinted(notes: tuple[str, ...], lines: tuple[str, ...]) -> tuple[str, ...]:
    """Notes that do not just repeat what is printed, as those on marked words often do."""
    if not notes:
        return ()
    printed = " ".join(" ".join(lines).split())
    return tuple(note for note in dict.fromkeys(notes) if note not in printed)


class _SecondOpinion:
    """pypdf's reading of a page, opened at the first page that needs it."""

    def __init__(self, opened: _Opened) -> None:
        self._opened = opened
        self._reader: pypdf.PdfReader | None = None
        self._vain = 0

    def better(self, index: int, first: _Reading) -> _Reading:
        """The better of pdfium's reading and pypdf's.

        That is one which is not garbled and has about as much text, or one with far more text.
        """
        if self._vain >= _VAIN:
            return first
        other = _Reading.of_lines("pypdf", self.lines(index))
        had, has = _amount(first), _amount(other)
        if first.quality < GARBLED_BELOW:
            better = other.quality >= GARBLED_BELOW and has * 2 > had
        else:
            better = other.quality >= GARBLED_BELOW and has > 2 * had
        self._vain = 0 if better else self._vain + 1
        return other if better else first

    def lines(self, index: int) -> tuple[str, ...]:
        """The page's lines; none where pypdf cannot read it either."""
        try:
            if self._reader is None:
                import pypdf  # a tenth of a second, and few files need it

                # What pypdf says about a file that is known to be doubtful helps nobody.
                logging.getLogger("pypdf").setLevel(logging.CRITICAL)
                self._reader = pypdf.PdfReader(
                    io.BytesIO(self._opened.data), password=self._opened.password
                )
            lines = self._reader.pages[index].extract_text().split("\n")
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - on damaged files pypdf raises nearly any exception
            return ()
        return tuple(map(clean_line, lines))


def _with_xfa(page: _ReadPage, document: pypdfium2.PdfDocument) -> _ReadPage:
    """The first page, which only says which program to use, with what the form says."""
    text = replace(page.text, flags=(*page.text.flags, "xfa_placeholder"))
    return replace(page, text=text, notes=(*page.notes, *read_xfa(document)))


# -- what is said about the file as a whole -------------------------------------------------------


def _metadata(
    document: pypdfium2.PdfDocument, key: str, says_nothing: re.Pattern[str]
) -> str | None:
    value = one_line(document.get_metadata_value(key))
    return None if says_nothing.fullmatch(value) else value[:500]


def _bookmarks(document: pypdfium2.PdfDocument) -> Iterator[Bookmark]:
    for bookmark in document.get_toc():
        destination = bookmark.get_dest()
        page = destination.get_index() if destination else None
        title = one_line(bookmark.get_title())
        if title and page is not None:
            yield Bookmark(title, page, bookmark.level + 1)


def _attachments(
    document: pypdfium2.PdfDocument, limit: int
) -> tuple[tuple[Attachment, ...], tuple[str, ...]]:
    """Files inside the file, and warnings about those that cannot be had."""
    found: list[Attachment] = []
    left_out = 0
    room = limit
    for number in range(document.count_attachments()):
        try:
            attachment = document.get_attachment(number)
            size = _attached_size(attachment)
            if size > room:
                left_out += 1
                continue
            data = bytes(attachment.get_data())
            name = attachment.get_name()
        except (pypdfium2.PdfiumError, UnicodeDecodeError):
            left_out += 1
            continue
        room -= len(data)
        found.append(Attachment(name, data))
    said = (f"{left_out} attachments could not be read, or are too large.",) if left_out else ()
    return tuple(found), said


def _attached_size(attachment: pypdfium2.PdfAttachment) -> int:
    size = ctypes.c_ulong()
    if not pdfium_c.FPDFAttachment_GetFile(attachment, None, 0, size):
        raise pypdfium2.PdfiumError("the attachment has no data")
    return size.value


def _refuse_without_text(pages: tuple[PageText, ...], recognised: bool) -> None:
    if any(ink(page.text) for page in pages):
        return
    if any("no_text_layer" in page.flags for page in pages):
        what = f"The PDF has {len(pages)} pages and no text in them: it looks like a scan."
        if recognised:
            raise DocumentError(
                "no_text_layer", f"{what} Nothing was recognised on it. Get a better copy."
            )
        raise DocumentError("no_text_layer", f"{what} {_ADVICE}")
    if any("damaged" in page.flags for page in pages):
        raise _damaged()
    raise DocumentError("empty", "All pages of the PDF are blank. Leave it out.")


def _warnings(pages: tuple[PageText, ...]) -> Iterator[str]:
    for flag, what in _FLAG_WARNINGS.items():
        numbers = [str(page.page_number) for page in pages if flag in page.flags]
        if len(numbers) == len(pages) > 1:
            yield f"{what}: all pages."
        elif numbers:
            shown = ", ".join(numbers[:10]) + (" …" if len(numbers) > 10 else "")
            yield f"{what}: page {shown}."


_FLAG_WARNINGS = {
    "garbled": "The text looks garbled",
    "damaged": "The page is damaged",
    "no_text_layer": "There is no text layer, which --ocr can make up for",
    "low_text": "There is less text than expected",
    "recognised": "The text was recognised from a picture",
    "repaired": "The file was damaged and has been mended",
    "xfa_placeholder": "The page stands in for an XFA form, whose words follow it",
}

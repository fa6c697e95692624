"""A PDF's pages as text: pdfium first, pypdf for a page that looks wrong, pikepdf to mend a file.

pdfium is not thread-safe and can crash on a hostile file: the sandbox runs this in a process of
its own.
"""

from __future__ import annotations

import ctypes
import io
import logging
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pikepdf
import pypdf
import pypdfium2
import pypdfium2.raw as pdfium_c

from docpager.documents.normalise import clean, one_line
from docpager.documents.outline import OutlinedDocument
from docpager.documents.pacing import page_begun
from docpager.documents.pdf_headings import Bookmark, Sheet, find_headings, printed_title
from docpager.documents.quality import looks_garbled
from docpager.errors import DocumentError
from docpager.types import PageText, ParsedDocument

# pdfium puts a noncharacter where it joined the halves of a word that was hyphenated at a line
# end: between small letters the hyphen was the typesetter's, else ("PaSa-GPT-4o") the author's.
_HYPHEN = re.compile("(?<=\\w)[\ufffe\x02](?=\\w)")
_NOTE_KINDS = frozenset({pdfium_c.FPDF_ANNOT_FREETEXT, pdfium_c.FPDF_ANNOT_TEXT})
_FEW_CHARACTERS = 200
"""Pages with less ink than this are looked at twice."""
_NO_TITLE = re.compile(
    r"untitled.*|document\d*|title|slide \d+|powerpoint presentation|microsoft \w+ - .*|\W*|\d+"
    r"|\S*\.(docx?|pdf|tex|dvi|indd|pptx?|xlsx?|qxd|rtf|txt)",
    re.IGNORECASE,
)


def read_pdf(data: bytes) -> OutlinedDocument:
    """The pages of a PDF and its headings; a file that is encrypted without a password opens.

    Raises:
        DocumentError: `encrypted`, `damaged`, `empty` or `no_text_layer`.
    """
    document, mended = _open(data)
    with closing(document):
        second = _SecondOpinion(data)
        read = []
        for index in range(len(document)):
            page_begun(index + 1)
            read.append(_read_page(document, index, second, mended))
        title = _metadata_title(document)
        bookmarks = tuple(_bookmarks(document))
    pages = tuple(page for page, _ in read)
    _refuse_without_text(pages)
    sheets = tuple(sheet for _, sheet in read)
    headings = find_headings(sheets, bookmarks)
    parsed = ParsedDocument(
        pages,
        paged=True,
        title=title or printed_title(sheets, headings),
        warnings=tuple(_warnings(pages)),
    )
    return OutlinedDocument(parsed, headings)


def _open(data: bytes) -> tuple[pypdfium2.PdfDocument, bool]:
    """The document, and whether it had to be mended first."""
    try:
        return pypdfium2.PdfDocument(data), False
    except pypdfium2.PdfiumError as error:
        if error.err_code == pdfium_c.FPDF_ERR_PASSWORD:
            raise _encrypted() from error
    try:
        return pypdfium2.PdfDocument(_mend(data)), True
    except pypdfium2.PdfiumError as error:
        raise _damaged() from error


def _mend(data: bytes) -> bytes:
    """The file written anew by qpdf, which finds objects that the cross references lost."""
    mended = io.BytesIO()
    try:
        with pikepdf.open(io.BytesIO(data)) as pdf:
            pdf.save(mended)
    except pikepdf.PasswordError as error:
        raise _encrypted() from error
    except (pikepdf.PdfError, ValueError, TypeError, RuntimeError) as error:
        raise _damaged() from error
    return mended.getvalue()


def _encrypted() -> DocumentError:
    return DocumentError(
        "encrypted", "The PDF opens with a password only. Save a copy of it without one."
    )


def _damaged() -> DocumentError:
    return DocumentError(
        "damaged", "The PDF is damaged beyond mending. Get the file anew from where it came from."
    )


def _read_page(
    document: pypdfium2.PdfDocument, index: int, second: _SecondOpinion, mended: bool
) -> tuple[PageText, Sheet]:
    label = one_line(document.get_page_label(index)) or None
    flags = ("repaired",) if mended else ()
    try:
        raw = _RawPage.read(document, index)
    except (pypdfium2.PdfiumError, AssertionError, RecursionError):
        # One bad page does not cost the others.
        text = second.text(index)
        page = PageText(index + 1, text, label, "pypdf", (*flags, "damaged"))
        return page, Sheet.of_text(text)
    text, engine = "\n".join(raw.lines), "pdfium"
    sheet = Sheet(raw.lines, raw.heights)
    garbled = looks_garbled(text)
    if garbled or raw.low:
        other = second.text(index)
        better = not looks_garbled(other) if garbled else _ink(other) > 2 * _ink(text)
        if better and _ink(other) * 2 > _ink(text):
            text, engine, sheet, garbled = other, "pypdf", Sheet.of_text(other), False
    if garbled:
        flags = (*flags, "garbled")
    if not _ink(text) and raw.objects:
        flags = (*flags, "no_text_layer")
    elif raw.low and engine == "pdfium":
        flags = (*flags, "low_text")
    return PageText(index + 1, text, label, engine, flags), sheet


@dataclass(frozen=True, slots=True)
class _RawPage:
    """A page as pdfium reads it: cleaned lines, and how tall the letters of each are."""

    lines: tuple[str, ...]
    heights: tuple[float, ...]
    """In points; 0.0 where it is not known."""
    objects: int
    low: bool
    """Whether there is less text than the page's text objects let expect."""

    @classmethod
    def read(cls, document: pypdfium2.PdfDocument, index: int) -> _RawPage:
        with closing(document[index]) as page, closing(page.get_textpage()) as textpage:
            raw = textpage.get_text_range()
            lines: list[str] = []
            heights: list[float] = []
            place = 0
            for line in raw.split("\r\n"):
                lines.append(_clean_line(line))
                heights.append(_letter_height(textpage, place, line))
                place += len(line) + 2
            for note in _notes(page):
                lines.append(note)
                heights.append(0.0)
            objects = pdfium_c.FPDFPage_CountObjects(page)
            ink = sum(map(_ink, lines))
            low = ink < _FEW_CHARACTERS and ink < _text_objects(page, objects)
        return cls(tuple(lines), tuple(heights), objects, low)


def _clean_line(line: str) -> str:
    line = _HYPHEN.sub(lambda mark: _joint(line, mark.start()), line)
    return clean(line).replace("\n", " ").rstrip()


def _joint(line: str, place: int) -> str:
    return "" if line[place - 1].isalpha() and line[place + 1].islower() else "-"


def _letter_height(textpage: pypdfium2.PdfTextPage, place: int, line: str) -> float:
    """The height of a line's letters, taken from the first one that pdfium has a box for."""
    box = pdfium_c.FS_RECTF()
    for offset, character in enumerate(line[:12]):
        if not character.isalnum():
            continue
        # Text and character indices can differ: a wrong letter's height is worse than none.
        same = pdfium_c.FPDFText_GetUnicode(textpage, place + offset) == ord(character)
        if same and pdfium_c.FPDFText_GetLooseCharBox(textpage, place + offset, box):
            return float(abs(box.top - box.bottom))
    return 0.0


def _notes(page: pypdfium2.PdfPage) -> Iterator[str]:
    """What is written on the page as a text box or a sticky note, one line for each."""
    for number in range(pdfium_c.FPDFPage_GetAnnotCount(page)):
        annotation = pdfium_c.FPDFPage_GetAnnot(page, number)
        if not annotation:
            continue
        if pdfium_c.FPDFAnnot_GetSubtype(annotation) in _NOTE_KINDS:
            size = pdfium_c.FPDFAnnot_GetStringValue(annotation, b"Contents", None, 0)
            text = (ctypes.c_ushort * (size // 2))()
            pdfium_c.FPDFAnnot_GetStringValue(annotation, b"Contents", text, size)
            if note := one_line(bytes(text).decode("utf-16-le", errors="replace")):
                yield note
        pdfium_c.FPDFPage_CloseAnnot(annotation)


def _text_objects(page: pypdfium2.PdfPage, objects: int) -> int:
    kinds = (
        pdfium_c.FPDFPageObj_GetType(pdfium_c.FPDFPage_GetObject(page, number))
        for number in range(objects)
    )
    return sum(kind == pdfium_c.FPDF_PAGEOBJ_TEXT for kind in kinds)


def _ink(text: str) -> int:
    return len(text) - sum(map(str.isspace, text))


class _SecondOpinion:
    """pypdf's reading of a page, opened at the first page that needs it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._reader: pypdf.PdfReader | None = None

    def text(self, index: int) -> str:
        """The page's text, empty where pypdf cannot read it either."""
        try:
            if self._reader is None:
                # What pypdf says about a file that is known to be doubtful helps nobody.
                logging.getLogger("pypdf").setLevel(logging.CRITICAL)
                self._reader = pypdf.PdfReader(io.BytesIO(self._data), password="")
            lines = self._reader.pages[index].extract_text().split("\n")
        except Exception:  # noqa: BLE001 - on damaged files pypdf raises nearly any exception
            return ""
        return "\n".join(_clean_line(line) for line in lines)


def _metadata_title(document: pypdfium2.PdfDocument) -> str | None:
    title = one_line(document.get_metadata_value("Title"))
    return None if _NO_TITLE.fullmatch(title) else title


def _bookmarks(document: pypdfium2.PdfDocument) -> Iterator[Bookmark]:
    for bookmark in document.get_toc():
        destination = bookmark.get_dest()
        page = destination.get_index() if destination else None
        title = one_line(bookmark.get_title())
        if title and page is not None:
            yield Bookmark(title, page, bookmark.level + 1)


def _refuse_without_text(pages: tuple[PageText, ...]) -> None:
    if any(_ink(page.text) for page in pages):
        return
    if any(page.flags for page in pages):
        raise DocumentError(
            "no_text_layer",
            f"The PDF has {len(pages)} pages and no text in them: it looks like a scan. "
            "Make it searchable with an OCR program first.",
        )
    raise DocumentError("empty", "All pages of the PDF are blank. Leave it out.")


def _warnings(pages: tuple[PageText, ...]) -> Iterator[str]:
    for flag, what in _FLAG_WARNINGS.items():
        numbers = [str(page.page_number) for page in pages if flag in page.flags]
        if numbers:
            shown = ", ".join(numbers[:10]) + (" …" if len(numbers) > 10 else "")
            yield f"{what}: page {shown}."


_FLAG_WARNINGS = {
    "garbled": "The text looks garbled",
    "damaged": "The page is damaged",
    "no_text_layer": "There is no text layer",
    "low_text": "There is less text than expected",
    "repaired": "The file was damaged and has been mended",
}

"""What people have put on a PDF's pages: notes, text boxes, filled fields, XFA forms."""

from __future__ import annotations

import ctypes
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium_c
from lxml import etree

from docpager.documents.text.normalise import one_line

# Links, widgets and what only points elsewhere have no words of their own.
_NOTE_KINDS = frozenset(
    {
        pdfium_c.FPDF_ANNOT_CARET,
        pdfium_c.FPDF_ANNOT_CIRCLE,
        pdfium_c.FPDF_ANNOT_FREETEXT,
        pdfium_c.FPDF_ANNOT_HIGHLIGHT,
        pdfium_c.FPDF_ANNOT_INK,
        pdfium_c.FPDF_ANNOT_LINE,
        pdfium_c.FPDF_ANNOT_POLYGON,
        pdfium_c.FPDF_ANNOT_POLYLINE,
        pdfium_c.FPDF_ANNOT_SQUARE,
        pdfium_c.FPDF_ANNOT_SQUIGGLY,
        pdfium_c.FPDF_ANNOT_STAMP,
        pdfium_c.FPDF_ANNOT_STRIKEOUT,
        pdfium_c.FPDF_ANNOT_TEXT,
        pdfium_c.FPDF_ANNOT_UNDERLINE,
    }
)
_WRITTEN_FIELDS = frozenset(
    {
        pdfium_c.FPDF_FORMFIELD_COMBOBOX,
        pdfium_c.FPDF_FORMFIELD_LISTBOX,
        pdfium_c.FPDF_FORMFIELD_TEXTFIELD,
    }
)
_TICKED_FIELDS = frozenset({pdfium_c.FPDF_FORMFIELD_CHECKBOX, pdfium_c.FPDF_FORMFIELD_RADIOBUTTON})
_MOST_ANNOTATIONS = 10_000
_MOST_XFA_BYTES = 64 << 20
_LONGEST_VALUE = 100_000
_TAG = re.compile(r"<[^<>]*>")


def open_forms(document: pypdfium2.PdfDocument) -> bool:
    """Make field values readable, where the document has fields; before any page is opened."""
    if document.get_formtype() == pdfium_c.FORMTYPE_NONE:
        return False
    # It says that it cannot show XFA forms: they are read from their data.
    logging.getLogger("pypdfium2").setLevel(logging.CRITICAL)
    return bool(document.init_forms())


def read_notes(page: pypdfium2.PdfPage) -> Iterator[str]:
    """What stands in notes, text boxes and filled fields of a page: one line each, in file order.

    A field is `name: value`, with the label that a form filler shows before the name, if any.
    """
    formenv = page.formenv
    for number in range(min(pdfium_c.FPDFPage_GetAnnotCount(page), _MOST_ANNOTATIONS)):
        annotation = pdfium_c.FPDFPage_GetAnnot(page, number)
        if not annotation:
            continue
        try:
            kind = pdfium_c.FPDFAnnot_GetSubtype(annotation)
            if kind in _NOTE_KINDS:
                line = one_line(_annotation_text(annotation))
            elif kind == pdfium_c.FPDF_ANNOT_WIDGET and formenv is not None:
                line = _field(formenv, annotation)
            else:
                continue
        finally:
            pdfium_c.FPDFPage_CloseAnnot(annotation)
        if line:
            yield line[:_LONGEST_VALUE]


def _annotation_text(annotation: Any) -> str:
    text = _string(lambda *room: pdfium_c.FPDFAnnot_GetStringValue(annotation, b"Contents", *room))
    if text:
        return text
    rich = _string(lambda *room: pdfium_c.FPDFAnnot_GetStringValue(annotation, b"RC", *room))
    return _TAG.sub(" ", rich)


def _field(formenv: Any, annotation: Any) -> str:
    kind = pdfium_c.FPDFAnnot_GetFormFieldType(formenv, annotation)

    def get(function: Callable[..., int]) -> str:
        return one_line(_string(lambda *room: function(formenv, annotation, *room)))

    if kind in _WRITTEN_FIELDS:
        value = get(pdfium_c.FPDFAnnot_GetFormFieldValue)
    elif kind in _TICKED_FIELDS and pdfium_c.FPDFAnnot_IsChecked(formenv, annotation):
        value = get(pdfium_c.FPDFAnnot_GetFormFieldExportValue) or "on"
    else:
        return ""
    if not value:
        return ""
    name = get(pdfium_c.FPDFAnnot_GetFormFieldName).rpartition(".")[2]
    label = get(pdfium_c.FPDFAnnot_GetFormFieldAlternateName)
    label = f"{label} ({name})" if label and name and label != name else label or name
    return f"{label}: {value}" if label else value


def _string(read: Callable[..., int]) -> str:
    """What pdfium writes as UTF-16 into room of the size that it asked for."""
    size = read(None, 0)
    if size <= 2:
        return ""
    room = (ctypes.c_ushort * ((size + 1) // 2))()
    read(room, size)
    return bytes(room).decode("utf-16-le", errors="replace").rstrip("\x00")


def is_xfa(document: pypdfium2.PdfDocument) -> bool:
    """Whether the pages are a stand-in for a form that only some programs can show."""
    return bool(document.get_formtype() == pdfium_c.FORMTYPE_XFA_FULL)


def read_xfa(document: pypdfium2.PdfDocument) -> tuple[str, ...]:
    """The words and values of an XFA form, one line each: what is drawn, then what is filled in."""
    lines: dict[str, None] = {}
    for name, read in (("template", _template_lines), ("datasets", _dataset_lines)):
        for packet in _packets(document, name):
            lines |= dict.fromkeys(read(packet))
    return tuple(lines)


def _packets(document: pypdfium2.PdfDocument, wanted: str) -> Iterator[etree._Element]:
    for number in range(pdfium_c.FPDF_GetXFAPacketCount(document)):
        size = pdfium_c.FPDF_GetXFAPacketName(document, number, None, 0)
        name = ctypes.create_string_buffer(max(size, 1))
        pdfium_c.FPDF_GetXFAPacketName(document, number, name, size)
        if name.value.decode("utf-8", "replace") == wanted:
            root = _parse(_packet(document, number))
            if root is not None:
                yield root


def _packet(document: pypdfium2.PdfDocument, number: int) -> bytes:
    size = ctypes.c_ulong()
    pdfium_c.FPDF_GetXFAPacketContent(document, number, None, 0, size)
    if not 0 < size.value <= _MOST_XFA_BYTES:
        return b""
    room = ctypes.create_string_buffer(size.value)
    pdfium_c.FPDF_GetXFAPacketContent(document, number, room, size.value, size)
    return room.raw


def _parse(data: bytes) -> etree._Element | None:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        return None


def _template_lines(root: etree._Element) -> Iterator[str]:
    """Captions, instructions and preset values, in document order."""
    for element in root.iter("{*}text", "{*}exData"):
        if any(etree.QName(above).localname == "desc" for above in element.iterancestors()):
            continue  # which program made the form
        if line := one_line(" ".join(_texts(element))):
            yield line


def _dataset_lines(root: etree._Element) -> Iterator[str]:
    for element in root.iter("{*}*"):
        value = one_line(element.text or "")
        if value and len(element) == 0:
            yield f"{etree.QName(element).localname}: {value}"


def _texts(element: etree._Element) -> Iterator[str]:
    for text in element.itertext():
        yield str(text)

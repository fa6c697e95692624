"""OpenDocument: text, spreadsheets and presentations."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from docpager.documents.composing import Composer, add_tables
from docpager.documents.office.packages import (
    UNPACKED_BYTES,
    Package,
    attribute,
    child,
    descendants,
    encrypted,
    local,
    parse_xml,
    text_of,
)
from docpager.documents.outline import OutlinedDocument

_REPEAT_LIMIT = 1_000
_DROPPED = frozenset({"tracked-changes", "sequence-decls", "forms", "note", "annotation"})


def read_odf(data: bytes, unpacked_bytes: int = UNPACKED_BYTES) -> OutlinedDocument:
    """A text in sections at its headings; a sheet or a slide is a page.

    Notes and comments follow the paragraph that refers to them, headers and footers stand at the
    end, each once.
    """
    package = None if data.lstrip().startswith(b"<") else Package(data, unpacked_bytes)
    root, styles, meta = _parts(package, data)
    body = child(root, "body")
    content = next(iter(body), None) if body is not None else None
    kind = "" if content is None else local(content)
    composer = Composer("odf", paged=kind in {"spreadsheet", "presentation"})
    if content is not None:
        if kind == "spreadsheet":
            _add_sheets(content, composer)
        elif kind == "presentation":
            _add_slides(content, composer)
        else:
            _add_blocks(content, composer)
            _add_margins(styles, composer)
    title = next(descendants(meta, "title"), None) if meta is not None else None
    return composer.document(title=text_of(title))


def _parts(package: Package | None, data: bytes) -> tuple[etree._Element | None, ...]:
    """The roots of content, styles and metadata; in a flat file they are one."""
    if package is None:
        root = parse_xml(data)
        return root, root, root
    manifest = package.tree("META-INF/manifest.xml")
    if manifest is not None and next(descendants(manifest, "encryption-data"), None) is not None:
        raise encrypted()
    return package.tree("content.xml"), package.tree("styles.xml"), package.tree("meta.xml")


def _add_sheets(content: etree._Element, composer: Composer) -> None:
    for table in descendants(content, "table"):
        if local(table.getparent()) == "spreadsheet":
            name = attribute(table, "name")
            composer.page(name)
            composer.heading(1, name)
            add_tables(composer, _rows(table))
            for note in descendants(table, "annotation"):
                composer.paragraph(_comment(note))


def _add_slides(content: etree._Element, composer: Composer) -> None:
    for slide in descendants(content, "page"):
        composer.page(attribute(slide, "name"))
        notes = []
        for frame in slide:
            if local(frame) == "notes":
                notes = [_plain(one) for one in descendants(frame, "text-box")]
            elif attribute(frame, "class") == "title":
                composer.heading(1, _plain(frame))
            else:
                _add_blocks(frame, composer)
        text = "\n".join(filter(str.strip, notes))
        composer.paragraph(f"Notes: {text}" if text else "")


def _add_margins(styles: etree._Element | None, composer: Composer) -> None:
    seen: dict[str, None] = {}
    for element in () if styles is None else descendants(styles, "header", "footer"):
        text = " ".join(_plain(element).split())
        if text and not text.isdigit():
            seen.setdefault(f"{local(element).capitalize()}: {text}")
    for text in seen:
        composer.paragraph(text)


def _add_blocks(parent: etree._Element, composer: Composer) -> None:
    """Headings, paragraphs, list items and tables below an element, without recursion."""
    waiting: list[tuple[Iterator[etree._Element], str]] = [(iter(parent), "")]
    while waiting:
        elements, mark = waiting[-1]
        element = next(elements, None)
        if element is None:
            waiting.pop()
            continue
        name = local(element)
        if name == "h":
            level = attribute(element, "outline-level")
            composer.heading(int(level) if level in set("123456789") else 1, _text(element))
            _add_notes(element, composer)
        elif name == "p":
            text = _text(element)
            if mark and text.strip():
                composer.item(mark + text)
            else:
                composer.paragraph(text)
            waiting[-1] = elements, ""
            _add_notes(element, composer)
            for frame in descendants(element, "text-box"):
                waiting.append((iter(frame), ""))
        elif name == "table":
            add_tables(composer, _rows(element))
            _add_notes(element, composer)
        elif name == "list-item":
            waiting.append((iter(element), "- "))
        elif name not in _DROPPED:
            waiting.append((iter(element), mark))


def _add_notes(element: etree._Element, composer: Composer) -> None:
    for note in descendants(element, "note", "annotation"):
        if local(note) == "note":
            kind = attribute(note, "note-class").capitalize() or "Note"
            composer.paragraph(f"{kind}: {_plain(child(note, 'note-body'))}")
        else:
            composer.paragraph(_comment(note))


def _comment(note: etree._Element) -> str:
    author = text_of(child(note, "creator"))
    text = "\n".join(_text(one) for one in note if local(one) in {"p", "list"})
    return f"Comment ({author}): {text}" if author else f"Comment: {text}"


def _rows(table: etree._Element) -> Iterator[list[str]]:
    """The rows of a table; what is repeated is written out as far as it holds anything."""
    for row in descendants(table, "table-row"):
        if _table_above(row) is not table:
            continue
        cells: list[str] = []
        for cell in row:
            if local(cell) not in {"table-cell", "covered-table-cell"}:
                continue
            text = _cell(cell)
            # Sheets end in one empty cell that is repeated to the last column.
            cells += [text] * (_count(cell, "number-columns-repeated") if text or cells else 1)
            if not text and len(cells) > _REPEAT_LIMIT:
                break
        while cells and not cells[-1]:
            cells.pop()
        times = _count(row, "number-rows-repeated") if cells else 1
        for _ in range(times):
            yield cells


def _table_above(element: etree._Element) -> etree._Element | None:
    above = element.getparent()
    while above is not None and local(above) != "table":
        above = above.getparent()
    return above


def _count(element: etree._Element, name: str) -> int:
    value = attribute(element, name)
    return min(int(value), _REPEAT_LIMIT) if value.isdigit() and len(value) < 9 else 1


def _cell(cell: etree._Element) -> str:
    texts = [_text(one) for one in descendants(cell, "p", "h") if not _in_note(one, cell)]
    return "\n".join(filter(str.strip, texts)) or attribute(cell, "value")


def _in_note(element: etree._Element, cell: etree._Element) -> bool:
    above = element.getparent()
    while above is not None and above is not cell:
        if local(above) in {"annotation", "note"}:
            return True
        above = above.getparent()
    return False


def _plain(element: etree._Element | None) -> str:
    """The text of all paragraphs within, a line each."""
    if element is None:
        return ""
    return "\n".join(filter(str.strip, (_text(one) for one in descendants(element, "p", "h"))))


def _text(paragraph: etree._Element) -> str:
    """A paragraph's own text; notes, comments and text boxes in it stand apart."""
    parts = [paragraph.text or ""]
    waiting = [iter(paragraph)]
    opened: list[etree._Element] = []
    while waiting:
        element = next(waiting[-1], None)
        if element is None:
            waiting.pop()
            if opened:
                parts.append(opened.pop().tail or "")
            continue
        name = local(element)
        if name in {"note", "annotation", "frame", "ruby-text"}:
            parts.append(element.tail or "")
            continue
        if name == "s":
            parts.append(" " * _count(element, "c"))
        elif name == "tab":
            parts.append("\t")
        elif name == "line-break":
            parts.append("\n")
        parts.append(element.text or "")
        opened.append(element)
        waiting.append(iter(element))
    return "".join(parts)

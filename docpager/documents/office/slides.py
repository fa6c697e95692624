"""Presentations: a slide is a page, with its speaker's notes and comments."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from docpager.documents.composing import Composer, add_tables
from docpager.documents.office.packages import (
    UNPACKED_BYTES,
    Package,
    attribute,
    child,
    core_title,
    descendants,
    local,
    text_of,
)
from docpager.documents.office.word import embedded_files
from docpager.documents.outline import OutlinedDocument

_TITLES = frozenset({"title", "ctrTitle"})
_NOT_SAID = frozenset({"sldNum", "dt", "hdr", "ftr", "sldImg"})
"""Placeholders that hold numbers, dates and pictures of the slide."""


def read_pptx(data: bytes, unpacked_bytes: int = UNPACKED_BYTES) -> OutlinedDocument:
    """Slides in the order of the presentation, hidden ones too, so that page numbers hold."""
    package = Package(data, unpacked_bytes)
    part = package.main_part("ppt/presentation.xml")
    composer = Composer("pptx", paged=True)
    authors = _authors(package, part)
    for slide in _slides(package, part):
        _add_slide(package, slide, authors, composer)
    return composer.document(title=core_title(package), attachments=embedded_files(package))


def _slides(package: Package, part: str) -> Iterator[str]:
    root = package.tree(part)
    targets = package.relations(part)
    for entry in () if root is None else descendants(root, "sldId"):
        # `id` is there twice: the one of the relations begins with letters.
        for name in map(str, entry.attrib.values()):
            if name in targets and targets[name][0] == "slide":
                yield targets[name][1]


def _add_slide(package: Package, part: str, authors: dict[str, str], composer: Composer) -> None:
    root = package.tree(part)
    shapes = [] if root is None else [*_shapes(root)]
    title = next((_frame_text(one) for one in shapes if _placeholder(one) in _TITLES), "")
    composer.page(" ".join(title.split()) or None)
    for shape in shapes:
        kind = _placeholder(shape)
        if kind in _TITLES:
            composer.heading(1, _frame_text(shape))
        elif kind in {"sldNum", "dt"}:
            continue
        elif local(shape) == "tbl":
            add_tables(composer, [_cells(row) for row in descendants(shape, "tr")])
        else:
            composer.paragraph(_frame_text(shape))
    related = package.relations(part).values()
    for kind, target in related:
        if kind == "diagramData":
            for point in descendants(_tree(package, target), "pt"):
                composer.paragraph(_frame_text(point))
        elif kind == "chart":
            _add_chart(_tree(package, target), composer)
    for kind, target in related:
        if kind == "notesSlide":
            texts = (
                _frame_text(one)
                for one in _shapes(_tree(package, target))
                if _placeholder(one) not in _NOT_SAID
            )
            notes = "\n".join(filter(str.strip, texts))
            composer.paragraph(f"Notes: {notes}" if notes else "")
        elif kind == "comments":
            for comment in _comments(_tree(package, target), authors):
                composer.paragraph(comment)


def _tree(package: Package, part: str) -> etree._Element:
    root = package.tree(part)
    return etree.Element("empty") if root is None else root


def _shapes(root: etree._Element) -> Iterator[etree._Element]:
    """Shapes with text and tables, in the order in which they were put on the slide."""
    for element in descendants(root, "sp", "tbl", "cxnSp"):
        if not any(local(above) == "Fallback" for above in element.iterancestors()):
            yield element


def _placeholder(shape: etree._Element) -> str:
    """What a shape is on its slide: `title`, `body`, `sldNum`, …; empty for a free one."""
    for element in shape:
        if local(element).startswith("nv"):
            place = next(descendants(element, "ph"), None)
            return "" if place is None else attribute(place, "type") or "body"
    return ""


def _frame_text(shape: etree._Element) -> str:
    lines = []
    for paragraph in descendants(shape, "p"):
        text = ""
        for element in descendants(paragraph, "t", "br", "tab"):
            text += (element.text or "") if local(element) == "t" else " "
        lines.append(text.strip())
    return "\n".join(filter(None, lines))


def _cells(row: etree._Element) -> list[str]:
    return [_frame_text(cell) for cell in row if local(cell) == "tc"]


def _add_chart(root: etree._Element, composer: Composer) -> None:
    """A chart's title and its figures as a table: one row a category, one column a series."""
    title = next(descendants(root, "title"), None)
    if title is not None:
        composer.paragraph(_frame_text(title))
    series = [*descendants(root, "ser")]
    names = [" ".join(_points(child(one, "tx"))) for one in series]
    categories = next((_points(child(one, "cat")) for one in series), [])
    columns = [_points(child(one, "val")) for one in series]
    if not categories or not any(columns):
        return
    rows = [["", *names]]
    for place, category in enumerate(categories):
        rows.append([category, *(one[place] if place < len(one) else "" for one in columns)])
    composer.table(rows)


def _points(element: etree._Element | None) -> list[str]:
    if element is None:
        return []
    return [text_of(child(one, "v")) for one in descendants(element, "pt")]


def _authors(package: Package, part: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind, target in package.relations(part).values():
        if kind in {"commentAuthors", "authors"}:
            for author in _tree(package, target):
                found[attribute(author, "id")] = attribute(author, "name")
    return found


def _comments(root: etree._Element, authors: dict[str, str]) -> Iterator[str]:
    for comment in descendants(root, "cm", "reply"):
        author = authors.get(attribute(comment, "authorId"), "")
        text = child(comment, "text")
        said = text_of(text) if text is not None else _frame_text(_own(comment))
        if said.strip():
            yield f"Comment ({author}): {said}" if author else f"Comment: {said}"


def _own(comment: etree._Element) -> etree._Element:
    """The body of a comment without the replies to it."""
    body = child(comment, "txBody")
    return etree.Element("empty") if body is None else body

"""A small page maker: headings, paragraphs, footnotes, tables, contents, page labels, outline.

Pages are uncompressed and nothing in them depends on the clock or on a compressor's version, so
the same blocks give the same bytes on every machine.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reportlab.lib.styles import ParagraphStyle  # type: ignore[import-untyped]
from reportlab.pdfbase import pdfmetrics  # type: ignore[import-untyped]
from reportlab.pdfbase.cidfonts import UnicodeCIDFont  # type: ignore[import-untyped]
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]
from reportlab.platypus import Paragraph  # type: ignore[import-untyped]

A4 = (595.0, 842.0)
BOOK = (432.0, 648.0)
CJK_FONT = "STSong-Light"

pdfmetrics.registerFont(UnicodeCIDFont(CJK_FONT))


@dataclass(frozen=True, slots=True)
class Look:
    """How a document looks and what it says of itself."""

    title: str
    author: str
    running: str
    """What stands over even pages; over odd ones stands the chapter."""
    size: tuple[float, float] = BOOK
    body: float = 10.0
    cjk: bool = False
    sans: bool = False
    contents_title: str = "Contents"
    continued: str = "(continued)"


@dataclass(frozen=True, slots=True)
class Heading:
    """A numbered or plain heading; level 1 begins a page."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Para:
    """Running text; `fact` marks a planted passage, which is kept on one page."""

    text: str
    notes: tuple[str, ...] = ()
    """Footnotes; each takes the place of one `[*]` in the text."""
    fact: str | None = None
    indent: float = 0.0
    small: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header that is repeated on every page the table reaches."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    widths: tuple[float, ...]
    """Relative."""
    facts: dict[int, str] = field(default_factory=dict)
    """Planted rows."""


Block = Heading | Para | Table


@dataclass(frozen=True, slots=True)
class Book:
    """A document's parts: a title page, front matter with roman labels, the body."""

    look: Look
    subtitle: tuple[str, ...]
    front: tuple[Block, ...]
    body: tuple[Block, ...]


@dataclass(slots=True)
class Pdf:
    """The bytes of a document and the page each planted fact fell on."""

    data: bytes
    pages: int
    fact_pages: dict[str, int]


Contents = list[tuple[int, str, str]]


def render(book: Book) -> Pdf:
    """Two passes, the first only to learn the contents' page numbers."""
    first = _Press(book, [])
    first.run()
    return _Press(book, first.contents).run()


class _Press:
    def __init__(self, book: Book, contents: Contents) -> None:
        self.book, self.look = book, book.look
        self.known_contents = contents
        self.contents: Contents = []
        self.width, self.height = self.look.size
        self.left = self.width * 0.12
        self.measure = self.width - 2 * self.left
        self.top = self.height - self.height * 0.10
        self.bottom = self.height * 0.085
        self.buffer = io.BytesIO()
        self.canvas: Any = Canvas(
            self.buffer, pagesize=self.look.size, invariant=1, pageCompression=0
        )
        self.page = 0
        self.body_first = 0
        self.chapter = ""
        self.y = 0.0
        self.note_count = 0
        self.notes: list[Any] = []
        self.facts: dict[str, int] = {}
        self.keys = 0
        self.open = False
        family = "Helvetica" if self.look.sans else "Times-Roman"
        bold = "Helvetica-Bold" if self.look.sans else "Times-Bold"
        italic = "Helvetica-Oblique" if self.look.sans else "Times-Italic"
        if self.look.cjk:
            family = bold = italic = CJK_FONT
        self.fonts = (family, bold, italic)

    # -- styles ---------------------------------------------------------------------------

    def style(self, size: float, font: int = 0, indent: float = 0.0, **more: Any) -> Any:
        wrap = {"wordWrap": "CJK"} if self.look.cjk else {}
        lead = 1.5 if self.look.cjk else 1.28
        return ParagraphStyle(
            "x", fontName=self.fonts[font], fontSize=size, leading=size * lead,
            leftIndent=indent, **wrap, **more,
        )  # fmt: skip

    def paragraph(self, text: str, style: Any) -> Any:
        return Paragraph(text.replace("&", "&amp;"), style)

    # -- pages ----------------------------------------------------------------------------

    def label(self) -> str:
        if self.body_first:
            return str(self.page - self.body_first + 1)
        return _roman(self.page)

    def begin_page(self) -> None:
        self.page += 1
        self.open = True
        self.y = self.top
        self.notes = []
        if self.page == 1:
            return
        text = self.look.running if self.page % 2 == 0 else self.chapter or self.look.running
        self.canvas.setFont(self.fonts[2], self.look.body * 0.85)
        self.canvas.drawCentredString(self.width / 2, self.top + self.look.body * 1.9, text)
        self.canvas.setLineWidth(0.4)
        rule = self.top + self.look.body * 1.3
        self.canvas.line(self.left, rule, self.left + self.measure, rule)

    def end_page(self) -> None:
        if not self.open:
            return
        if self.notes:
            y = self.bottom + self.notes_height(self.notes)
            self.canvas.setLineWidth(0.4)
            self.canvas.line(self.left, y, self.left + self.measure * 0.3, y)
            y -= 4
            for note in self.notes:
                _, height = note.wrap(self.measure, 1000)
                y -= height
                note.drawOn(self.canvas, self.left, y)
        if self.page > 1:
            self.canvas.setFont(self.fonts[0], self.look.body * 0.9)
            self.canvas.drawCentredString(self.width / 2, self.bottom * 0.55, self.label())
        self.canvas.showPage()
        self.open = False

    def new_page(self) -> None:
        self.end_page()
        self.begin_page()

    def notes_height(self, notes: Sequence[Any]) -> float:
        return sum(n.wrap(self.measure, 1000)[1] for n in notes) + 8 if notes else 0.0

    def room(self, extra: Sequence[Any] = ()) -> float:
        return self.y - self.bottom - self.notes_height([*self.notes, *extra])

    # -- blocks ---------------------------------------------------------------------------

    def run(self) -> Pdf:
        c = self.canvas
        c.setTitle(self.look.title)
        c.setAuthor(self.look.author)
        c.setSubject("Sample corpus of docpager; everything in it is invented")
        c.setCreator("docpager")
        self.title_page()
        if self.book.front:
            self.blocks(self.book.front)
        self.contents_pages()
        self.end_page()
        self.body_first = self.page + 1
        self.chapter = ""
        self.blocks(self.book.body)
        self.end_page()
        c.addPageLabel(0, style="ROMAN_LOWER", start=1)
        c.addPageLabel(self.body_first - 1, style="ARABIC", start=1)
        c.showOutline()
        c.save()
        return Pdf(self.buffer.getvalue(), self.page, self.facts)

    def title_page(self) -> None:
        self.begin_page()
        self.y = self.height * 0.70
        self.put(self.paragraph(self.look.title, self.style(self.look.body * 2.2, 1, alignment=1)))
        self.y -= 18
        for line in self.book.subtitle:
            self.put(self.paragraph(line, self.style(self.look.body * 1.1, 2, alignment=1)))
            self.y -= 6
        self.end_page()

    def contents_pages(self) -> None:
        self.chapter = self.look.contents_title
        self.new_page()
        self.put(self.paragraph(self.chapter, self.style(self.look.body * 1.6, 1)))
        self.y -= 10
        size = self.look.body * 0.95
        for level, text, label in self.known_contents:
            if self.room() < size * 2:
                self.new_page()
            self.y -= size * 1.45
            x = self.left + (level - 1) * 14
            self.canvas.setFont(self.fonts[0], size)
            self.canvas.drawString(x, self.y, text)
            right = self.left + self.measure
            used = x + self.canvas.stringWidth(text, self.fonts[0], size)
            dots = int((right - used - 24) / self.canvas.stringWidth(" .", self.fonts[0], size))
            self.canvas.drawRightString(right - 20, self.y, " ." * max(dots, 0))
            self.canvas.drawRightString(right, self.y, label)

    def blocks(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            if isinstance(block, Heading):
                self.heading(block)
            elif isinstance(block, Para):
                self.para(block)
            else:
                self.table(block)

    def put(self, flowable: Any, x: float | None = None) -> None:
        _, height = flowable.wrap(self.measure, 10_000)
        self.y -= height
        flowable.drawOn(self.canvas, self.left if x is None else x, self.y)

    def heading(self, block: Heading) -> None:
        size = self.look.body * (1.6, 1.25, 1.05)[block.level - 1]
        flowable = self.paragraph(block.text, self.style(size, 1))
        if block.level == 1:
            self.chapter = block.text
            self.new_page()
        else:
            if not self.open:
                self.begin_page()
            needed = flowable.wrap(self.measure, 1000)[1] + self.look.body * 7
            if self.room() < needed:
                self.new_page()
            elif self.y < self.top:
                self.y -= self.look.body
        self.keys += 1
        self.canvas.bookmarkPage(f"h{self.keys}")
        if self.body_first:
            self.canvas.addOutlineEntry(block.text, f"h{self.keys}", block.level - 1, closed=True)
            if block.level < 3:
                self.contents.append((block.level, block.text, self.label()))
        self.put(flowable)
        self.y -= self.look.body * 0.5

    def para(self, block: Para) -> None:
        if not self.open:
            self.begin_page()
        size = self.look.body * (0.88 if block.small else 1.0)
        text = block.text
        notes = []
        for note in block.notes:
            self.note_count += 1
            text = text.replace("[*]", f"<super>{self.note_count}</super>", 1)
            style = self.style(self.look.body * 0.8)
            notes.append(self.paragraph(f"<super>{self.note_count}</super> {note}", style))
        flowable = self.paragraph(text, self.style(size, 0, block.indent, alignment=4))
        height = flowable.wrap(self.measure, 10_000)[1]
        if height > self.room(notes):
            whole = block.fact is not None or bool(notes)
            parts = [] if whole else flowable.split(self.measure, self.room())
            if len(parts) == 2:
                self.put(parts[0])
                self.new_page()
                flowable = parts[1]
            else:
                self.new_page()
        self.notes.extend(notes)
        self.put(flowable)
        self.y -= self.look.body * 0.55
        if block.fact is not None:
            self.facts[block.fact] = self.page

    def table(self, block: Table) -> None:
        if not self.open:
            self.begin_page()
        total = sum(block.widths)
        widths = [self.measure * w / total for w in block.widths]
        size = self.look.body * 0.86
        if self.room() < self.look.body * 10:
            self.new_page()
        self.table_head(block, widths, size, "")
        for index, row in enumerate(block.rows):
            cells = [self.paragraph(cell, self.style(size)) for cell in row]
            height = self.row_height(cells, widths)
            if height > self.room():
                self.rule()
                self.new_page()
                self.table_head(block, widths, size, " " + self.look.continued)
            self.row(cells, widths, height)
            if index in block.facts:
                self.facts[block.facts[index]] = self.page
        self.rule()
        self.y -= self.look.body * 1.2

    def table_head(self, block: Table, widths: list[float], size: float, more: str) -> None:
        self.put(self.paragraph(block.caption + more, self.style(size, 2)))
        self.y -= 3
        self.rule()
        cells = [self.paragraph(cell, self.style(size, 1)) for cell in block.header]
        self.row(cells, widths, self.row_height(cells, widths))
        self.rule()

    def rule(self) -> None:
        self.canvas.setLineWidth(0.5)
        self.canvas.line(self.left, self.y, self.left + self.measure, self.y)

    def row_height(self, cells: list[Any], widths: list[float]) -> float:
        pairs = zip(cells, widths, strict=True)
        return 3.0 + max(float(cell.wrap(width - 6, 1000)[1]) for cell, width in pairs)

    def row(self, cells: list[Any], widths: list[float], height: float) -> None:
        x = self.left
        for cell, width in zip(cells, widths, strict=True):
            cell_height = cell.wrap(width - 6, 1000)[1]
            cell.drawOn(self.canvas, x + 3, self.y - 1.5 - cell_height)
            x += width
        self.y -= height


def _roman(number: int) -> str:
    text = ""
    for value, sign in ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")):
        while number >= value:
            text += sign
            number -= value
    return text

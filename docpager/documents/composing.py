"""Formats without a text of their own get one: blocks are put together, and what they are is kept.

Blocks stand apart by a blank line. A table is one row a line, `| cell | cell |`, in blocks small
enough for one chunk, each of which begins with the header row again: so a row is never seen
without the names of its columns. Rows too long for that are written as `column: cell` lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from docpager.documents.attachments import Attachment
from docpager.documents.outline import SECTION_LEVEL, Heading, OutlinedDocument, TableSpan
from docpager.documents.text.normalise import clean, one_line
from docpager.documents.text.reader import SECTION_CHARACTERS
from docpager.types import PAGE_SEPARATOR, PageText, ParsedDocument
from docpager.unicode import HANGUL_LETTERS

_TITLE_ROWS = 10
"""How many rows above a table's header can be titles of it."""
TABLE_TOKENS = 300
"""A block of a table is at most about so long, by an estimate that is rather too high."""

_LIST_CHARACTERS = 1_000
"""A longer list is parted into several blocks."""
_BLOCK_GAP = "\n\n"
_BLANKS = re.compile(r"[ \t]+(?=\n|$)")
_MANY_BREAKS = re.compile(r"\n{3,}")
# Everything from the CJK radicals to the halfwidth forms: about a token each.
_WIDE = re.compile(f"[{HANGUL_LETTERS}\u2e80-\uffdc]")


class NumberedRow(list[str]):
    """A row of cells that knows its 1-based line in the file."""

    def __init__(self, cells: Iterable[str], line: int) -> None:
        super().__init__(cells)
        self.line = line


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    level: int = 0
    """That of a heading; 0 for other text."""
    whole: bool = False
    header: str = ""
    """The first line, where the block is rows of a table under it."""
    is_list: bool = False
    line: int | None = None
    """Of the file, where its lines are those of the block: it begins a section then."""


@dataclass(slots=True)
class _Page:
    blocks: list[_Block] = field(default_factory=list)
    heading: str | None = None
    label: str | None = None
    first_line: int | None = None
    continued: bool = False
    """Whether the next page goes on in the middle of a paragraph."""
    size: int = 0

    @property
    def is_bare(self) -> bool:
        """Whether there is nothing on it but headings."""
        return all(block.level for block in self.blocks)


class Composer:
    """Puts a document together block by block.

    With `paged`, a page lasts until `page` is called. Without, sections begin at headings of
    level 1 and 2, where one gets long, and where `page` says so.
    """

    def __init__(self, engine: str, *, paged: bool = False) -> None:
        self._engine = engine
        self._paged = paged
        self._pages: list[_Page] = [_Page()]
        self._begun = False

    def page(
        self,
        heading: str | None = None,
        *,
        label: str | None = None,
        first_line: int | None = None,
        continued: bool = False,
    ) -> None:
        """Begin a page (or section): the first call names the first one.

        Args:
            heading: What the page is called; it is not added to its text.
            label: What is printed on it.
            first_line: Where it begins in the file, if lines of the file are lines of the text.
            continued: The paragraph before goes on at its beginning.
        """
        if self._begun or self._pages[-1].blocks:
            self._pages[-1].continued = continued
            self._pages.append(_Page())
        self._begun = True
        page = self._pages[-1]
        page.heading, page.label, page.first_line = heading, label, first_line

    def heading(self, level: int, text: str) -> None:
        """A heading of level 1 (the highest) to 6."""
        title = one_line(text)
        if not title:
            return
        if not self._paged and level <= SECTION_LEVEL:
            if not self._pages[-1].is_bare:
                self._pages.append(_Page())
            self._pages[-1].heading = title
        self._add(_Block(title, level=level))

    def paragraph(self, text: str) -> None:
        """Text in one or more lines; nothing is added where there is no ink."""
        self._add(_Block(_tidy(text)))

    def item(self, text: str) -> None:
        """An item of a list, with its mark: it stands right below the item before it."""
        block = _Block(_tidy(text), is_list=True)
        blocks = self._pages[-1].blocks
        last = blocks[-1] if blocks else block
        if blocks and block.text and last.is_list and len(last.text) < _LIST_CHARACTERS:
            blocks[-1] = replace(last, text=f"{last.text}\n{block.text}")
            self._pages[-1].size += len(block.text)
        else:
            self._add(block)

    def code(self, text: str) -> None:
        """Lines that are kept together, and their spaces as they are."""
        self._add(_Block(clean(text).strip("\n").rstrip(), whole=True))

    def table(self, rows: Iterable[Sequence[str]], *, header: bool = True) -> None:
        """Rows of cells; the first one names the columns, if `header`. Empty rows are left out."""
        for block in _table_blocks(rows, header):
            self._add(block)

    @property
    def page_has_text(self) -> bool:
        """Whether there is any block on the page so far."""
        return bool(self._pages[-1].blocks)

    def _add(self, block: _Block) -> None:
        if not block.text:
            return
        page = self._pages[-1]
        is_full = page.size > SECTION_CHARACTERS or block.line is not None
        if not self._paged and is_full and not page.is_bare:
            self._pages.append(_Page(heading=page.heading))
            page = self._pages[-1]
        if block.line is not None and not page.blocks:
            page.first_line = block.line
        page.blocks.append(block)
        page.size += len(block.text)

    def document(
        self,
        *,
        title: str | None = None,
        warnings: Iterable[str] = (),
        attachments: Iterable[Attachment] = (),
    ) -> OutlinedDocument:
        """All that was added, with the places of its headings and tables."""
        pages: list[PageText] = []
        headings: list[Heading] = []
        fences: list[tuple[int, int]] = []
        tables: list[TableSpan] = []
        start = line = 0
        kept = self._pages
        if not self._paged:
            kept = [page for page in kept if page.blocks] or kept[:1]
        for number, page in enumerate(kept, start=1):
            at = start
            for block in page.blocks:
                end = at + len(block.text)
                if block.level:
                    headings.append(Heading(at, end, block.level, block.text))
                if block.whole:
                    fences.append((at, end))
                if block.header:
                    tables.append(TableSpan(at, end, at + len(block.header) + 1, block.header))
                at = end + len(_BLOCK_GAP)
            is_last = number == len(kept)
            # With the line feed between pages it makes a blank line, as between blocks.
            tail = "" if is_last or page.continued or not page.blocks else "\n"
            text = _BLOCK_GAP.join(block.text for block in page.blocks) + tail
            first_line = None if self._paged else page.first_line or line + 1
            pages.append(
                PageText(
                    number,
                    text,
                    page_label=page.label,
                    engine=self._engine,
                    heading=page.heading,
                    first_line=first_line,
                )
            )
            start += len(text) + len(PAGE_SEPARATOR)
            line += text.count("\n") + 1
        document = ParsedDocument(
            tuple(pages),
            paged=self._paged,
            title=one_line(title or "") or None,
            warnings=tuple(warnings),
        )
        return OutlinedDocument(
            document, tuple(headings), tuple(fences), tuple(tables), tuple(attachments)
        )


def add_tables(composer: Composer, rows: Iterable[Sequence[str]]) -> None:
    """Add rows as tables: titles above them are paragraphs, and empty rows may part them.

    The first row with two cells is a table's header. After empty rows another header is looked
    for only where a title, or a row without figures over one with, says that a table begins.
    """
    header: Sequence[str] = ()
    for block in _blocks(rows):
        first = next(block)
        head: list[Sequence[str]] = [first]
        for row in block:
            head.append(row)
            if len(head) > _TITLE_ROWS or _filled(row) > 1:
                break
        titles = 0
        while titles < len(head) and _filled(head[titles]) < 2:
            titles += 1
        if titles and (titles < len(head) or not header):
            for title in head[:titles]:
                composer.paragraph(one_line(" ".join(dict.fromkeys(filter(None, title)))))
            head = head[titles:]
            header = ()
        following = next(block, None)
        if following is not None:
            head.append(following)
        if not head:
            continue
        if not header or _begins_table(head):
            header = head[0]
            composer.table(chain(head, block), header=len(head) > 1)
        else:
            composer.table(chain([header], head, block))


def _blocks(rows: Iterable[Sequence[str]]) -> Iterator[Iterator[Sequence[str]]]:
    """Runs of rows between empty ones; each has to be used up before the next is asked for."""
    source = iter(rows)

    def run(first: Sequence[str]) -> Iterator[Sequence[str]]:
        yield first
        for row in source:
            if not any(row):
                return
            yield row

    for row in source:
        if any(row):
            block = run(row)
            yield block
            for _ in block:
                pass


def _filled(row: Sequence[str]) -> int:
    # A title in merged cells is filled into all of them.
    return len({cell for cell in row if cell.strip()})


def _begins_table(head: Sequence[Sequence[str]]) -> bool:
    figures = [any(map(_is_figure, row)) for row in head]
    return len(head) > 1 and not figures[0] and any(figures[1:])


def _is_figure(cell: str) -> bool:
    return bool(cell) and cell.strip(" %-+.,()$€£").replace(",", "").replace(".", "").isdigit()


def _tidy(text: str) -> str:
    lines = _BLANKS.sub("", clean(text)).strip("\n")
    return _MANY_BREAKS.sub(_BLOCK_GAP, lines).rstrip()


def _table_blocks(rows: Iterable[Sequence[str]], header: bool) -> Iterator[_Block]:
    names: Sequence[str] = ()
    block = _Rows("", None)
    bare = True
    for row in rows:
        cells = [one_line(cell) for cell in row]
        if not any(cells):
            continue
        line = row.line if isinstance(row, NumberedRow) else None
        if header and not names:
            names, block = cells, _Rows(_row_line(cells), line)
            continue
        bare = False
        while len(cells) > max(len(names), 1) and not cells[-1]:
            cells.pop()
        text = _row_line(cells)
        if not block.has_room_for(text):
            yield from block.taken()
        if block.has_room_for(text):
            block.add(text, line)
        else:
            yield _Block(_record(names, cells), line=line)
    yield from block.taken()
    if bare and names:
        yield _Block(block.header, line=block.line)


class _Rows:
    """Collects rows under their header up to the size of a block."""

    def __init__(self, header: str, line: int | None) -> None:
        self.header = header
        self.line = line
        """Of the header; then of the place above the first row."""
        self._lines: list[str] = []
        self._size = self._least = _estimate(header) if header else 0.0

    def has_room_for(self, text: str) -> bool:
        return self._size + _estimate(text) <= TABLE_TOKENS

    def add(self, text: str, line: int | None) -> None:
        if not self._lines and line is not None:
            self.line = max(1, line - bool(self.header))
        self._lines.append(text)
        self._size += _estimate(text)

    def taken(self) -> Iterator[_Block]:
        """The block of the rows so far, if there are any."""
        if self._lines:
            lines = [self.header, *self._lines] if self.header else self._lines
            yield _Block("\n".join(lines), whole=True, header=self.header, line=self.line)
        self._lines, self._size = [], self._least


def _row_line(cells: Sequence[str]) -> str:
    return cells[0] if len(cells) == 1 else f"| {' | '.join(cells)} |"


def _record(names: Sequence[str], cells: Sequence[str]) -> str:
    lines = []
    for place, cell in enumerate(cells):
        name = names[place] if place < len(names) else ""
        if cell:
            lines.append(f"{name}: {cell}" if name else cell)
    return "\n".join(lines)


def _estimate(text: str) -> float:
    """Tokens of a text, rather too many."""
    wide = len(_WIDE.findall(text))
    return wide + (len(text) - wide) / 2.5 + 2

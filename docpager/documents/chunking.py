"""Whole blocks are packed into chunks that end where a reader would pause.

A document's text is seen as blocks (headings, paragraphs, table rows, code). Blocks are packed
up to a target of tokens and never over a heading of level 1 or 2; a block over the target is cut
at a sentence end, else at a clause mark, else at white space, else between two characters.
Every chunk is a span of the text, all ink but furniture is in exactly one chunk, and the path of
headings above a chunk is kept beside it. Furniture (running heads, page numbers) is blanked before
all this, and the places of what is left are those in the text: sentences go on under it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from docpager.documents.outline import SECTION_LEVEL, Heading, OutlinedDocument, TableSpan
from docpager.documents.text.normalise import one_line, whole_character_end
from docpager.protocols import TokenCounter
from docpager.types import PAGE_SEPARATOR, PATH_JOINT, Chunk, PageText


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """Sizes in tokens. `target` is what is packed to; a chunk under `least` looks for company.

    `limit` is never passed; `heading` bounds the path of headings, and again the header of a table
    below it, which are counted apart.
    """

    target: int = 400
    limit: int = 512
    least: int = 80
    heading: int = 64


_INK = re.compile(r"\S")
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_TABLE_ROW = re.compile(r"[ \t]*\||[^\t\n]*\t[^\t\n]*\t")
_PARAGRAPH_END = re.compile(r"[.!?:…][\"'”’»)\]]*[^\S\n]*(?=\n)|[。！？][”’」』）]*(?=\n)")
# No sentence ends at an initial, at "Dr." and its like, or where the text goes on in lower case
# or with a number.
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z])(?<!\b[A-Z][a-z])(?<!\bMrs)[.!?…][\"'”’»)\]]*(?=\s+[^\sa-z0-9])|[。！？；][”’」』）]*"
)
_LINE_END = re.compile(r"\n")
_CLAUSE_END = re.compile(r"[,;:—](?=\s)|[，、：]")
_WHITE = re.compile(r"\s+")
_BOUNDARIES = (_PARAGRAPH_END, _SENTENCE_END, _LINE_END, _CLAUSE_END, _WHITE)
"""Where an over-long block is cut, the best first."""
_CHARACTERS_PER_TOKEN = 4.5
"""The first guess of a block, as in English prose."""
_ROOM = 0.96
"""Of what is guessed to fit: neighbouring units differ by some percent in characters a token."""
_AHEAD = 64
"""Characters beyond a cut that boundaries look at."""


def chunk_document(
    outlined: OutlinedDocument, counter: TokenCounter, size: ChunkSize | None = None
) -> tuple[Chunk, ...]:
    """The chunks of a document, in order; none for a document without ink."""
    size = size or ChunkSize()
    document = outlined.document
    text = PAGE_SEPARATOR.join(page.text for page in document.pages)
    furniture = tuple(_furniture(document.pages))
    body = _without(text, furniture)
    places = _Places(document.pages, document.paged)
    paths = _HeadingPaths(body, document.title, outlined.headings, counter, size.heading)
    headers = _TableHeaders(outlined.tables, counter, size.heading)
    units = _units(body, outlined, counter, size)
    chunks = []
    spans = _pack(body, units, counter, size)
    for start, end, tokens in _fitting(text, body, furniture, spans, counter, size.limit):
        page, line = places.of(start)
        chunks.append(
            Chunk(
                text=text[start:end],
                start=start,
                end=end,
                first_page=page,
                last_page=places.page_of(end - 1),
                heading=headers.below(paths.at(start, end), start),
                line=line,
                tokens=tokens,
                furniture=_within(furniture, start, end),
            )
        )
    return tuple(chunks)


def _furniture(pages: tuple[PageText, ...]) -> Iterator[tuple[int, int]]:
    """The spans of all pages' furniture in the document's text."""
    start = 0
    for page in pages:
        for begin, end in page.furniture:
            yield start + begin, start + end
        start += len(page.text) + len(PAGE_SEPARATOR)


def _without(text: str, spans: tuple[tuple[int, int], ...]) -> str:
    """The text, as long as before, with blanks for those lines: two lines become neighbours."""
    if not spans:
        return text
    parts = []
    done = 0
    for start, end in spans:
        # One of the line's two breaks goes with it, so that no empty line is left behind.
        start = start - 1 if start > done and text[start - 1] == "\n" else start
        parts += [text[done:start], " " * (end - start)]
        done = end
    return "".join((*parts, text[done:]))


def _within(
    spans: tuple[tuple[int, int], ...], start: int, end: int
) -> tuple[tuple[int, int], ...]:
    """The spans inside `start:end`, counted from `start`."""
    if not spans:
        return ()
    first = bisect_left(spans, (start, start))
    last = bisect_left(spans, (end, end))
    return tuple((begin - start, stop - start) for begin, stop in spans[first:last])


def _fitting(
    text: str,
    body: str,
    furniture: tuple[tuple[int, int], ...],
    spans: Iterator[tuple[int, int, int]],
    counter: TokenCounter,
    limit: int,
) -> Iterator[tuple[int, int, int]]:
    """Spans of the body with the tokens of all that stands there, furniture included."""
    for start, end, tokens in spans:
        if _within(furniture, start, end):
            yield from _counted(text, body, start, end, counter, limit)
        else:
            yield start, end, tokens


def _counted(
    text: str, body: str, start: int, end: int, counter: TokenCounter, limit: int
) -> Iterator[tuple[int, int, int]]:
    """A span in as many parts as the limit asks for, which begin and end with body."""
    while ink := _INK.search(body, start, end):
        start, stop = ink.start(), end
        tokens = counter.count(text[start:stop])
        if tokens > limit:
            window = text[start:stop]
            stop = start + _cut_place(window, len(counter.cut(window, limit)))
        kept = start + len(body[start:stop].rstrip())
        yield start, kept, tokens if kept == end else counter.count(text[start:kept])
        start = stop


@dataclass(frozen=True, slots=True)
class _Unit:
    """A span that packing does not divide; `level` is that of a heading, 0 for other text."""

    start: int
    end: int
    tokens: int
    level: int = 0


class _Places:
    """Where an offset of a document's text stands: page, and line where there are no pages."""

    def __init__(self, pages: tuple[PageText, ...], paged: bool) -> None:
        lengths = (len(page.text) + len(PAGE_SEPARATOR) for page in pages[:-1])
        self._starts = list(accumulate(lengths, initial=0))
        self._pages = pages
        self._paged = paged
        self._last: tuple[int, int, int] = (-1, 0, 0)

    def page_of(self, offset: int) -> int:
        """The page number that holds the character at `offset`."""
        return self._pages[self._index(offset)].page_number

    def of(self, offset: int) -> tuple[int, int | None]:
        """Page number and 1-based line (None for documents with pages)."""
        index = self._index(offset)
        page = self._pages[index]
        if self._paged or page.first_line is None:
            return page.page_number, None
        # Offsets are asked in order: lines are counted on from the last one, not from the top.
        last_index, last_place, last_line = self._last
        place = offset - self._starts[index]
        if last_index != index:
            last_place, last_line = 0, page.first_line
        line = last_line + page.text.count("\n", last_place, place)
        self._last = (index, place, line)
        return page.page_number, line

    def _index(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1


class _HeadingPaths:
    """The path of headings above a chunk, `title > heading > heading`, within its token limit."""

    def __init__(
        self,
        text: str,
        title: str | None,
        headings: tuple[Heading, ...],
        counter: TokenCounter,
        limit: int,
    ) -> None:
        self._text = text
        self._title = one_line(title or "")
        self._headings = headings
        self._counter = counter
        self._limit = limit
        self._next = 0
        self._open: list[Heading] = []

    def at(self, start: int, end: int) -> str:
        """The path for the chunk at `start:end`: its own first headings belong to it."""
        while self._next < len(self._headings):
            heading = self._headings[self._next]
            between = self._text[start : heading.start]
            if heading.end > end or (between and not between.isspace()):
                break
            self._open = [above for above in self._open if above.level < heading.level]
            self._open.append(heading)
            self._next += 1
            start = max(start, heading.end)
        return self._path()

    def _path(self) -> str:
        names = [self._title] if self._title else []
        names += [heading.title for heading in self._open if heading.title]
        distinct = [name for n, name in enumerate(names) if n == 0 or name != names[n - 1]]
        path = PATH_JOINT.join(distinct)
        while len(distinct) > 2 and self._counter.count(path) > self._limit:
            del distinct[1]  # the ends of a path say more than its middle
            path = PATH_JOINT.join(distinct)
        return self._counter.cut(path, self._limit).strip()


class _TableHeaders:
    """The header rows of tables, for chunks that begin below them."""

    def __init__(self, tables: tuple[TableSpan, ...], counter: TokenCounter, limit: int) -> None:
        self._tables = tables
        self._bodies = [table.body for table in tables]
        self._counter = counter
        self._limit = limit

    def below(self, path: str, start: int) -> str:
        """The path, with the header of the table in whose body a chunk begins at `start`."""
        index = bisect_right(self._bodies, start) - 1
        if index < 0 or start >= self._tables[index].end:
            return path
        header = self._counter.cut(self._tables[index].header, self._limit).strip()
        return f"{path}{PATH_JOINT}{header}" if path else header


def _units(
    text: str, outlined: OutlinedDocument, counter: TokenCounter, size: ChunkSize
) -> Iterator[_Unit]:
    for start, end, level in _blocks(text, outlined):
        yield from _divide(text, start, end, level, counter, size)


def _divide(
    text: str, start: int, end: int, level: int, counter: TokenCounter, size: ChunkSize
) -> Iterator[_Unit]:
    """A block as one unit if it is within the target, else cut into units that are.

    Where to cut is guessed from the characters that a token took so far, then counted: to count is
    what chunking takes most of its time for, and so it is done once for most units.
    """
    fitting = int(size.target * _CHARACTERS_PER_TOKEN)
    # Blanks are passed over in one step, however many there are.
    while ink := _INK.search(text, start, end):
        start = ink.start()
        stop = end
        if end - start > fitting:
            stop = start + _cut_place(text[start : min(end, start + fitting + _AHEAD)], fitting)
        tokens = counter.count(text[start:stop])
        fits = min(2.0, _ROOM * size.target / max(1, tokens))
        wide = stop - start
        if tokens <= size.target or fitting == 1:
            yield _Unit(start, stop, tokens, level)
            start = stop
        fitting = max(1, int(wide * fits))


def _cut_place(window: str, fitting: int) -> int:
    """Where to cut a window: the last good boundary in the second half of what fits."""
    for boundary in _BOUNDARIES:
        places = [found.end() for found in boundary.finditer(window, fitting // 2)]
        within = [place for place in places if place <= fitting]
        if within:
            return within[-1]
    return whole_character_end(window, 0, max(1, fitting))


def _blocks(text: str, outlined: OutlinedDocument) -> Iterator[tuple[int, int, int]]:
    """Spans (start, end, heading level) that hold all ink of the text, in order."""
    position = 0
    marks = [(heading.start, heading.end, heading.level) for heading in outlined.headings]
    marks += [(start, end, 0) for start, end in outlined.fences]
    marks += [
        (start, end, 0)
        for table in outlined.tables
        if not _TABLE_ROW.match(text, table.start)  # else its rows are known by their look
        for start, end, _ in _rows(text, table.start, table.end)
    ]
    for start, end, level in sorted(marks):
        if start < position:
            continue
        yield from _paragraphs(text, position, start)
        yield start, end, level
        position = end
    yield from _paragraphs(text, position, len(text))


def _paragraphs(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Paragraphs between blank lines; the rows of a table one by one."""
    while start < end:
        blank = _BLANK_LINES.search(text, start, end)
        stop = blank.start() if blank else end
        if _TABLE_ROW.match(text, start, stop):
            yield from _rows(text, start, stop)
        else:
            yield start, stop, 0
        start = blank.end() if blank else end


def _rows(text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    while start < end:
        newline = text.find("\n", start, end)
        stop = end if newline < 0 else newline
        yield start, stop, 0
        start = stop + 1


def _pack(
    text: str, units: Iterator[_Unit], counter: TokenCounter, size: ChunkSize
) -> Iterator[tuple[int, int, int]]:
    """Spans (start, end, tokens), section by section: one begins at a heading of level 1-2."""
    section: list[_Unit] = []
    for unit in units:
        begins = 0 < unit.level <= SECTION_LEVEL
        if begins and any(not kept.level for kept in section):
            yield from _pack_section(text, section, counter, size)
            section = []
        section.append(unit)
    yield from _pack_section(text, section, counter, size)


def _pack_section(
    text: str, units: list[_Unit], counter: TokenCounter, size: ChunkSize
) -> Iterator[tuple[int, int, int]]:
    groups = _grouped(units, size)
    if len(groups) > 1 and _estimate(groups[-1]) < size.least:
        together = groups[-2] + groups[-1]
        if _measure(text, together, counter)[2] <= size.limit:
            groups[-2:] = [together]
    for group in groups:
        yield from _within_limit(text, group, counter, size.limit)


def _grouped(units: list[_Unit], size: ChunkSize) -> list[list[_Unit]]:
    """Units in groups of about the target; a heading goes with what follows it."""
    groups: list[list[_Unit]] = []
    group: list[_Unit] = []
    tokens = 0
    for unit in units:
        room = size.target if tokens >= size.least else size.limit
        if group and (tokens + unit.tokens + 1 > room or (unit.level and tokens >= size.least)):
            body, tail = _without_last_headings(group)
            if body:
                groups.append(body)
                group, tokens = tail, _estimate(tail)
        group.append(unit)
        tokens += unit.tokens + 1
    return [*groups, group] if group else groups


def _estimate(units: list[_Unit]) -> int:
    """Tokens of units together: what stands between two of them counts for one."""
    return sum(unit.tokens + 1 for unit in units)


def _without_last_headings(units: list[_Unit]) -> tuple[list[_Unit], list[_Unit]]:
    cut = len(units)
    while cut and units[cut - 1].level:
        cut -= 1
    return units[:cut], units[cut:]


def _within_limit(
    text: str, group: list[_Unit], counter: TokenCounter, limit: int
) -> Iterator[tuple[int, int, int]]:
    """The group's span, in as many parts as the limit asks for: estimates can be too low."""
    while group:
        kept = len(group)
        span = _measure(text, group, counter)
        while span[2] > limit and kept > 1:
            kept -= 1
            span = _measure(text, group[:kept], counter)
        yield span
        group = group[kept:]


def _measure(text: str, units: list[_Unit], counter: TokenCounter) -> tuple[int, int, int]:
    start = units[0].start
    end = start + len(text[start : units[-1].end].rstrip())
    whole = len(units) == 1 and end == units[0].end
    return start, end, units[0].tokens if whole else counter.count(text[start:end])

"""A PDF's headings are found by its bookmarks, else by taller letters, else by their numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from docpager.documents.outline import Heading
from docpager.types import PAGE_SEPARATOR

_LONGEST = 120
_TALLER = 1.08
"""How much taller than the text the letters of a heading are."""
_TITLE_TALLER = 1.2
_TITLE_WITHIN = 6
"""Lines of ink: further down the first page, tall letters are a figure's or a heading's."""
_TOO_MANY = 6
"""More headings a page than this are no headings, but a poster or a form."""
_NUMBER = r"(?P<number>\d{1,2}(?:\.\d{1,2}){0,4})\.?"
_NUMBERED = re.compile(
    r"(?i:chapter|part|section|appendix|article|annex)\s+(?:\d{1,3}|[IVXLC]{1,6}|[A-Z])\b"
    rf"|{_NUMBER}\s+[^\W\d_a-z]"
    r"|第[〇零一二三四五六七八九十百\d]{1,5}[章节節條条编編篇部]"
)
_NUMBER_BEGINS = frozenset("0123456789 CcPpSsAa第")
_TALL_BLOCK = 4
_NUMBERS_REACH = 24
"""How many characters a printed title may have that its bookmark does not: number and blanks."""
_CONTENTS = re.compile(r"(table of )?contents|inhalt(sverzeichnis)?|目\s*录", re.IGNORECASE)
_LEADING_NUMBER = re.compile(r"[\divxlcIVXLC]{1,5}(?:\.\d+)*[.)]?\s+")
_CONTENTS_LINE = re.compile(r"(?:\.\s?){3,}|…|\s\d{1,4}$")
_ENDS_LIKE_TEXT = re.compile(r"[.,;:。，；、：]$")
_TEXT_LINE = 40
"""A line at least this long under a numbered line makes that one a heading, not a list item."""
_PAGE_NUMBER = re.compile(r"\s+\d{1,4}\s*$")
_REPEATED = 3
_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An entry of a PDF's own outline; `page` is 0-based, `level` begins at 1."""

    title: str
    page: int
    level: int


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page's lines as stored (its text is these joined by line breaks), with letter heights."""

    lines: tuple[str, ...]
    heights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    start: int
    """Offset in the document's text."""
    height: float
    page: int

    def heading(self, level: int) -> Heading:
        return Heading(self.start, self.start + len(self.text), level, " ".join(self.text.split()))


def find_headings(
    sheets: tuple[Sheet, ...], bookmarks: tuple[Bookmark, ...]
) -> tuple[Heading, ...]:
    """The headings of a document in order; none where nothing looks like one."""
    return _by_bookmark(sheets, bookmarks) or _by_height(sheets) or _by_number(sheets)


def printed_title(sheets: tuple[Sheet, ...], headings: tuple[Heading, ...]) -> str | None:
    """The tallest of the first page's first lines, if much taller than the document's text.

    One heading among others of its level is no title, nor is the word over a table of contents.
    """
    first = _first_lines(sheets)
    tallest = max((height for _, height in first), default=0.0)
    if not tallest or tallest < _text_height(sheets) * _TITLE_TALLER:
        return None
    same = [height > tallest * 0.98 for _, height in first]
    begin = same.index(True)
    end = same.index(False, begin) if False in same[begin:] else len(same)
    title = " ".join(" ".join(text for text, _ in first[begin:end]).split())
    levels = [heading.level for heading in headings if heading.title in title]
    if any(sum(heading.level == level for heading in headings) > 1 for level in levels):
        return None
    return title if 3 < len(title) <= 2 * _LONGEST and not _CONTENTS.fullmatch(title) else None


def _first_lines(sheets: tuple[Sheet, ...]) -> list[tuple[str, float]]:
    """The first page's first lines of ink but for those that come again and again."""
    if not sheets:
        return []
    first = [
        (text, height)
        for text, height in zip(sheets[0].lines, sheets[0].heights, strict=True)
        if text and not text.isspace()
    ]
    names = {text for text, _ in first}
    # The title may be a running head too, but in smaller letters.
    alike = Counter(
        (text, round(height))
        for sheet in sheets
        if not names.isdisjoint(sheet.lines)
        for text, height in zip(sheet.lines, sheet.heights, strict=True)
        if text in names
    )
    return [line for line in first if alike[line[0], round(line[1])] < _REPEATED][:_TITLE_WITHIN]


def _lines(sheets: tuple[Sheet, ...], pages: Container[int] | None = None) -> Iterator[_Line]:
    """The lines of all pages, or of those whose 0-based numbers are in `pages`."""
    start = 0
    for page, sheet in enumerate(sheets):
        if pages is None or page in pages:
            for text, height in zip(sheet.lines, sheet.heights, strict=True):
                yield _Line(text, start, height, page)
                start += len(text) + 1
            start += len(PAGE_SEPARATOR) - 1
            # A page without lines is an empty text all the same.
            start += 0 if sheet.lines else 1
        else:
            start += _length(sheet) + len(PAGE_SEPARATOR)


def _length(sheet: Sheet) -> int:
    return sum(map(len, sheet.lines)) + max(0, len(sheet.lines) - 1)


def _running(texts: Iterable[str], sheets: tuple[Sheet, ...]) -> frozenset[str]:
    """Those of the texts that stand, save a number at the end, on three pages or more."""
    wanted: dict[str, list[str]] = {}
    for text in texts:
        wanted.setdefault(_key(text), []).append(text)
    if len(sheets) < _REPEATED or not wanted:
        return frozenset()
    names = frozenset(wanted)
    pages: Counter[str] = Counter()
    for sheet in sheets:
        pages.update(names.intersection(map(_key, sheet.lines)))
    return frozenset(
        text for name, same in wanted.items() if pages[name] >= _REPEATED for text in same
    )


def _key(line: str) -> str:
    return _without_page_number(line.strip())


def _without_page_number(text: str) -> str:
    if not text[-1:].isdigit():
        return text
    # The number of "Chapter 7" is its name.
    return text if _NUMBERED.fullmatch(text) else _PAGE_NUMBER.sub("", text)


def _by_bookmark(sheets: tuple[Sheet, ...], bookmarks: tuple[Bookmark, ...]) -> tuple[Heading, ...]:
    """Lines that say what a bookmark of their page says; () if they are few."""
    if not bookmarks:
        return ()
    longest: dict[int, int] = {}
    for bookmark in bookmarks:
        reach = min(_LONGEST, len(bookmark.title) + _NUMBERS_REACH)
        longest[bookmark.page] = max(reach, longest.get(bookmark.page, 0))
    by_page: dict[int, dict[str, list[_Line]]] = {}
    for line in _lines(sheets, longest):
        # Most lines are longer than any title of their page.
        if line.text and len(line.text) <= longest[line.page]:
            names = by_page.setdefault(line.page, {})
            whole = _letters(line.text)
            bare = _letters(_LEADING_NUMBER.sub("", line.text.strip(), count=1))
            for name in {whole, bare}:
                names.setdefault(name, []).append(line)
    found: dict[int, Heading] = {}
    for bookmark in bookmarks:
        title = _LEADING_NUMBER.sub("", bookmark.title, count=1)
        names = by_page.get(bookmark.page, {})
        # Sections of one name follow each other as their bookmarks do.
        said = next(
            (
                line
                for name in (_letters(bookmark.title), _letters(title))
                for line in names.get(name, ())
                if line.start not in found
            ),
            None,
        )
        if said is not None:
            found[said.start] = said.heading(bookmark.level)
    if len(found) * 2 < len(bookmarks):
        return ()
    return tuple(found[start] for start in sorted(found))


def _letters(text: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", text).casefold()


def _by_height(sheets: tuple[Sheet, ...]) -> tuple[Heading, ...]:
    """Short lines in letters taller than the text's; the taller, the higher their level."""
    text_height = _text_height(sheets)
    if not text_height:
        return ()
    least = text_height * _TALLER
    tall_pages = {
        page for page, sheet in enumerate(sheets) if sheet.heights and max(sheet.heights) >= least
    }
    blocks = _tall_blocks(sheets, least)
    tall = [
        line
        for line in _lines(sheets, tall_pages)
        if line.height >= least and line.start not in blocks and _could_be_heading(line.text)
    ]
    running = _running((line.text for line in tall), sheets)
    tall = [line for line in tall if line.text not in running]
    if len(tall) > _TOO_MANY * len(sheets):
        return ()
    sizes = sorted({round(line.height) for line in tall}, reverse=True)
    return tuple(line.heading(min(6, sizes.index(round(line.height)) + 1)) for line in tall)


def _text_height(sheets: tuple[Sheet, ...]) -> float:
    """The letter height of most of the text, in steps of a tenth of a point."""
    exact: dict[float, int] = {}
    for sheet in sheets:
        for text, height in zip(sheet.lines, sheet.heights, strict=True):
            exact[height] = exact.get(height, 0) + len(text)
    weights: Counter[float] = Counter()
    for height, weight in exact.items():
        if height:
            weights[round(height, 1)] += weight
    return max(weights, key=lambda height: (weights[height], -height), default=0.0)


def _tall_blocks(sheets: tuple[Sheet, ...], least: float) -> frozenset[int]:
    """Where lines begin that are four tall ones in a row: a summary or a slide, no headings."""
    found: set[int] = set()
    run: list[int] = []
    start = 0
    for sheet in sheets:
        for text, height in zip(sheet.lines, sheet.heights, strict=True):
            if height >= least:
                run.append(start)
            else:
                run = []
            if len(run) >= _TALL_BLOCK:
                found.update(run)
            start += len(text) + 1
        start += 0 if sheet.lines else 1
    return frozenset(found)


def _could_be_heading(text: str) -> bool:
    stripped = text.strip()
    letters = sum(map(str.isalpha, stripped))
    return (
        letters >= 3
        and letters * 2 >= len(stripped.replace(" ", ""))
        and len(stripped) <= _LONGEST
        and not stripped[0].islower()
        and not _ENDS_LIKE_TEXT.search(stripped)
        and (not _CONTENTS_LINE.search(stripped) or bool(_NUMBERED.fullmatch(stripped)))
    )


def _by_number(sheets: tuple[Sheet, ...]) -> tuple[Heading, ...]:
    """Lines that begin with a section number and stand over text or over a subsection."""
    numbered = []
    for line, below in pairwise(_lines(sheets, _numbered_pages(sheets))):
        level = _numbered_level(line.text)
        if not level or not _could_be_heading(line.text):
            continue
        level_below = _numbered_level(below.text)
        if level_below > level or (not level_below and len(below.text) >= _TEXT_LINE):
            numbered.append((line, level))
    running = _running((line.text for line, _ in numbered), sheets)
    return tuple(line.heading(level) for line, level in numbered if line.text not in running)


def _numbered_pages(sheets: tuple[Sheet, ...]) -> frozenset[int]:
    """Pages with a numbered line, and the page after each, where what is below its last line is."""
    found: set[int] = set()
    before = False
    for page, sheet in enumerate(sheets):
        numbered = any(map(_numbered_level, sheet.lines))
        if numbered or before:
            found.add(page)
        before = numbered or (before and not sheet.lines)
    return frozenset(found)


def _numbered_level(text: str) -> int:
    """How deep a section number is: 1 for `2` and `Chapter 2`, 3 for `2.1.4`; 0 without one."""
    match = _NUMBERED.match(text.strip()) if text[:1] in _NUMBER_BEGINS else None
    if match is None:
        return 0
    return match["number"].count(".") + 1 if match["number"] else 1

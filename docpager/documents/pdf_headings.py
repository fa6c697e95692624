"""A PDF's headings are found by its bookmarks, else by taller letters, else by their numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
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

    @classmethod
    def of_text(cls, text: str) -> Sheet:
        """A page of which only the text is known."""
        lines = tuple(text.split("\n"))
        return cls(lines, (0.0,) * len(lines))


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
    lines = tuple(_lines(sheets))
    running = _running_heads(lines)
    return (
        _by_bookmark(lines, bookmarks)
        or _by_height(lines, running, len(sheets))
        or tuple(_by_number(lines, running))
    )


def printed_title(sheets: tuple[Sheet, ...], headings: tuple[Heading, ...]) -> str | None:
    """The tallest of the first page's first lines, if much taller than the document's text.

    One heading among others of its level is no title.
    """
    lines = tuple(_lines(sheets))
    alike = Counter((line.text, round(line.height)) for line in lines)
    first = [
        line
        for line in lines
        if line.page == 0
        and line.text.strip()
        # The title may be a running head too, but in smaller letters.
        and alike[line.text, round(line.height)] < _REPEATED
    ][:_TITLE_WITHIN]
    tallest = max((line.height for line in first), default=0.0)
    if not tallest or tallest < _text_height(lines) * _TITLE_TALLER:
        return None
    same = [line.height > tallest * 0.98 for line in first]
    begin = same.index(True)
    end = same.index(False, begin) if False in same[begin:] else len(same)
    title = " ".join(" ".join(line.text for line in first[begin:end]).split())
    levels = [heading.level for heading in headings if heading.title in title]
    if any(sum(heading.level == level for heading in headings) > 1 for level in levels):
        return None
    return title if 3 < len(title) <= 2 * _LONGEST else None


def _lines(sheets: tuple[Sheet, ...]) -> Iterator[_Line]:
    start = 0
    for page, sheet in enumerate(sheets):
        for text, height in zip(sheet.lines, sheet.heights, strict=True):
            yield _Line(text, start, height, page)
            start += len(text) + 1
        start += len(PAGE_SEPARATOR) - 1


def _running_heads(lines: tuple[_Line, ...]) -> frozenset[str]:
    """Lines that stand, but for a page number at the end, on three pages or more."""
    pages: dict[str, set[int]] = {}
    for line in lines:
        pages.setdefault(_without_page_number(line.text), set()).add(line.page)
    return frozenset(
        line.text for line in lines if len(pages[_without_page_number(line.text)]) >= _REPEATED
    )


def _without_page_number(text: str) -> str:
    # The number of "Chapter 7" is its name.
    return text if _NUMBERED.fullmatch(text.strip()) else _PAGE_NUMBER.sub("", text)


def _by_bookmark(lines: tuple[_Line, ...], bookmarks: tuple[Bookmark, ...]) -> tuple[Heading, ...]:
    """Lines that say what a bookmark of their page says; () if they are few."""
    by_page: dict[int, dict[str, _Line]] = {}
    for line in lines:
        names = by_page.setdefault(line.page, {})
        if line.text and len(line.text) <= _LONGEST:
            names.setdefault(_letters(line.text), line)
            names.setdefault(_letters(_LEADING_NUMBER.sub("", line.text.strip(), count=1)), line)
    found: dict[int, Heading] = {}
    for bookmark in bookmarks:
        title = _LEADING_NUMBER.sub("", bookmark.title, count=1)
        names = by_page.get(bookmark.page, {})
        said = names.get(_letters(bookmark.title)) or names.get(_letters(title))
        if said is not None:
            found.setdefault(said.start, said.heading(bookmark.level))
    if len(found) * 2 < len(bookmarks):
        return ()
    return tuple(found[start] for start in sorted(found))


def _letters(text: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", text).casefold()


def _by_height(
    lines: tuple[_Line, ...], running: frozenset[str], pages: int
) -> tuple[Heading, ...]:
    """Short lines in letters taller than the text's; the taller, the higher their level."""
    text_height = _text_height(lines)
    if not text_height:
        return ()
    tall = [
        line
        for number, line in enumerate(lines)
        if line.height >= text_height * _TALLER
        and _could_be_heading(line.text)
        and line.text not in running
        and not _in_tall_block(lines, number, text_height)
    ]
    if len(tall) > _TOO_MANY * pages:
        return ()
    sizes = sorted({round(line.height) for line in tall}, reverse=True)
    return tuple(line.heading(min(6, sizes.index(round(line.height)) + 1)) for line in tall)


def _text_height(lines: tuple[_Line, ...]) -> float:
    """The letter height of most of the text, in steps of a tenth of a point."""
    weights: Counter[float] = Counter()
    for line in lines:
        if line.height:
            weights[round(line.height, 1)] += len(line.text)
    return max(weights, key=lambda height: (weights[height], -height), default=0.0)


def _in_tall_block(lines: tuple[_Line, ...], number: int, text_height: float) -> bool:
    """Whether four lines in a row are that tall: a summary or a slide, not a heading."""
    first, last = max(0, number - 3), min(len(lines) - 4, number)
    return any(
        all(line.height >= text_height * _TALLER for line in lines[start : start + 4])
        for start in range(first, last + 1)
    )


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


def _by_number(lines: tuple[_Line, ...], running: frozenset[str]) -> Iterator[Heading]:
    """Lines that begin with a section number and stand over text or over a subsection."""
    for line, below in pairwise(lines):
        level = _numbered_level(line.text)
        if not level or line.text in running or not _could_be_heading(line.text):
            continue
        level_below = _numbered_level(below.text)
        if level_below > level or (not level_below and len(below.text) >= _TEXT_LINE):
            yield line.heading(level)


def _numbered_level(text: str) -> int:
    """How deep a section number is: 1 for `2` and `Chapter 2`, 3 for `2.1.4`; 0 without one."""
    match = _NUMBERED.match(text.strip())
    if match is None:
        return 0
    return match["number"].count(".") + 1 if match["number"] else 1

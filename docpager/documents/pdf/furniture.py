"""Running heads and page numbers are found, so that they neither break sentences nor weigh.

They stay in the page's text, where quotes are looked for; chunks are cut, counted and indexed as
if they were not there.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from docpager.documents.pdf.quality import ink

_LEAST = 3
"""On fewer pages than this nothing is furniture."""
_EDGE = 4
"""Lines of ink at the beginning and at the end of a page's text that furniture is looked for in."""
_LONGEST = 200
_MOST_OF_A_PAGE = 0.5
"""A page of which more would be furniture (in ink) has none: it has little else to say."""
_IN_STEP = 0.8
"""Of the pages with a line: on so many the number in it goes with the page, or it is no number
of pages."""
_DIGITS = re.compile(r"\d+")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class _EdgeLine:
    page: int
    line: int
    text: str


def find_furniture(
    pages: Sequence[Sequence[str]], labels: Sequence[str | None]
) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each page, given as its lines, the spans of its furniture in the lines joined by `\\n`.

    A line is furniture if it stands near the beginning or the end of at least three pages and of
    at least half of those with ink, and has no digits, or a number that counts with the pages; or
    if it is its page's label.
    """
    edges = [_EdgeLine(n, m, text) for n, page in enumerate(pages) for m, text in _edge(page)]
    inked = sum(any(page) for page in pages)
    needed = max(_LEAST, (inked + 1) // 2)
    chosen: dict[int, set[int]] = defaultdict(set)
    for same in _alike(edges).values():
        if len({edge.page for edge in same}) >= needed:
            for edge in same if not _DIGITS.search(same[0].text) else _in_step(same, needed):
                chosen[edge.page].add(edge.line)
    if inked >= _LEAST:
        for edge in edges:
            if edge.text == labels[edge.page]:
                chosen[edge.page].add(edge.line)
    return tuple(_spans(page, chosen.get(n, set())) for n, page in enumerate(pages))


def _edge(page: Sequence[str]) -> list[tuple[int, str]]:
    """The first and last lines of ink with their numbers."""
    first: list[tuple[int, str]] = []
    for number, line in enumerate(page):
        if len(first) == _EDGE:
            break
        if line.strip():
            first.append((number, line.strip()))
    last: list[tuple[int, str]] = []
    top = first[-1][0] if first else -1
    for number in range(len(page) - 1, top, -1):
        if len(last) == _EDGE:
            break
        if page[number].strip():
            last.append((number, page[number].strip()))
    return [(number, text) for number, text in (*first, *last) if len(text) <= _LONGEST]


def _alike(edges: Sequence[_EdgeLine]) -> dict[str, list[_EdgeLine]]:
    """Lines by what they say but for numbers and blanks: a number may stand left or right."""
    found: dict[str, list[_EdgeLine]] = defaultdict(list)
    for edge in edges:
        digits = "#" if _DIGITS.search(edge.text) else ""
        found[digits + _BLANKS.sub("", _DIGITS.sub("", edge.text))].append(edge)
    return found


def _in_step(same: Sequence[_EdgeLine], needed: int) -> list[_EdgeLine]:
    """Those lines one of whose numbers is that of the page, counted from wherever it begins."""
    numbers = [[int(found[:9]) for found in _DIGITS.findall(edge.text)] for edge in same]
    steps = Counter(
        number - edge.page
        for edge, found in zip(same, numbers, strict=True)
        for number in set(found)
    )
    step, _ = steps.most_common(1)[0]
    rows = list(zip(same, numbers, strict=True))
    fitting = [edge for edge, found in rows if edge.page + step in found]
    pages = len({edge.page for edge in fitting})
    others = {
        tuple(number for number in found if number != edge.page + step) for edge, found in rows
    }
    # What else is counted in the line ("Invoice 17, page 3") must not be lost.
    enough = pages >= max(needed, len({edge.page for edge in same}) * _IN_STEP)
    return fitting if enough and len(others) <= 2 else []


def _spans(page: Sequence[str], lines: set[int]) -> tuple[tuple[int, int], ...]:
    if not lines:
        return ()
    amount = sum(len(line) - line.count(" ") for line in page)
    if sum(ink(page[number]) for number in lines) > amount * _MOST_OF_A_PAGE:
        return ()
    spans = []
    start = 0
    for number, line in enumerate(page):
        if number in lines:
            spans.append((start, start + len(line)))
        start += len(line) + 1
    return tuple(spans)

"""Tables of numbers on a page are found, with their header rows, by the gaps between their cells.

What is found is sure rather than complete: rows of one line each, under a header of one line with
as many cells. Ruled lines, cells that wrap and headers of several lines are not understood.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"\d+")
_LEAST_ROWS = 3
_LEAST_WORDS = 3
_LEAST_CELLS = 2
_NUMBERS = 0.4
"""Of a row's words: so many hold digits."""
_LOOKED_AT = 8
"""Rows whose cells are counted."""
_FITTING = 0.6
"""Of these rows: so many have as many cells as the header."""


@dataclass(frozen=True, slots=True)
class RawTable:
    """Lines `header:end` of a page (0-based): a header row, then rows of numbers."""

    header: int
    end: int
    names: str
    """The header's cells on one line."""


def find_tables(
    lines: Sequence[str], cells_of: Callable[[int], Sequence[str]]
) -> tuple[RawTable, ...]:
    """The tables of a page; `cells_of` gives a line's cells, and is asked for few lines only."""
    found = []
    numeric = [_is_row(line) for line in lines]
    first = 0
    while first < len(lines):
        end = first
        while end < len(lines) and numeric[end]:
            end += 1
        if end - first >= _LEAST_ROWS and first > 0:
            table = _table(first, end, lines, cells_of)
            if table is not None:
                found.append(table)
        first = max(end, first + 1)
    return tuple(found)


def _is_row(line: str) -> bool:
    # Most lines are prose, which is told without a look at each word.
    if len(_NUMBER.findall(line)) < (line.count(" ") + 1) * _NUMBERS / 2:
        return False
    words = line.split()
    if len(words) < _LEAST_WORDS:
        return False
    return sum(any(map(str.isdigit, word)) for word in words) >= len(words) * _NUMBERS


def _table(
    first: int, end: int, lines: Sequence[str], cells_of: Callable[[int], Sequence[str]]
) -> RawTable | None:
    if not any(map(str.isalpha, lines[first - 1])):
        return None
    names = cells_of(first - 1)
    if len(names) < _LEAST_CELLS:
        return None
    rows = range(first, min(end, first + _LOOKED_AT))
    fitting = sum(len(cells_of(row)) == len(names) for row in rows)
    if fitting < len(rows) * _FITTING:
        return None
    return RawTable(first - 1, end, " | ".join(names))

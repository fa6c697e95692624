"""Tables in text files: comma, semicolon, tab or bar between the cells."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator

from docpager.documents.composing import Composer, NumberedRow, add_tables
from docpager.documents.outline import OutlinedDocument
from docpager.documents.text.normalise import clean
from docpager.documents.text.reader import decode

_SAMPLE_LINES = 40
_DELIMITERS = ",;\t|"
_HINT = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
_CELL_CHARACTERS = 200_000
"""A longer cell comes of a quotation mark that is never closed."""


def read_delimited(data: bytes) -> OutlinedDocument:
    """The rows under the row that names the columns, whatever stands between the cells."""
    text, warnings = decode(data)
    hint = _HINT.match(text)
    if hint:
        text = text[hint.end() :]
    composer = Composer("delimited")
    add_tables(composer, _rows(clean(text), hint[1] if hint else None, 2 if hint else 1))
    return composer.document(warnings=warnings)


def _rows(text: str, delimiter: str | None, line: int) -> Iterator[NumberedRow]:
    """The rows, of which the first begins on that line of the file."""
    mark = delimiter or _delimiter(text)
    lines = text.split("\n")
    csv.field_size_limit(_CELL_CHARACTERS)
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=mark, skipinitialspace=True)
    while True:
        done = reader.line_num
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            break
        yield NumberedRow(row, line + done)
    # The cell that broke off had swallowed lines: from where it began, they are split as they are.
    for number, text_line in enumerate(lines[done:], start=line + done):
        yield NumberedRow(text_line.split(mark), number)


def _delimiter(text: str) -> str:
    """The mark that parts most lines into the same number of cells, two at least."""
    sample = text[:100_000].split("\n")[:_SAMPLE_LINES]
    best, chosen = (0.0, 0), ","
    for mark in _DELIMITERS:
        counts = Counter(_count(line, mark) for line in sample if line.strip())
        cells, lines = max(counts.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        if cells > 1:
            score = (lines / counts.total(), cells)
            if score > best:
                best, chosen = score, mark
    return chosen


def _count(line: str, mark: str) -> int:
    try:
        return len(next(csv.reader([line], delimiter=mark), []))
    except csv.Error:
        return line.count(mark) + 1

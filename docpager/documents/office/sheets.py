"""Spreadsheets: a sheet is a page, its rows stand under the row that names the columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from lxml import etree

from docpager.documents.composing import Composer, add_tables
from docpager.documents.office.packages import (
    UNPACKED_BYTES,
    Package,
    attribute,
    broken_xml,
    child,
    core_title,
    descendants,
    local,
    text_of,
)
from docpager.documents.office.word import embedded_files
from docpager.documents.outline import OutlinedDocument

_PLACE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
_NO_DATE = re.compile(r'"[^"]*"|\\.|\[(?!h|m|s)[^\]]*\]|_.|\*.', re.IGNORECASE)
_COLUMN_LIMIT = 16_384
_MERGED_LIMIT = 500_000
"""Cells that merged areas may cover in all."""


def read_xlsx(data: bytes, unpacked_bytes: int = UNPACKED_BYTES) -> OutlinedDocument:
    """Sheets in the order of the workbook, hidden ones too.

    A cell shows the value that was last computed, or the formula where none was kept; dates are
    written `2024-03-31`, percentages `12.5%`; merged cells are filled in.
    """
    package = Package(data, unpacked_bytes)
    part = package.main_part("xl/workbook.xml")
    book = _Workbook(package, part)
    composer = Composer("xlsx", paged=True)
    for name, target in book.sheets():
        composer.page(name)
        composer.heading(1, name)
        add_tables(composer, book.rows(target))
        for comment in book.comments(target):
            composer.paragraph(comment)
    return composer.document(title=core_title(package), attachments=embedded_files(package))


class _Workbook:
    def __init__(self, package: Package, part: str) -> None:
        self._package = package
        self._root = package.tree(part)
        self._targets = package.relations(part)
        properties = child(self._root, "workbookPr")
        early = properties is not None and attribute(properties, "date1904") in {"1", "true"}
        self._epoch = datetime(1904, 1, 1) if early else datetime(1899, 12, 30)
        self._strings = self._shared_strings()
        self._formats = self._cell_formats()

    def sheets(self) -> Iterator[tuple[str, str]]:
        """Name and part of each sheet."""
        for sheet in () if self._root is None else descendants(self._root, "sheet"):
            for key, value in sheet.attrib.items():
                if str(key).endswith("}id") and str(value) in self._targets:
                    kind, target = self._targets[str(value)]
                    if kind == "worksheet":
                        yield attribute(sheet, "name"), target

    def rows(self, part: str) -> Iterator[list[str]]:
        """The rows of a sheet as texts, in order; gaps of empty rows are one empty row.

        Raises:
            DocumentError: the sheet is no XML (`damaged`).
        """
        merged = self._merged(part)
        shown: dict[tuple[int, int], str] = {}
        last = 0
        for number, cells in self._cells(part):
            number = number or last + 1
            for origin, columns in merged.get(number, ()):
                if origin[0] == number:
                    shown[origin] = cells.get(origin[1], "")
                for column in columns:
                    cells.setdefault(column, shown.get(origin, ""))
            if number > last + 1 and last:
                yield []
            last = number
            yield [cells.get(column, "") for column in range(max(cells, default=-1) + 1)]

    def comments(self, part: str) -> Iterator[str]:
        """The comments on a sheet's cells, with their places."""
        for kind, target in self._package.relations(part).values():
            root = self._package.tree(target) if kind in {"comments", "threadedComment"} else None
            for comment in () if root is None else descendants(root, "comment", "threadedComment"):
                text = " ".join(text_of(child(comment, "text")).split())
                if text and not text.startswith("[Threaded comment]"):
                    yield f"Comment on {attribute(comment, 'ref')}: {text}"

    def _cells(self, part: str) -> Iterator[tuple[int, dict[int, str]]]:
        """Each row's number (0 if it has none) and its cells by column, from 0."""
        for row in self._stream(part, "row"):
            number = attribute(row, "r")
            cells: dict[int, str] = {}
            column = -1
            for cell in row:
                place = _PLACE.fullmatch(attribute(cell, "r"))
                column = _column(place[1]) if place else column + 1
                text = self._text(cell)
                if text and column < _COLUMN_LIMIT:
                    cells[column] = text
            yield int(number) if number.isdigit() and len(number) < 8 else 0, cells

    def _merged(self, part: str) -> dict[int, list[tuple[tuple[int, int], range]]]:
        """For each row, the merged areas that cover it: where they begin, and their columns."""
        found: dict[int, list[tuple[tuple[int, int], range]]] = {}
        covered = 0
        for element in self._stream(part, "mergeCell"):
            ends = [_PLACE.fullmatch(end) for end in attribute(element, "ref").split(":")]
            if len(ends) != 2 or ends[0] is None or ends[1] is None:
                continue
            (left, top), (right, bottom) = ends[0].groups(), ends[1].groups()
            columns = range(_column(left), _column(right) + 1)
            covered += (int(bottom) - int(top) + 1) * len(columns)
            if covered > _MERGED_LIMIT:
                break
            for row in range(int(top), int(bottom) + 1):
                found.setdefault(row, []).append(((int(top), columns.start), columns))
        return found

    def _stream(self, part: str, name: str) -> Iterator[etree._Element]:
        """Elements of that name one by one, each freed when the next is asked for."""
        with self._package.open(part) as stream:
            try:
                for _, element in etree.iterparse(
                    stream,
                    tag=f"{{*}}{name}",
                    resolve_entities=False,
                    no_network=True,
                    huge_tree=True,
                    remove_comments=True,
                    remove_pis=True,
                ):
                    yield element
                    element.clear()
                    while element.getprevious() is not None:
                        del element.getparent()[0]
            except etree.XMLSyntaxError as error:
                raise broken_xml(error) from error

    def _text(self, cell: etree._Element) -> str:
        kind = attribute(cell, "t")
        if kind == "inlineStr":
            return _rich_text(child(cell, "is"))
        value = text_of(child(cell, "v"))
        if not value:
            formula = text_of(child(cell, "f")).strip()
            return f"={formula}" if formula else ""
        if kind == "s":
            index = int(value) if value.isdigit() and len(value) < 9 else len(self._strings)
            return self._strings[index] if index < len(self._strings) else ""
        if kind == "b":
            return "TRUE" if value == "1" else "FALSE"
        if kind in {"str", "e", "d"}:
            return value
        style = attribute(cell, "s")
        shape = (
            self._formats[int(style)] if style.isdigit() and int(style) < len(self._formats) else ""
        )
        return self._number(value, shape)

    def _number(self, value: str, shape: str) -> str:
        try:
            number = float(value)
        except ValueError:
            return value
        if shape == "date":
            return self._date(number) or value
        if shape == "percent":
            return f"{number * 100:.10g}%"
        # What the sheet shows has 15 digits at most; the last ones of what is stored are noise.
        return f"{number:.15g}" if abs(number) < 1e15 else value

    def _date(self, number: float) -> str:
        try:
            moment = self._epoch + timedelta(seconds=round(number * 86_400))
        except OverflowError:
            return ""
        if 0 <= number < 1:
            return f"{moment:%H:%M:%S}".removesuffix(":00")
        shown = f"{moment:%Y-%m-%d %H:%M:%S}"
        return (
            shown.removesuffix(" 00:00:00").removesuffix(":00") if shown.endswith(":00") else shown
        )

    def _shared_strings(self) -> list[str]:
        for kind, target in self._targets.values():
            if kind == "sharedStrings":
                return [_rich_text(one) for one in self._stream(target, "si")]
        return []

    def _cell_formats(self) -> list[str]:
        """For each style of cells: `date`, `percent` or nothing."""
        target = next((one for kind, one in self._targets.values() if kind == "styles"), "")
        root = self._package.tree(target) if target else None
        if root is None:
            return []
        codes = {
            attribute(one, "numFmtId"): attribute(one, "formatCode")
            for one in descendants(root, "numFmt")
        }
        used = child(root, "cellXfs")
        names = [attribute(one, "numFmtId") for one in (() if used is None else used)]
        return [_shape(name, codes.get(name, "")) for name in names]


def _shape(name: str, code: str) -> str:
    if name.isdigit() and int(name) in _DATE_FORMATS:
        return "date"
    if name in {"9", "10"}:
        return "percent"
    bare = _NO_DATE.sub("", code.split(";")[0]).lower()
    if "%" in bare:
        return "percent"
    return "date" if re.search("[ymdhs]", bare.replace("general", "")) else ""


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _rich_text(element: etree._Element | None) -> str:
    """A string without the readings (of Japanese characters) that are kept beside it."""
    if element is None:
        return ""
    return "".join(
        one.text or ""
        for one in element.iter("{*}t")
        if not (one.getparent() is not None and local(one.getparent()) == "rPh")
    )

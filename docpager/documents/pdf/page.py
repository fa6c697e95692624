"""A page as pdfium reads it: cleaned lines in reading order, and how tall their letters are."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from math import hypot
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium_c

from docpager.documents.pdf.quality import ink
from docpager.documents.pdf.tables import RawTable, find_tables
from docpager.documents.text.normalise import clean, one_line

# pdfium puts a noncharacter where it joined the halves of a word that was hyphenated at a line
# end: between small letters the hyphen was the typesetter's, else ("PaSa-GPT-4o") the author's.
# It puts the same where a font does not say what a glyph stands for: its code is 0 there.
_MARK = re.compile("[\ufffe\x02](?<=\\w.)(?=\\w)")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_RTL_PAIR = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]{2}")
_RTL_RUN = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc](?:[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc ]*"
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc])?"
)
# Ligatures, Arabic letters in the form of their place in a word, radicals in place of characters:
# how a font draws letters, which nobody types.
_DRAWN_FORMS = re.compile("[\u2e80-\u2fd5\ufb00-\ufb06\ufb13-\ufdff\ufe70-\ufefc]+")
_FEW_CHARACTERS = 200
"""Pages with less ink than this are looked at twice."""
_PICTURE = 0.5
"""A picture over this much of a page, with little text beside it, may be what there is to read."""
_LIGATURE_WIDTH = (0.72, 0.95)
"""Of three letters in one glyph, in parts of the font's size."""
_FFL_BEFORE = frozenset("eiouy")
_NOT_SEEN = -1.0
_CELL_GAP = 0.6
"""Between cells, in parts of how tall letters are: blanks between words have about half of it."""
_BLANKS = re.compile(r"(?<=\S)\s+(?=\S)")
_loose_box: Callable[[Any, int, Any], int] = pdfium_c.FPDFText_GetLooseCharBox


@dataclass(frozen=True, slots=True)
class RawPage:
    """What pdfium makes of a page; a line's letter height is in points, 0.0 if not known."""

    lines: tuple[str, ...]
    heights: tuple[float, ...]
    tables: tuple[RawTable, ...]
    blank: bool
    """Whether nothing at all is drawn on it."""
    pictured: bool
    """Whether a picture fills much of it, and little text stands beside that."""
    low: bool
    """Whether there is less text than the page's text objects let expect."""

    @classmethod
    def read(cls, page: pypdfium2.PdfPage) -> RawPage:
        """Read an open page.

        Raises:
            pypdfium2.PdfiumError: pdfium cannot.
        """
        with closing(page.get_textpage()) as textpage:
            lines, heights, tables = _read_lines(page, textpage)
        objects = pdfium_c.FPDFPage_CountObjects(page)
        much = sum(map(len, lines)) > 4 * _FEW_CHARACTERS
        amount = _FEW_CHARACTERS if much else sum(map(ink, lines))
        pictured = low = False
        if amount < _FEW_CHARACTERS and objects > 0:
            texts, pictured = _drawn(page, objects)
            low = amount < texts
        return cls(tuple(lines), tuple(heights), tables, objects <= 0, pictured, low)


def clean_line(line: str) -> str:
    """A line of a PDF as it is stored: cleaned, without line breaks or blanks at its end."""
    return clean(_drawn_forms(_MARK.sub(_joint, line))).replace("\n", " ").rstrip()


def _joint(mark: re.Match[str]) -> str:
    before, after = mark.string[mark.start() - 1], mark.string[mark.end()]
    return "" if before.isalpha() and after.islower() else "-"


def _drawn_forms(text: str) -> str:
    return _DRAWN_FORMS.sub(lambda drawn: unicodedata.normalize("NFKC", drawn[0]), text)


def _read_lines(
    page: pypdfium2.PdfPage, textpage: pypdfium2.PdfTextPage
) -> tuple[list[str], list[float], tuple[RawTable, ...]]:
    raw = textpage.get_text_range()
    if not raw.strip():
        return [], [], ()
    characters = _Characters(textpage, raw, sideways=page.get_rotation() in (90, 270))
    if not raw.isascii() or "\x02" in raw:
        raw = _resolve_glyphs(raw, characters)
        raw = _right_to_left(raw, characters)
    raw_lines = raw.split("\r\n")
    heights: list[float] = []
    places: list[int] = []
    place = 0
    for line in raw_lines:
        heights.append(characters.height_of(line, place))
        places.append(place)
        place += len(line) + 2

    def cells_of(number: int) -> list[str]:
        line = raw_lines[number]
        return [one_line(cell) for cell in characters.cells_of(line, places[number])]

    return _clean_lines(raw_lines), heights, find_tables(raw_lines, cells_of)


def _clean_lines(lines: list[str]) -> list[str]:
    """As `clean_line` of each, at the cost of one: nearly every page is plain."""
    text = "\n".join(lines)
    if not text.isascii() or _UNSEEN.search(text):
        cleaned = clean(_drawn_forms(_MARK.sub(_joint, text))).split("\n")
        if len(cleaned) != len(lines):
            return [clean_line(line) for line in lines]
        lines = cleaned
    return [line.rstrip() for line in lines]


class _Characters:
    """What pdfium knows of a page's characters, by their places in the page's raw text."""

    def __init__(self, textpage: pypdfium2.PdfTextPage, raw: str, *, sideways: bool) -> None:
        self._textpage = textpage.raw
        # pdfium counts characters that it leaves out of the text: mostly there are none.
        self._same = textpage.count_chars() == len(raw)
        self._sideways = sideways
        self._box = pdfium_c.FS_RECTF()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()

    def _index(self, place: int) -> int:
        if self._same:
            return place
        return int(pdfium_c.FPDFText_GetCharIndexFromTextIndex(self._textpage, place))

    def height_of(self, line: str, place: int) -> float:
        """The height of a line's letters, taken from the first one that pdfium has a box for."""
        box = self._box
        for offset, character in enumerate(line[:12]):
            if character.isalnum():
                index = place + offset if self._same else self._index(place + offset)
                if index >= 0 and _loose_box(self._textpage, index, box):
                    # What is upright on a page that lies on its side is not so on the sheet.
                    across = box.right - box.left if self._sideways else box.top - box.bottom
                    return float(abs(across))
        return 0.0

    def cells_of(self, line: str, place: int) -> list[str]:
        """The parts of a line between gaps that are wider than blanks between words are."""
        if self._sideways:
            return [line]
        wide = self.height_of(line, place) * _CELL_GAP
        parts: list[str] = []
        begin = 0
        for blank in _BLANKS.finditer(line):
            if self._gap(place + blank.start() - 1, place + blank.end()) > wide:
                parts.append(line[begin : blank.start()])
                begin = blank.end()
        return [*parts, line[begin:]]

    def _gap(self, before: int, after: int) -> float:
        indices = self._index(before), self._index(after)
        if min(indices) < 0 or not self._boxed(indices[0]):
            return 0.0
        right = float(self._box.right)
        return float(self._box.left) - right if self._boxed(indices[1]) else 0.0

    def is_unknown(self, place: int) -> bool:
        """Whether the font does not say which character the glyph there is."""
        index = self._index(place)
        return index >= 0 and pdfium_c.FPDFText_GetUnicode(self._textpage, index) == 0

    def width_in_font(self, place: int) -> float:
        """How wide the glyph is, in parts of the font's size as it is drawn; 0.0 if unknown."""
        index = self._index(place)
        if index < 0 or not self._boxed(index):
            return 0.0
        matrix = pdfium_c.FS_MATRIX()
        if not pdfium_c.FPDFText_GetMatrix(self._textpage, index, matrix):
            return 0.0
        size = pdfium_c.FPDFText_GetFontSize(self._textpage, index) * hypot(matrix.a, matrix.b)
        return abs(float(self._box.right - self._box.left)) / size if size > 0 else 0.0

    def x_of(self, place: int) -> float:
        """Where along the line a character begins, in points."""
        index = self._index(place)
        found = index >= 0 and pdfium_c.FPDFText_GetCharOrigin(
            self._textpage, index, self._x, self._y
        )
        if not found:
            return _NOT_SEEN
        return float(self._y.value if self._sideways else self._x.value)

    def _boxed(self, index: int) -> bool:
        return bool(_loose_box(self._textpage, index, self._box))


def _resolve_glyphs(raw: str, characters: _Characters) -> str:
    """Glyphs of no known meaning inside words: a ligature by its width, else U+FFFD.

    The letters that two fonts in three leave unexplained are `ffi` and `ffl`, and what follows
    tells which of them it is: a vowel after `ffl`, but for rare words a consonant after `ffi`.
    """

    def resolve(mark: re.Match[str]) -> str:
        place = mark.start()
        if not characters.is_unknown(place):
            return mark[0]
        low, high = _LIGATURE_WIDTH
        if low <= characters.width_in_font(place) <= high and raw[place + 1].islower():
            return "\ufb04" if raw[place + 1] in _FFL_BEFORE else "\ufb03"
        return "\ufffd"

    return _MARK.sub(resolve, raw)


def _right_to_left(raw: str, characters: _Characters) -> str:
    """Arabic and Hebrew in the order in which they are read, however they were drawn."""
    if not _RTL_PAIR.search(raw):
        return raw
    parts = []
    place = 0
    for line in raw.split("\r\n"):
        parts.append(_ordered(line, place, characters) if _RTL_PAIR.search(line) else line)
        place += len(line) + 2
    return "\r\n".join(parts)


def _ordered(line: str, place: int, characters: _Characters) -> str:
    where = [characters.x_of(place + offset) for offset in range(len(line))]
    letters = [bool(_RTL_PAIR.match(character * 2)) for character in line]
    steps = [
        where[offset + 1] - where[offset]
        for offset in range(len(line) - 1)
        if letters[offset] and letters[offset + 1]
    ]
    forward = sum(step > 0.5 for step in steps)
    if forward > sum(step < -0.5 for step in steps):
        # Words that stand from left to right were written down as they look.
        return _RTL_RUN.sub(lambda run: run[0][::-1], line)
    return "".join(_ligatures_turned(line, where, letters))


def _ligatures_turned(line: str, where: list[float], letters: list[bool]) -> Iterator[str]:
    """The line; letters that are one glyph (lam-alef) come out of pdfium in the wrong order."""
    offset = 0
    while offset < len(line):
        end = offset + 1
        while end < len(line) and letters[offset] and letters[end] and _together(where, end):
            end += 1
        glyph = line[offset:end]
        # An accent over its letter is drawn where the letter is, and stays behind it.
        several = sum(not unicodedata.combining(character) for character in glyph) > 1
        yield glyph[::-1] if several else glyph
        offset = end


def _together(where: list[float], place: int) -> bool:
    return where[place] != _NOT_SEEN and abs(where[place] - where[place - 1]) < 0.01


def _drawn(page: pypdfium2.PdfPage, objects: int) -> tuple[int, bool]:
    """How many text objects are on a page, and whether a picture fills much of it."""
    width, height = page.get_size()
    enough = width * height * _PICTURE
    texts, pictured = 0, False
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    for number in range(objects):
        drawn = pdfium_c.FPDFPage_GetObject(page, number)
        kind = pdfium_c.FPDFPageObj_GetType(drawn)
        if kind == pdfium_c.FPDF_PAGEOBJ_TEXT:
            texts += 1
        elif (
            not pictured
            and kind in (pdfium_c.FPDF_PAGEOBJ_IMAGE, pdfium_c.FPDF_PAGEOBJ_FORM)
            and pdfium_c.FPDFPageObj_GetBounds(drawn, left, bottom, right, top)
        ):
            area = (right.value - left.value) * (top.value - bottom.value)
            pictured = area >= enough
    return texts, pictured

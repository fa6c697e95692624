"""Rich Text Format: one pass over its groups and control words, in time linear in its length."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace

from docpager.documents.composing import Composer, add_tables
from docpager.documents.outline import OutlinedDocument

_TOKEN = re.compile(
    r"\\([a-zA-Z]{1,32})(-?[0-9]{1,9})? ?|\\'([0-9a-fA-F]{2})|\\(.)|([{}])|([^\\{}\r\n]+)|[\r\n]+",
    re.DOTALL,
)
_HEADING_STYLE = re.compile(r"\\s([0-9]{1,4})\b[^{}]{0,400}?heading ([1-9])")
_CHARSETS = {
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "cp936",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
}
_SAID = {
    "tab": "\t",
    "line": "\n",
    "emdash": "\u2014",
    "endash": "\u2013",
    "bullet": "\u2022",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "\u201c",
    "rdblquote": "\u201d",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
}
_SYMBOLS = {"~": "\xa0", "_": "\u2011", "{": "{", "}": "}", "\\": "\\"}
_UNSAID = frozenset(
    {"colortbl", "stylesheet", "pict", "object", "fldinst", "info", "xe", "tc", "nonesttables"}
    | {"datastore", "themedata", "listtable", "listoverridetable", "revtbl", "filetbl", "upr"}
)
_ASIDE = {
    "footnote": "Footnote",
    "annotation": "Comment",
    "header": "Header",
    "headerl": "Header",
    "headerr": "Header",
    "headerf": "Header",
    "footer": "Footer",
    "footerl": "Footer",
    "footerr": "Footer",
    "footerf": "Footer",
}
"""Groups whose text stands apart from that around them."""
_DEPTH_LIMIT = 10_000


def read_rtf(data: bytes) -> OutlinedDocument:
    """The text in paragraphs, with tables, footnotes and comments; headers and footers at the end.

    Pictures and what is hidden are left out.
    """
    reader = _Reader(data.decode("latin-1"))
    reader.read()
    return reader.document()


@dataclass(frozen=True, slots=True)
class _State:
    """What a group inherits, and gives back at its end."""

    charset: str
    skipped: bool = False
    hidden: bool = False
    in_fonts: bool = False
    in_title: bool = False
    aside: str = ""
    fallback: int = 1
    """How many characters stand in for one that is written as a number."""


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._composer = Composer("rtf")
        self._default = "cp1252"
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._state = _State(self._default)
        self._stack: list[_State] = []
        self._starred = False
        self._bytes = bytearray()
        self._parts: list[str] = []
        self._aside: list[str] = []
        self._notes: list[str] = []
        self._margins: dict[str, None] = {}
        self._title: list[str] = []
        self._left_out = 0
        """Characters that are still to be passed over."""
        self._level = 0
        self._in_table = False
        self._cells: list[str] = []
        self._rows: list[list[str]] = []
        self._styles = {
            int(number): int(level) for number, level in _HEADING_STYLE.findall(source[: 1 << 20])
        }

    def read(self) -> None:
        """Take the whole source in."""
        position = 0
        while found := _TOKEN.match(self._source, position):
            position = found.end()
            word, number, code, symbol, brace, text = found.groups()
            if brace:
                self._brace(brace)
                if not self._stack and brace == "}":
                    break
            elif word == "bin":
                position += max(0, int(number or 0))
            elif word:
                self._word(word, None if number is None else int(number))
            elif code:
                self._raw(bytes([int(code, 16)]))
            elif symbol:
                self._symbol(symbol)
            elif text:
                self._raw(text.encode("latin-1"))
        self._paragraph()

    def document(self) -> OutlinedDocument:
        """What was read."""
        self._end_table()
        for text in self._margins:
            self._composer.paragraph(text)
        return self._composer.document(title="".join(self._title))

    # -- tokens

    def _brace(self, brace: str) -> None:
        self._flush()
        self._left_out = 0
        if brace == "{":
            self._starred = False
            if len(self._stack) < _DEPTH_LIMIT:
                self._stack.append(self._state)
            return
        before, self._state = self._state, self._stack.pop() if self._stack else self._state
        if before.aside and before.aside != self._state.aside:
            self._end_aside(before.aside)

    def _symbol(self, symbol: str) -> None:
        if symbol == "*":
            self._starred = True
        elif symbol in "\r\n":
            self._paragraph()
        elif symbol in _SYMBOLS:
            self._say(_SYMBOLS[symbol])

    def _word(self, word: str, number: int | None) -> None:
        starred, self._starred = self._starred, False
        self._left_out = 0
        state = self._state
        if word in _ASIDE:
            self._flush()
            self._state = replace(state, aside=word)
        elif word == "title" and not starred:
            self._title.clear()  # it may come twice, the second time in Unicode
            self._state = replace(state, skipped=False, in_title=True)
        elif word == "fonttbl":
            self._state = replace(state, in_fonts=True)
        elif word in _UNSAID or starred:
            self._state = replace(state, skipped=True)
        elif word in _SAID:
            self._say(_SAID[word])
        elif word == "u" and number is not None:
            self._say(chr(number & 0xFFFF))
            self._left_out = state.fallback
        elif word in {"par", "sect", "page", "cell", "nestcell", "row", "nestrow"}:
            self._boundary(word)
        else:
            self._property(word, number)

    def _property(self, word: str, number: int | None) -> None:
        state = self._state
        if word == "uc":
            self._state = replace(state, fallback=min(max(number or 0, 0), 100))
        elif word in {"v", "deleted"}:
            self._flush()
            self._state = replace(state, hidden=number != 0)
        elif word == "plain":
            self._flush()
            self._state = replace(state, hidden=False)
        elif word == "ansicpg" and number:
            self._default = _codec(f"cp{number}") or self._default
            self._state = replace(state, charset=self._default)
        elif word in {"f", "fcharset"} and number is not None:
            self._choose_font(word, number)
        elif word == "pard":
            self._level, self._in_table = 0, False
        elif word == "intbl":
            self._in_table = True
        elif word == "outlinelevel" and number is not None:
            self._level = number + 1 if 0 <= number < 9 else 0
        elif word == "s" and number in self._styles:
            self._level = self._styles[number]

    def _choose_font(self, word: str, number: int) -> None:
        self._flush()
        if word == "f":
            self._font = number
            charset = self._fonts.get(number, self._default)
            self._state = replace(self._state, charset=charset)
        elif self._state.in_fonts:
            self._fonts[self._font] = _CHARSETS.get(number, self._default)

    # -- text

    def _raw(self, text: bytes) -> None:
        """Bytes in the charset of the font: one character can be parted over several tokens."""
        passed = min(self._left_out, len(text))
        self._left_out -= passed
        self._bytes += text[passed:]

    def _say(self, text: str) -> None:
        self._flush()
        self._keep(text)

    def _flush(self) -> None:
        if self._bytes:
            text = self._bytes.decode(self._state.charset, errors="replace")
            self._bytes.clear()
            self._keep(text)

    def _keep(self, text: str) -> None:
        state = self._state
        if state.in_title:
            self._title.append(text)
        elif state.skipped or state.hidden or state.in_fonts:
            return
        elif state.aside:
            self._aside.append(text)
        else:
            self._parts.append(text)

    # -- blocks

    def _boundary(self, word: str) -> None:
        self._flush()
        if self._state.skipped or self._state.aside:
            self._keep("\n")
        elif word in {"cell", "nestcell"}:
            self._cells.append("".join(self._parts))
            self._parts.clear()
        elif word in {"row", "nestrow"}:
            if self._cells:
                self._rows.append(self._cells)
            self._cells = []
        else:
            self._paragraph()

    def _paragraph(self) -> None:
        self._flush()
        if self._in_table and self._parts:
            self._parts.append("\n")
            return
        text = "".join(self._parts)
        self._parts.clear()
        if text.strip():
            self._end_table()
            if self._level:
                self._composer.heading(min(self._level, 6), text)
            else:
                self._composer.paragraph(text)
        self._end_notes()

    def _end_aside(self, aside: str) -> None:
        text = " ".join("".join(self._aside).split())
        self._aside.clear()
        if not text:
            return
        kind = _ASIDE[aside]
        if kind in {"Header", "Footer"}:
            self._margins.setdefault(f"{kind}: {text}")
        else:
            self._notes.append(f"{kind}: {text}")

    def _end_table(self) -> None:
        if self._cells:
            self._rows.append(self._cells)
        rows, self._rows, self._cells = self._rows, [], []
        add_tables(self._composer, rows)
        if rows:
            self._end_notes()

    def _end_notes(self) -> None:
        if not self._rows and not self._cells:
            for note in self._notes:
                self._composer.paragraph(note)
            self._notes.clear()


def _codec(name: str) -> str | None:
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None

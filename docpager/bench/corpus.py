"""PDFs to measure with, made on the spot: the same bytes at every run, of text that nobody wrote.

The writer knows one font and one kind of stream, which is all it takes, and needs no library.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["dense", "sparse", "book"]

_WIDTH, _HEIGHT = 612, 792
_ONSETS = ("b", "br", "c", "d", "dr", "f", "g", "gl", "h", "l", "m", "n", "p", "r", "s", "st", "t")
_VOWELS = ("a", "e", "i", "o", "u", "ea", "ou")
_CODAS = ("", "l", "n", "nd", "r", "s", "st", "t")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of text where it stands on the page, in points from the lower left corner."""

    x: int
    y: int
    size: int
    text: str


def make_corpus(folder: Path, kind: Kind, files: int, pages: int) -> None:
    """Write `files` PDFs of `pages` pages each: dense two-column, sparse, or like a book."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        draw = random.Random(f"{kind} {number}")
        words = [_word(draw) for _ in range(4_000)]
        sheets = [_PAGES[kind](draw, words, page) for page in range(1, pages + 1)]
        (folder / f"{kind}-{number:03}.pdf").write_bytes(_pdf(sheets))


def _word(draw: random.Random) -> str:
    syllables = draw.choices((1, 2, 3, 4), (3, 5, 3, 1))[0]
    parts = (draw.choice(part) for _ in range(syllables) for part in (_ONSETS, _VOWELS, _CODAS))
    return "".join(parts)


def _lines(draw: random.Random, words: Sequence[str], width: int, count: int) -> Iterator[str]:
    """`count` lines of sentences, each of about `width` characters."""
    line: list[str] = []
    length, left, begins = 0, 0, True
    while count:
        if not left:
            left, begins = draw.randint(6, 22), True
        # Common words are common: the smaller of two draws, twice.
        word = words[min(draw.randrange(len(words)), draw.randrange(len(words)))]
        left -= 1
        shown = (word.capitalize() if begins else word) + ("" if left else ".")
        begins = False
        if length + len(shown) > width:
            yield " ".join(line)
            line, length, count = [], 0, count - 1
        line.append(shown)
        length += len(shown) + 1


def _dense(draw: random.Random, words: Sequence[str], page: int) -> list[_Line]:
    found = [_Line(54, 760, 8, f"Proceedings, page {page}")]
    for x in (54, 312):
        for row, text in enumerate(_lines(draw, words, 52, 66)):
            found.append(_Line(x, 738 - 10 * row, 9, text))
    return found


def _sparse(draw: random.Random, words: Sequence[str], page: int) -> list[_Line]:
    found = [_Line(72, 700, 20, f"{page} {next(_lines(draw, words, 30, 1))}")]
    for row, text in enumerate(_lines(draw, words, 60, 6)):
        found.append(_Line(90, 640 - 36 * row, 14, text))
    return found


def _book(draw: random.Random, words: Sequence[str], page: int) -> list[_Line]:
    found = [_Line(300, 40, 9, str(page))]
    top = 720
    if page % 12 == 1:
        found.append(_Line(90, 690, 18, f"Chapter {page // 12 + 1}"))
        top = 640
    for row, text in enumerate(_lines(draw, words, 72, (top - 70) // 16)):
        found.append(_Line(90, top - 16 * row, 11, text))
    return found


_PAGES: dict[Kind, Callable[[random.Random, Sequence[str], int], list[_Line]]] = {
    "dense": _dense,
    "sparse": _sparse,
    "book": _book,
}


def _pdf(sheets: Sequence[Sequence[_Line]]) -> bytes:
    """A PDF of one page for each sheet."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(sheets)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(sheets)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman /Encoding /WinAnsiEncoding >>",
    ]
    for at, sheet in enumerate(sheets):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {_WIDTH} {_HEIGHT}] /Contents "
            f"{5 + 2 * at} 0 R /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        drawn = zlib.compress("\n".join(map(_drawn, sheet)).encode("ascii"), 6)
        head = f"<< /Length {len(drawn)} /Filter /FlateDecode >>\nstream\n".encode()
        objects.append(head + drawn + b"\nendstream")
    return _file(objects)


def _drawn(line: _Line) -> str:
    return f"BT /F1 {line.size} Tf {line.x} {line.y} Td ({line.text}) Tj ET"


def _file(objects: Sequence[bytes]) -> bytes:
    """Objects 1 to n with their cross-reference table."""
    made = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(made))
        made += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table = len(made)
    made += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    made += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    made += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{table}\n".encode()
    return bytes(made + b"%%EOF\n")

"""Plain text and Markdown become numbered sections, whatever charset their bytes are in."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from charset_normalizer import from_bytes

from docpager.documents.formats import (
    HEAD_BYTES,
    looks_binary,
    unmarked_utf16,
    zeros_before_text,
)
from docpager.documents.outline import SECTION_LEVEL, Heading, OutlinedDocument, TableSpan
from docpager.documents.text.charsets import IMPLAUSIBLE, ranked
from docpager.documents.text.normalise import clean, one_line, struck_once, whole_character_end
from docpager.errors import DocumentError
from docpager.types import PageText, ParsedDocument

SECTION_CHARACTERS = 2_500
"""Without form feeds, a section ends at the first blank line after so many characters."""
SECTION_LIMIT = 4 * SECTION_CHARACTERS
"""A section without a blank line is cut here at the latest."""

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BAD_BYTES = 0.005
"""Share of bytes that may be no UTF-8 in a text that is UTF-8 all the same."""

_ISO_2022 = re.compile(rb"\x1b\$[@B]")

_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s|[。！？]")
_WHITE = re.compile(r"\s")
_INK = re.compile(r"\S")

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_ATX_TAIL = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_SETEXT = re.compile(r" {0,3}(?:=+|-{2,})[ \t]*$")
_NO_PARAGRAPH = re.compile(r" {4}|\t| {0,3}(?:[#>|]|[-+*][ \t]|\d{1,9}[.)][ \t]|$)")
_TABLE_RULE = re.compile(
    r"^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$", re.MULTILINE
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_FRONT_MATTER_TITLE = re.compile(r"title\s*:\s*(.*)", re.IGNORECASE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")


def decode(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file's bytes, and warnings where its charset leaves doubts.

    Raises:
        DocumentError: the bytes are no text in any charset (`not_a_document`).
    """
    zeros = zeros_before_text(data)
    if zeros and not data.strip(b"\0"):
        raise _no_text()
    text, warnings = _decode(data[zeros:] if zeros else data)
    if zeros:
        warnings = (f"It begins with {zeros:,} zero bytes, which are left out.", *warnings)
    return struck_once(text), warnings


def _decode(data: bytes) -> tuple[str, tuple[str, ...]]:
    for mark, charset in _BOMS:
        if data.startswith(mark):
            return _decode_loosely(data, charset)
    unmarked = unmarked_utf16(data[:HEAD_BYTES])
    if unmarked:
        return _decode_loosely(data, unmarked)
    if looks_binary(data[:HEAD_BYTES]):
        raise _no_text()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _decode_damaged_utf8(data) or _decode_guessed(data)
    return _decode_iso_2022(data) if _ISO_2022.search(data) else (text, ())


def _decode_iso_2022(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Japanese in seven bits; what only has some escapes stays as it is."""
    try:
        return data.decode("iso2022_jp_ext"), ()
    except UnicodeDecodeError:
        return data.decode("utf-8"), ()


def read_text(data: bytes, doubts: tuple[str, ...] = ()) -> OutlinedDocument:
    """Plain text in sections: at form feeds, else at blank lines, else where it gets too long.

    `doubts` are told with its own warnings.
    """
    text, warnings = decode(data)
    warnings = (*doubts, *warnings)
    sections: list[_Section] = []
    line = 1
    leaves = text.split("\f")
    for leaf in leaves:
        cleaned = clean(leaf)
        if len(leaves) == 1:
            sections += _cut(cleaned, line)
        else:
            sections.append(_Section(cleaned, line))
        line += cleaned.count("\n")
    pages = _pages(sections, "text")
    return OutlinedDocument(ParsedDocument(pages, paged=False, warnings=warnings))


def read_markdown(data: bytes) -> OutlinedDocument:
    """Markdown in sections that begin at its headings of level 1 and 2; fences hold none."""
    text, warnings = decode(data)
    scan = _scan_markdown(clean(text))
    sections = list(_markdown_sections(scan))
    document = ParsedDocument(
        _pages(sections, "markdown"), paged=False, title=scan.title, warnings=warnings
    )
    return OutlinedDocument(document, scan.headings, scan.fences, scan.tables)


@dataclass(frozen=True, slots=True)
class _Section:
    text: str
    first_line: int
    heading: str | None = None


def _pages(sections: list[_Section], engine: str) -> tuple[PageText, ...]:
    return tuple(
        PageText(
            number,
            section.text,
            engine=engine,
            heading=section.heading,
            first_line=section.first_line,
        )
        for number, section in enumerate(sections, start=1)
    )


def _no_text() -> DocumentError:
    return DocumentError(
        "not_a_document",
        "The file holds binary data, not text. Rename it to what it is, or leave it out.",
    )


def _decode_loosely(data: bytes, charset: str) -> tuple[str, tuple[str, ...]]:
    text = data.decode(charset, errors="replace")
    bad = text.count("\ufffd")
    return text, (f"{bad} characters could not be decoded as {charset}.",) if bad else ()


def _decode_damaged_utf8(data: bytes) -> tuple[str, tuple[str, ...]] | None:
    """UTF-8 with a few bad bytes, if good sequences outnumber them: else it is another charset."""
    text = data.decode("utf-8", errors="surrogateescape")
    bad = sum("\udc80" <= character <= "\udcff" for character in text)
    good = sum(character > "\x7f" for character in text) - bad
    if bad > len(data) * _BAD_BYTES or good < bad:
        return None
    return data.decode("utf-8", errors="replace"), (f"{bad} bytes are not UTF-8.",)


def _decode_guessed(data: bytes) -> tuple[str, tuple[str, ...]]:
    charset, cost = ranked(data)[0]
    if cost >= IMPLAUSIBLE:
        best = from_bytes(data).best()
        if best is None:
            raise _no_text()
        charset = best.encoding
    return _decode_loosely(data, charset)


def _cut(text: str, first_line: int) -> Iterator[_Section]:
    """Sections of a long text; the white space at a cut goes, the rest is kept in order."""
    start = 0
    while True:
        stop = _section_end(text, start)
        following = _INK.search(text, stop)
        if following is None:
            yield _Section(text[start:stop].rstrip(), first_line)
            return
        yield _Section(text[start:stop].rstrip(), first_line)
        # After a line break the indentation of the next line is part of it.
        line_break = text.rfind("\n", stop, following.start())
        next_start = line_break + 1 if line_break >= 0 else following.start()
        first_line += text.count("\n", start, next_start)
        start = next_start


def _section_end(text: str, start: int) -> int:
    if len(text) - start <= SECTION_CHARACTERS * 3 // 2:
        return len(text)
    earliest, latest = start + SECTION_CHARACTERS, start + SECTION_LIMIT
    blank = _BLANK_LINES.search(text, earliest, latest)
    if blank:
        return blank.start()
    newline = text.find("\n", earliest, latest)
    if newline >= 0:
        return newline
    if len(text) <= latest:
        return len(text)
    sentence = _SENTENCE_END.search(text, earliest, latest)
    if sentence:
        return sentence.end()
    white = _WHITE.search(text, earliest, latest)
    return white.start() if white else whole_character_end(text, start, latest)


@dataclass(frozen=True, slots=True)
class _Scan:
    text: str
    headings: tuple[Heading, ...]
    fences: tuple[tuple[int, int], ...]
    tables: tuple[TableSpan, ...]
    title: str | None
    body_start: int
    """Where the text after the front matter begins."""


def _scan_markdown(text: str) -> _Scan:
    headings: list[Heading] = []
    fences: list[tuple[int, int]] = []
    body_start, title = _front_matter(text)
    fence: tuple[str, int] | None = None
    paragraph: tuple[int, str] | None = None
    for start, line in _lines(text, body_start):
        mark = _FENCE.match(line)
        if fence is not None:
            if mark and mark[1].startswith(fence[0]) and line.strip() == mark[1]:
                fences.append((fence[1], start + len(line)))
                fence = None
            continue
        if mark:
            fence, paragraph = (mark[1], start), None
        elif atx := _ATX.match(line):
            words = _ATX_TAIL.sub("", atx[2] or "")
            headings.append(Heading(start, start + len(line), len(atx[1]), _plain(words)))
            paragraph = None
        elif paragraph and _SETEXT.match(line):
            level = 1 if "=" in line else 2
            headings.append(Heading(paragraph[0], start + len(line), level, _plain(paragraph[1])))
            paragraph = None
        elif _NO_PARAGRAPH.match(line) or paragraph is not None:
            # Only a paragraph of one line is taken for a title that is underlined.
            paragraph = None
        elif _INK.search(line):
            paragraph = (start, line)
    if fence is not None:
        fences.append((fence[1], len(text)))
    kept = tuple(heading for heading in headings if heading.title)
    if title is None and kept and kept[0].level == 1:
        title = kept[0].title
    tables = tuple(_markdown_tables(text, body_start, fences))
    return _Scan(text, kept, tuple(fences), tables, title, body_start)


def _markdown_tables(text: str, start: int, fences: list[tuple[int, int]]) -> Iterator[TableSpan]:
    """Tables outside fences: a row, a row of dashes, and all lines with a bar that follow."""
    position = start
    waiting = iter([*fences, (len(text), len(text))])
    fence = next(waiting)
    for rule in _TABLE_RULE.finditer(text, start):
        while rule.start() >= fence[1] and fence[0] < len(text):
            fence = next(waiting)
        if rule.start() < position or fence[0] <= rule.start() < fence[1]:
            continue
        top = text.rfind("\n", start, max(start, rule.start() - 1)) + 1 or start
        header = text[top : max(top, rule.start() - 1)]
        if "|" not in header or "|" not in rule[0] or top < position:
            continue
        end = rule.end()
        while end < len(text):
            stop = text.find("\n", end + 1)
            stop = len(text) if stop < 0 else stop
            if "|" not in text[end + 1 : stop]:
                break
            end = stop
        yield TableSpan(top, end, rule.end(), one_line(header))
        position = end


def _lines(text: str, start: int) -> Iterator[tuple[int, str]]:
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, text[start:end]
        start = end + 1


def _front_matter(text: str) -> tuple[int, str | None]:
    """Where the body begins, and the title that the front matter gives."""
    if not text.startswith("---\n"):
        return 0, None
    title = None
    for start, line in _lines(text, 4):
        if line.rstrip() in {"---", "..."}:
            return min(start + len(line) + 1, len(text)), title
        if found := _FRONT_MATTER_TITLE.match(line):
            title = one_line(found[1].strip().strip("\"'")) or None
    return 0, None


def _plain(markup: str) -> str:
    return one_line(_EMPHASIS.sub("", _LINK.sub(r"\1", markup)))


def _markdown_sections(scan: _Scan) -> Iterator[_Section]:
    """Spans from section heading to section heading; each stops before the line break."""
    starts: list[tuple[int, str | None]] = [(0, None)]
    body = scan.body_start
    for heading in scan.headings:
        if heading.level <= SECTION_LEVEL:
            if _INK.search(scan.text, body, heading.start) and heading.start > 0:
                starts.append((heading.start, heading.title))
            else:
                # Nothing but headings so far: they open the section together.
                starts[-1] = (starts[-1][0], heading.title)
        body = heading.end if heading.level <= SECTION_LEVEL else body
    line = 1
    ends = [start - 1 for start, _ in starts[1:]] + [len(scan.text)]
    for (start, title), end in zip(starts, ends, strict=True):
        for section in _cut_lines(scan.text[start:end], line):
            yield _Section(section.text, section.first_line, title)
        line += scan.text.count("\n", start, end + 1)


def _cut_lines(text: str, first_line: int) -> Iterator[_Section]:
    """Sections of a long section, cut at line breaks only, so that joining gives it back."""
    start = 0
    while len(text) - start > SECTION_LIMIT:
        blank = _BLANK_LINES.search(text, start + SECTION_CHARACTERS, start + SECTION_LIMIT)
        stop = blank.end() - 1 if blank else text.find("\n", start + SECTION_CHARACTERS)
        if stop < 0:
            break
        yield _Section(text[start:stop], first_line)
        first_line += text.count("\n", start, stop + 1)
        start = stop + 1
    yield _Section(text[start:], first_line)

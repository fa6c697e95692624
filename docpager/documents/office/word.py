"""Word documents: paragraphs, tables, notes, comments, headers and footers, as they are read."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from docpager.documents.attachments import Attachment
from docpager.documents.composing import Composer, add_tables
from docpager.documents.office.formulas import formula_text
from docpager.documents.office.packages import (
    UNPACKED_BYTES,
    Package,
    attribute,
    child,
    core_title,
    descendants,
    local,
)
from docpager.documents.office.symbols import symbol
from docpager.documents.outline import OutlinedDocument

_PAGE = "\x02"
"""No text of XML can hold it: it stands in a paragraph's text where a page ends."""
_HEADING_STYLE = re.compile(r"heading\s*([1-9])", re.IGNORECASE)
_DROPPED = frozenset(
    {"del", "moveFrom", "instrText", "delText", "pPr", "rPr", "sdtPr", "Fallback", "rt"}
)
"""What is deleted, how things look, what stands for another, and readings above characters."""
_SIGNS = {
    "tab": "\t",
    "ptab": "\t",
    "cr": "\n",
    "lastRenderedPageBreak": _PAGE,
    "noBreakHyphen": "-",
    "softHyphen": "",
}
_OFF = frozenset({"0", "false", "off"})
_STYLE_DEPTH = 20
"""So many styles may be based on one another."""
_SPACES = re.compile(r"[^\S\n]+")
_EMBEDDED = re.compile(r"\.(?:docx|docm|xlsx|xlsm|pptx|pptm|pdf|odt|rtf|txt|csv)$", re.IGNORECASE)


def read_docx(data: bytes, unpacked_bytes: int = UNPACKED_BYTES) -> OutlinedDocument:
    """A document in pages if Word noted where it broke them, else in sections.

    Footnotes and comments follow the paragraph that refers to them; what is deleted in tracked
    changes or hidden is left out; headers and footers stand at the end, each once.
    """
    package = Package(data, unpacked_bytes)
    part = package.main_part("word/document.xml")
    root = package.tree(part)
    body = child(root, "body")
    paged = root is not None and next(descendants(root, "lastRenderedPageBreak"), None) is not None
    composer = Composer("docx", paged=paged)
    reader = _Reader(package, part, composer)
    if body is not None:
        reader.blocks(body)
    reader.margins()
    title = core_title(package) or reader.title
    return composer.document(title=title, attachments=embedded_files(package))


def embedded_files(package: Package) -> tuple[Attachment, ...]:
    """The files that an office package holds as they are."""
    return tuple(
        Attachment(posixpath.basename(name), package.read(name))
        for name in package.names
        if "/embeddings/" in name and _EMBEDDED.search(name)
    )


class _Reader:
    def __init__(self, package: Package, part: str, composer: Composer) -> None:
        self._composer = composer
        self._package = package
        self._targets = package.relations(part)
        styles = self._part_of("styles")
        self._levels = _heading_levels(styles)
        self._numbers = _Numbering(self._part_of("numbering"), styles)
        self._shown = _Shown(_hiding_styles(styles), self._numbers)
        self._notes = {
            "footnoteReference": ("Footnote", self._texts("footnotes")),
            "endnoteReference": ("Endnote", self._texts("endnotes")),
            "commentReference": ("Comment", self._comments()),
        }
        self.title = ""
        """Of the paragraph in the style for titles, if there is one."""

    def _part_of(self, kind: str) -> etree._Element | None:
        for found, target in self._targets.values():
            if found == kind:
                return self._package.tree(target)
        return None

    def _texts(self, kind: str) -> dict[str, str]:
        """Notes by their id; separators, which have a type, are none."""
        notes = self._part_of(kind)
        return {
            attribute(note, "id"): self._shown.on_one_line(note)
            for note in (() if notes is None else notes)
            if not attribute(note, "type")
        }

    def _comments(self) -> dict[str, str]:
        comments = self._part_of("comments")
        found = {}
        for comment in () if comments is None else comments:
            author = attribute(comment, "author").strip()
            text = self._shown.on_one_line(comment)
            if text:
                found[attribute(comment, "id")] = f"Comment ({author}): {text}" if author else text
        return found

    def blocks(self, parent: etree._Element) -> None:
        """Add paragraphs and tables, through content controls and the like."""
        for element in _flat(parent):
            if local(element) == "p":
                self._paragraph(element)
            else:
                self._table(element)

    def margins(self) -> None:
        """Add the headers and footers, each text once."""
        seen: dict[str, None] = {}
        for kind, target in self._targets.values():
            if kind in {"header", "footer"}:
                root = self._package.tree(target)
                text = "" if root is None else self._shown.on_one_line(root)
                if text and not text.isdigit():
                    seen.setdefault(f"{kind.capitalize()}: {text}")
        for text in seen:
            self._composer.paragraph(text)

    def _paragraph(self, element: etree._Element) -> None:
        level = self._level(element)
        if child(child(element, "pPr"), "pageBreakBefore") is not None:
            self._break(continued=False)
        shown = self._shown.text(element)
        pieces = shown.split(_PAGE)
        mark = "" if self._shown.is_gone(element, shown) else self._numbers.mark(element)
        for number, piece in enumerate(pieces):
            if number:
                self._break(continued=bool(pieces[number - 1].strip() and piece.strip()))
            text = piece.strip()
            if level:
                self._composer.heading(level, mark + text if text else "")
            elif mark and text:
                self._composer.item(mark + text)
            else:
                self._composer.paragraph(text)
            mark = "" if text else mark
        self._references(element)

    def _break(self, *, continued: bool) -> None:
        # A break that was asked for and its place as Word last laid it out are one break.
        if self._composer.page_has_text:
            self._composer.page(continued=continued)

    def _level(self, element: etree._Element) -> int:
        properties = child(element, "pPr")
        style = child(properties, "pStyle")
        own = child(properties, "outlineLvl")
        name = "" if style is None else attribute(style, "val")
        if own is not None and attribute(own, "val").isdigit():
            level = int(attribute(own, "val")) + 1
            return level if level <= 9 else 0
        level = self._levels.get(name, 0)
        if level == 1 and name.lower() == "title" and not self.title:
            self.title = " ".join(self._shown.text(element).replace(_PAGE, " ").split())
        return level

    def _references(self, element: etree._Element) -> None:
        for reference in descendants(element, *self._notes):
            what, texts = self._notes[local(reference)]
            text = texts.get(attribute(reference, "id"), "")
            if text:
                self._composer.paragraph(f"{what}: {text}" if what != "Comment" else text)

    def _table(self, element: etree._Element) -> None:
        rows: list[list[str]] = []
        before: list[str] = []
        for row in _rows(element):
            cells = [*self._shown.cells(row, before)]
            if any(_PAGE in cell for cell in cells) and self._composer.page_has_text | bool(rows):
                self._rows(rows)
                self._composer.page()
                rows = rows[:1]
            rows.append([cell.replace(_PAGE, " ") for cell in cells])
            before = cells
        self._rows(rows)
        self._references(element)

    def _rows(self, rows: list[list[str]]) -> None:
        if max(map(len, rows), default=0) == 1:
            for (cell,) in rows:
                self._composer.paragraph(cell)
        else:
            add_tables(self._composer, rows)


def _flat(parent: etree._Element) -> Iterator[etree._Element]:
    """Paragraphs and tables below a body, in order, whatever holds them together."""
    waiting = [iter(parent)]
    while waiting:
        element = next(waiting[-1], None)
        if element is None:
            waiting.pop()
        elif local(element) in {"p", "tbl"}:
            yield element
        elif local(element) not in _DROPPED:
            waiting.append(iter(element))


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    return (row for row in descendants(table, "tr") if _owner(row, "tbl") is table)


def _owner(element: etree._Element, name: str) -> etree._Element | None:
    above = element.getparent()
    while above is not None and local(above) != name:
        above = above.getparent()
    return above


@dataclass(frozen=True, slots=True)
class _Shown:
    """Gives the text that a reader of the page sees.

    What is deleted or hidden, and the codes of fields, are left out.
    """

    hiding: frozenset[str]
    """Ids of the styles that hide what is written in them."""
    numbers: _Numbering

    def text(self, paragraph: etree._Element) -> str:
        """A paragraph's own text; that of text boxes follows the paragraph they are anchored in."""
        parts: list[str] = []
        boxes: list[str] = []
        fields: list[bool] = []
        """For each field that is open, whether its code is not at its end yet."""
        hidden = self._is_hidden_in(paragraph)
        waiting = [iter(paragraph)]
        while waiting:
            element = next(waiting[-1], None)
            if element is None:
                waiting.pop()
                continue
            name = local(element)
            if name == "txbxContent":
                boxes += self.lines(element)
            elif name == "fldChar":
                _follow(fields, attribute(element, "fldCharType"))
            elif name in _DROPPED or (name == "r" and self._hides(element, hidden)):
                continue
            elif name == "oMath":
                parts.append(formula_text(element))
            elif (text := _written(element)) is None:
                waiting.append(iter(element))
            elif not any(fields[:-1]):
                # Else it is a part of a code: the result of a field that another one works with.
                parts.append(text)
        said = _SPACES.sub(" ", "".join(parts))
        return "\n".join([said, *filter(str.strip, boxes)]) if boxes else said

    def lines(self, parent: etree._Element) -> Iterator[str]:
        """The texts of paragraphs and of tables' cells."""
        for element in _flat(parent):
            if local(element) == "p":
                text = self.text(element).strip(" ")
                mark = "" if self.is_gone(element, text) else self.numbers.mark(element)
                yield mark + text if text else ""
                continue
            before: list[str] = []
            for row in _rows(element):
                cells = [*self.cells(row, before)]
                for place, cell in enumerate(cells):
                    if before[place : place + 1] != [cell]:
                        yield cell
                before = cells

    def cells(self, row: etree._Element, before: list[str]) -> Iterator[str]:
        """The texts of a row's cells; a merged one is repeated in all rows and columns of it."""
        place = 0
        for _ in range(_count(child(child(row, "trPr"), "gridBefore"), 0)):
            yield ""
            place += 1
        for cell in descendants(row, "tc"):
            if _owner(cell, "tr") is not row:
                continue
            properties = child(cell, "tcPr")
            merged = child(properties, "vMerge")
            if merged is None or attribute(merged, "val") == "restart":
                text = "\n".join(filter(None, self.lines(cell)))
            else:
                # What such a cell holds itself is not shown.
                text = before[place].replace(_PAGE, "") if place < len(before) else ""
            for _ in range(_count(child(properties, "gridSpan"), 1)):
                yield text
                place += 1

    def on_one_line(self, root: etree._Element) -> str:
        """All text of a note, a comment, a header or a footer."""
        return " ".join(" ".join(self.lines(root)).replace(_PAGE, " ").split())

    def is_gone(self, paragraph: etree._Element, text: str) -> bool:
        """Whether nothing of a paragraph is shown, not even its number."""
        mark = child(child(paragraph, "pPr"), "rPr")
        if text.strip() or mark is None:
            return False
        return child(mark, "del") is not None or self._hides_by(mark, otherwise=False)

    def _is_hidden_in(self, paragraph: etree._Element) -> bool:
        style = child(child(paragraph, "pPr"), "pStyle")
        return style is not None and attribute(style, "val") in self.hiding

    def _hides(self, run: etree._Element, otherwise: bool) -> bool:
        return self._hides_by(child(run, "rPr"), otherwise=otherwise)

    def _hides_by(self, properties: etree._Element | None, *, otherwise: bool) -> bool:
        own = _is_vanishing(properties)
        if own is not None:
            return own
        style = child(properties, "rStyle")
        return otherwise or (style is not None and attribute(style, "val") in self.hiding)


def _written(element: etree._Element) -> str | None:
    """What a part of a run puts on the page; None for what only holds others."""
    name = local(element)
    if name == "t":
        return element.text or ""
    if name == "br":
        return _PAGE if attribute(element, "type") == "page" else "\n"
    if name == "sym":
        return symbol(attribute(element, "font"), attribute(element, "char"))
    return _SIGNS.get(name)


def _follow(fields: list[bool], kind: str) -> None:
    """Keep account of the fields that are open, at one of their marks."""
    if kind == "begin":
        fields.append(True)
    elif fields and kind == "separate":
        fields[-1] = False
    elif fields and kind == "end":
        fields.pop()


def _count(element: etree._Element | None, otherwise: int) -> int:
    value = "" if element is None else attribute(element, "val")
    return min(int(value), 100) if value.isdigit() and len(value) < 9 else otherwise


def _is_vanishing(properties: etree._Element | None) -> bool | None:
    """Whether properties of a run hide it; None where they say nothing about it."""
    found = child(properties, "vanish")
    return None if found is None else attribute(found, "val").lower() not in _OFF


def _hiding_styles(styles: etree._Element | None) -> frozenset[str]:
    """The ids of styles that hide what is written in them, by themselves or by what they follow."""
    found: dict[str, bool] = {}
    based: dict[str, str] = {}
    for style in () if styles is None else descendants(styles, "style"):
        identity = attribute(style, "styleId")
        on = child(style, "basedOn")
        own = _is_vanishing(child(style, "rPr"))
        if own is not None:
            found[identity] = own
        elif on is not None:
            based[identity] = attribute(on, "val")
    for identity in based:
        above, steps = identity, 0
        while above in based and steps < _STYLE_DEPTH:
            above, steps = based[above], steps + 1
        if found.get(above):
            found[identity] = True
    return frozenset(identity for identity, hides in found.items() if hides)


def _heading_levels(styles: etree._Element | None) -> dict[str, int]:
    """The level of each paragraph style that makes headings, by its id."""
    levels: dict[str, int] = {}
    based: dict[str, str] = {}
    for style in () if styles is None else descendants(styles, "style"):
        name = child(style, "name")
        identity = attribute(style, "styleId")
        label = "" if name is None else attribute(name, "val")
        outline = child(child(style, "pPr"), "outlineLvl")
        on = child(style, "basedOn")
        if on is not None:
            based[identity] = attribute(on, "val")
        if outline is not None and attribute(outline, "val").isdigit():
            level = int(attribute(outline, "val")) + 1
            levels[identity] = level if level <= 9 else 0
        elif found := _HEADING_STYLE.match(label):
            levels[identity] = int(found[1])
        elif label.lower() == "title":
            levels[identity] = 1
    for identity, above in based.items():
        if identity not in levels and above in levels and above.lower() != "title":
            levels[identity] = levels[above]
    return levels


class _Numbering:
    """Gives list paragraphs the mark that Word shows: `- `, `3. `, `2.1 `."""

    def __init__(self, root: etree._Element | None, styles: etree._Element | None) -> None:
        self._formats: dict[str, dict[int, tuple[str, str, int]]] = {}
        """By list, by level: number format, pattern, first number."""
        self._counted_with: dict[str, str] = {}
        """By list, what it is made after: lists made after one thing are counted on together."""
        self._restarts: dict[str, set[int]] = {}
        """By list, the levels that begin anew where it is first used."""
        self._counts: dict[str, list[int]] = {}
        self._by_style: dict[str, etree._Element] = {}
        abstract: dict[str, dict[int, tuple[str, str, int]]] = {}
        for element in () if root is None else root:
            if local(element) == "abstractNum":
                levels = (_level_format(one) for one in descendants(element, "lvl"))
                abstract[attribute(element, "abstractNumId")] = dict(filter(None, levels))
            elif local(element) == "num":
                base = child(element, "abstractNumId")
                name = "" if base is None else attribute(base, "val")
                self._add(attribute(element, "numId"), name, abstract.get(name, {}), element)
        for style in () if styles is None else descendants(styles, "style"):
            own = child(child(style, "pPr"), "numPr")
            if own is not None:
                self._by_style[attribute(style, "styleId")] = own

    def _add(
        self,
        name: str,
        base: str,
        levels: dict[int, tuple[str, str, int]],
        element: etree._Element,
    ) -> None:
        """A list of that name: the levels it is made after, and what it overrides in them."""
        own = dict(levels)
        for override in descendants(element, "lvlOverride"):
            depth = attribute(override, "ilvl")
            inner = child(override, "lvl")
            if inner is not None and (level := _level_format(inner)):
                own.update([level])
            start = child(override, "startOverride")
            if start is not None and depth.isdigit() and int(depth) in own:
                kind, pattern, first = own[int(depth)]
                own[int(depth)] = kind, pattern, _count(start, first)
                self._restarts.setdefault(name, set()).add(int(depth))
        self._formats[name] = own
        self._counted_with[name] = base

    def mark(self, paragraph: etree._Element) -> str:
        """What stands before the paragraph's text; empty for one that is in no list."""
        properties = child(paragraph, "pPr")
        own = child(properties, "numPr")
        style = child(properties, "pStyle")
        if own is None and style is not None:
            own = self._by_style.get(attribute(style, "val"))
        identity, depth = child(own, "numId"), child(own, "ilvl")
        if identity is None:
            return ""
        name = attribute(identity, "val")
        value = attribute(depth, "val") if depth is not None else "0"
        level = int(value) if value.isdigit() else 0
        found = self._formats.get(name, {}).get(level)
        if name == "0" or level > 8:
            return ""
        if found is None or found[0] in {"bullet", "none"}:
            return "- "
        counts = self._counts.setdefault(self._counted_with[name], [0] * 9)
        if level in self._restarts.get(name, ()):
            self._restarts[name].remove(level)
            counts[level] = 0
        counts[level] = counts[level] + 1 if counts[level] else found[2]
        counts[level + 1 :] = [0] * (8 - level)
        return f"{self._shown(name, found[1], counts)} "

    def _shown(self, name: str, pattern: str, counts: list[int]) -> str:
        def number(match: re.Match[str]) -> str:
            level = int(match[1]) - 1
            kind, _, first = self._formats[name].get(level, ("decimal", "", 1))
            return _numeral(counts[level] or first, kind)

        return re.sub(r"%([1-9])", number, pattern) or "-"


def _level_format(level: etree._Element) -> tuple[int, tuple[str, str, int]] | None:
    depth = attribute(level, "ilvl")
    if not depth.isdigit():
        return None
    values = {local(one): attribute(one, "val") for one in level}
    start = values.get("start", "1")
    pattern = values.get("lvlText", f"%{int(depth) + 1}.")
    first = int(start) if start.isdigit() and len(start) < 9 else 1
    return int(depth), (values.get("numFmt", "decimal"), pattern, first)


def _numeral(number: int, kind: str) -> str:
    if kind in {"lowerLetter", "upperLetter"}:
        letter = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 % 8 + 1)
        return letter if kind == "lowerLetter" else letter.upper()
    if kind in {"lowerRoman", "upperRoman"} and 0 < number < 4000:
        roman = ""
        for value, sign in _ROMAN:
            roman += sign * (number // value)
            number %= value
        return roman if kind == "lowerRoman" else roman.upper()
    return str(number)


_ROMAN = (
    (1000, "m"),
    (900, "cm"),
    (500, "d"),
    (400, "cd"),
    (100, "c"),
    (90, "xc"),
    (50, "l"),
    (40, "xl"),
    (10, "x"),
    (9, "ix"),
    (5, "v"),
    (4, "iv"),
    (1, "i"),
)

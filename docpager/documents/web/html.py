"""HTML becomes headings, paragraphs, code and tables: what a reader of the page would see."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from docpager.documents.composing import Composer, add_tables
from docpager.documents.outline import OutlinedDocument
from docpager.documents.text.reader import decode

_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"^\s*<\?xml[^>]{0,100}encoding\s*=\s*[\"']([\w.:-]+)")
_META_WITHIN = 4096
_READ_AS = {
    # As browsers do: the old names stand for the larger sets that followed.
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "tis-620": "cp874",
}
_UNSEEN = frozenset(
    {"script", "style", "template", "head", "noscript", "frame", "object", "-comment", "!doctype"}
    | {"audio", "video", "canvas", "source", "datalist", "iframe", "noframes", "frameset"}
)
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details"}
    | {"dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form"}
    | {"header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "option"}
    | {"p", "section", "summary", "ul", "table", "tbody", "thead", "tfoot", "tr", "td", "th"}
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SPACES = re.compile(r"[ \t\r\n\f]+")
_SPAN_LIMIT = 200
_CELL_LIMIT = 2_000_000
_FRAME_DEPTH = 3


def read_html(data: bytes) -> OutlinedDocument:
    """A page in sections at its headings of level 1 and 2; scripts and what is hidden left out."""
    composer = Composer("html")
    title, warnings = compose_html(data, composer)
    return composer.document(title=title, warnings=warnings)


def compose_html(data: bytes, composer: Composer) -> tuple[str, tuple[str, ...]]:
    """Add the text of a page; returns its title, and what leaves doubts in it.

    Raises:
        DocumentError: the bytes are no text in any charset (`not_a_document`).
    """
    text, warnings = _decode(data)
    page = HtmlPage(text)
    page.compose(composer)
    return page.title, (*warnings, *page.warnings)


def _decode(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a page's bytes in the charset it names, unless the bytes belie it."""
    head = data[:_META_WITHIN]
    found = _XML_CHARSET.search(head) or _META_CHARSET.search(head)
    if found and not head.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        with suppress(LookupError, UnicodeDecodeError, ValueError):
            name = codecs.lookup(found[1].decode("ascii")).name
            if not name.startswith("utf-16"):
                return data.decode(_READ_AS.get(name, name)), ()
    return decode(data)


class HtmlPage:
    """One parsed page, and what has to be said of it."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self._parser = LexborHTMLParser(text)
        self._depth = depth
        self._frames: list[str] = []
        title = self._parser.css_first("title")
        self.title = " ".join(title.text().split()) if title else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """That there are frames, if there are."""
        if not self._frames:
            return ()
        names = ", ".join(self._frames[:5])
        return (f"The page shows other files in frames, which are not followed: {names}.",)

    def compose(self, composer: Composer) -> None:
        """Add the page's text."""
        root = self._parser.body or self._parser.root
        if root is not None:
            self._flow = _Flow(composer)
            self._walk(root)
            self._flow.end()
        for frame in self._parser.css("frame"):
            self._frames.append(frame.attributes.get("src") or "without a source")
        if self._parser.body is None:
            for node in self._parser.css("noframes"):
                self._inner(node.text() or "", composer)

    def _inner(self, text: str, composer: Composer) -> None:
        if self._depth < _FRAME_DEPTH and text.strip():
            HtmlPage(text, self._depth + 1).compose(composer)

    def _walk(self, top: LexborNode) -> None:
        """Enter and leave every node below `top` in order, without recursion."""
        node: LexborNode | None = top
        while node is not None:
            inside = self._enter(node)
            following = node.child if inside else None
            while following is None and node is not None:
                if inside:
                    self._flow.leave(node.tag or "")
                if node.mem_id == top.mem_id:
                    return
                following = node.next
                if following is None:
                    node = node.parent
                    inside = True
            node = following

    def _enter(self, node: LexborNode) -> bool:
        """Take a node in; False if what is in it is done with."""
        if node.is_text_node:
            self._flow.text(node.text_content or "")
            return False
        tag = node.tag or ""
        if tag == "iframe":
            self._flow.end()
            self._inner(node.attributes.get("srcdoc") or "", self._flow.composer)
            return False
        if tag in _UNSEEN or tag.startswith("-") or _is_hidden(node):
            return False
        if tag == "table" and (table := _table(node)) is not None:
            self._flow.table(table)
            return False
        self._flow.enter(tag, node)
        return tag not in {"br", "img", "input", "hr", "wbr"}


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    return "hidden" in attributes or bool(_HIDDEN.search(attributes.get("style") or ""))


class _Flow:
    """Gathers running text into blocks."""

    def __init__(self, composer: Composer) -> None:
        self.composer = composer
        self._parts: list[str] = []
        self._level = 0
        self._pre = 0
        self._mark = ""
        """Of the list item whose text is yet to come."""
        self._lists: list[int | None] = []
        """For each list around: the next number, None for bullets."""

    def text(self, text: str) -> None:
        """Add running text; outside `pre`, white space is one space."""
        self._parts.append(text if self._pre else _SPACES.sub(" ", text))

    def enter(self, tag: str, node: LexborNode) -> None:
        """A tag opens."""
        if tag == "br":
            self._parts.append("\n")
        elif tag in _HEADINGS:
            self.end()
            self._level = _HEADINGS[tag]
        elif tag in {"pre", "listing", "xmp", "textarea"}:
            self.end()
            self._pre += 1
        elif tag in {"ol", "ul"}:
            self.end()
            start = node.attributes.get("start") or "1"
            number = int(start) if start.isascii() and start.isdigit() and len(start) < 9 else 1
            self._lists.append(number if tag == "ol" else None)
        elif tag == "li":
            self.end()
            self._mark = self._next_mark()
        elif tag in _BLOCKS:
            self.end()

    def leave(self, tag: str) -> None:
        """A tag closes."""
        if tag in _HEADINGS or tag in {"ol", "ul"} or tag in _BLOCKS:
            self.end()
        if tag in _HEADINGS:
            self._level = 0
        if tag == "li":
            self._mark = ""
        if tag in {"ol", "ul"} and self._lists:
            self._lists.pop()
        if tag in {"pre", "listing", "xmp", "textarea"}:
            self.end()
            self._pre = max(0, self._pre - 1)

    def table(self, table: _Table) -> None:
        """A table of data."""
        self.end()
        self.composer.paragraph(" ".join(table.caption.split()))
        if table.has_names:
            self.composer.table(table.rows, header=table.has_header)
        else:
            add_tables(self.composer, table.rows)

    def end(self) -> None:
        """The block ends here."""
        text, self._parts = "".join(self._parts), []
        if self._pre:
            self.composer.code(text)
            return
        lines = [" ".join(line.split(" ")).strip() for line in text.split("\n")]
        text = "\n".join(_SPACES.sub(" ", line) for line in lines).strip()
        if not text:
            return
        mark, self._mark = self._mark, ""
        if self._level:
            self.composer.heading(self._level, text)
        elif mark:
            self.composer.item(mark + text)
        else:
            self.composer.paragraph(text)

    def _next_mark(self) -> str:
        if not self._lists or self._lists[-1] is None:
            return "- "
        number = self._lists[-1]
        self._lists[-1] = number + 1
        return f"{number}. "


@dataclass(frozen=True, slots=True)
class _Table:
    rows: list[list[str]]
    caption: str
    has_header: bool
    """Whether the first row names the columns, and nothing else."""
    has_names: bool
    """Whether any cell is marked as a name."""


def _table(table: LexborNode) -> _Table | None:
    """A table's cells, with spans filled in.

    None for a table that is there for the layout: one with tables or headings in it, or with one
    column.
    """
    if table.css_first("table table, h1, h2, h3, h4, h5, h6, pre, ul, ol, iframe") is not None:
        return None
    rows: list[list[str]] = []
    spans: dict[int, tuple[int, str]] = {}
    kinds: list[set[str]] = []
    cells = 0
    for row in table.css("tr"):
        if _is_hidden(row):
            continue
        filled, kind = _fill(row, spans)
        cells += len(filled)
        if cells > _CELL_LIMIT:
            return None
        rows.append(filled)
        kinds.append(kind)
    if max(map(len, rows), default=0) < 2:
        return None
    caption = table.css_first("caption")
    named = caption.text() if caption is not None else ""
    return _Table(
        rows, named, has_header=kinds[0] == {"th"}, has_names=any("th" in kind for kind in kinds)
    )


def _fill(row: LexborNode, spans: dict[int, tuple[int, str]]) -> tuple[list[str], set[str]]:
    filled: list[str] = []
    kind: set[str] = set()

    def carry() -> None:
        while len(filled) in spans:
            left, text = spans.pop(len(filled))
            if left > 1:
                spans[len(filled)] = left - 1, text
            filled.append(text)

    for cell in _children(row):
        if cell.tag not in {"td", "th"}:
            continue
        carry()
        kind.add(cell.tag)
        text = _cell_text(cell)
        down = _span(cell, "rowspan")
        for _ in range(_span(cell, "colspan")):
            if down > 1:
                spans[len(filled)] = down - 1, text
            filled.append(text)
    carry()
    return filled, kind


def _children(node: LexborNode) -> Iterator[LexborNode]:
    one = node.child
    while one is not None:
        yield one
        one = one.next


def _span(cell: LexborNode, name: str) -> int:
    value = (cell.attributes.get(name) or "1").strip()
    return min(max(int(value), 1), _SPAN_LIMIT) if value.isascii() and value.isdigit() else 1


def _cell_text(cell: LexborNode) -> str:
    parts: list[str] = []
    for node in cell.traverse(include_text=True):
        if node.is_text_node:
            parent = node.parent
            if parent is None or parent.tag not in _UNSEEN:
                parts.append(node.text_content or "")
        elif node.tag in _BLOCKS or node.tag == "br":
            parts.append(" ")
    return " ".join("".join(parts).split())

"""XML: prose under its headings, values with the path that leads to them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from docpager.documents.composing import Composer
from docpager.documents.office.packages import broken_xml, local, safe_parser
from docpager.documents.outline import OutlinedDocument
from docpager.documents.text.reader import read_text
from docpager.documents.web.html import read_html
from docpager.errors import DocumentError

_ENTITY = re.compile(rb"<!ENTITY\s+(%\s+)?([\w.:-]+)\s+(SYSTEM|PUBLIC|[\"'][^\"']*[\"'])")
_TITLES = frozenset({"title", "head", "heading"})
_DOCUMENT_TITLES = ("article-title", "title", "docTitle")
_SPACES = re.compile(r"\s+")
_ATTRIBUTE_LIMIT = 300
_UNSAID = frozenset({"space", "schemaLocation", "noNamespaceSchemaLocation"})


def read_xml(data: bytes) -> OutlinedDocument:
    """A paragraph for each run of prose, a line `path: value` for each other value.

    Entities are not resolved; a text that is broken is read as far as it makes sense.

    Raises:
        DocumentError: an entity is made of others, or of other files (`damaged`).
    """
    _refuse_unsafe(data)
    warnings: tuple[str, ...] = ()
    try:
        root = etree.fromstring(data, safe_parser())
    except ValueError as error:
        raise broken_xml(error) from error
    except etree.XMLSyntaxError as error:
        if error.code == etree.ErrorTypes.ERR_INTERNAL_ERROR or "depth" in str(error).lower():
            raise broken_xml(error) from error
        warnings = (f"It is not well-formed XML: {str(error).splitlines()[0]}.",)
        root = etree.fromstring(data, safe_parser(recover=True))
        if root is None:
            return read_text(data, warnings)
    if local(root) == "html":
        return read_html(data)
    composer = Composer("xml")
    _Reader(composer).add(root)
    return composer.document(title=_title(root), warnings=warnings)


def _refuse_unsafe(data: bytes) -> None:
    bare = data.replace(b"\0", b"") if b"\0" in data[:64] else data
    for parameter, name, value in _ENTITY.findall(bare[: 1 << 20]):
        if parameter or value in {b"SYSTEM", b"PUBLIC"} or re.search(rb"[&%]\w", value):
            raise DocumentError(
                "damaged",
                f"Its entity {name.decode('ascii', 'replace')} is made of others or of other "
                "files, which can do harm. Save it without a document type.",
            )


def _title(root: etree._Element) -> str:
    for name in _DOCUMENT_TITLES:
        for element in root.iter(f"{{*}}{name}"):
            return _flat(element)
    return ""


class _Reader:
    def __init__(self, composer: Composer) -> None:
        self._composer = composer
        self._lines: list[str] = []

    def add(self, root: etree._Element) -> None:
        """Add all that is said below an element, without recursion."""
        waiting: list[tuple[Iterator[tuple[etree._Element, str]], int]] = []
        self._enter(root, local(root), 0, waiting)
        while waiting:
            elements, level = waiting[-1]
            found = next(elements, None)
            if found is None:
                waiting.pop()
                self._flush()
                continue
            element, path = found
            if not isinstance(element.tag, str):
                continue
            self._enter(element, path, level, waiting)
        self._flush()

    def _enter(
        self,
        element: etree._Element,
        path: str,
        level: int,
        waiting: list[tuple[Iterator[tuple[etree._Element, str]], int]],
    ) -> None:
        children = [one for one in element if isinstance(one.tag, str)]
        is_prose = bool(children) and (
            bool((element.text or "").strip()) or any((one.tail or "").strip() for one in element)
        )
        if is_prose or not children:
            text = _flat(element)
            if local(element) in _TITLES and _titles_something(element):
                self._flush()
                self._composer.heading(min(level, 6) or 1, text)
                return
            if is_prose:
                self._flush()
                self._composer.paragraph(text)
            elif text or element.attrib:
                self._lines.append(": ".join(filter(None, (path + _attributes(element), text))))
            return
        if local(element) == "table" and (rows := _rows(element)):
            self._flush()
            self._composer.table(rows, header=len(rows) > 1)
            return
        if attributes := _attributes(element):
            self._lines.append(path + attributes)
        deeper = level + (1 if local(children[0]) in _TITLES or level == 0 else 0)
        waiting.append((_numbered(children, path), deeper))

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        self._composer.paragraph("\n".join(lines))


def _attributes(element: etree._Element) -> str:
    """An element's attributes as they follow its path: ` id=bk101 lang=en`."""
    said = ""
    for name, value in element.attrib.items():
        plain = str(name).rpartition("}")[2]
        if plain not in _UNSAID and str(value).strip():
            said += f" {plain}={str(value)[:_ATTRIBUTE_LIMIT]}"
    return said


def _numbered(children: list[etree._Element], path: str) -> Iterator[tuple[etree._Element, str]]:
    """Children with their paths; those of a name that is there more than once are numbered."""
    names = [local(one) for one in children]
    repeated = {name for name in names if names.count(name) > 1} if len(names) < 50 else set(names)
    seen: dict[str, int] = {}
    for one, name in zip(children, names, strict=True):
        seen[name] = seen.get(name, 0) + 1
        yield one, f"{path}/{name}[{seen[name]}]" if name in repeated else f"{path}/{name}"


def _titles_something(element: etree._Element) -> bool:
    above = element.getparent()
    return above is not None and len(above) > 1 and any(len(one) or one.tail for one in above)


def _rows(table: etree._Element) -> list[list[str]]:
    rows = [
        [_flat(cell) for cell in row if local(cell) in {"td", "th", "entry"}]
        for row in table.iter("{*}tr", "{*}row")
    ]
    return [row for row in rows if row]


def _flat(element: etree._Element) -> str:
    parts = []
    for text in element.itertext():
        parts.append(str(text))
    return _SPACES.sub(" ", "".join(parts)).strip()

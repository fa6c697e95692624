"""Office files are zip archives of XML: both are opened here, within limits."""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO
from urllib.parse import unquote

from lxml import etree

from docpager.errors import DocumentError
from docpager.files import megabytes

UNPACKED_BYTES = 1 << 30
"""Of a package's parts together, unless another limit is given."""
_PART_SHARE = 8
"""One part that is read at once may have this part of what all may have."""
_MAX_PARTS = 20_000

_UNREADABLE_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    KeyError,
    OverflowError,
)
"""What the zip reader raises over bytes that are no sound archive."""


class Package:
    """A zip archive's parts by name.

    Raises:
        DocumentError: the archive is `damaged`, `encrypted`, or unpacks to more than
            `unpacked_bytes` as it says itself; no part can unpack to more than it says.
    """

    def __init__(self, data: bytes, unpacked_bytes: int = UNPACKED_BYTES) -> None:
        self._part_bytes = unpacked_bytes // _PART_SHARE
        with _mapped():
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            entries = self._zip.infolist()
        unpacked = sum(entry.file_size for entry in entries)
        if len(entries) > _MAX_PARTS:
            raise DocumentError(
                "too_large",
                f"The file holds {len(entries):,} parts, {_MAX_PARTS:,} is the limit. "
                "It may be made to do harm; else split it.",
            )
        if unpacked > unpacked_bytes:
            raise _unpacks_to_too_much("The file", unpacked, unpacked_bytes)
        if any(entry.flag_bits & 1 for entry in entries):
            raise encrypted()
        self.names = tuple(part_name(entry.filename) for entry in entries)
        self._folded = {_folded(entry.filename): entry.filename for entry in reversed(entries)}

    def __contains__(self, name: str) -> bool:
        return self._key(name) is not None

    def read(self, name: str) -> bytes:
        """The bytes of a part; empty where there is none of that name."""
        key = self._key(name)
        if key is None:
            return b""
        if (unpacked := self._zip.getinfo(key).file_size) > self._part_bytes:
            raise _unpacks_to_too_much("A part of the file", unpacked, self._part_bytes)
        with _mapped():
            return self._zip.read(key)

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """A part as a stream, whatever its size; an empty one where there is none of that name."""
        key = self._key(name)
        with _mapped():
            stream = io.BytesIO() if key is None else self._zip.open(key)
            with stream:
                yield stream

    def tree(self, name: str) -> etree._Element | None:
        """The root of a part that is XML; None where there is none of that name.

        Raises:
            DocumentError: the part is no XML, or too deep (`damaged`).
        """
        data = self.read(name)
        return parse_xml(data) if data else None

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Of an OOXML part, by id: the kind (last word of its type) and the part it leads to."""
        folder, name = posixpath.split(part)
        root = self.tree(posixpath.join(folder, "_rels", f"{name}.rels"))
        found: dict[str, tuple[str, str]] = {}
        for child in () if root is None else root:
            target = child.get("Target") or ""
            if child.get("TargetMode") == "External" or not target:
                continue
            kind = (child.get("Type") or "").rsplit("/", 1)[-1]
            found[child.get("Id") or ""] = kind, resolve(folder, target)
        return found

    def main_part(self, otherwise: str) -> str:
        """The part an OOXML package begins with."""
        for kind, target in self.relations("").values():
            if kind == "officeDocument" and target in self:
                return target
        return otherwise

    def _key(self, name: str) -> str | None:
        return self._folded.get(_folded(name))


def part_name(name: str) -> str:
    """A part's name as the formats want it: some tools of Windows write backslashes in it."""
    return name.replace("\\", "/")


def _folded(name: str) -> str:
    return part_name(name).lower().lstrip("/")


def _unpacks_to_too_much(what: str, unpacked: int, limit: int) -> DocumentError:
    return DocumentError(
        "too_large",
        f"{what} unpacks to {megabytes(unpacked)}, {megabytes(limit)} is the limit. It may "
        "be made to do harm; else split it, or allow more with --max-unpacked-size.",
    )


def resolve(folder: str, target: str) -> str:
    """The part that a link in a part of `folder` leads to."""
    path = part_name(unquote(target.split("#", 1)[0]))
    return posixpath.normpath(posixpath.join(folder, path) if path[:1] != "/" else path[1:])


def parse_xml(data: bytes) -> etree._Element:
    """The root of an XML text; no entity in it is resolved, nothing outside it is read.

    Raises:
        DocumentError: it is no XML, or too deep (`damaged`).
    """
    try:
        root = etree.fromstring(data, safe_parser())
    except (etree.XMLSyntaxError, ValueError) as error:
        raise broken_xml(error) from error
    if root is None:
        raise broken_xml(ValueError("it has no root"))
    return root


def safe_parser(*, recover: bool = False) -> etree.XMLParser:
    """A parser that resolves no entity and reads nothing but what it is given."""
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
        recover=recover,
    )


def local(element: etree._Element) -> str:
    """The name of an element without its namespace; empty for what is no element."""
    tag = element.tag
    return str(tag).rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: etree._Element, name: str) -> str:
    """An attribute by its name without a namespace; empty where there is none."""
    value = element.get(name)
    if value is not None:
        return str(value)
    for key, found in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(found)
    return ""


def descendants(element: etree._Element, *names: str) -> Iterator[etree._Element]:
    """All elements below of these names (without namespaces), in order."""
    yield from element.iter(*[f"{{*}}{name}" for name in names])


def child(element: etree._Element | None, name: str) -> etree._Element | None:
    """The first child of that name (without a namespace)."""
    if element is None:
        return None
    return next((one for one in element if local(one) == name), None)


def text_of(element: etree._Element | None) -> str:
    """All text within an element."""
    return "" if element is None else "".join(map(str, element.itertext()))


def core_title(package: Package) -> str:
    """The title in an OOXML package's properties."""
    if "docProps/core.xml" not in package:
        return ""
    root = package.tree("docProps/core.xml")
    return "" if root is None else text_of(child(root, "title")).strip()


def encrypted() -> DocumentError:
    """The error for a file that only a password opens."""
    return DocumentError(
        "encrypted", "The file is encrypted. Save it without a password, then ingest it again."
    )


def broken_xml(error: Exception) -> DocumentError:
    """The error for a part that is no XML, or more deeply nested than its reader allows."""
    first_line = str(error).split("\n", 1)[0]
    return DocumentError(
        "damaged", f"Its XML cannot be read: {first_line}. Get it anew, or save it anew."
    )


@contextmanager
def _mapped() -> Iterator[None]:
    try:
        yield
    except DocumentError:
        raise
    except _UNREADABLE_ZIP as error:
        raise DocumentError(
            "damaged",
            f"Its archive cannot be unpacked ({type(error).__name__}: {error}). Get it anew.",
        ) from error

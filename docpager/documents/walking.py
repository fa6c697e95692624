"""Which files a folder holds for us, in an order that does not depend on the file system.

A document is named by the folder given, `/`, and the path below it. Names are made of printable
Unicode: bytes that are no UTF-8 and control characters are written as `\\xff` and `\\u000a`, and
the way back from a name to its path is exact.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from docpager.documents.formats import HEAD_BYTES, by_name, detect
from docpager.errors import UserError
from docpager.types import Document

_SURROGATE_ESCAPES = range(0xDC80, 0xDD00)
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})")
_HIDDEN_PREFIXES = (".", "~$")
_STREAM_SUFFIX = ":Zone.Identifier"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to ingest: where it is, what it is called, and how it looked when it was found."""

    path: str
    name: str
    root: str
    size: int
    mtime_ns: int
    explicit: bool = False
    """Whether it was named itself, so that leaving it out would be a failure."""


@dataclass(frozen=True, slots=True)
class Walk:
    """What was found: files in the order of the arguments, then of their path's components."""

    files: tuple[FoundFile, ...]
    ignored: int
    """Entries left out: unknown formats, hidden and temporary files, what is no file, links that
    lead out of the folder. A hidden folder counts once."""


@dataclass(frozen=True, slots=True)
class _Root:
    alias: str
    folder: Path

    def name_of(self, path: Path) -> str:
        below = path.relative_to(self.folder).parts
        return "/".join([self.alias, *map(safe_name, below)])


def walk(paths: Sequence[str], known: Iterable[Document] = ()) -> Walk:
    """The files under `paths`; names go on from the roots of the documents already `known`.

    A path below a root that is known keeps being named from there. A file given by itself is
    named from its folder.

    Raises:
        UserError: a path does not exist.
    """
    for given in paths:
        if not given.strip():
            raise UserError("A path is empty. Name files or folders, `.` for the current folder.")
        if not Path(given).exists():
            raise UserError(f"There is no file or folder {safe_name(given)}. Check the path.")
    roots = _Roots(known)
    files: dict[str, FoundFile] = {}
    ignored = 0
    for given in paths:
        path = Path(os.path.abspath(given))  # noqa: PTH100 - a link keeps its own name
        if path.is_dir():
            for found in _walk_folder(path, roots.of(path)):
                if found is None:
                    ignored += 1
                else:
                    files.setdefault(found.name, found)
        else:
            found = _found(path, roots.of(path.parent), explicit=True)
            files[found.name] = found
    return Walk(tuple(files.values()), ignored)


def path_of(document: Document) -> str:
    """Where the file of a document is, or was."""
    parts = document.name.split("/")[1:]
    return str(Path(_raw_name(document.root)).joinpath(*map(_raw_name, parts)))


def safe_name(name: str) -> str:
    """A file's name in printable Unicode; `_raw_name` gives the name back."""
    return "".join(map(_safe_character, name))


def safe_path(path: Path) -> str:
    """A path in printable Unicode, as a document's root is kept."""
    return safe_name(str(path))


def _safe_character(character: str) -> str:
    code = ord(character)
    if code in _SURROGATE_ESCAPES:
        return f"\\x{code - 0xDC00:02x}"
    if character == "\\" and os.sep != "\\":
        return f"\\u{code:04x}"
    if code < 0x10000 and unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return f"\\u{code:04x}"
    return character


def _raw_name(name: str) -> str:
    def character(match: re.Match[str]) -> str:
        byte, code = match.groups()
        return chr(0xDC00 + int(byte, 16)) if byte else chr(int(code, 16))

    return _ESCAPED.sub(character, name)


class _Roots:
    """The folders that names begin in, each with an alias of its own."""

    def __init__(self, known: Iterable[Document]) -> None:
        self._by_folder: dict[Path, _Root] = {}
        for document in known:
            alias = document.name.partition("/")[0]
            folder = Path(_raw_name(document.root))
            self._by_folder.setdefault(folder, _Root(alias, folder))

    def of(self, folder: Path) -> _Root:
        """The root of a folder: itself or the nearest above it if known, else a new one."""
        for above in (folder, *folder.parents):
            if above in self._by_folder:
                return self._by_folder[above]
        root = _Root(self._free_alias(folder), folder)
        self._by_folder[folder] = root
        return root

    def _free_alias(self, folder: Path) -> str:
        base = safe_name(folder.name) or "root"
        taken = {root.alias for root in self._by_folder.values()}
        alias, number = base, 1
        while alias in taken:
            number += 1
            alias = f"{base}~{number}"
        return alias


def _walk_folder(folder: Path, root: _Root) -> Iterator[FoundFile | None]:
    """Files below a folder in order; None for each entry that is left out."""
    home = root.folder.resolve()
    waiting = [_entries(folder)]
    while waiting:
        entry = next(waiting[-1], _DONE)
        if isinstance(entry, _Done):
            waiting.pop()
        elif entry is None or _is_hidden(entry.name):
            yield None
        elif entry.is_dir(follow_symlinks=False):
            waiting.append(_entries(Path(entry.path)))
        elif _is_ours(entry, home):
            yield _found(Path(entry.path), root)
        else:
            yield None


class _Done:
    """What stands for the end of a folder, where None stands for an entry that is left out."""


_DONE = _Done()


def _entries(folder: Path) -> Iterator[os.DirEntry[str] | None]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except OSError:
        # A folder that may not be read is left out, and counted as one entry.
        yield None
        return
    yield from found


def _is_hidden(name: str) -> bool:
    return name.startswith(_HIDDEN_PREFIXES) or name.endswith(_STREAM_SUFFIX)


def _is_ours(entry: os.DirEntry[str], home: Path) -> bool:
    """Whether an entry is a regular file of a format that docpager reads, inside the root.

    Links to folders are never followed: inside the root they lead to what is walked anyway.
    """
    try:
        if entry.is_symlink():
            target = os.path.realpath(entry.path)  # unlike Path.resolve it bears links in a ring
            if not Path(target).is_relative_to(home):
                return False
        return entry.is_file() and _has_known_format(entry)
    except OSError:
        return False


def _has_known_format(entry: os.DirEntry[str]) -> bool:
    if by_name(entry.name) is not None:
        return True
    with Path(entry.path).open("rb") as file:
        return detect(entry.name, file.read(HEAD_BYTES)) is not None


def _found(path: Path, root: _Root, *, explicit: bool = False) -> FoundFile:
    try:
        status = path.stat()
        size, mtime_ns = status.st_size, status.st_mtime_ns
    except OSError:
        size, mtime_ns = 0, 0  # it is gone again, which reading it will say
    name, folder = root.name_of(path), safe_path(root.folder)
    return FoundFile(str(path), name, folder, size, mtime_ns, explicit)

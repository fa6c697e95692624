"""Which files a folder holds for us, in an order that does not depend on the file system.

A document is named by the folder given, `/`, and the path below it. Names are made of printable
Unicode: bytes that are no UTF-8 and control characters are written as `\\xff` and `\\u000a`, and
the way back from a name to its path is exact.

Symbolic links are left out, wherever they lead, unless they were named themselves: what is inside
the folder is found anyway, and what is outside was not asked for.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from docpager.documents.formats import HEAD_BYTES, by_name, detect
from docpager.documents.loaders import open_regular
from docpager.errors import DocumentError, UserError
from docpager.ingest import ignore
from docpager.ingest.ignore import PathFilter, Patterns
from docpager.types import Document, LeftOut, LeftOutKind

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
    left_out: tuple[LeftOut, ...]
    """What is no document or was not wanted. A folder that is not entered counts once."""
    folders: tuple[str, ...]
    """Absolute paths of the folders that were walked."""


@dataclass(frozen=True, slots=True)
class _Root:
    alias: str
    folder: Path

    def name_of(self, path: Path) -> str:
        below = path.relative_to(self.folder).parts
        return "/".join([self.alias, *map(safe_name, below)])


def walk(
    paths: Sequence[str], known: Iterable[Document] = (), selection: PathFilter | None = None
) -> Walk:
    """The files under `paths`; names go on from the roots of the documents already `known`.

    A path below a root that is known keeps being named from there. A file given by itself is
    named from its folder, and is never left out.

    Raises:
        UserError: a path does not exist, or a `.docpagerignore` holds a line that is no pattern.
    """
    for given in paths:
        if not given.strip():
            raise UserError("A path is empty. Name files or folders, `.` for the current folder.")
        if not os.path.exists(given):  # noqa: PTH110 - unlike Path.exists it never raises
            raise UserError(f"There is no file or folder {safe_name(given)}. Check the path.")
    roots = _Roots(known)
    selection = selection or PathFilter()
    files: dict[str, FoundFile] = {}
    left_out: dict[str, LeftOut] = {}
    folders: list[str] = []
    for given in paths:
        path = Path(os.path.abspath(given))  # noqa: PTH100 - a link keeps its own name
        if path.is_dir():
            folders.append(str(path))
            for found in _FolderWalk(path, roots.of(path), selection).entries():
                if isinstance(found, LeftOut):
                    left_out.setdefault(found.path, found)
                else:
                    files.setdefault(found.name, found)
        else:
            found = _found(path, roots.of(path.parent), explicit=True)
            files[found.name] = found
    unwanted = [entry for name, entry in left_out.items() if name not in files]
    return Walk(tuple(files.values()), tuple(unwanted), tuple(folders))


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


_Entry: TypeAlias = "os.DirEntry[str]"


@dataclass(slots=True)
class _Level:
    """A folder that is being walked: what is left of it, and the patterns that hold in it."""

    path: str
    parts: tuple[str, ...]
    """Of its path, below the root."""
    left: Iterator[_Entry]
    patterns: tuple[Patterns, ...]
    """The outermost first."""


class _FolderWalk:
    """The walk through one folder, level by level, without recursion."""

    def __init__(self, folder: Path, root: _Root, selection: PathFilter) -> None:
        self._folder = folder
        self._root = root
        self._selection = selection
        self._above = len(folder.relative_to(root.folder).parts)
        """Components between the root and the folder, which `--include` does not count."""

    def entries(self) -> Iterator[FoundFile | LeftOut]:
        """Everything below the folder, in order."""
        parts = self._folder.relative_to(self._root.folder).parts
        patterns: tuple[Patterns, ...] = ()
        for depth in range(len(parts)):
            above = self._root.folder.joinpath(*parts[:depth])
            patterns = self._with_file(str(above), depth, patterns)
        try:
            levels = [self._level(str(self._folder), parts, patterns)]
        except OSError as error:
            yield LeftOut(self._name(parts), "unreadable", _words(error))
            return
        while levels:
            level = levels[-1]
            entry = next(level.left, None)
            if entry is None:
                levels.pop()
                continue
            parts = (*level.parts, entry.name)
            is_folder = entry.is_dir(follow_symlinks=False)
            kind = self._why_not(entry, parts, is_folder, level.patterns)
            if kind is not None:
                yield LeftOut(self._name(parts), kind)
            elif is_folder:
                try:
                    levels.append(self._level(entry.path, parts, level.patterns))
                except OSError as error:
                    yield LeftOut(self._name(parts), "unreadable", _words(error))
            else:
                yield _found(Path(entry.path), self._root)

    def _level(self, path: str, parts: tuple[str, ...], patterns: tuple[Patterns, ...]) -> _Level:
        with os.scandir(path) as entries:
            found = sorted(entries, key=lambda entry: os.fsencode(entry.name))
        if any(entry.name == ignore.FILE_NAME for entry in found):
            patterns = self._with_file(path, len(parts), patterns)
            found = [entry for entry in found if entry.name != ignore.FILE_NAME]
        return _Level(path, parts, iter(found), patterns)

    def _with_file(
        self, folder: str, depth: int, patterns: tuple[Patterns, ...]
    ) -> tuple[Patterns, ...]:
        """`patterns` and those of the ignore file in `folder`, if there is one."""
        path = os.path.join(folder, ignore.FILE_NAME)  # noqa: PTH118
        try:
            if not stat.S_ISREG(os.lstat(path).st_mode):
                return patterns
            return (*patterns, ignore.read_patterns(path, depth))
        except FileNotFoundError:
            return patterns
        except OSError as error:
            # Without its rules the folder would give what was not to be read.
            raise UserError(
                f"{safe_name(path)} cannot be read: {_words(error)}. Mend it or remove it."
            ) from error

    def _why_not(
        self,
        entry: _Entry,
        parts: tuple[str, ...],
        is_folder: bool,
        patterns: tuple[Patterns, ...],
    ) -> LeftOutKind | None:
        if _is_hidden(entry.name):
            return "hidden"
        if entry.is_symlink():
            return "link"
        below = parts[self._above :]
        if self._selection.leaves_out(below, is_folder) or ignore.ignored(
            patterns, parts, is_folder
        ):
            return "rule"
        return None if is_folder else _why_no_document(entry)

    def _name(self, parts: Sequence[str]) -> str:
        return "/".join([self._root.alias, *map(safe_name, parts)])


def _is_hidden(name: str) -> bool:
    return name.startswith(_HIDDEN_PREFIXES) or name.endswith(_STREAM_SUFFIX)


def _why_no_document(entry: _Entry) -> LeftOutKind | None:
    try:
        if not entry.is_file(follow_symlinks=False):
            return "no_file"
        if by_name(entry.name) is not None:
            return None
        with open_regular(entry.path) as file:
            return None if detect(entry.name, file.read(HEAD_BYTES)) else "format"
    except (OSError, DocumentError):
        # It cannot be told what it is; a file with a known ending fails by name when it is read.
        return "unreadable"


def _words(error: OSError) -> str:
    if error.errno == errno.ENAMETOOLONG:
        return "its path is too long"
    return error.strerror or type(error).__name__


def _found(path: Path, root: _Root, *, explicit: bool = False) -> FoundFile:
    try:
        status = path.stat()
        size, mtime_ns = status.st_size, status.st_mtime_ns
    except OSError:
        size, mtime_ns = 0, 0  # it is gone again, which reading it will say
    name, folder = root.name_of(path), safe_path(root.folder)
    return FoundFile(str(path), name, folder, size, mtime_ns, explicit)

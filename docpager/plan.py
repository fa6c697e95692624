"""What an ingest has to do about each file: decided by name, size, time and content.

Nothing is read here but the bytes of files, for their hashes, and nothing is written.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from docpager.documents.loaders import unreadable
from docpager.documents.walking import FoundFile, Walk, open_regular, path_of
from docpager.errors import DocumentError, FailureReason
from docpager.types import Document, FileStatus

_PASSING: frozenset[FailureReason] = frozenset({"unreadable", "embedding_failed"})
"""Reasons that are not the file's own: it is tried again at every ingest."""
_COSTLY: frozenset[FailureReason] = frozenset({"timed_out", "out_of_memory"})
"""Reasons that may have been the machine's, and cost much to try: once more, then no more."""
_COSTLY_ATTEMPTS = 2
_HASH_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done about one file."""

    file: FoundFile
    status: FileStatus
    content_hash: str = ""
    parse: bool = False
    other: str = ""
    """The old name of what moved, or the name of what it is a duplicate of."""
    error: DocumentError | None = None
    recorded: bool = False
    """Whether the archive knows all of this already."""
    attempts: int = 1
    """How often these bytes will have been read after this step."""


class Plan:
    """Decides by name, size, time and content what each file asks for.

    It keeps account of what the archive will hold when a step is committed, since steps are
    committed in the order in which they are planned.
    """

    def __init__(
        self,
        known: Iterable[Document],
        reader: str,
        retry_failed: bool = False,
        on_hash: Callable[[str], str] | None = None,
    ) -> None:
        """Plan for an archive that holds `known`.

        Args:
            known: All rows of the archive.
            reader: What files are read with now; what failed under another is tried again.
            retry_failed: Try all again that failed.
            on_hash: Gives the hash of the file at a path; `hash_file` by default.
        """
        self._known = {document.name: document for document in known}
        self._reader = reader
        self._retry_failed = retry_failed
        self._hash = on_hash or hash_file
        self._moved: set[str] = set()
        """Old names of what moved."""
        self._stored: dict[str, str] = {}
        """Content hash -> name of the document that holds its text."""
        self._copies: dict[str, set[str]] = {}
        """Name of a document -> names of its duplicates."""
        for document in self._known.values():
            if document.state == "ready":
                self._stored[document.content_hash] = document.name
            elif document.duplicate_of:
                self._copies.setdefault(document.duplicate_of, set()).add(document.name)

    def unknown(self, files: Iterable[FoundFile]) -> Iterator[FoundFile]:
        """Those of the files of which the archive has no row yet."""
        return (file for file in files if file.name not in self._known)

    def steps(self, files: Iterable[FoundFile]) -> Iterator[Step]:
        """One step for each file, in order."""
        return map(self._step, files)

    def gone(self, found: Walk) -> tuple[list[str], list[str]]:
        """Names below the folders walked for which no file was found, once all steps are planned.

        Returns:
            Documents whose file is there no more, and files that were pending and are not wanted
            any more, which is nothing to speak of.
        """
        names = {file.name for file in found.files} | self._moved
        inside = tuple(os.path.join(folder, "") for folder in found.folders)  # noqa: PTH118
        gone, dropped = [], []
        for name in sorted(self._known.keys() - names):
            document = self._known[name]
            path = path_of(document)
            if not path.startswith(inside):
                continue
            if document.state == "pending":
                dropped.append(name)
            elif not os.path.lexists(path):
                gone.append(name)
        return gone, dropped

    def _step(self, file: FoundFile) -> Step:
        row = self._known.get(file.name)
        if row and row.size == file.size and row.mtime_ns == file.mtime_ns and row.content_hash:
            return self._unchanged(file, row) or self._anew(file, row.content_hash)
        try:
            content_hash = self._hash(file.path)
        except OSError as error:
            return self._unread(file, unreadable(error))
        except DocumentError as error:
            return self._unread(file, error)
        if row and row.content_hash == content_hash:
            step = self._unchanged(file, row)
            if step:
                return replace(step, recorded=False)
        return self._anew(file, content_hash)

    def _unchanged(self, file: FoundFile, row: Document) -> Step | None:
        """The step for the same bytes under the same name; None if they must be read again."""
        if row.state == "failed":
            if row.reason is None or self._is_tried_again(row.reason, row):
                return None
            error = DocumentError(row.reason, row.message or "")
            return Step(
                file, "failed", row.content_hash, error=error, recorded=True, attempts=row.attempts
            )
        holder = self._stored.get(row.content_hash)
        if holder is None:
            return None
        other = "" if holder == file.name else holder
        recorded = row.state == "ready" or not other or row.duplicate_of == other
        return Step(file, "unchanged", row.content_hash, other=other, recorded=recorded)

    def _is_tried_again(self, reason: FailureReason, row: Document) -> bool:
        if self._retry_failed or reason in _PASSING or row.reader != self._reader:
            return True
        return reason in _COSTLY and row.attempts < _COSTLY_ATTEMPTS

    def _unread(self, file: FoundFile, error: DocumentError) -> Step:
        row = self._known.get(file.name)
        attempts = row.attempts + 1 if row and row.reason == "unreadable" else 1
        self._forget(file.name)
        return Step(file, "failed", error=error, attempts=attempts)

    def _anew(self, file: FoundFile, content_hash: str) -> Step:
        """The step for bytes that are new under this name."""
        self._forget(file.name)
        other = self._stored.get(content_hash)
        if other is None:
            self._stored[content_hash] = file.name
            row = self._known.get(file.name)
            had_text = row is not None and row.state in ("ready", "duplicate")
            status: FileStatus = "updated" if had_text else "added"
            again = row is not None and row.content_hash == content_hash
            attempts = row.attempts + 1 if row and again else 1
            return Step(file, status, content_hash, parse=True, attempts=attempts)
        holder = self._known.get(other)
        if holder is not None and not os.path.lexists(path_of(holder)):
            self._moved.add(other)
            self._stored[content_hash] = file.name
            self._copies[file.name] = self._copies.pop(other, set())
            return Step(file, "moved", content_hash, other=other)
        self._copies.setdefault(other, set()).add(file.name)
        return Step(file, "duplicate", content_hash, other=other)

    def _forget(self, name: str) -> None:
        """What `name` held is replaced; a duplicate of it, if there is one, keeps the text."""
        for copies in self._copies.values():
            copies.discard(name)
        row = self._known.get(name)
        if row is None or self._stored.get(row.content_hash) != name:
            return
        del self._stored[row.content_hash]
        copies = self._copies.pop(name, set())
        if copies:
            heir = min(copies)
            self._stored[row.content_hash] = heir
            self._copies[heir] = copies - {heir}


def hash_file(path: str) -> str:
    """SHA-256 of the file's bytes, hexadecimal.

    Raises:
        DocumentError: it is no regular file.
        OSError: it cannot be read.
    """
    with open_regular(path) as file:
        digest = hashlib.sha256()
        while block := file.read(_HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()

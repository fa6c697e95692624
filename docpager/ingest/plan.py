"""What an ingest has to do about each file: decided by name, size, time and content.

Nothing is read here but the bytes of files, for their hashes, and nothing is written.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

from docpager.documents.loaders import open_regular, unreadable
from docpager.errors import DocumentError, FailureReason
from docpager.ingest.walk import FoundFile, Walk, path_of
from docpager.types import Document, DocumentState, FileStatus

PASSING: frozenset[FailureReason] = frozenset({"unreadable", "embedding_failed"})
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
    successor: str = ""
    """The duplicate that takes over the text which this name held so far."""
    gone: tuple[str, ...] = ()
    """Names of what was attached to the file and is no more."""
    again: bool = False
    """Whether the bytes are stored already, and read again for what may be missing: where that
    fails, what is stored stays."""


def row_of(step: Step, state: DocumentState) -> Document:
    """The archive's row of the file that a step is about, before its content is known."""
    return Document(
        name=step.file.name,
        state=state,
        content_hash=step.content_hash,
        size=step.file.size,
        root=step.file.root,
        mtime_ns=step.file.mtime_ns,
        attempts=step.attempts,
    )


_WITH = "; with "
"""Between what files are read with, and what recognises pictures in them."""


@dataclass(frozen=True, slots=True)
class Retries:
    """Which files are read again though their bytes have not changed."""

    reader: str = ""
    """What files are read with now; what failed under another is tried again."""
    recogniser: str = ""
    """What recognises pictures now; empty where that was not asked for."""
    lacking: frozenset[str] = frozenset()
    """Names of ready documents with pages on which a recogniser may find more."""
    every: bool = False
    reasons: frozenset[FailureReason] = frozenset()
    """Reasons that may be gone now, as when a password is given."""

    @property
    def signature(self) -> str:
        """What is kept of a document as its reader."""
        return f"{self.reader}{_WITH}{self.recogniser}" if self.recogniser else self.reader

    def wants(self, row: Document) -> bool:
        """Whether a failed row is worth another try."""
        if self.every or row.reason is None or row.reason in PASSING:
            return True
        if row.reason in self.reasons or self._reads_otherwise(row):
            return True
        return row.reason in _COSTLY and row.attempts < _COSTLY_ATTEMPTS

    def completes(self, row: Document) -> bool:
        """Whether a ready row lacks what the recogniser may find, under limits that are new."""
        lacks = row.state == "ready" and row.name in self.lacking
        return lacks and bool(self.recogniser) and row.reader != self.signature

    def _reads_otherwise(self, row: Document) -> bool:
        """Whether a failed row was tried by something else than would try it now."""
        if row.reader.partition(_WITH)[0] != self.reader:
            return True
        # Without a recogniser, nothing is found where one found nothing.
        if not self.recogniser or _recogniser_of(row) == self.recogniser:
            return False
        return row.reason == "no_text_layer" or bool(_recogniser_of(row))


def _recogniser_of(row: Document) -> str:
    return row.reader.partition(_WITH)[2]


class Plan:
    """Decides by name, size, time and content what each file asks for.

    It keeps account of what the archive will hold when a step is committed, since steps are
    committed in the order in which they are planned.
    """

    def __init__(
        self,
        known: Iterable[Document],
        retries: Retries,
        unsettled: frozenset[str] = frozenset(),
        on_hash: Callable[[str], str] | None = None,
    ) -> None:
        """Plan for an archive that holds `known`.

        Args:
            known: All rows of files.
            retries: What is tried again.
            unsettled: Names of files of which something attached is worth another try.
            on_hash: Gives the hash of the file at a path; `hash_file` by default.
        """
        self._known = {document.name: document for document in known}
        self._retries = retries
        self._unsettled = unsettled
        self._hash = on_hash or hash_file
        self._moved: set[str] = set()
        """Old names of what moved."""
        self._stored: dict[str, str] = {}
        """Content hash -> name of the document that holds its text."""
        self._copies: dict[str, set[str]] = {}
        """Name of a document -> names of its duplicates."""
        self._read_as: dict[str, set[str]] = {}
        """Content hash -> suffixes under which this ingest reads the bytes."""
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
            if row.reason is None or self._retries.wants(row):
                return None
            error = DocumentError(row.reason, row.message or "")
            return Step(
                file, "failed", row.content_hash, error=error, recorded=True, attempts=row.attempts
            )
        holder = self._stored.get(row.content_hash)
        if holder is None:
            return None
        if holder == file.name and (holder in self._unsettled or self._retries.completes(row)):
            attempts = row.attempts + 1
            return Step(
                file, "updated", row.content_hash, parse=True, attempts=attempts, again=True
            )
        other = "" if holder == file.name else holder
        recorded = row.state == "ready" or not other or row.duplicate_of == other
        return Step(file, "unchanged", row.content_hash, other=other, recorded=recorded)

    def _unread(self, file: FoundFile, error: DocumentError) -> Step:
        row = self._known.get(file.name)
        attempts = row.attempts + 1 if row and row.reason == "unreadable" else 1
        successor = self._forget(file.name)
        return Step(file, "failed", error=error, attempts=attempts, successor=successor)

    def _anew(self, file: FoundFile, content_hash: str) -> Step:
        """The step for bytes that are new under this name."""
        successor = self._forget(file.name)
        other = self._stored.get(content_hash)
        if other is None:
            self._stored[content_hash] = file.name
            self._read_as[content_hash] = {suffix(file.name)}
            row = self._known.get(file.name)
            had_text = row is not None and row.state in ("ready", "duplicate")
            status: FileStatus = "updated" if had_text else "added"
            again = row is not None and row.content_hash == content_hash
            attempts = row.attempts + 1 if row and again else 1
            return Step(
                file, status, content_hash, parse=True, attempts=attempts, successor=successor
            )
        holder = self._known.get(other)
        if holder is not None and not os.path.lexists(path_of(holder)):
            self._moved.add(other)
            self._stored[content_hash] = file.name
            self._copies[file.name] = self._copies.pop(other, set())
            return Step(file, "moved", content_hash, other=other, successor=successor)
        self._copies.setdefault(other, set()).add(file.name)
        # Whether bytes can be read may depend on the name, so a failure is not that of every copy.
        read_as = self._read_as.get(content_hash)
        parse = read_as is not None and suffix(file.name) not in read_as
        if read_as is not None:
            read_as.add(suffix(file.name))
        return Step(file, "duplicate", content_hash, parse=parse, other=other, successor=successor)

    def _forget(self, name: str) -> str:
        """What `name` held is replaced; the duplicate that keeps its text, if there is one."""
        for copies in self._copies.values():
            copies.discard(name)
        row = self._known.get(name)
        if row is None or self._stored.get(row.content_hash) != name:
            return ""
        del self._stored[row.content_hash]
        copies = self._copies.pop(name, set())
        if not copies:
            return ""
        successor = min(copies)
        self._stored[row.content_hash] = successor
        self._copies[successor] = copies - {successor}
        return successor


def suffix(name: str) -> str:
    """The lower-case suffix of a document's name, with its dot."""
    return PurePath(name).suffix.lower()


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

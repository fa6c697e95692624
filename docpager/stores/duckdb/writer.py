"""The archive's one writer.

Every method of it is one transaction in which the archive's generation grows. A vector stands in
a table of its own by the hash of its text, so that what was paid for is kept though its document
is not, and equal texts share one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from docpager.errors import ArchiveError
from docpager.protocols import Clock, Vectors
from docpager.retrieval.terms import terms
from docpager.retrieval.vectors import check_identity, identity_to_json, unit_rows
from docpager.stores.catalogue import check_chunks, inherited, storable
from docpager.stores.duckdb.connection import (
    WAIT_S,
    connect,
    insert_rows,
    mapped_errors,
    missing_message,
    new_rows,
    strings,
    transaction,
)
from docpager.stores.duckdb.postings import insert_segment, pack
from docpager.stores.duckdb.schema import (
    DOCUMENT_FIELDS,
    DOCUMENT_TYPES,
    MIGRATIONS,
    read_documents,
    read_meta,
    spans_to_text,
)
from docpager.types import (
    Chunk,
    Document,
    DocumentState,
    EmbedderIdentity,
    PageText,
    ParsedDocument,
)
from docpager.unicode import repaired

if TYPE_CHECKING:
    import duckdb


class DuckDBWriter:
    """The archive opened by its one writer (`protocols.ArchiveWriter`); see `open_writer`."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path,
        identity: EmbedderIdentity | None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._changed = False
        self._waiting: _Waiting | None = None
        """What the transaction that is going on still has to insert; None outside of one."""
        self._states: dict[str, DocumentState] | None = None
        """State of every document by name; None until it is asked for."""
        with mapped_errors(path):
            self._meta = read_meta(connection)
            if identity is not None:
                self._settle(identity)

    # ---- reading

    def documents(self) -> tuple[Document, ...]:
        """All documents, failed ones too, by name."""
        with mapped_errors(self._path):
            return read_documents(self._connection)

    def documents_with(self, flags: Sequence[str]) -> frozenset[str]:
        """Names of the documents that have a page with one of these flags."""
        with mapped_errors(self._path):
            rows = self._connection.execute(
                "SELECT DISTINCT document.name FROM page JOIN document ON document.id = document"
                " WHERE list_has_any(string_split(flags, ' '), ?::VARCHAR[])",
                [list(flags)],
            ).fetchall()
        return frozenset(name for (name,) in rows)

    def embedder_identity(self) -> EmbedderIdentity | None:
        """Which embedder made the vectors; None while nothing was ingested."""
        return self._meta.identity

    def missing_vectors(self, text_hashes: Sequence[str]) -> frozenset[str]:
        """Those of `text_hashes` for which the archive has no vector yet."""
        with mapped_errors(self._path):
            return self._missing(text_hashes)

    # ---- writing, each one transaction

    @contextmanager
    def together(self) -> Iterator[None]:
        """Everything that is changed within it is one transaction.

        It is also far quicker than as many transactions: rows are inserted at its end, together.
        """
        with self._change():
            yield

    def put_vectors(self, text_hashes: Sequence[str], vectors: Vectors) -> None:
        """Keep vectors, whether or not their document is stored yet: they are paid for.

        Raises:
            ArchiveError: a vector is not finite, is zero, or has another dimension (I5).
        """
        if self._meta.identity is None:
            raise ArchiveError(
                "The archive was opened without an embedder. Name it to open_writer."
            )
        rows = unit_rows(vectors, self._meta.identity.dimension)
        if len(rows) != len(text_hashes):
            raise ArchiveError(f"{len(rows)} vectors came for {len(text_hashes)} texts.")
        first_of = dict(zip(reversed(text_hashes), reversed(rows), strict=True))
        with mapped_errors(self._path), transaction(self._connection):
            new = self._missing(text_hashes)
            kept = [(name, row) for name, row in first_of.items() if name in new]
            if kept:
                column = np.empty(len(kept), dtype=object)
                column[:] = [row for _, row in kept]
                names = strings(name for name, _ in kept)
                insert_rows(self._connection, "vector", {"text_hash": names, "v": column})

    def store(
        self, document: Document, parsed: ParsedDocument, chunks: Sequence[Chunk]
    ) -> Document:
        """Store a document whole (pages, passages, postings), in place of one of that name.

        Every chunk's vector must have been put before. Passage numbers follow the order of
        `chunks` and are never used again. Of the same bytes, duplicates stay duplicates.

        Raises:
            ArchiveError: a vector is missing, or a chunk is not what stands in the document.
        """
        check_chunks(document, parsed, chunks)
        stored = storable(
            replace(
                document,
                state="ready",
                paged=parsed.paged,
                pages=len(parsed.pages),
                passages=len(chunks),
                title=parsed.title if document.title is None else document.title,
                author=parsed.author if document.author is None else document.author,
            )
        )
        with self._change() as waiting:
            self._forget([stored.name], hand_over=not self._has_bytes_of(stored))
            number = self._add_document(stored)
            waiting.pages += [(number, page) for page in parsed.pages]
            first = self._meta.next_passage
            self._meta = self._meta._replace(next_passage=first + len(chunks))
            waiting.passages += [
                _NewPassage(at, number, stored.name, chunk)
                for at, chunk in enumerate(chunks, first)
            ]
        return stored

    def record(self, document: Document) -> None:
        """Keep a row without text: a failed file with its reason, a duplicate, a new mtime.

        Where `document` is ready, the one of that name keeps its text; else its text goes.
        """
        row = storable(document)
        with self._change():
            if row.state == "ready":
                self._update_document(row.name, row)
            else:
                self._forget([row.name])
                self._add_document(replace(row, passages=0))

    def rename(self, old_name: str, document: Document) -> None:
        """Give a stored document another name and place, and keep its passages as they are."""
        row = storable(document)
        old_name = repaired(old_name)
        with self._change():
            if row.name != old_name:
                self._forget([row.name])
            self._update_document(old_name, row)

    def remove(self, names: Sequence[str]) -> int:
        """Forget documents; returns how many passages went. Unused vectors go with them.

        A duplicate of what is removed takes its passages over, and what is attached to it.
        """
        going = [repaired(name) for name in names]
        with self._change():
            self._insert_waiting()
            (before,) = self._one("SELECT count(*) FROM passage")
            stays = inherited(self.documents(), frozenset(going)) if self._copied(going) else {}
            self._forget([name for name in going if name not in stays])
            for name, row in stays.items():
                if row.state == "ready":
                    self.rename(name, row)
                else:
                    self._forget([name])
                    self.record(row)
            self._insert_waiting()
            (after,) = self._one("SELECT count(*) FROM passage")
        return int(before - after)

    def compact(self) -> None:
        """Bring postings into the shape that searches are quickest with, if that is worth it."""
        self._pack(at_rest=True)
        self._changed = False

    def close(self) -> None:
        """Write the log into the file, then let others in."""
        try:
            if self._changed:
                self._pack(at_rest=False)
        finally:
            self._connection.close()

    def _pack(self, *, at_rest: bool) -> None:
        with mapped_errors(self._path):
            (live,) = self._one("SELECT coalesce(sum(distinct_terms), 0) FROM passage")
            pack(self._connection, int(live), at_rest=at_rest)

    # ---- parts of a transaction

    @contextmanager
    def _change(self) -> Iterator[_Waiting]:
        """The transaction that goes on, else a new one, at whose end the generation has grown."""
        if self._waiting is not None:
            yield self._waiting
            return
        before = self._meta
        self._waiting = _Waiting()
        try:
            with mapped_errors(self._path), transaction(self._connection):
                yield self._waiting
                self._insert_waiting()
                self._remove_unused_vectors(self._waiting.unused)
                self._meta = self._meta._replace(generation=before.generation + 1)
                self._connection.execute(
                    "UPDATE meta SET generation = ?, next_document = ?, next_passage = ?",
                    list(self._meta[:3]),
                )
        except BaseException:
            self._meta, self._states = before, None
            raise
        finally:
            self._waiting = None
        self._changed = True

    def _insert_waiting(self) -> None:
        """Insert what has come together, so that queries see it."""
        waiting = self._waiting
        assert waiting is not None
        if waiting.replaced:
            self._connection.execute(
                "DELETE FROM document WHERE state <> 'ready'"
                " AND name IN (SELECT unnest(?::VARCHAR[]))",
                [waiting.replaced],
            )
        self._apply_updates(waiting.updates)
        self._insert_documents(waiting.documents)
        self._insert_pages(waiting.pages)
        self._insert_passages(waiting.passages)
        waiting.clear()

    def _settle(self, identity: EmbedderIdentity) -> None:
        if self._meta.identity is not None:
            check_identity(self._meta.identity, identity)
            return
        with transaction(self._connection):
            self._connection.execute(
                "CREATE OR REPLACE TABLE vector (text_hash VARCHAR NOT NULL,"
                f" v FLOAT[{int(identity.dimension)}] NOT NULL)"
            )
            self._connection.execute("UPDATE meta SET embedder = ?", [identity_to_json(identity)])
        self._meta = self._meta._replace(identity=identity)

    def _missing(self, text_hashes: Sequence[str]) -> frozenset[str]:
        wanted = list(dict.fromkeys(text_hashes))
        if self._meta.identity is None or not wanted:
            return frozenset(wanted)
        rows = self._connection.execute(
            "SELECT text_hash FROM vector WHERE text_hash IN (SELECT unnest(?::VARCHAR[]))",
            [wanted],
        ).fetchall()
        return frozenset(wanted).difference(name for (name,) in rows)

    def _state_of(self, name: str) -> DocumentState | None:
        """The state of a document, what waits to be inserted included; None if there is none."""
        if self._states is None:
            rows = self._connection.execute("SELECT name, state FROM document").fetchall()
            self._states = dict(rows)
        return self._states.get(name)

    def _has_bytes_of(self, document: Document) -> bool:
        if self._state_of(document.name) != "ready":
            return False
        self._insert_waiting()
        (found,) = self._one(
            "SELECT count(*) FROM document WHERE name = ? AND content_hash = ?",
            [document.name, document.content_hash],
        )
        return bool(found)

    def _forget(self, names: Sequence[str], *, hand_over: bool = True) -> None:
        """Delete documents with their text, unless a duplicate takes it over.

        Vectors are left for the end of the transaction, when it is known what uses them.
        """
        waiting = self._waiting
        assert waiting is not None
        for name in names:
            state = self._state_of(name)
            if state is None:
                continue
            assert self._states is not None
            if name in waiting.names:
                self._insert_waiting()
            if state != "ready":
                waiting.replaced.append(name)
                del self._states[name]
                continue
            self._insert_waiting()
            successor = self._successor(name, names) if hand_over else None
            number, *_ = self._one("SELECT id FROM document WHERE name = ?", [name])
            del self._states[name]
            if successor is not None:
                self._hand_over(number, name, successor)
                self._states[successor] = "ready"
                continue
            self._connection.execute("DELETE FROM document WHERE id = ?", [number])
            rows = self._connection.execute(
                "SELECT DISTINCT text_hash FROM passage WHERE document = ?", [number]
            ).fetchall()
            waiting.unused += [text_hash for (text_hash,) in rows]
            self._connection.execute("DELETE FROM passage WHERE document = ?", [number])
            self._connection.execute("DELETE FROM page WHERE document = ?", [number])
        if len(names) > 1:
            self._insert_waiting()

    def _successor(self, name: str, going: Sequence[str]) -> str | None:
        """The duplicate that takes over the text of `name`, if one stays."""
        rows = self._connection.execute(
            "SELECT name FROM document WHERE duplicate_of = ? AND state = 'duplicate'"
            " ORDER BY name",
            [name],
        ).fetchall()
        return next((successor for (successor,) in rows if successor not in going), None)

    def _copied(self, names: Sequence[str]) -> bool:
        """Whether any of the documents has a duplicate."""
        (found,) = self._one(
            "SELECT count(*) FROM document WHERE state = 'duplicate'"
            " AND duplicate_of IN (SELECT unnest(?::VARCHAR[]))",
            [list(names)],
        )
        return bool(found)

    def _hand_over(self, number: int, name: str, successor: str) -> None:
        """Let `successor`, a duplicate of document `number`, be the document itself."""
        text = self._one(
            "DELETE FROM document WHERE id = ?"
            " RETURNING id, paged, pages, passages, title, author, reader",
            [number],
        )
        self._connection.execute(
            "UPDATE document SET id = ?, paged = ?, pages = ?, passages = ?, title = ?,"
            " author = ?, reader = coalesce(nullif(reader, ''), ?), state = 'ready',"
            " duplicate_of = NULL WHERE name = ?",
            [*text, successor],
        )
        self._connection.execute(
            "UPDATE document SET duplicate_of = ? WHERE duplicate_of = ?", [successor, name]
        )

    def _remove_unused_vectors(self, text_hashes: Sequence[str]) -> None:
        if text_hashes:
            self._connection.execute(
                "DELETE FROM vector WHERE text_hash IN (SELECT unnest(?::VARCHAR[]))"
                " AND text_hash NOT IN (SELECT text_hash FROM passage)",
                [list(text_hashes)],
            )

    def _add_document(self, document: Document) -> int:
        number = self._meta.next_document
        self._meta = self._meta._replace(next_document=number + 1)
        assert self._waiting is not None and self._states is not None
        self._waiting.documents.append((number, document))
        self._waiting.names.add(document.name)
        self._states[document.name] = document.state
        return number

    def _insert_documents(self, documents: Sequence[tuple[int, Document]]) -> None:
        columns: dict[str, npt.NDArray[Any]] = {
            "id": np.array([number for number, _ in documents], np.int32)
        }
        for name in DOCUMENT_FIELDS:
            values = [getattr(document, name) for _, document in documents]
            kind = DOCUMENT_TYPES.get(name)
            columns[name] = strings(values) if kind is None else np.array(values, kind)
        if documents:
            insert_rows(self._connection, "document", columns)

    def _update_document(self, name: str, document: Document) -> None:
        """Give a ready document another name, place and time, together with others."""
        waiting = self._waiting
        assert waiting is not None
        if waiting.documents or waiting.updated & {name, document.name}:
            self._insert_waiting()
        if self._state_of(name) != "ready":
            raise ArchiveError(f"There is no stored document {name}. Ingest it first.")
        waiting.updates.append((name, document))
        waiting.updated |= {name, document.name}
        assert self._states is not None
        del self._states[name]
        self._states[document.name] = "ready"

    def _apply_updates(self, updates: Sequence[tuple[str, Document]]) -> None:
        if not updates:
            return
        columns: dict[str, npt.NDArray[Any]] = {"old_name": strings(old for old, _ in updates)}
        for name in ("name", "content_hash", "root", "reader", "size", "mtime_ns"):
            values = [getattr(document, name) for _, document in updates]
            kind = DOCUMENT_TYPES.get(name)
            columns[name] = strings(values) if kind is None else np.array(values, kind)
        with new_rows(self._connection, columns):
            self._connection.execute(
                "UPDATE document SET name = n.name, content_hash = n.content_hash, size = n.size,"
                " root = n.root, mtime_ns = n.mtime_ns,"
                " reader = coalesce(nullif(n.reader, ''), document.reader) FROM new_rows n"
                " WHERE document.name = n.old_name AND state = 'ready'"
            )
            self._connection.execute(
                "UPDATE document SET duplicate_of = n.name FROM new_rows n"
                " WHERE duplicate_of = n.old_name AND n.name <> n.old_name"
            )

    def _insert_pages(self, pages: Sequence[tuple[int, PageText]]) -> None:
        columns = {
            "document": np.array([number for number, _ in pages], np.int32),
            "page_number": np.array([page.page_number for _, page in pages], np.int32),
            "text": strings(page.text for _, page in pages),
            "page_label": strings(repaired(page.page_label or "") for _, page in pages),
            "engine": strings(page.engine for _, page in pages),
            "flags": strings(" ".join(page.flags) for _, page in pages),
            "heading": strings(page.heading or "" for _, page in pages),
            "first_line": np.array([page.first_line or 0 for _, page in pages], np.int32),
            "quality": np.array([page.quality for _, page in pages], np.float32),
            "furniture": strings(spans_to_text(page.furniture) for _, page in pages),
        }
        if pages:
            insert_rows(self._connection, "page", columns)

    def _insert_passages(self, passages: Sequence[_NewPassage]) -> None:
        """Insert passages with their postings, all of them or none."""
        if not passages:
            return
        chunks = [passage.chunk for passage in passages]
        hashes = [chunk.text_hash for chunk in chunks]
        self._refuse_without_vectors(passages, hashes)
        numbers = np.array([passage.number for passage in passages], np.int32)
        counted = [Counter(terms(chunk.indexed_text)) for chunk in chunks]
        columns = {
            "number": numbers,
            "document": np.array([passage.document for passage in passages], np.int32),
            "text": strings(chunk.text for chunk in chunks),
            "first_page": np.array([chunk.first_page for chunk in chunks], np.int32),
            "last_page": np.array([chunk.last_page for chunk in chunks], np.int32),
            "start_at": np.array([chunk.start for chunk in chunks], np.int32),
            "end_at": np.array([chunk.end for chunk in chunks], np.int32),
            "heading": strings(chunk.heading for chunk in chunks),
            "line": np.array([chunk.line or 0 for chunk in chunks], np.int32),
            "tokens": np.array([chunk.tokens for chunk in chunks], np.int32),
            "text_hash": strings(hashes),
            "length": np.array([counts.total() for counts in counted], np.int32),
            "distinct_terms": np.array([len(counts) for counts in counted], np.int32),
        }
        insert_segment(self._connection, passages[0].document, numbers, counted)
        kept = insert_rows(self._connection, "passage", columns)
        if kept != len(passages):
            raise ArchiveError(
                f"{kept} of {len(passages)} passages were kept. Run the ingest again."
            )

    def _refuse_without_vectors(
        self, passages: Sequence[_NewPassage], hashes: Sequence[str]
    ) -> None:
        missing = self._missing(hashes)
        if not missing:
            return
        lacking = [
            passage.name
            for passage, text_hash in zip(passages, hashes, strict=True)
            if text_hash in missing
        ]
        raise ArchiveError(
            f"{lacking.count(lacking[0])} passages of {lacking[0]} have no vector yet. "
            f"Embed them before the document is stored."
        )

    def _one(self, query: str, values: Sequence[object] = ()) -> tuple[Any, ...]:
        (row,) = self._connection.execute(query, list(values)).fetchall()
        return tuple(row)


class _NewPassage(NamedTuple):
    """A passage that waits to be inserted."""

    number: int
    document: int
    name: str
    """Of the document."""
    chunk: Chunk


class _Waiting:
    """Rows of one transaction that are inserted together, which takes a tenth of the time."""

    def __init__(self) -> None:
        self.clear()
        self.unused: list[str] = []
        """Hashes whose vectors may be unused at the end."""

    def clear(self) -> None:
        """Start anew, but for the vectors."""
        self.replaced: list[str] = []
        """Names whose rows, which have no text, go first."""
        self.updates: list[tuple[str, Document]] = []
        """By their old names, ready documents that have another name, place or time."""
        self.updated: set[str] = set()
        """Old and new names of `updates`."""
        self.documents: list[tuple[int, Document]] = []
        self.names: set[str] = set()
        """Of `documents`."""
        self.pages: list[tuple[int, PageText]] = []
        self.passages: list[_NewPassage] = []


@contextmanager
def open_writer(
    path: Path,
    identity: EmbedderIdentity | None = None,
    *,
    clock: Clock,
    wait_s: float | None = WAIT_S,
) -> Iterator[DuckDBWriter]:
    """The archive at `path` for a burst of commits; it is made where it is missing.

    Args:
        path: The DuckDB file.
        identity: The embedder whose vectors will be put; kept at the first opening. None to
            remove or rename only: then the file must exist.
        clock: Used while a lock is waited for.
        wait_s: How long to wait for a lock that another process holds; None is for ever.

    Raises:
        UserError: the archive was made with another embedder.
        ArchiveError: it is locked, damaged, too new, or cannot be made.
    """
    if identity is None and not path.exists():
        raise ArchiveError(missing_message(path, "archive"))
    connection = connect(path, MIGRATIONS, clock=clock, wait_s=wait_s)
    try:
        writer = DuckDBWriter(connection, path, identity)
    except BaseException:
        connection.close()
        raise
    try:
        yield writer
    finally:
        writer.close()

"""The archive: one DuckDB file of documents, pages, passages, vectors and postings.

`Archive` reads (any number of processes at once), `open_writer` gives the one who writes. Every
method of the writer is one transaction in which the archive's generation grows.

A vector stands in a table of its own by the hash of its text, so that what was paid for is kept
though its document is not, and equal texts share one.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from docpager.errors import ArchiveError
from docpager.memory import db, postings
from docpager.memory.catalogue import (
    check_chunks,
    content_hash,
    find_document,
    glob_pattern,
    inherited,
    no_such_page,
    storable,
)
from docpager.memory.ranking import best
from docpager.memory.vectors import (
    check_identity,
    identity_from_json,
    identity_to_json,
    unit_query,
    unit_rows,
)
from docpager.protocols import Clock, Vectors
from docpager.surrogates import repaired
from docpager.types import (
    Chunk,
    Document,
    DocumentState,
    EmbedderIdentity,
    PageText,
    ParsedDocument,
    Passage,
    Scored,
    TermStatistics,
)

if TYPE_CHECKING:
    import duckdb

K = TypeVar("K")
V = TypeVar("V")

MOST_KEPT = 2000
"""Passages, and pages, whose texts are kept after they were read."""
KEPT_POSTINGS = 4_000_000
"""Postings that are kept after they were read, 16 bytes each: later searches ask for them again."""
RESIDENT_BYTES = 256 * 1024 * 1024
"""Vectors up to this size are kept in memory after the first search, larger ones scanned in
place."""

MIGRATIONS: tuple[db.Migration, ...] = (
    db.Migration(
        "archive 1",
        (
            "CREATE TABLE meta (generation BIGINT NOT NULL, next_document INTEGER NOT NULL,"
            " next_passage INTEGER NOT NULL, embedder VARCHAR)",
            "INSERT INTO meta VALUES (0, 1, 1, NULL)",
            "CREATE TABLE document (id INTEGER NOT NULL, name VARCHAR NOT NULL,"
            " state VARCHAR NOT NULL, content_hash VARCHAR NOT NULL, size BIGINT NOT NULL,"
            " root VARCHAR NOT NULL, mtime_ns BIGINT NOT NULL, paged BOOLEAN NOT NULL,"
            " pages INTEGER NOT NULL, passages INTEGER NOT NULL, title VARCHAR, reason VARCHAR,"
            " message VARCHAR, duplicate_of VARCHAR)",
            "CREATE TABLE page (document INTEGER NOT NULL, page_number INTEGER NOT NULL,"
            " text VARCHAR NOT NULL, page_label VARCHAR NOT NULL, engine VARCHAR NOT NULL,"
            " flags VARCHAR NOT NULL, heading VARCHAR NOT NULL, first_line INTEGER NOT NULL)",
            "CREATE INDEX page_document ON page (document)",
            "CREATE TABLE passage (number INTEGER PRIMARY KEY, document INTEGER NOT NULL,"
            " text VARCHAR NOT NULL, first_page INTEGER NOT NULL, last_page INTEGER NOT NULL,"
            " start_at INTEGER NOT NULL, end_at INTEGER NOT NULL, heading VARCHAR NOT NULL,"
            " line INTEGER NOT NULL, tokens INTEGER NOT NULL, text_hash VARCHAR NOT NULL,"
            " length INTEGER NOT NULL, distinct_terms INTEGER NOT NULL)",
            "CREATE INDEX passage_document ON passage (document)",
            *postings.SCHEMA,
        ),
    ),
    db.Migration(
        "archive: page quality and furniture, authors",
        (
            "ALTER TABLE page ADD COLUMN quality FLOAT DEFAULT 1.0",
            "ALTER TABLE page ADD COLUMN furniture VARCHAR DEFAULT ''",
            "ALTER TABLE document ADD COLUMN author VARCHAR",
        ),
    ),
    db.Migration(
        "attempts and readers",
        (
            "ALTER TABLE document ADD COLUMN attempts INTEGER DEFAULT 0",
            "ALTER TABLE document ADD COLUMN reader VARCHAR DEFAULT ''",
        ),
    ),
    db.Migration("sizes of postings", postings.SIZES),
)

_DOCUMENT_FIELDS = tuple(field.name for field in fields(Document))
_DOCUMENT_COLUMNS = ", ".join(_DOCUMENT_FIELDS)
_DOCUMENT_TYPES: dict[str, type[np.generic]] = {
    "size": np.int64,
    "mtime_ns": np.int64,
    "paged": np.bool_,
    "pages": np.int32,
    "passages": np.int32,
    "attempts": np.int32,
}
"""Of the fields that are no text."""
_PASSAGE_COLUMNS = (
    "number, document, text, first_page, last_page, start_at, end_at, heading, line, tokens"
)
_PASSAGE_ID = re.compile(r"P([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class ArchiveStatus:
    """The numbers that `docpager status` shows."""

    ready: int
    failed: tuple[Document, ...]
    """With `reason` and `message`."""
    pending: int
    """Found by an ingest that did not get to them."""
    duplicates: int
    passages: int
    pages: int
    """Sections of files without pages among them."""
    sections: int
    bytes: int
    """Of the file and its log."""
    generation: int
    schema: int
    """Steps of the schema."""
    embedder: EmbedderIdentity | None
    """None while nothing was ingested."""


class _Meta(NamedTuple):
    """The archive's own row."""

    generation: int
    next_document: int
    next_passage: int
    identity: EmbedderIdentity | None


class _Live(NamedTuple):
    """What is small of all stored passages, in order of their numbers."""

    numbers: npt.NDArray[np.int32]
    documents: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    """Terms."""
    tokens: npt.NDArray[np.int32]


class _TermPostings(NamedTuple):
    """The stored passages that hold a term."""

    numbers: postings.Integers
    saturation: postings.Floats
    """What BM25 makes of how often each holds it; its weight is still to be multiplied with."""


class Archive:
    """The archive as an agent sees it (`protocols.ArchivalStore`), opened read-only.

    It is for one thread. Nothing can change while it is open, so what is read once is kept.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._kept_postings: dict[str, _TermPostings] = {}
        self._kept_passages: dict[int, Passage] = {}
        self._kept_pages: dict[tuple[str, int], PageText] = {}
        self._kept_on_page: dict[tuple[str, int], tuple[Passage, ...]] = {}

    @classmethod
    def open(cls, path: Path, *, clock: Clock, wait_s: float | None = db.WAIT_S) -> Self:
        """The archive at `path`; a lock is waited for up to `wait_s` seconds, None for ever.

        Raises:
            ArchiveError: it is missing, locked, damaged, too new, or of an older docpager.
        """
        return cls(db.connect(path, MIGRATIONS, clock=clock, read_only=True, wait_s=wait_s), path)

    def beside(self) -> Self:
        """The same archive by a connection of its own, for another thread.

        What all searches need is read here at the first time, by one thread; that, and the texts
        that any of them reads, are shared.
        """
        needed = ["_ids", "_row_of", "_average_length", "_has_fresh"]
        needed += ["_matrix"] * self._is_resident
        for name in needed:
            getattr(self, name)
        with db.mapped_errors(self._path):
            connection = self._connection.cursor()
        other = copy.copy(self)
        other._connection = connection
        return other

    def close(self) -> None:
        """Let a writer in."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ---- what it holds

    @property
    def generation(self) -> int:
        """Grows with every committed change."""
        return self._meta.generation

    @property
    def passage_count(self) -> int:
        """Passages in the archive."""
        return len(self._live.numbers)

    def documents(self) -> tuple[Document, ...]:
        """All documents, failed ones too, by name."""
        return self._documents

    def document(self, name: str) -> Document:
        """The ready document of that name, or of which it is a unique end.

        Raises:
            UserError: there is none, or there are several; the message lists the nearest names.
        """
        return find_document(self._documents, name)

    def embedder_identity(self) -> EmbedderIdentity | None:
        """Which embedder made the vectors; None while nothing was ingested."""
        return self._meta.identity

    def content_hash(self) -> str:
        """A hash of what can be found: the ready documents' names and bytes, and the embedder."""
        return content_hash(self._documents, self.embedder_identity())

    def status(self) -> ArchiveStatus:
        """The numbers that `docpager status` shows."""
        documents = self._documents
        ready = [document for document in documents if document.state == "ready"]
        log = self._path.with_name(f"{self._path.name}.wal")
        return ArchiveStatus(
            ready=len(ready),
            failed=tuple(document for document in documents if document.state == "failed"),
            pending=sum(document.state == "pending" for document in documents),
            duplicates=sum(document.state == "duplicate" for document in documents),
            passages=self.passage_count,
            pages=sum(document.pages for document in ready),
            sections=sum(document.pages for document in ready if not document.paged),
            bytes=sum(file.stat().st_size for file in (self._path, log) if file.exists()),
            generation=self.generation,
            schema=len(MIGRATIONS),
            embedder=self.embedder_identity(),
        )

    # ---- the two halves of a search

    def lexical_search(
        self, query: str, depth: int, document_glob: str | None = None
    ) -> tuple[Scored, ...]:
        """The best `depth` passages by BM25: by score descending, then passage number."""
        found = self._postings(postings.distinct(query))
        scores = np.zeros(self._row_of.size)
        for term in sorted(found):
            numbers, parts = found[term]
            scores[numbers] += postings.idf(self.passage_count, len(numbers)) * parts
        candidates = np.flatnonzero(scores)
        allowed = self._allowed(document_glob)
        if allowed is not None:
            candidates = candidates[allowed[self._row_of[candidates]]]
        return best(candidates, scores[candidates], depth)

    def vector_search(
        self, vector: Vectors, depth: int, document_glob: str | None = None
    ) -> tuple[Scored, ...]:
        """The best `depth` passages by cosine with `vector`, shape (d,); ties by number.

        Raises:
            UserError: the archive's vectors have another dimension.
        """
        identity = self.embedder_identity()
        if identity is None or not self.passage_count:
            return ()
        query = unit_query(vector, identity)
        if self._is_resident:
            numbers, matrix = self._matrix
            # Not `@`: its threads spin on after the product and starve the queries that follow.
            scores = np.einsum("nd,d->n", matrix, query)
        else:
            numbers, scores = self._scanned(query, identity)
        allowed = self._allowed(document_glob)
        if allowed is not None:
            keep = allowed[self._row_of[numbers]]
            numbers, scores = numbers[keep], scores[keep]
        return best(numbers, scores.astype(np.float64), depth)

    def term_statistics(self, terms: Sequence[str]) -> TermStatistics:
        """What BM25 knows of `terms` in this archive."""
        found = self._postings(sorted(set(terms)))
        return TermStatistics(
            self.passage_count,
            self._average_length if self.passage_count else 0.0,
            {term: len(kept.numbers) for term, kept in found.items()},
        )

    # ---- text

    def passages(self, passage_ids: Sequence[str]) -> tuple[Passage, ...]:
        """These passages, in the order asked; ids that do not exist are left out."""
        numbers = [number for name in passage_ids if (number := _number_of(name))]
        if not numbers:
            return ()
        kept = self._kept_passages
        # A thread beside this one may clear it between a look and a read.
        found = {number: one for number in numbers if (one := kept.get(number)) is not None}
        missing = sorted(set(numbers) - found.keys())
        if missing:
            marks = ", ".join(map(str, missing))
            read = {int(one.passage_id[1:]): one for one in self._select(f"number IN ({marks})")}
            found |= read
            for number, passage in read.items():
                _keep(kept, number, passage)
        return tuple(found[number] for number in numbers if number in found)

    def passage_tokens(self, passage_ids: Sequence[str]) -> tuple[int, ...]:
        """Tokens of each passage as counted at ingest, in the order asked; 0 if unknown."""
        if not self.passage_count:
            return (0,) * len(passage_ids)
        rows = self._row_of
        numbers = np.array([_number_of(name) for name in passage_ids], np.int64)
        # Place 0 of the map is nobody's, as the numbers of passages begin at 1.
        found = rows[np.where(numbers < len(rows), numbers, 0)]
        return tuple(np.where(found >= 0, self._live.tokens[found], 0).tolist())

    def page(self, document: str, page_number: int) -> PageText:
        """One page (or section) of a ready document, by its exact name.

        Raises:
            UserError: there is no such page; the message names the last one.
        """
        place = (document, page_number)
        kept = self._kept_pages.get(place)
        if kept is not None:
            return kept
        with db.mapped_errors(self._path):
            row = self._connection.execute(
                "SELECT page_number, text, page_label, engine, flags, heading, first_line, quality,"
                " furniture FROM page WHERE document = ? AND page_number = ?",
                [self._ids.get(document, 0), page_number],
            ).fetchone()
        if row is None:
            raise no_such_page(self.document(document), page_number)
        number, text, label, engine, flags, heading, first_line, quality, furniture = row
        page = PageText(
            number,
            text,
            label or None,
            engine,
            tuple(flags.split()),
            heading or None,
            first_line or None,
            round(quality, 2),
            _spans_from_text(furniture),
        )
        _keep(self._kept_pages, place, page)
        return page

    def page_passages(self, document: str, page_number: int) -> tuple[Passage, ...]:
        """The passages of which some text stands on that page, in order."""
        place = (document, page_number)
        kept = self._kept_on_page.get(place)
        if kept is None:
            kept = self._select(
                "document = ? AND first_page <= ? AND last_page >= ?",
                [self._ids.get(document, 0), page_number, page_number],
            )
            _keep(self._kept_on_page, place, kept)
        return kept

    # ---- read once

    @cached_property
    def _meta(self) -> _Meta:
        with db.mapped_errors(self._path):
            return _read_meta(self._connection)

    @cached_property
    def _documents(self) -> tuple[Document, ...]:
        with db.mapped_errors(self._path):
            return _read_documents(self._connection)

    @cached_property
    def _places(self) -> dict[int, tuple[str, bool]]:
        """Name of each ready document, and whether it has pages, by its number."""
        with db.mapped_errors(self._path):
            rows = self._connection.execute(
                "SELECT id, name, paged FROM document WHERE state = 'ready'"
            ).fetchall()
        return {number: (name, paged) for number, name, paged in rows}

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: number for number, (name, _) in self._places.items()}

    @cached_property
    def _live(self) -> _Live:
        with db.mapped_errors(self._path):
            rows = self._connection.execute(
                "SELECT number, document, length, tokens FROM passage ORDER BY number"
            ).fetchnumpy()
        return _Live(rows["number"], rows["document"], rows["length"], rows["tokens"])

    @cached_property
    def _row_of(self) -> npt.NDArray[np.int32]:
        """The row in `_live` of each passage number; -1 for numbers that are gone."""
        numbers = self._live.numbers
        rows = np.full(int(numbers[-1]) + 1 if len(numbers) else 1, -1, np.int32)
        rows[numbers] = np.arange(len(numbers), dtype=np.int32)
        return rows

    @cached_property
    def _has_fresh(self) -> bool:
        with db.mapped_errors(self._path):
            return postings.has_fresh(self._connection)

    @cached_property
    def _average_length(self) -> float:
        lengths = self._live.lengths
        return float(lengths.mean(dtype=np.float64)) or 1.0 if len(lengths) else 1.0

    @property
    def _is_resident(self) -> bool:
        """Whether the vectors are few enough to be held in memory."""
        identity = self.embedder_identity()
        size = 0 if identity is None else 4 * identity.dimension * self.passage_count
        return 0 < size <= RESIDENT_BYTES

    @cached_property
    def _matrix(self) -> tuple[npt.NDArray[np.int64], Vectors]:
        """Passage numbers, and their vectors in the same order."""
        with db.mapped_errors(self._path):
            rows = self._connection.execute(
                "SELECT p.number, v.v FROM passage p JOIN vector v USING (text_hash)"
            ).fetchnumpy()
        numbers = rows["number"].astype(np.int64)
        return numbers, np.concatenate(list(rows["v"])).reshape(len(numbers), -1)

    # ---- queries

    def _scanned(
        self, query: Vectors, identity: EmbedderIdentity
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        with db.mapped_errors(self._path):
            rows = self._connection.execute(
                f"SELECT p.number, array_inner_product(v.v, ?::FLOAT[{identity.dimension}]) AS s"
                " FROM passage p JOIN vector v USING (text_hash)",
                [query.tolist()],
            ).fetchnumpy()
        return rows["number"].astype(np.int64), rows["s"].astype(np.float64)

    def _postings(self, wanted: Sequence[str]) -> dict[str, _TermPostings]:
        """The postings of stored passages alone; terms that none holds are absent."""
        kept = {term: self._kept_postings.get(term) for term in wanted}
        missing = [term for term, found in kept.items() if found is None]
        if missing:
            read = self._read_postings(missing)
            # A list, made at once: threads beside this one add to it meanwhile.
            held = list(self._kept_postings.values())
            if sum(len(one.numbers) for one in held) > KEPT_POSTINGS:
                self._kept_postings.clear()
            self._kept_postings.update(read)
            kept |= read
        return {term: found for term, found in kept.items() if found and len(found.numbers)}

    def _read_postings(self, wanted: Sequence[str]) -> dict[str, _TermPostings]:
        with db.mapped_errors(self._path):
            found = postings.read_postings(self._connection, wanted, fresh=self._has_fresh)
        none = np.empty(0, np.int64), np.empty(0, np.int64)
        live = {}
        for term in wanted:
            numbers, counts = found.get(term, none)
            known = numbers < len(self._row_of)
            known[known] = self._row_of[numbers[known]] >= 0
            if not known.all():
                numbers, counts = numbers[known], counts[known]
            lengths = self._live.lengths[self._row_of[numbers]]
            live[term] = _TermPostings(
                numbers, postings.saturation(counts, lengths, self._average_length)
            )
        return live

    def _allowed(self, document_glob: str | None) -> npt.NDArray[np.bool_] | None:
        """For each row of `_live` whether its document fits; None where all do."""
        if document_glob is None:
            return None
        fits = glob_pattern(document_glob).fullmatch
        wanted = [number for name, number in self._ids.items() if fits(name)]
        return np.isin(self._live.documents, np.array(wanted, np.int32))

    def _select(self, where: str, values: Sequence[object] = ()) -> tuple[Passage, ...]:
        # Without a join: beside one, DuckDB would not look passages up by their index.
        with db.mapped_errors(self._path):
            rows = self._connection.execute(
                f"SELECT {_PASSAGE_COLUMNS} FROM passage WHERE {where}", list(values)
            ).fetchall()
        # Sorted here: for a few rows, DuckDB takes a millisecond for it.
        return tuple(self._passage(*row) for row in sorted(rows))

    def _passage(
        self,
        number: int,
        document: int,
        text: str,
        first_page: int,
        last_page: int,
        start: int,
        end: int,
        heading: str,
        line: int,
        tokens: int,
    ) -> Passage:
        name, paged = self._places[document]
        return Passage(
            f"P{number}",
            name,
            text,
            first_page,
            last_page,
            paged,
            start,
            end,
            heading,
            line or None,
            tokens,
        )


class ArchiveFile:
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
        with db.mapped_errors(path):
            self._meta = _read_meta(connection)
            if identity is not None:
                self._settle(identity)

    # ---- reading

    def documents(self) -> tuple[Document, ...]:
        """All documents, failed ones too, by name."""
        with db.mapped_errors(self._path):
            return _read_documents(self._connection)

    def documents_with(self, flags: Sequence[str]) -> frozenset[str]:
        """Names of the documents that have a page with one of these flags."""
        with db.mapped_errors(self._path):
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
        with db.mapped_errors(self._path):
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
        kept = np.empty(len(first_of), dtype=object)
        kept[:] = list(first_of.values())
        columns = {"text_hash": db.strings(first_of), "v": kept}
        if first_of:
            with db.mapped_errors(self._path), db.transaction(self._connection):
                db.insert_rows(self._connection, "vector", columns, "ON CONFLICT DO NOTHING")

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
        with db.mapped_errors(self._path):
            (live,) = self._one("SELECT coalesce(sum(distinct_terms), 0) FROM passage")
            postings.pack(self._connection, int(live), at_rest=at_rest)

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
            with db.mapped_errors(self._path), db.transaction(self._connection):
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
        with db.transaction(self._connection):
            self._connection.execute(
                "CREATE TABLE vector (text_hash VARCHAR PRIMARY KEY,"
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
            heir = self._heir(name, names) if hand_over else None
            number, *_ = self._one("SELECT id FROM document WHERE name = ?", [name])
            del self._states[name]
            if heir is not None:
                self._hand_over(number, name, heir)
                self._states[heir] = "ready"
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

    def _heir(self, name: str, going: Sequence[str]) -> str | None:
        """The duplicate that takes over the text of `name`, if one stays."""
        rows = self._connection.execute(
            "SELECT name FROM document WHERE duplicate_of = ? AND state = 'duplicate'"
            " ORDER BY name",
            [name],
        ).fetchall()
        return next((heir for (heir,) in rows if heir not in going), None)

    def _copied(self, names: Sequence[str]) -> bool:
        """Whether any of the documents has a duplicate."""
        (found,) = self._one(
            "SELECT count(*) FROM document WHERE state = 'duplicate'"
            " AND duplicate_of IN (SELECT unnest(?::VARCHAR[]))",
            [list(names)],
        )
        return bool(found)

    def _hand_over(self, number: int, name: str, heir: str) -> None:
        """Let `heir`, a duplicate of document `number`, be the document itself."""
        text = self._one(
            "DELETE FROM document WHERE id = ? RETURNING id, paged, pages, passages, title, author",
            [number],
        )
        self._connection.execute(
            "UPDATE document SET id = ?, paged = ?, pages = ?, passages = ?, title = ?,"
            " author = ?, state = 'ready', duplicate_of = NULL WHERE name = ?",
            [*text, heir],
        )
        self._connection.execute(
            "UPDATE document SET duplicate_of = ? WHERE duplicate_of = ?", [heir, name]
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
        for name in _DOCUMENT_FIELDS:
            values = [getattr(document, name) for _, document in documents]
            kind = _DOCUMENT_TYPES.get(name)
            columns[name] = db.strings(values) if kind is None else np.array(values, kind)
        if documents:
            db.insert_rows(self._connection, "document", columns)

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
        columns: dict[str, npt.NDArray[Any]] = {"old_name": db.strings(old for old, _ in updates)}
        for name in ("name", "content_hash", "root", "reader", "size", "mtime_ns"):
            values = [getattr(document, name) for _, document in updates]
            kind = _DOCUMENT_TYPES.get(name)
            columns[name] = db.strings(values) if kind is None else np.array(values, kind)
        with db.new_rows(self._connection, columns):
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
            "text": db.strings(page.text for _, page in pages),
            "page_label": db.strings(repaired(page.page_label or "") for _, page in pages),
            "engine": db.strings(page.engine for _, page in pages),
            "flags": db.strings(" ".join(page.flags) for _, page in pages),
            "heading": db.strings(page.heading or "" for _, page in pages),
            "first_line": np.array([page.first_line or 0 for _, page in pages], np.int32),
            "quality": np.array([page.quality for _, page in pages], np.float32),
            "furniture": db.strings(_spans_to_text(page.furniture) for _, page in pages),
        }
        if pages:
            db.insert_rows(self._connection, "page", columns)

    def _insert_passages(self, passages: Sequence[_NewPassage]) -> None:
        """Insert passages with their postings, all of them or none."""
        if not passages:
            return
        chunks = [passage.chunk for passage in passages]
        hashes = [chunk.text_hash for chunk in chunks]
        self._refuse_without_vectors(passages, hashes)
        numbers = np.array([passage.number for passage in passages], np.int32)
        counted = [Counter(postings.terms(chunk.indexed_text)) for chunk in chunks]
        columns = {
            "number": numbers,
            "document": np.array([passage.document for passage in passages], np.int32),
            "text": db.strings(chunk.text for chunk in chunks),
            "first_page": np.array([chunk.first_page for chunk in chunks], np.int32),
            "last_page": np.array([chunk.last_page for chunk in chunks], np.int32),
            "start_at": np.array([chunk.start for chunk in chunks], np.int32),
            "end_at": np.array([chunk.end for chunk in chunks], np.int32),
            "heading": db.strings(chunk.heading for chunk in chunks),
            "line": np.array([chunk.line or 0 for chunk in chunks], np.int32),
            "tokens": np.array([chunk.tokens for chunk in chunks], np.int32),
            "text_hash": db.strings(hashes),
            "length": np.array([counts.total() for counts in counted], np.int32),
            "distinct_terms": np.array([len(counts) for counts in counted], np.int32),
        }
        postings.insert_segment(self._connection, passages[0].document, numbers, counted)
        kept = db.insert_rows(self._connection, "passage", columns)
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
    wait_s: float | None = db.WAIT_S,
) -> Iterator[ArchiveFile]:
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
        raise ArchiveError(db.missing(path, "archive"))
    connection = db.connect(path, MIGRATIONS, clock=clock, wait_s=wait_s)
    try:
        writer = ArchiveFile(connection, path, identity)
    except BaseException:
        connection.close()
        raise
    try:
        yield writer
    finally:
        writer.close()


def _number_of(passage_id: str) -> int:
    """The number of a stored passage; 0 where the id is of another kind."""
    match = _PASSAGE_ID.fullmatch(passage_id)
    return int(match[1]) if match else 0


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    """Remember what was read, and begin anew where it has become much."""
    if len(kept) >= MOST_KEPT:
        kept.clear()
    kept[key] = value


def _read_documents(connection: duckdb.DuckDBPyConnection) -> tuple[Document, ...]:
    rows = connection.execute(f"SELECT {_DOCUMENT_COLUMNS} FROM document ORDER BY name").fetchall()
    return tuple(Document(**dict(zip(_DOCUMENT_FIELDS, row, strict=True))) for row in rows)


def _read_meta(connection: duckdb.DuckDBPyConnection) -> _Meta:
    (row,) = connection.execute(
        "SELECT generation, next_document, next_passage, embedder FROM meta"
    ).fetchall()
    generation, next_document, next_passage, embedder = row
    identity = identity_from_json(embedder) if embedder else None
    return _Meta(generation, next_document, next_passage, identity)


def _spans_to_text(spans: Sequence[tuple[int, int]]) -> str:
    """Spans as they are stored: `0-12 840-842`."""
    return " ".join(f"{start}-{end}" for start, end in spans)


def _spans_from_text(text: str) -> tuple[tuple[int, int], ...]:
    pairs = (span.split("-") for span in text.split())
    return tuple((int(start), int(end)) for start, end in pairs)

"""The archive, read: one DuckDB file of documents, pages, passages, vectors and postings.

Any number of processes may have it open at once. What writes it is in `writer`, its tables are in
`schema`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from docpager.protocols import Clock, Vectors
from docpager.retrieval.bm25 import idf, saturation
from docpager.retrieval.fusion import best
from docpager.retrieval.terms import distinct
from docpager.retrieval.vectors import unit_query
from docpager.stores.catalogue import content_hash, find_document, glob_pattern, no_such_page
from docpager.stores.duckdb.connection import WAIT_S, connect, mapped_errors
from docpager.stores.duckdb.postings import Floats, Integers, has_fresh, read_postings
from docpager.stores.duckdb.schema import (
    MIGRATIONS,
    Meta,
    read_documents,
    read_meta,
    spans_from_text,
)
from docpager.types import (
    ArchiveStatus,
    Document,
    EmbedderIdentity,
    PageText,
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

_PASSAGE_COLUMNS = (
    "number, document, text, first_page, last_page, start_at, end_at, heading, line, tokens"
)
_PASSAGE_ID = re.compile(r"P([1-9][0-9]{0,8})")


class _Live(NamedTuple):
    """What is small of all stored passages, in order of their numbers."""

    numbers: npt.NDArray[np.int32]
    documents: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    """Terms."""
    tokens: npt.NDArray[np.int32]


class _TermPostings(NamedTuple):
    """The stored passages that hold a term."""

    numbers: Integers
    saturation: Floats
    """What BM25 makes of how often each holds it; its weight is still to be multiplied with."""


class DuckDBReader:
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
    def open(cls, path: Path, *, clock: Clock, wait_s: float | None = WAIT_S) -> Self:
        """The archive at `path`; a lock is waited for up to `wait_s` seconds, None for ever.

        Raises:
            ArchiveError: it is missing, locked, damaged, too new, or of an older docpager.
        """
        return cls(connect(path, MIGRATIONS, clock=clock, read_only=True, wait_s=wait_s), path)

    def for_thread(self) -> Self:
        """The same archive by a connection of its own, for another thread.

        What all searches need is read here at the first time, by one thread; that, and the texts
        that any of them reads, are shared.
        """
        needed = ["_ids", "_row_of", "_average_length", "_has_fresh"]
        needed += ["_matrix"] * self._is_resident
        for name in needed:
            getattr(self, name)
        with mapped_errors(self._path):
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
            embedder=self.embedder_identity(),
        )

    # ---- the two halves of a search

    def lexical_search(
        self, query: str, depth: int, document_glob: str | None = None
    ) -> tuple[Scored, ...]:
        """The best `depth` passages by BM25: by score descending, then passage number."""
        found = self._postings(distinct(query))
        scores = np.zeros(self._row_of.size)
        for term in sorted(found):
            numbers, parts = found[term]
            scores[numbers] += idf(self.passage_count, len(numbers)) * parts
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

    def passage_ids(self) -> tuple[str, ...]:
        """The ids of all passages, in order."""
        return tuple(f"P{number}" for number in self._live.numbers.tolist())

    def vectors(self) -> tuple[tuple[str, ...], Vectors]:
        """The ids of all passages, in order, and their vectors, shape (n, d), float32."""
        if not self.passage_count:
            dimension = self._meta.identity.dimension if self._meta.identity else 0
            return (), np.zeros((0, dimension), np.float32)
        numbers, matrix = self._matrix if self._is_resident else self._read_matrix()
        order = np.argsort(numbers)
        return tuple(f"P{number}" for number in numbers[order].tolist()), matrix[order]

    def page(self, document: str, page_number: int) -> PageText:
        """One page (or section) of a ready document, by its exact name.

        Raises:
            UserError: there is no such page; the message names the last one.
        """
        place = (document, page_number)
        kept = self._kept_pages.get(place)
        if kept is not None:
            return kept
        with mapped_errors(self._path):
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
            spans_from_text(furniture),
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
    def _meta(self) -> Meta:
        with mapped_errors(self._path):
            return read_meta(self._connection)

    @cached_property
    def _documents(self) -> tuple[Document, ...]:
        with mapped_errors(self._path):
            return read_documents(self._connection)

    @cached_property
    def _places(self) -> dict[int, tuple[str, bool]]:
        """Name of each ready document, and whether it has pages, by its number."""
        with mapped_errors(self._path):
            rows = self._connection.execute(
                "SELECT id, name, paged FROM document WHERE state = 'ready'"
            ).fetchall()
        return {number: (name, paged) for number, name, paged in rows}

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: number for number, (name, _) in self._places.items()}

    @cached_property
    def _live(self) -> _Live:
        with mapped_errors(self._path):
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
        with mapped_errors(self._path):
            return has_fresh(self._connection)

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
        """Passage numbers, and their vectors in the same order, kept for later searches."""
        return self._read_matrix()

    def _read_matrix(self) -> tuple[npt.NDArray[np.int64], Vectors]:
        with mapped_errors(self._path):
            rows = self._connection.execute(
                "SELECT p.number, v.v FROM passage p JOIN vector v USING (text_hash)"
            ).fetchnumpy()
        numbers = rows["number"].astype(np.int64)
        return numbers, np.concatenate(list(rows["v"])).reshape(len(numbers), -1)

    # ---- queries

    def _scanned(
        self, query: Vectors, identity: EmbedderIdentity
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        with mapped_errors(self._path):
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
        with mapped_errors(self._path):
            found = read_postings(self._connection, wanted, fresh=self._has_fresh)
        none = np.empty(0, np.int64), np.empty(0, np.int64)
        live = {}
        for term in wanted:
            numbers, counts = found.get(term, none)
            known = numbers < len(self._row_of)
            known[known] = self._row_of[numbers[known]] >= 0
            if not known.all():
                numbers, counts = numbers[known], counts[known]
            lengths = self._live.lengths[self._row_of[numbers]]
            live[term] = _TermPostings(numbers, saturation(counts, lengths, self._average_length))
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
        with mapped_errors(self._path):
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


def _number_of(passage_id: str) -> int:
    """The number of a stored passage; 0 where the id is of another kind."""
    match = _PASSAGE_ID.fullmatch(passage_id)
    return int(match[1]) if match else 0


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    """Remember what was read, and begin anew where it has become much."""
    if len(kept) >= MOST_KEPT:
        kept.clear()
    kept[key] = value

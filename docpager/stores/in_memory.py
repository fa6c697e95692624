"""The archive in plain Python: what the stored one must do, in the fewest words.

It is for tests and small experiments. Every search looks at every passage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from docpager.errors import ArchiveError
from docpager.protocols import Vectors
from docpager.retrieval.bm25 import score_texts
from docpager.retrieval.fusion import best
from docpager.retrieval.terms import distinct, terms
from docpager.retrieval.vectors import unit_query, unit_rows
from docpager.stores.catalogue import (
    check_chunks,
    content_hash,
    find_document,
    glob_pattern,
    inherited,
    no_such_page,
    storable,
)
from docpager.types import (
    Chunk,
    Document,
    EmbedderIdentity,
    PageText,
    ParsedDocument,
    Passage,
    Scored,
    TermStatistics,
)
from docpager.unicode import repaired


class InMemoryStore:
    """`protocols.ArchivalStore` and `protocols.ArchiveWriter` in one, kept in dictionaries."""

    def __init__(self, identity: EmbedderIdentity) -> None:
        self._identity = identity
        self._generation = 0
        self._next_number = 1
        self._documents: dict[str, Document] = {}
        self._pages: dict[str, tuple[PageText, ...]] = {}
        self._chunks: dict[int, tuple[str, Chunk]] = {}
        """By passage number: the document's name and the chunk."""
        self._vectors: dict[str, Vectors] = {}
        self._grouped = False
        self._unused: list[str] = []
        """Hashes whose vectors may be unused at the end of a transaction."""

    # ---- protocols.ArchivalStore

    @property
    def generation(self) -> int:
        """Grows with every change."""
        return self._generation

    @property
    def passage_count(self) -> int:
        """Passages in the archive."""
        return len(self._chunks)

    def lexical_search(
        self, query: str, depth: int, document_glob: str | None = None
    ) -> tuple[Scored, ...]:
        """The best `depth` passages by BM25: by score descending, then passage number."""
        wanted = distinct(query)
        statistics = self.term_statistics(wanted)
        numbers = [
            number
            for number in self._within(document_glob)
            if not statistics.passage_frequency.keys().isdisjoint(self._counted(number))
        ]
        texts = [self._chunks[number][1].indexed_text for number in numbers]
        scores = score_texts(query, texts, statistics)
        return best(np.array(numbers, np.int64), np.array(scores), depth)

    def vector_search(
        self, vector: Vectors, depth: int, document_glob: str | None = None
    ) -> tuple[Scored, ...]:
        """The best `depth` passages by cosine with `vector`; ties by number."""
        query = unit_query(vector, self._identity)
        numbers = self._within(document_glob)
        scores = [float(self._vectors[self._chunks[n][1].text_hash] @ query) for n in numbers]
        return best(np.array(numbers, np.int64), np.array(scores), depth)

    def term_statistics(self, terms: Sequence[str]) -> TermStatistics:
        """What BM25 knows of `terms` in this archive."""
        counted = [self._counted(number) for number in self._chunks]
        frequency = {term: sum(term in counts for counts in counted) for term in set(terms)}
        total = sum(counts.total() for counts in counted)
        return TermStatistics(
            len(counted),
            (total / len(counted) or 1.0) if counted else 0.0,
            {term: count for term, count in frequency.items() if count},
        )

    def passages(self, passage_ids: Sequence[str]) -> tuple[Passage, ...]:
        """These passages, in the order asked; ids that do not exist are left out."""
        known = {f"P{number}": number for number in self._chunks}
        return tuple(self._passage(known[name]) for name in passage_ids if name in known)

    def passage_tokens(self, passage_ids: Sequence[str]) -> tuple[int, ...]:
        """Tokens of each passage as counted at ingest, in the order asked; 0 if unknown."""
        known = {passage.passage_id: passage.tokens for passage in self.passages(passage_ids)}
        return tuple(known.get(name, 0) for name in passage_ids)

    def document(self, name: str) -> Document:
        """The ready document of that name, or of which it is a unique end."""
        return find_document(self.documents(), name)

    def documents(self) -> tuple[Document, ...]:
        """All documents, failed ones too, by name."""
        return tuple(self._documents[name] for name in sorted(self._documents))

    def page(self, document: str, page_number: int) -> PageText:
        """One page (or section) of a ready document, by its exact name."""
        for page in self._pages.get(document, ()):
            if page.page_number == page_number:
                return page
        raise no_such_page(self.document(document), page_number)

    def page_passages(self, document: str, page_number: int) -> tuple[Passage, ...]:
        """The passages of which some text stands on that page, in order."""
        return tuple(
            self._passage(number)
            for number, (name, chunk) in self._chunks.items()
            if name == document and chunk.first_page <= page_number <= chunk.last_page
        )

    def embedder_identity(self) -> EmbedderIdentity | None:
        """Which embedder made the vectors."""
        return self._identity

    def content_hash(self) -> str:
        """A hash of what can be found: the ready documents' names and bytes, and the embedder."""
        return content_hash(self.documents(), self._identity)

    # ---- protocols.ArchiveWriter

    @contextmanager
    def together(self) -> Iterator[None]:
        """Everything that is changed within it is one transaction."""
        generation = self._generation
        kept = (dict(self._documents), dict(self._pages), dict(self._chunks), dict(self._vectors))
        numbered = self._next_number
        self._grouped = True
        try:
            yield
            self._drop_unused()
        except BaseException:
            self._documents, self._pages, self._chunks, self._vectors = kept
            self._next_number = numbered
            self._unused = []
            raise
        finally:
            self._generation = generation
            self._grouped = False
        self._generation += 1

    def missing_vectors(self, text_hashes: Sequence[str]) -> frozenset[str]:
        """Those of `text_hashes` for which there is no vector yet."""
        return frozenset(text_hashes).difference(self._vectors)

    def put_vectors(self, text_hashes: Sequence[str], vectors: Vectors) -> None:
        """Keep vectors, whether or not their document is stored yet."""
        rows = unit_rows(vectors, self._identity.dimension)
        if len(rows) != len(text_hashes):
            raise ArchiveError(f"{len(rows)} vectors came for {len(text_hashes)} texts.")
        for text_hash, row in zip(text_hashes, rows, strict=True):
            self._vectors.setdefault(text_hash, row)

    def store(
        self, document: Document, parsed: ParsedDocument, chunks: Sequence[Chunk]
    ) -> Document:
        """Store a document whole, in place of one of that name."""
        check_chunks(document, parsed, chunks)
        if missing := self.missing_vectors([chunk.text_hash for chunk in chunks]):
            raise ArchiveError(
                f"{len(missing)} passages of {document.name} have no vector yet. "
                f"Embed them before the document is stored."
            )
        title = parsed.title if document.title is None else document.title
        author = parsed.author if document.author is None else document.author
        stored = storable(
            replace(
                document,
                state="ready",
                paged=parsed.paged,
                pages=len(parsed.pages),
                passages=len(chunks),
                title=title,
                author=author,
            )
        )
        before = self._documents.get(stored.name)
        anew = before is not None and before.content_hash == stored.content_hash
        unused = self._forget([stored.name], hand_over=not anew)
        self._documents[stored.name] = stored
        self._pages[stored.name] = parsed.pages
        for chunk in chunks:
            self._chunks[self._next_number] = (stored.name, chunk)
            self._next_number += 1
        self._grow(unused)
        return stored

    def record(self, document: Document) -> None:
        """Keep a row without text: a failed file with its reason, a duplicate, a new mtime."""
        row = storable(document)
        if row.state == "ready":
            self._update(row.name, row)
            self._grow(())
        else:
            unused = self._forget([row.name])
            self._documents[row.name] = replace(row, passages=0)
            self._grow(unused)

    def rename(self, old_name: str, document: Document) -> None:
        """Give a stored document another name and place, and keep its passages as they are."""
        row = storable(document)
        old_name = repaired(old_name)
        self._check_stored(old_name)
        unused = self._forget([row.name]) if row.name != old_name else []
        self._update(old_name, row)
        self._grow(unused)

    def remove(self, names: Sequence[str]) -> int:
        """Forget documents; returns how many passages went. Unused vectors go with them.

        A duplicate of what is removed takes its passages over, and what is attached to it.
        """
        before = len(self._chunks)
        going = [repaired(name) for name in names]
        stays = inherited(self.documents(), frozenset(going))
        unused = self._forget([name for name in going if name not in stays])
        for name, row in stays.items():
            unused += self._forget([row.name])
            if row.state == "ready":
                self._update(name, row)
            else:
                del self._documents[name]
                self._documents[row.name] = row
        self._grow(unused)
        return before - len(self._chunks)

    def compact(self) -> None:
        """Nothing: all of it is in the shape that searches read."""

    # ---- parts

    def _within(self, document_glob: str | None) -> list[int]:
        if document_glob is None:
            return list(self._chunks)
        fits = glob_pattern(document_glob).fullmatch
        return [number for number, (name, _) in self._chunks.items() if fits(name)]

    def _counted(self, number: int) -> Counter[str]:
        return Counter(terms(self._chunks[number][1].indexed_text))

    def _passage(self, number: int) -> Passage:
        name, chunk = self._chunks[number]
        return Passage(
            f"P{number}",
            name,
            chunk.text,
            chunk.first_page,
            chunk.last_page,
            self._documents[name].paged,
            chunk.start,
            chunk.end,
            chunk.heading,
            chunk.line,
            chunk.tokens,
        )

    def _grow(self, unused: Sequence[str]) -> None:
        self._unused += unused
        if not self._grouped:
            self._drop_unused()
        self._generation += 1

    def _drop_unused(self) -> None:
        unused, self._unused = self._unused, []
        used = {chunk.text_hash for _, chunk in self._chunks.values()}
        for text_hash in unused:
            if text_hash not in used:
                self._vectors.pop(text_hash, None)

    def _forget(self, names: Sequence[str], *, hand_over: bool = True) -> list[str]:
        """Delete documents with their text; returns the hashes whose vectors may be unused now."""
        hashes: list[str] = []
        for name in names:
            document = self._documents.get(name)
            if document is None:
                continue
            takes_over = hand_over and document.state == "ready"
            successor = self._successor(name, names) if takes_over else None
            if successor is not None:
                self._update(name, self._documents.pop(successor))
                continue
            del self._documents[name]
            self._pages.pop(name, None)
            gone = [number for number, (owner, _) in self._chunks.items() if owner == name]
            hashes += [self._chunks.pop(number)[1].text_hash for number in gone]
        return hashes

    def _successor(self, name: str, going: Sequence[str]) -> str | None:
        """The duplicate that takes over the text of `name`, if one stays."""
        return next(
            (
                document.name
                for document in self.documents()
                if document.state == "duplicate"
                and document.duplicate_of == name
                and document.name not in going
            ),
            None,
        )

    def _check_stored(self, name: str) -> None:
        known = self._documents.get(name)
        if known is None or known.state != "ready":
            raise ArchiveError(f"There is no stored document {name}. Ingest it first.")

    def _update(self, name: str, row: Document) -> None:
        """Give the stored document `name` the name and the file of `row`."""
        self._check_stored(name)
        known = self._documents.pop(name)
        self._documents[row.name] = replace(
            known,
            name=row.name,
            content_hash=row.content_hash,
            size=row.size,
            root=row.root,
            mtime_ns=row.mtime_ns,
            reader=row.reader or known.reader,
        )
        self._pages[row.name] = self._pages.pop(name)
        self._chunks = {
            number: (row.name if owner == name else owner, chunk)
            for number, (owner, chunk) in self._chunks.items()
        }
        for other in self._documents.values():
            if other.duplicate_of == name:
                self._documents[other.name] = replace(other, duplicate_of=row.name)

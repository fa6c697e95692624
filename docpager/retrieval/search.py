"""The only search: both halves asked of a store, a session's inserts added, fused (I3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from docpager.errors import UserError
from docpager.protocols import ArchivalStore, Embedder, Vectors
from docpager.retrieval.bm25 import score_texts
from docpager.retrieval.fusion import DEPTH, Half, fuse
from docpager.retrieval.terms import terms
from docpager.types import Passage, Scored, SearchMode


class Inserts(Protocol):
    """Texts that a session adds to the documents, with their vectors."""

    @property
    def inserts(self) -> Sequence[Passage]:
        """The texts, oldest first."""

    def insert_similarities(self, query: Vectors) -> tuple[Scored, ...]:
        """The cosine of each text with the query's vector."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The hits of a query in their total order: score descending, then passage id."""

    query: str
    mode: SearchMode
    ordered: tuple[Scored, ...]

    @property
    def total(self) -> int:
        """The M of "Showing N of M"."""
        return len(self.ordered)


def search(
    store: ArchivalStore,
    embedder: Embedder,
    query: str,
    mode: SearchMode = "hybrid",
    depth: int = DEPTH,
    document_glob: str | None = None,
    inserts: Inserts | None = None,
) -> Ranking:
    """The whole ranking of `query` over the store's documents, or those that `document_glob` fits.

    `inserts` are ranked together with the documents, whatever `document_glob` says.

    Raises:
        UserError: the query is empty.
        ModelError: the embedding endpoint fails.
    """
    if not query.strip():
        raise UserError("The query is empty. Give words or a question to search for.")
    added = inserts if inserts is not None and inserts.inserts else None
    if mode == "lexical":
        return Ranking(query, mode, _lexical(store, query, depth, document_glob, added))
    vector = embedder.embed([query])[0]
    semantic = store.vector_search(vector, depth, document_glob)
    if added is not None:
        semantic = _merged(semantic, added.insert_similarities(vector), depth)
    if mode == "vector":
        return Ranking(query, mode, semantic)
    lexical = _lexical(store, query, depth, document_glob, added)
    return Ranking(query, mode, fuse(lexical, semantic, depth))


def _lexical(
    store: ArchivalStore, query: str, depth: int, document_glob: str | None, added: Inserts | None
) -> Half:
    lexical = store.lexical_search(query, depth, document_glob)
    if added is None:
        return lexical
    statistics = store.term_statistics(sorted(set(terms(query))))
    scores = score_texts(query, [insert.text for insert in added.inserts], statistics)
    matching = tuple(
        Scored(insert.passage_id, score)
        for insert, score in zip(added.inserts, scores, strict=True)
        if score > 0
    )
    return _merged(lexical, matching, depth)


def _merged(documents: Half, inserts: Half, depth: int) -> Half:
    """Two halves of one kind as one, best first; equal scores keep the documents in front."""
    return tuple(sorted((*documents, *inserts), key=lambda scored: -scored.score))[:depth]

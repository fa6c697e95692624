"""One search: both halves asked of a store and fused into one ranking (I3)."""

from __future__ import annotations

from dataclasses import dataclass

from docpager.errors import UserError
from docpager.protocols import ArchivalStore, Embedder
from docpager.retrieval.fusion import DEPTH, fuse
from docpager.types import Scored, SearchMode


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
) -> Ranking:
    """The whole ranking of `query` over the store's documents, or those that `document_glob` fits.

    Raises:
        UserError: the query is empty.
        ModelError: the embedding endpoint fails.
    """
    if not query.strip():
        raise UserError("The query is empty. Give words or a question to search for.")
    if mode == "lexical":
        return Ranking(query, mode, store.lexical_search(query, depth, document_glob))
    vector = embedder.embed([query])[0]
    semantic = store.vector_search(vector, depth, document_glob)
    if mode == "vector":
        return Ranking(query, mode, semantic)
    lexical = store.lexical_search(query, depth, document_glob)
    return Ranking(query, mode, fuse(lexical, semantic, depth))

"""Rankings: two halves of a search fused into one total order, and cut into true pages (I3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from docpager.errors import UserError
from docpager.protocols import ArchivalStore, Embedder
from docpager.types import Hit, ResultPage, Scored, SearchMode

Half: TypeAlias = tuple[Scored, ...]
"""One half of a search, or both fused: best first."""

DEPTH = 200
"""How many of each half of a search are ranked."""
FUSION_K = 10
"""The constant of reciprocal rank fusion: how little the first ranks differ.

With the usual 60, whatever is thirtieth in both halves passes an exact identifier that only the
lexical half finds, first. Recall@5 with 10 and with 60: MuSiQue 51.4 and 48.9, HotpotQA 76.5 and
74.4 (benchmarks/retrieval.py).
"""
DECIMALS = 6
"""To which scores are rounded before they are compared."""


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


def passage_order(passage_id: str) -> tuple[bool, int]:
    """What passages of one score are sorted by: stored ones by number, then inserted ones."""
    return passage_id.startswith("N"), int(passage_id[1:])


def fuse(
    lexical: Sequence[Scored], vector: Sequence[Scored], depth: int = DEPTH, k: int = FUSION_K
) -> Half:
    """Reciprocal rank fusion: a passage scores 1 / (k + rank) for each half it stands in.

    Ranks count from 1 in the best `depth` of each half, which comes best first. Equal scores come
    in the order of `passage_order`.
    """
    scores: dict[str, float] = {}
    for half in (lexical, vector):
        for rank, (name, _) in enumerate(half[:depth], start=1):
            scores[name] = scores.get(name, 0.0) + 1 / (k + rank)
    ordered = sorted(
        (-round(score, DECIMALS), passage_order(name), name) for name, score in scores.items()
    )
    return tuple([Scored(name, -negative) for negative, _, name in ordered])


def best(numbers: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], depth: int) -> Half:
    """The best `depth` of passages `P<numbers>`: rounded score descending, then number."""
    rounded = np.round(scores, DECIMALS)
    if len(rounded) > depth > 0:
        # Whatever ties with the last place is kept for the numbers to decide.
        keep = rounded >= np.partition(rounded, -depth)[-depth]
        numbers, rounded = numbers[keep], rounded[keep]
    order = np.lexsort((numbers, -rounded))[:depth]
    kept = zip(numbers[order].tolist(), rounded[order].tolist(), strict=True)
    return tuple(Scored(f"P{number}", score) for number, score in kept)


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


def result_page(store: ArchivalStore, ranking: Ranking, page: int, page_size: int) -> ResultPage:
    """Page `page` (0-based) of a ranking, `page_size` hits to a page; the last may be shorter.

    Raises:
        UserError: the page is past the end (the last one is named), or a number is negative.
    """
    if page_size < 1:
        raise UserError(f"A page of {page_size} results is empty. Give --page-size 1 or more.")
    last = max(0, math.ceil(ranking.total / page_size) - 1)
    if not 0 <= page <= last:
        there = f"a page from 0 to {last}" if last else "that one"
        raise UserError(
            f"There is no page {page} of these results. The last page is {last}. Ask for {there}."
        )
    first = page * page_size
    part = ranking.ordered[first : first + page_size]
    found = {
        passage.passage_id: passage for passage in store.passages([hit.passage_id for hit in part])
    }
    hits = tuple(
        Hit(rank, hit.score, found[hit.passage_id]) for rank, hit in enumerate(part, start=first)
    )
    return ResultPage(ranking.query, ranking.mode, page, page_size, last + 1, ranking.total, hits)


def page_slices(costs: Sequence[int], budget: int) -> tuple[slice, ...]:
    """Pages of a ranking by tokens: disjoint slices in order that together are all of it.

    Each is as long as `budget` allows. What alone costs more than the budget has a page of its
    own. An empty ranking has one empty page.

        >>> page_slices([3, 4, 9, 1], budget=8)
        (slice(0, 2, None), slice(2, 3, None), slice(3, 4, None))
    """
    slices: list[slice] = []
    first, spent = 0, 0
    for at, cost in enumerate(costs):
        if at > first and spent + cost > budget:
            slices.append(slice(first, at))
            first, spent = at, 0
        spent += cost
    return (*slices, slice(first, len(costs)))

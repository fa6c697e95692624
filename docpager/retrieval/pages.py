"""Pages of a ranking: disjoint slices in order, by count or by tokens (I3)."""

from __future__ import annotations

from collections.abc import Sequence

from docpager.errors import UserError
from docpager.protocols import ArchivalStore
from docpager.retrieval.search import Ranking
from docpager.types import Hit, ResultPage


def result_page(store: ArchivalStore, ranking: Ranking, page: int, page_size: int) -> ResultPage:
    """Page `page` (0-based) of a ranking, `page_size` hits to a page; the last may be shorter.

    Raises:
        UserError: the page is past the end (the last one is named), or a number is negative.
    """
    if page_size < 1:
        raise UserError(f"A page of {page_size} results is empty. Give --page-size 1 or more.")
    slices = count_slices(ranking.total, page_size)
    last = len(slices) - 1
    if not 0 <= page <= last:
        there = f"a page from 0 to {last}" if last else "that one"
        raise UserError(
            f"There is no page {page} of these results. The last page is {last}. Ask for {there}."
        )
    part = ranking.ordered[slices[page]]
    found = {
        passage.passage_id: passage for passage in store.passages([hit.passage_id for hit in part])
    }
    hits = tuple(
        Hit(rank, hit.score, found[hit.passage_id])
        for rank, hit in enumerate(part, start=slices[page].start)
    )
    return ResultPage(ranking.query, ranking.mode, page, page_size, last + 1, ranking.total, hits)


def count_slices(total: int, page_size: int) -> tuple[slice, ...]:
    """Pages of a ranking by count; an empty ranking has one empty page.

    >>> count_slices(5, page_size=2)
    (slice(0, 2, None), slice(2, 4, None), slice(4, 5, None))
    """
    starts = range(0, max(1, total), page_size)
    return tuple(slice(start, min(start + page_size, total)) for start in starts)


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

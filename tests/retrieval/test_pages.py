"""Pages of a ranking, by count and by tokens (I3)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.errors import UserError
from docpager.retrieval.pages import page_slices, result_page
from docpager.retrieval.search import Ranking
from docpager.stores.in_memory import InMemoryStore
from docpager.testing import HashEmbedder


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 40))
def test_pages_by_tokens_are_disjoint_in_order_and_fit(costs: list[int], budget: int) -> None:
    slices = page_slices(costs, budget)
    assert [cost for part in slices for cost in costs[part]] == costs
    assert len(slices) >= 1
    for part in slices:
        page = costs[part]
        assert sum(page) <= budget or len(page) == 1
        assert page or not costs
    for before, after in pairwise(slices):
        # No page could have taken the first of the next one.
        assert sum(costs[before]) + costs[after.start] > budget


def test_an_empty_ranking_has_one_empty_page() -> None:
    store = InMemoryStore(HashEmbedder().identity)
    page = result_page(store, Ranking("x", "hybrid", ()), 0, 5)
    assert (page.page_count, page.total, page.hits) == (1, 0, ())
    assert page_slices([], 5) == (slice(0, 0),)


@pytest.mark.parametrize(("page", "size"), [(1, 5), (-1, 5), (0, 0), (0, -3)])
def test_pages_that_do_not_exist_are_refused(page: int, size: int) -> None:
    store = InMemoryStore(HashEmbedder().identity)
    with pytest.raises(UserError, match=r"last page is 0|--page-size"):
        result_page(store, Ranking("x", "hybrid", ()), page, size)

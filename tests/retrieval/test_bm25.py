"""BM25: the formula and its laws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.retrieval.bm25 import idf, saturation, score_texts
from docpager.types import TermStatistics


def test_saturation_is_the_part_of_the_formula_of_the_docstring() -> None:
    (score,) = 2.0 * saturation([3], [20], average_length=10.0)
    assert score == pytest.approx(2.0 * 3 * 2.2 / (3 + 1.2 * (0.25 + 0.75 * 20 / 10)))


@given(st.integers(0, 10_000), st.data())
def test_rarer_terms_weigh_more_and_none_weighs_nothing(count: int, data: st.DataObject) -> None:
    frequency = data.draw(st.integers(0, count))
    assert idf(count, frequency) > 0
    if frequency:
        assert idf(count, frequency - 1) > idf(count, frequency)


@given(st.integers(1, 50), st.integers(1, 500))
def test_more_occurrences_score_more_and_longer_passages_less(n: int, length: int) -> None:
    more, less, longer = saturation([n + 1, n, n], [length, length, length + 1], 100.0)
    assert more > less > longer > 0


def test_texts_are_scored_with_the_statistics_of_another_collection() -> None:
    statistics = TermStatistics(100, 4.0, {"common": 90, "rare": 1})
    rare, common, none = score_texts(
        "rare common rare", ["a rare word", "a common word", "nothing here"], statistics
    )
    assert rare > common > none == 0.0
    expected = math.log1p((100 - 1 + 0.5) / 1.5) * saturation([1], [3], 4.0)
    assert rare == pytest.approx(float(expected[0]))


def test_texts_are_scored_without_any_collection() -> None:
    empty = TermStatistics(0, 0.0, {})
    first, second = score_texts("fish", ["blue fish", "sky"], empty)
    assert first > second == 0.0
    assert score_texts("fish", ["", "!"], empty) == [0.0, 0.0]
    assert score_texts("fish", [], empty) == []
    assert score_texts("", ["blue fish"], empty) == [0.0]

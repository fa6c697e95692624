"""Fusion (I3): one total order of both halves of a search."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from docpager.retrieval.fusion import DEPTH, best, fuse, passage_order
from docpager.types import Scored

names = st.builds(lambda kind, n: f"{kind}{n}", st.sampled_from("PN"), st.integers(1, 300))
halves = st.lists(names, unique=True, max_size=250).map(
    lambda ids: tuple(Scored(name, 1.0 / rank) for rank, name in enumerate(ids, 1))
)


def test_a_passage_in_both_halves_comes_before_those_in_one() -> None:
    first = [Scored("P1", 9.0), Scored("P2", 8.0)]
    second = [Scored("P3", 0.9), Scored("P2", 0.8)]
    fused = fuse(first, second)
    assert [hit.passage_id for hit in fused] == ["P2", "P1", "P3"]
    assert fused[0].score == round(1 / 12 + 1 / 12, 6)
    assert fused[1].score == fused[2].score == round(1 / 11, 6)


def test_equal_scores_are_in_order_of_number_and_inserts_come_last() -> None:
    tied = [Scored("N1", 1.0)], [Scored("P10", 1.0)]
    assert [hit.passage_id for hit in fuse(*tied)] == ["P10", "N1"]
    assert sorted(["N2", "P10", "N10", "P9"], key=passage_order) == ["P9", "P10", "N2", "N10"]


@given(halves, halves)
def test_fusion_is_a_total_order_of_the_best_of_both(
    lexical: tuple[Scored, ...], vector: tuple[Scored, ...]
) -> None:
    fused = fuse(lexical, vector)
    wanted = {hit.passage_id for half in (lexical, vector) for hit in half[:DEPTH]}
    assert {hit.passage_id for hit in fused} == wanted
    assert len(fused) == len(wanted)
    for before, after in pairwise(fused):
        assert before.score >= after.score
        if before.score == after.score:
            assert passage_order(before.passage_id) < passage_order(after.passage_id)
    assert fuse(vector, lexical) == fused


@given(
    scores=st.dictionaries(st.integers(1, 99), st.floats(-1, 1).map(lambda x: round(x, 1))),
    depth=st.integers(1, 9),
)
def test_the_best_are_the_head_of_the_whole_order(scores: dict[int, float], depth: int) -> None:
    numbers = np.array(list(scores), np.int64)
    found = best(numbers, np.array(list(scores.values()), np.float64), depth)
    order = sorted(scores, key=lambda number: (-scores[number], number))
    assert [hit.passage_id for hit in found] == [f"P{number}" for number in order[:depth]]

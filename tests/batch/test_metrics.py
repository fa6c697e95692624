"""Scores: SQuAD's normalisation, CJK by character, and the laws of F1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.batch.metrics import best, contains, exact_match, f1, recall, tokens
from docpager.types import PageRef

TEXT = st.text(st.sampled_from("ab the 12,灯塔."), max_size=20)


@pytest.mark.parametrize(
    ("answer", "expected", "em", "overlap"),
    [
        ("The Beckford Foundry.", "beckford foundry", 1.0, 1.0),
        ("438 tons", "438", 0.0, 2 / 3),
        ("在北港灯塔", "北港灯塔", 0.0, 8 / 9),
        ("Dunmarsh", "Kestwick", 0.0, 0.0),
        ("", "Kestwick", 0.0, 0.0),
        ("$1,250,000", "1250000", 1.0, 1.0),
        ("the U.S.", "US", 1.0, 1.0),
        ("O’Brien", "O'Brien", 1.0, 1.0),
        ("3.5", "5.3", 0.0, 0.0),
        ("1914–1918", "1914 1918", 1.0, 1.0),
        ("二〇〇八年", "〇八", 0.0, 4 / 7),
    ],
)
def test_known_scores(answer: str, expected: str, em: float, overlap: float) -> None:
    assert exact_match(answer, expected) == em
    assert f1(answer, expected) == pytest.approx(overlap)


@given(TEXT, TEXT)
def test_f1_is_symmetric_bounded_and_one_for_equal_bags(one: str, other: str) -> None:
    assert f1(one, other) == f1(other, one)
    assert 0.0 <= f1(one, other) <= 1.0
    assert (f1(one, other) == 1.0) == (sorted(tokens(one)) == sorted(tokens(other)))


@given(TEXT, TEXT, TEXT)
def test_contains_wants_the_words_together(before: str, wanted: str, after: str) -> None:
    assert contains(f"{before} {wanted} {after}", wanted) == 1.0 or not tokens(wanted)


@pytest.mark.parametrize("nothing", ["+", "The", "A", ""])
def test_an_answer_does_not_contain_what_is_no_word(nothing: str) -> None:
    assert contains("Kestwick", nothing) == 0.0
    assert contains("", nothing) == 1.0


def test_han_is_contained_by_character() -> None:
    assert contains("在二〇〇八年", "〇八年") == 1.0


def test_the_best_accepted_answer_counts() -> None:
    assert best(exact_match, "438", ["438 tons", "438"]) == 1.0
    assert best(f1, "anything", []) == 0.0


def test_recall_counts_wanted_pages_once() -> None:
    one, two = PageRef("a.pdf", 1), PageRef("a.pdf", 2)
    assert recall([one, one], [one, two]) == 0.5
    assert recall([], []) == 1.0

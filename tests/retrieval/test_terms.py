"""Terms: what lexical search compares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.retrieval.terms import LONGEST_TERM, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's 3.5 km", ["it's", "it", "s", "3.5", "3", "5", "km"]),
        ("foo_bar.baz", ["foo_bar.baz", "foo", "bar", "baz"]),
        ("2019–2020", ["2019-2020", "2019", "2020"]),
        ("ＡＢＣ ﬁne Straße", ["abc", "fine", "strasse"]),
        ("co\u00adop zero\u200bwidth", ["coop", "zerowidth"]),
        ("GPT4模型", ["gpt4", "模型"]),
        ("第3季", ["第", "3", "季"]),
        ("コーヒー", ["コー", "ーヒ", "ヒー"]),
        ("한국어", ["한국", "국어"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("«Привет», МИР!", ["привет", "мир"]),
        ("end.", ["end"]),
        ("-- __ ... \ud800 \x00 🙂", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_a_uuid_is_a_term_whole_and_in_parts() -> None:
    uuid = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
    assert terms(f"({uuid.upper()})") == [uuid, *uuid.split("-")]


@given(st.text())
def test_terms_are_bounded_storable_and_not_empty(text: str) -> None:
    for term in terms(text):
        assert 0 < len(term) <= LONGEST_TERM
        assert term.encode("utf-8")


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_text_has_the_same_terms_beside_other_text(text: str) -> None:
    assert terms(f"{text} é") == [*terms(text), "é"]


@given(st.text(), st.text())
def test_terms_of_joined_texts_are_the_terms_of_both(first: str, second: str) -> None:
    assert terms(f"{first}\n{second}") == terms(first) + terms(second)


def test_case_makes_no_difference() -> None:
    text = "Q3 Report ABC-1 Über ΣΊΣΥΦΟΣ"
    assert terms(text.upper()) == terms(text.lower()) == terms(text)

"""Results of functions: rendered at one edge, and never saying they show what was cut away."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.function_results import (
    AlreadyShown,
    DocumentPage,
    Failure,
    FunctionResult,
    PlainText,
    ProposedAnswer,
    RecallPage,
    SearchPage,
    ShownPassage,
    next_page,
    outline,
    passage_ids,
    rendered,
    shortened,
)
from docpager.messages import ToolResult
from docpager.types import PageRef

TEXTS = st.text(string.ascii_letters + " \n[]()中", max_size=60)
PASSAGES = st.lists(TEXTS, max_size=5).map(
    lambda texts: tuple(
        ShownPassage(f"P{n}", text, f"d{n}.pdf p. {n}", pages=(PageRef(f"d{n}.pdf", n),))
        for n, text in enumerate(texts, 1)
    )
)
RESULTS: st.SearchStrategy[FunctionResult] = st.one_of(
    st.builds(SearchPage, PASSAGES, st.integers(5, 9), st.just(0), st.integers(0, 3)),
    st.builds(
        DocumentPage,
        PASSAGES,
        st.just(PageRef("d1.pdf", 1)),
        st.just(4),
        st.just(0),
        st.just(2),
        paged=st.booleans(),
    ),
    st.builds(
        RecallPage, st.lists(TEXTS, max_size=4).map(tuple), st.just(4), st.just(0), st.just(1)
    ),
    st.builds(PlainText, TEXTS),
    st.builds(Failure, TEXTS),
)


@given(RESULTS, st.integers(0, 400))
def test_a_shortened_result_shows_only_what_it_says(result: FunctionResult, size: int) -> None:
    less = shortened(result, size, "(cut)")
    text = rendered(less)
    assert type(less) is type(result)
    assert text.endswith("\n(cut)")
    assert all(f"[{name}]" in text for name in passage_ids(less))
    assert set(passage_ids(less)) <= set(passage_ids(result))
    if isinstance(less, SearchPage):
        assert {page.document for page in less.pages} == {
            f"d{name[1:]}.pdf" for name in passage_ids(less)
        }


@given(RESULTS, st.integers(60, 400))
def test_a_shortened_result_is_no_longer_than_asked(result: FunctionResult, size: int) -> None:
    text = rendered(shortened(result, size, "(cut)")).removesuffix("\n(cut)")
    assert len(text) <= size


@given(RESULTS)
def test_an_outline_is_the_first_line_and_the_headers(result: FunctionResult) -> None:
    line = outline(result)
    assert "\n" not in line
    assert line.startswith(rendered(result).split("\n", 1)[0])
    assert all(f"[{name}]" in line for name in passage_ids(result))


def test_a_line_of_a_document_in_brackets_is_no_header_of_a_passage() -> None:
    shown = ShownPassage("P1", "[1] Hale, T.: Mills of the north.", "a.pdf p. 1")
    assert outline(SearchPage((shown,), 1, 0, 0)).endswith("[P1] a.pdf p. 1")


@pytest.mark.parametrize(
    ("result", "text", "following"),
    [
        (ProposedAnswer("In 1887.", (), not_found=False), "Sent.", None),
        (AlreadyShown(("P1", "P2"), 1), "Already shown: see P1, P2; next page is 1.", None),
        (
            AlreadyShown((), None),
            "Already shown: see the result above; there is no further page; use other words.",
            None,
        ),
        (SearchPage((), 9, 1, 3), "Showing 0 of 9 results (page 1/3)", 2),
        (SearchPage((), 9, 3, 3), "Showing 0 of 9 results (page 3/3)", None),
        (RecallPage(("a", "b"), 2, 0, 0), "Showing 2 of 2 results (page 0/0)\na\nb", None),
        (
            DocumentPage((), PageRef("a.md", 2), 3, 0, 0, paged=False, note="(goes on)"),
            "Section 2 of 3, part 0/0\n(goes on)",
            None,
        ),
    ],
)
def test_each_result_is_rendered_and_knows_its_next_page(
    result: FunctionResult, text: str, following: int | None
) -> None:
    assert rendered(result) == text
    assert next_page(result) == following
    assert ToolResult("c", "f", result).text == text


def test_a_ranking_made_anew_says_so() -> None:
    text = rendered(SearchPage((), 1, 0, 0, archive_changed=True))
    assert text.endswith("the archive changed since the last page, so this ranking is new")

"""Running heads and page numbers are found, kept for quotes, and keep out of what is indexed."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.documents.chunking import ChunkSize, chunk_document
from docpager.documents.outline import OutlinedDocument
from docpager.documents.pdf.furniture import find_furniture
from docpager.testing import CharacterCounter
from docpager.types import PageText, ParsedDocument

COUNTER = CharacterCounter()
SMALL = ChunkSize(target=24, limit=32, least=6, heading=12)
Pages = list[list[str]]

words = st.text("abc déé,. ", max_size=40).map(lambda text: " ".join(text.split()))
bodies = st.lists(st.lists(words, min_size=3, max_size=9), min_size=3, max_size=8)


def found(pages: Pages, labels: list[str | None] | None = None) -> list[list[str]]:
    spans = find_furniture(pages, labels or [None] * len(pages))
    texts = ["\n".join(page) for page in pages]
    return [[text[a:b] for a, b in own] for text, own in zip(texts, spans, strict=True)]


def body(page: int) -> list[str]:
    return [f"Line {line} of what only page {'abcdefghijkl'[page]} says." for line in range(8)]


def document(pages: Pages) -> OutlinedDocument:
    spans = find_furniture(pages, [None] * len(pages))
    texts = tuple(
        PageText(number, "\n".join(page), furniture=own)
        for number, (page, own) in enumerate(zip(pages, spans, strict=True), 1)
    )
    return OutlinedDocument(ParsedDocument(texts, paged=True))


def test_heads_and_page_numbers_are_furniture_and_the_rest_is_not() -> None:
    pages = [["Annual report", *body(n), f"Page {n + 5} of 20"] for n in range(4)]
    assert found(pages) == [["Annual report", f"Page {n + 5} of 20"] for n in range(4)]


def test_heads_of_left_and_right_pages_are_one() -> None:
    pages = [[f"{n} A book" if n % 2 else f"A book {n}", *body(n)] for n in range(6)]
    assert all(len(own) == 1 for own in found(pages))


def test_a_line_on_two_pages_or_on_fewer_than_half_is_no_furniture() -> None:
    assert found([["Head", *body(0)], ["Head", *body(1)]]) == [[], []]
    seven = [["Head", *body(n)] if n < 3 else body(n) for n in range(7)]
    assert found(seven) == [[] for _ in seven]


def test_numbers_that_do_not_count_pages_are_what_people_look_for() -> None:
    invoices = (4711, 4802, 4710, 4990)
    assert found([[f"Invoice {number}", *body(n)] for n, number in enumerate(invoices)]) == [[]] * 4


def test_roman_page_numbers_are_known_by_the_label() -> None:
    labels: list[str | None] = ["i", "ii", "iii"]
    pages = [[*body(n), str(label)] for n, label in enumerate(labels)]
    assert found(pages, labels) == [["i"], ["ii"], ["iii"]]


def test_a_page_that_would_lose_most_of_its_ink_keeps_it() -> None:
    pages = [[f"Leaf {n} of 9", f"Marker {n}"] for n in range(9)]
    assert found(pages) == [[] for _ in pages]


def test_a_sentence_goes_on_over_a_page_end() -> None:
    pages = [
        ["Annual report", *body(0), "The keeper went down", "1"],
        ["Annual report", "to the landing at dawn.", *body(1), "2"],
        ["Annual report", *body(2), "3"],
    ]
    chunks = chunk_document(document(pages), COUNTER)
    (chunk,) = [chunk for chunk in chunks if "went down" in chunk.text]
    assert "went down\nto the landing at dawn." in chunk.indexed_text
    assert "went down\n1\nAnnual report\nto the landing" in chunk.text


def test_the_head_of_each_page_weighs_nothing_in_what_is_indexed() -> None:
    pages = [["Harbour byelaws", *body(n), str(n + 1)] for n in range(9)]
    indexed = "\n".join(chunk.indexed_text for chunk in chunk_document(document(pages), COUNTER))
    assert "Harbour" not in indexed and not re.search(r"^\d$", indexed, re.M)
    assert all(line in indexed for page in range(9) for line in body(page))


@given(bodies, st.booleans(), st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_chunks_are_exact_spans_that_hold_all_ink_but_furniture(
    given_bodies: Pages, numbered: bool, head: int
) -> None:
    pages = [
        ["Head " + "x" * head, *page, *([str(number)] if numbered else [])]
        for number, page in enumerate(given_bodies, 1)
    ]
    outlined = document(pages)
    text = "\n".join(page.text for page in outlined.document.pages)
    kept = list(text)
    start = 0
    for page in outlined.document.pages:
        for begin, end in page.furniture:
            kept[start + begin : start + end] = " " * (end - begin)
        start += len(page.text) + 1
    ink = "".join(kept)
    covered = 0
    for chunk in chunk_document(outlined, COUNTER, SMALL):
        assert text[chunk.start : chunk.end] == chunk.text == chunk.text.strip() != ""
        assert not ink[covered : chunk.start].strip(), "ink between two chunks"
        assert COUNTER.count(chunk.text) == chunk.tokens <= SMALL.limit
        for begin, end in chunk.furniture:
            assert begin > 0 and "\n" not in chunk.text[begin:end]
        without = "".join(ink[chunk.start : chunk.end].split())
        assert "".join(chunk.indexed_text.split()) == without
        covered = chunk.end
    assert not ink[covered:].strip(), "ink after the last chunk"

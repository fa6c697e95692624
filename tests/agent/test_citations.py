"""The quote check: what counts as verbatim, what is evidence, and which page it names."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from docpager.agent.archival import shown_passage
from docpager.agent.citations import CitationChecker, long_enough, normalise
from docpager.function_results import ProposedCitation
from docpager.render import citation_place
from docpager.testing import CharacterCounter
from docpager.types import Chunk, Citation, Document, PageText, ParsedDocument
from tests.agent.worlds import archive_of, spanning


def check(page: str, quote: str, *, shown: bool = True) -> Citation:
    archive = archive_of({"c/a.pdf": [page]}, CharacterCounter())
    checker = CitationChecker(archive, {"P1"} if shown else set())
    return checker.check([ProposedCitation("P1", quote)])[0]


@pytest.mark.parametrize(
    ("page", "quote"),
    [
        ("The effi-\ncient mill ran for years.", "The efficient mill ran"),
        ("The e\ufb03cient mill ran for years.", "The efficient mill ran"),
        ("The well-\nknown mill ran for years.", "The well-known mill ran"),
        ("The  mill\n\tran   for years.", "The mill ran for years."),
        ("A mill\u2019s \u201cgreat\u201d wheel \u2013 gone", 'A mill\'s "great" wheel - gone'),
        ("The so\u00adft hyphen is not seen here.", "The soft hyphen is not seen"),
        ("该磨坊于一八八七年\n建成，由海尔设计。", "该磨坊于一八八七年建成"),
        ("the years 1914-\n1918 were hard for it", "the years 1914-1918 were hard"),
        ("Full\u3000width １８８７ digits in the text", "width 1887 digits in the text"),
    ],
)
def test_layout_and_typography_do_not_count(page: str, quote: str) -> None:
    assert check(page, quote).verified


@pytest.mark.parametrize(
    ("page", "quote", "problem"),
    [
        ("The mill opened in 1887 with a toll.", "The mill opened in 1888 with", "does not stand"),
        ("The mill opened in 1887 with a toll.", "the mill opened in 1887", "does not stand"),
        ("The mill opened in 18871 with a toll.", "The mill opened in 1887", "does not stand"),
        ("The total was 10-12 of all of them", "The total was 1012 of", "does not stand"),
        ("The mill opened in 1887 with a toll.", "in 1887", "too short"),
        ("The mill opened in 1887 with a toll.", "  ", "empty"),
    ],
)
def test_other_words_and_numbers_do_count(page: str, quote: str, problem: str) -> None:
    citation = check(page, quote)
    assert not citation.verified
    assert problem in str(citation.problem)


def test_a_whole_line_or_cell_is_long_enough() -> None:
    assert check("Name\tYear\nOrrin Ford\t1887\n", "1887").verified
    assert check("| Orrin Ford | 1887 |\n", "1887").verified
    assert check("Title\n1887\nText follows here", "1887").verified


def test_a_passage_that_was_not_shown_or_does_not_exist_proves_nothing() -> None:
    assert not check("The mill opened in 1887.", "The mill opened in 1887.", shown=False).verified
    archive = archive_of({"c/a.pdf": ["The mill opened in 1887."]}, CharacterCounter())
    [missing] = CitationChecker(archive, {"P9"}).check([ProposedCitation("P9", "The mill")])
    assert (missing.document, missing.page, missing.verified) == ("", None, False)


def test_the_page_is_that_of_the_quote_not_of_the_passage() -> None:
    archive = spanning(["The first page speaks of mills.", "The second page speaks of locks."])
    checker = CitationChecker(archive, {"P1"})
    [citation] = checker.check([ProposedCitation("P1", "The second page speaks of locks.")])
    assert (citation.page, citation.page_label, citation.verified) == (2, "v2", True)


def test_a_quote_over_a_page_end_names_the_page_it_begins_on() -> None:
    archive = spanning(["The first page speaks of", "mills and of the locks."])
    checker = CitationChecker(archive, {"P1"})
    [citation] = checker.check([ProposedCitation("[P1]", "speaks of mills and of the locks")])
    assert (citation.page, citation.verified) == (1, True)


@pytest.mark.parametrize(
    ("heading", "section"), [("Mills > Wheels", "Wheels"), ("Mills", "Mills"), ("", "section 1")]
)
def test_files_without_pages_are_cited_by_section_and_line(heading: str, section: str) -> None:
    archive = archive_of({}, CharacterCounter())
    text = "Intro words.\nThe mill opened in 1887 to great joy.\n"
    chunk = Chunk(text, 0, len(text), 1, 1, heading=heading, line=10)
    from docpager.testing import HashEmbedder

    archive.put_vectors([chunk.text_hash], HashEmbedder().embed([chunk.indexed_text]))
    page = PageText(1, text, heading="Mills" if heading else None, first_line=10)
    archive.store(
        Document("c/a.md", "ready", "h", 1, "/c", paged=False, pages=1, passages=1),
        ParsedDocument((page,), paged=False),
        [chunk],
    )
    [citation] = CitationChecker(archive, {"P1"}).check(
        [ProposedCitation("P1", "The mill opened in 1887 to great joy.")]
    )
    assert (citation.page, citation.section, citation.line) == (None, section, 11)
    assert citation.verified
    [passage] = archive.passages(["P1"])
    shown = shown_passage(passage, before=False).header
    assert shown.replace("line 10", "line 11") == f"[P1] {citation_place(citation)}"


@given(st.text(max_size=200))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once


@given(st.text(st.sampled_from("abc de1-\n。中文"), min_size=1, max_size=80), st.data())
def test_any_long_enough_slice_of_whole_words_is_verified(text: str, data: st.DataObject) -> None:
    words = text.split()
    if not words:
        return
    first = data.draw(st.integers(0, len(words) - 1))
    end = data.draw(st.integers(first + 1, len(words)))
    # A hyphen before a gap may break a word in two: half of it is no quote.
    assume(not words[end - 1].endswith("-") and not (first and words[first - 1].endswith("-")))
    quote = " ".join(words[first:end])
    page = " ".join(words)
    expected = long_enough(quote, page) and bool(normalise(quote))
    assert check(page, quote).verified == expected

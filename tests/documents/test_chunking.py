"""Chunks are exact spans that hold all ink once, within their limits."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.documents.chunking import ChunkSize, chunk_document
from docpager.documents.outline import Heading, OutlinedDocument
from docpager.documents.text.reader import read_markdown, read_text
from docpager.testing import CharacterCounter
from docpager.types import Chunk, PageText, ParsedDocument

SMALL = ChunkSize(target=24, limit=32, least=6, heading=12)
COUNTER = CharacterCounter()

words = st.text(st.sampled_from("abcÄé7 \t.,;。，、!|#\u0301\u200d\U0001f469"), max_size=60)
lines = st.one_of(
    words,
    st.builds(lambda level, title: "#" * level + " " + title, st.integers(1, 6), words),
    st.builds(lambda cells: "| " + " | ".join(cells) + " |", st.lists(words, min_size=1)),
    st.sampled_from(["", "", "```", "---", "===", "~~~~"]),
)
texts = st.lists(lines, max_size=40).map("\n".join)


def document_text(outlined: OutlinedDocument) -> str:
    return "\n".join(page.text for page in outlined.document.pages)


def check_laws(outlined: OutlinedDocument, chunks: tuple[Chunk, ...], size: ChunkSize) -> None:
    text = document_text(outlined)
    covered = 0
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text
        assert not text[covered : chunk.start].strip(), "ink between two chunks"
        assert chunk.start >= covered and chunk.text == chunk.text.strip() != ""
        assert COUNTER.count(chunk.text) == chunk.tokens <= size.limit
        assert COUNTER.count(chunk.heading) <= size.heading
        covered = chunk.end
    assert not text[covered:].strip(), "ink after the last chunk"


def page_at(outlined: OutlinedDocument, offset: int) -> int:
    start = 0
    for page in outlined.document.pages:
        start += len(page.text) + 1
        if offset < start:
            return page.page_number
    raise AssertionError("an offset past the end")


@given(texts)
@settings(max_examples=150, deadline=None)
def test_chunks_of_markdown_hold_all_ink_once_and_stay_within_the_limit(text: str) -> None:
    outlined = read_markdown(text.encode())
    check_laws(outlined, chunk_document(outlined, COUNTER, SMALL), SMALL)


@given(texts, st.booleans())
@settings(max_examples=100, deadline=None)
def test_chunks_of_plain_text_know_their_page_and_line(text: str, leaves: bool) -> None:
    outlined = read_text((text.replace("\n\n", "\f") if leaves else text).encode())
    chunks = chunk_document(outlined, COUNTER, SMALL)
    check_laws(outlined, chunks, SMALL)
    for chunk in chunks:
        page = outlined.document.pages[chunk.first_page - 1]
        assert chunk.first_page == page_at(outlined, chunk.start)
        assert chunk.last_page == page_at(outlined, chunk.end - 1)
        assert page.first_line is not None and chunk.line is not None
        first = chunk.text.split("\n")[0]
        assert first in page.text.split("\n")[chunk.line - page.first_line]


@given(texts)
@settings(max_examples=100, deadline=None)
def test_no_chunk_goes_over_a_heading_of_level_one_or_two(text: str) -> None:
    outlined = read_markdown(text.encode())
    whole = document_text(outlined)
    high = [heading for heading in outlined.headings if heading.level <= 2]
    for chunk in chunk_document(outlined, COUNTER, SMALL):
        for heading in high:
            if chunk.start < heading.start < chunk.end:
                before = whole[chunk.start : heading.start]
                for other in outlined.headings:
                    before = before.replace(whole[other.start : other.end], "", 1)
                assert not before.strip(), "text before a heading that is inside a chunk"


def test_a_short_section_is_one_chunk_with_the_path_of_its_headings() -> None:
    outlined = read_markdown(b"# Report\n\n## Income\n\nIt rose.\n\n### By region\n\nNorth.\n")
    (chunk,) = chunk_document(outlined, COUNTER)
    assert chunk.heading == "Report > Income"
    assert chunk.text.startswith("# Report") and chunk.text.endswith("North.")


def test_paragraphs_are_packed_whole_up_to_the_target() -> None:
    paragraphs = [f"Paragraph {number} says something." for number in range(30)]
    outlined = read_text("\n\n".join(paragraphs).encode())
    chunks = chunk_document(outlined, COUNTER, SMALL)
    kept = [part for chunk in chunks for part in chunk.text.split("\n\n")]
    assert kept == paragraphs
    assert len(chunks) < len(paragraphs)


def test_a_long_paragraph_is_cut_at_sentence_ends_in_english_and_chinese() -> None:
    english = "Dr. J. Smith met No. 5 there. " * 30
    chinese = "北京是中国的首都。它很大，也很古老。" * 40
    for text, ends in ((english, "there."), (chinese, ("。",))):
        chunks = chunk_document(read_text(text.encode()), COUNTER, SMALL)
        assert all(chunk.text.endswith(ends) for chunk in chunks)


def test_a_table_is_cut_between_its_rows() -> None:
    rows = [f"| row {number} | {number * 7} | some words |" for number in range(40)]
    chunks = chunk_document(read_markdown("\n".join(rows).encode()), COUNTER, SMALL)
    assert [row for chunk in chunks for row in chunk.text.split("\n")] == rows


def test_a_heading_stays_with_what_follows_it() -> None:
    text = "\n\n".join(f"### Part {n}\n\n" + "Words and more words. " * 4 for n in range(20))
    for chunk in chunk_document(read_markdown(text.encode()), COUNTER, SMALL):
        assert not chunk.text.rsplit("\n", 1)[-1].startswith("#")


def test_a_chunk_goes_on_over_a_page_end_and_says_so() -> None:
    pages = (PageText(1, "It began here and"), PageText(2, ""), PageText(3, "ended there."))
    outlined = OutlinedDocument(ParsedDocument(pages, paged=True, title="Story"))
    (chunk,) = chunk_document(outlined, COUNTER)
    assert (chunk.first_page, chunk.last_page, chunk.line) == (1, 3, None)
    assert chunk.text == "It began here and\n\nended there."


def test_a_path_that_is_too_long_keeps_its_ends() -> None:
    text = "Deep\nwords"
    headings = tuple(Heading(0, 4, level, f"{level} " + "x" * 9) for level in (1,))
    outlined = OutlinedDocument(
        ParsedDocument((PageText(1, text),), paged=True, title="Title " * 3), headings
    )
    (chunk,) = chunk_document(outlined, COUNTER, SMALL)
    assert chunk.heading.startswith("Title") and COUNTER.count(chunk.heading) <= SMALL.heading


def test_time_grows_in_proportion_to_a_text_without_breaks() -> None:
    def seconds(text: str) -> float:
        began = time.perf_counter()
        outlined = OutlinedDocument(ParsedDocument((PageText(1, text),), paged=True))
        chunk_document(outlined, COUNTER)
        return time.perf_counter() - began

    for unit in ("x", "word ", "| a | b |\n", "Line.\n\n", " "):
        short = min(seconds(unit * (200_000 // len(unit))) for _ in range(2))
        long = seconds(unit * (1_600_000 // len(unit)))
        assert long < 24 * short + 1.0, repr(unit)

"""Tables keep their columns' names beside every row, in the text and in every chunk."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.documents.chunking import ChunkSize, chunk_document
from docpager.documents.composing import Composer, add_tables
from docpager.documents.loaders import parse_bytes
from docpager.documents.outline import OutlinedDocument
from docpager.testing import CharacterCounter
from docpager.types import PAGE_SEPARATOR
from tests.documents.making import docx, odf, sheet, word_table, xlsx

COUNTER = CharacterCounter()
ROWS = [["Keeper", "Station", "Lamps lit"]] + [
    [f"Keeper {n}", f"Station {n % 17}", str(n * 37)] for n in range(300)
]


def text_of(outlined: OutlinedDocument) -> str:
    return PAGE_SEPARATOR.join(page.text for page in outlined.document.pages)


def files() -> dict[str, bytes]:
    csv = "\n".join(",".join(row) for row in ROWS)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in ROWS)
    cells = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)
        + "</table:table-row>"
        for row in ROWS
    )
    bars = ["| " + " | ".join(row) + " |" for row in ROWS]
    markdown = "\n".join(["# Lamps", "", bars[0], "|---|---|---|", *bars[1:], "", "The end."])
    return {
        "a.csv": csv.encode(),
        "a.tsv": csv.replace(",", "\t").encode(),
        "a.html": f"<table>{lines}</table>".encode(),
        "a.docx": docx(word_table(ROWS)),
        "a.xlsx": xlsx({"Lamps": sheet(ROWS)}),
        "a.ods": odf("spreadsheet", f'<table:table table:name="L">{cells}</table:table>'),
        "a.md": markdown.encode(),
    }


def test_a_row_is_never_indexed_without_the_names_of_its_columns() -> None:
    for name, data in files().items():
        outlined = parse_bytes(name, data)
        text = text_of(outlined)
        seen = 0
        for chunk in chunk_document(outlined, COUNTER, ChunkSize(target=200, limit=256)):
            assert chunk.text == text[chunk.start : chunk.end]
            rows = [line for line in chunk.text.split("\n") if line.startswith("| Keeper ")]
            seen += sum("| Keeper |" not in line for line in rows)
            if rows:
                assert "Keeper | Station | Lamps lit" in chunk.indexed_text, name
        assert seen == 300, name


def test_a_cell_is_found_by_its_row_and_column() -> None:
    for name, data in files().items():
        chunks = chunk_document(parse_bytes(name, data), COUNTER)
        (found,) = (chunk for chunk in chunks if "| Keeper 123 |" in chunk.text)
        assert "Lamps lit" in found.indexed_text and f"| {123 * 37} |" in found.text


def test_after_a_table_of_markdown_its_header_is_gone() -> None:
    text = "| a | b |\n|---|---|\n| 1 | 2 |\n\n" + "Words of prose. " * 200
    *_, last = chunk_document(parse_bytes("a.md", text.encode()), COUNTER)
    assert last.heading == "" and last.text.startswith("Words")


def test_tables_in_fences_are_no_tables() -> None:
    text = "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```\n\n| c | d |\n|---|---|\n| 3 | 4 |\n"
    outlined = parse_bytes("a.md", text.encode())
    assert [table.header for table in outlined.tables] == ["| c | d |"]


CELL = st.text("ab 1|é", max_size=12)


@given(st.lists(st.lists(CELL, min_size=1, max_size=4), max_size=30), st.booleans())
@settings(max_examples=80, deadline=None)
def test_no_cell_is_lost(rows: list[list[str]], paged: bool) -> None:
    composer = Composer("test", paged=paged)
    add_tables(composer, rows)
    outlined = composer.document()
    text = text_of(outlined)
    for row in rows:
        for cell in row:
            assert " ".join(cell.split()) in text
    for table in outlined.tables:
        assert text[table.start : table.end].startswith(table.header)
        assert text[table.body - 1] == "\n"
    for first, second in pairwise(outlined.tables):
        assert first.end <= second.start


BLOCK = st.tuples(st.sampled_from("hpictx"), st.text("ab. \n", max_size=30), st.integers(1, 6))


@given(st.lists(BLOCK, max_size=30), st.booleans())
@settings(max_examples=100, deadline=None)
def test_what_is_marked_stands_where_it_is_said_to(
    blocks: list[tuple[str, str, int]], paged: bool
) -> None:
    composer = Composer("test", paged=paged)
    for kind, text, level in blocks:
        if kind == "h":
            composer.heading(level, text)
        elif kind == "i":
            composer.item(f"- {text}")
        elif kind == "c":
            composer.code(text)
        elif kind == "x":
            composer.page(text or None)
        else:
            composer.paragraph(text)
    outlined = composer.document()
    whole = text_of(outlined)
    for heading in outlined.headings:
        assert whole[heading.start : heading.end] == heading.title
    for start, end in outlined.fences:
        assert whole[start:end].strip("\n") == whole[start:end] != ""
    ink = "".join("".join(text.split()) for kind, text, _ in blocks if kind != "x")
    assert "".join(whole.split()).replace("-", "") == ink
    if not paged:
        line = 1
        for page in outlined.document.pages:
            assert page.first_line == line
            line += page.text.count("\n") + 1

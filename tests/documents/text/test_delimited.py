from __future__ import annotations

import pytest

from docpager.documents.loaders import parse_bytes
from tests.documents.reading import whole


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_mark_between_cells_is_found(mark: str) -> None:
    rows = [["Name", "Town", "Lamps"], ["Ann, B.", "Ellery", "1"], ["Cy", "Lo; Hi", "2"]]
    cells = [[f'"{cell}"' if mark in cell else cell for cell in row] for row in rows]
    text = "\n".join(mark.join(row) for row in cells)
    expected = [" ".join(row) for row in rows]
    found = whole(parse_bytes("a.csv", text.encode())).replace("| ", "").replace(" |", "")
    assert found.split("\n") == expected


def test_a_quotation_mark_that_is_never_closed_loses_no_row() -> None:
    lines = ["Name,Lamps", 'Ann,"14'] + [f"person {n},{n}" for n in range(20_000)]
    found = whole(parse_bytes("a.csv", "\n".join(lines).encode()))
    assert "| person 19999 | 19999 |" in found


def test_the_line_of_a_section_is_that_of_the_file() -> None:
    lines = ["Name,Lamps"] + [f"person {n},{n}" for n in range(500)]
    for page in parse_bytes("a.csv", "\n".join(lines).encode()).document.pages:
        first_row = page.text.split("\n")[1].strip("| ").replace(" | ", ",")
        assert page.first_line and lines[page.first_line] == first_row


def test_rows_too_long_for_a_line_name_each_cell() -> None:
    text = "Name,Story\nAnn," + "It was a dark night. " * 200
    assert "Name: Ann\nStory: It was a dark night." in whole(parse_bytes("a.csv", text.encode()))

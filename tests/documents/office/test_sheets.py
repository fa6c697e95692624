from __future__ import annotations

from docpager.documents.loaders import parse_bytes
from tests.documents.making import column, sheet, xlsx
from tests.documents.reading import texts, whole


def test_a_sheet_is_a_page_and_its_header_stands_over_its_rows() -> None:
    rows: list[list[str | float]] = [
        ["Lamps of Port Ellery"],
        [],
        ["Year", "Lamps"],
        [1887, 14],
        [1888, 0.1 + 0.2],
    ]
    outlined = parse_bytes("a.xlsx", xlsx({"Lamps": sheet(rows), "Notes": sheet([["Nothing."]])}))
    assert [page.heading for page in outlined.document.pages] == ["Lamps", "Notes"]
    assert texts(outlined) == [
        "Lamps\n\nLamps of Port Ellery\n\n| Year | Lamps |\n| 1887 | 14 |\n| 1888 | 0.3 |\n",
        "Notes\n\nNothing.",
    ]


def test_cells_show_what_the_sheet_shows() -> None:
    styles = (
        '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        '<numFmts><numFmt numFmtId="170" formatCode="[Red]yyyy\\-mm"/></numFmts><cellXfs>'
        '<xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="10"/><xf numFmtId="170"/>'
        "</cellXfs></styleSheet>"
    )
    strings = (
        '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><r><t>To</t>'
        "</r><r><t>kyo</t></r><rPh><t>reading</t></rPh></si></sst>"
    )
    cells = (
        '<c r="A1" t="s"><v>0</v></c><c r="B1" s="1"><v>45291</v></c>'
        '<c r="C1" s="2"><v>0.125</v></c><c r="D1" s="3"><v>45291.75</v></c>'
        '<c r="E1" t="b"><v>1</v></c><c r="F1"><f>SUM(A1:A2)</f></c><c r="G1" t="e"><v>#N/A</v></c>'
    )
    data = xlsx(
        {"S": sheet([]).replace("<sheetData>", f'<sheetData><row r="1">{cells}</row>')},
        sharedStrings=strings,
        styles=styles,
    )
    row = whole(parse_bytes("a.xlsx", data)).split("\n")[-1]
    assert row == ("| Tokyo | 2023-12-31 | 12.5% | 2023-12-31 18:00 | TRUE | =SUM(A1:A2) | #N/A |")


def test_merged_titles_and_cells_are_filled_in() -> None:
    rows: list[list[str | float]] = [["Lamps", ""], ["Year", "Town"], [1887, "Ellery"], [1888, ""]]
    merged = '<mergeCells><mergeCell ref="A1:B1"/><mergeCell ref="B3:B4"/></mergeCells>'
    text = whole(parse_bytes("a.xlsx", xlsx({"S": sheet(rows, merged)})))
    assert text == "S\n\nLamps\n\n| Year | Town |\n| 1887 | Ellery |\n| 1888 | Ellery |"


def test_columns_are_told_by_their_letters() -> None:
    rows: list[list[str | float]] = [[f"c{n}" for n in range(30)], [""] * 28 + ["x"]]
    text = whole(parse_bytes("a.xlsx", xlsx({"S": sheet(rows)})))
    assert column(28) == "AC"
    assert text.split("\n")[-1].split("|")[29].strip() == "x"

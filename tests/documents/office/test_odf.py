from __future__ import annotations

from docpager.documents.loaders import parse_bytes
from tests.documents.making import odf
from tests.documents.reading import texts, whole


def test_open_document_text_keeps_notes_lists_and_spaces() -> None:
    body = (
        '<text:h text:outline-level="2">Of oil</text:h>'
        "<text:p>Lit<text:s text:c='2'/>in<text:note text:note-class='footnote'><text:note-body>"
        "<text:p>Old style.</text:p></text:note-body></text:note> 1887.</text:p>"
        "<text:list><text:list-item><text:p>oil</text:p></text:list-item>"
        "<text:list-item><text:p>gas</text:p></text:list-item></text:list>"
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
    )
    outlined = parse_bytes("a.odt", odf("text", body))
    assert whole(outlined) == "Of oil\n\nLit  in 1887.\n\nFootnote: Old style.\n\n- oil\n- gas"
    assert [(one.level, one.title) for one in outlined.headings] == [(2, "Of oil")]


def test_open_document_sheets_write_repeated_cells_out_and_no_more() -> None:
    def row(cells: str, times: str = "") -> str:
        return f"<table:table-row{times}>{cells}</table:table-row>"

    def cell(text: str, times: int = 1) -> str:
        repeated = f' table:number-columns-repeated="{times}"'
        return f"<table:table-cell{repeated}><text:p>{text}</text:p></table:table-cell>"

    endless = '<table:table-cell table:number-columns-repeated="16384"/>'
    body = (
        '<table:table table:name="Lamps">'
        + row(cell("Year") + cell("Lamps", 2) + endless)
        + row(cell("1887") + cell("14") + cell("15") + endless)
        + row(endless, ' table:number-rows-repeated="1048576"')
        + "</table:table>"
    )
    outlined = parse_bytes("a.ods", odf("spreadsheet", body))
    assert texts(outlined) == ["Lamps\n\n| Year | Lamps | Lamps |\n| 1887 | 14 | 15 |"]


def test_open_document_slides_are_pages() -> None:
    def frame(text: str) -> str:
        box = f"<draw:text-box><text:p>{text}</text:p></draw:text-box>"
        return f"<draw:frame>{box}</draw:frame>"

    body = f"<draw:page>{frame('One')}</draw:page><draw:page>{frame('Two')}</draw:page>"
    outlined = parse_bytes("a.odp", odf("presentation", body))
    assert [text.strip() for text in texts(outlined)] == ["One", "Two"]

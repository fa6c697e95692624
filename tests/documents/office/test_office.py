"""Office files give their text in reading order, with what belongs to it beside it."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import pytest

from docpager.documents.formats import identify
from docpager.documents.loaders import parse_bytes
from docpager.documents.outline import OutlinedDocument
from docpager.errors import DocumentError
from tests.documents.making import (
    RTF,
    column,
    docx,
    epub,
    odf,
    packed,
    paragraph,
    pptx,
    shape,
    sheet,
    word_table,
    xlsx,
)

STYLES = (
    '<w:styles><w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>'
    '<w:style w:styleId="Mine"><w:basedOn w:val="H2"/></w:style>'
    '<w:style w:styleId="Title"><w:name w:val="Title"/></w:style></w:styles>'
)
HIDDEN = "<w:r><w:rPr><w:vanish/></w:rPr><w:t>"
BREAK = "<w:r><w:lastRenderedPageBreak/><w:t>{}</w:t></w:r>"


def texts(outlined: OutlinedDocument) -> list[str]:
    return [page.text for page in outlined.document.pages]


def whole(outlined: OutlinedDocument) -> str:
    return "\n".join(texts(outlined))


# -- Word


def test_styles_make_headings_and_the_title() -> None:
    body = (
        paragraph("The Lights", "Title")
        + paragraph("Of oil", "H2")
        + paragraph("Oil was burnt.")
        + paragraph("Of gas", "Mine")
        + paragraph("Gas came later.")
    )
    outlined = parse_bytes("a.docx", docx(body, styles=STYLES))
    assert outlined.document.title == "The Lights"
    assert [(one.level, one.title) for one in outlined.headings] == [
        (1, "The Lights"),
        (2, "Of oil"),
        (2, "Of gas"),
    ]
    assert [page.heading for page in outlined.document.pages] == ["Of oil", "Of gas"]


def test_footnotes_and_comments_follow_the_paragraph_that_refers_to_them() -> None:
    notes = (
        '<w:footnotes><w:footnote w:id="0" w:type="separator"/>'
        f'<w:footnote w:id="2">{paragraph("In the old style.")}</w:footnote></w:footnotes>'
    )
    comments = (
        f'<w:comments><w:comment w:id="5" w:author="Ann">{paragraph("Check this.")}</w:comment>'
        "</w:comments>"
    )
    marks = '<w:r><w:footnoteReference w:id="2"/><w:commentReference w:id="5"/></w:r>'
    body = paragraph("Lit in 1887.", inside=marks) + paragraph("Then nothing.")
    outlined = parse_bytes("a.docx", docx(body, footnotes=notes, comments=comments))
    assert whole(outlined).split("\n\n") == [
        "Lit in 1887.",
        "Footnote: In the old style.",
        "Comment (Ann): Check this.",
        "Then nothing.",
    ]


def test_headers_and_footers_stand_at_the_end_once() -> None:
    head = f"<w:hdr>{paragraph('Harbour Trust')}</w:hdr>"
    foot = f"<w:ftr>{paragraph('3')}</w:ftr>"
    outlined = parse_bytes(
        "a.docx", docx(paragraph("Text."), header1=head, header2=head, footer1=foot)
    )
    assert whole(outlined).split("\n\n") == ["Text.", "Header: Harbour Trust"]


def test_deleted_text_is_left_out_and_inserted_text_is_not() -> None:
    body = (
        "<w:p><w:del><w:r><w:delText>thirteen</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>fourteen</w:t></w:r></w:ins><w:r><w:t xml:space='preserve'> lamps</w:t>"
        "</w:r><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>"
    )
    assert whole(parse_bytes("a.docx", docx(body))) == "fourteen lamps"


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def test_hidden_text_is_left_out_whatever_hides_it() -> None:
    styles = (
        '<w:styles><w:style w:styleId="Secret"><w:rPr><w:vanish/></w:rPr></w:style>'
        '<w:style w:styleId="Below"><w:basedOn w:val="Secret"/></w:style>'
        '<w:style w:styleId="Open"><w:basedOn w:val="Secret"/>'
        '<w:rPr><w:vanish w:val="0"/></w:rPr></w:style></w:styles>'
    )

    def styled(style: str, inside: str) -> str:
        return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>{inside}</w:p>'

    runs = (
        run("Seen")
        + run(" hidden", "<w:vanish/>")
        + run(" by a style", '<w:rStyle w:val="Below"/>')
        + run(" in print", "<w:webHidden/>")
        + run(" and shown", '<w:vanish w:val="false"/>')
    )
    body = (
        f"<w:p>{runs}</w:p>"
        + styled("Below", run("Nothing of this") + run("but this.", '<w:vanish w:val="0"/>'))
        + styled("Open", run("Open."))
        + word_table([["a", "b"], ["c", "d"]]).replace("<w:r><w:t>c", f"{HIDDEN}c")
    )
    read = whole(parse_bytes("a.docx", docx(body, styles=styles)))
    assert read.split("\n\n") == [
        "Seen in print and shown",
        "but this.",
        "Open.",
        "| a | b |\n|  | d |",
    ]


def test_a_text_box_is_read_once_however_deep_it_is() -> None:
    def box(inside: str) -> str:
        shape = f"<w:txbxContent>{inside}</w:txbxContent>"
        return (
            f'<mc:AlternateContent xmlns:mc="urn:x"><mc:Choice>{shape}</mc:Choice>'
            f"<mc:Fallback>{shape}</mc:Fallback></mc:AlternateContent>"
        )

    inner = paragraph("Outer.", inside=box(paragraph("Inner.")))
    body = paragraph("Anchor.", inside=box(inner + word_table([["k", "v"]])))
    note = f'<w:footnotes><w:footnote w:id="2">{body}</w:footnote></w:footnotes>'
    mark = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    outlined = parse_bytes("a.docx", docx(body + paragraph("End.", inside=mark), footnotes=note))
    assert whole(outlined).split("\n\n") == [
        "Anchor.\nOuter.\nInner.\nk\nv",
        "End.",
        "Footnote: Anchor. Outer. Inner. k v",
    ]


def test_results_of_fields_are_shown_and_no_part_of_their_codes() -> None:
    def mark(kind: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    inner = mark("begin") + mark("separate") + run("worked with") + mark("end")
    code = "<w:r><w:instrText>IF</w:instrText></w:r>" + inner
    nested = mark("separate") + mark("begin") + mark("separate") + run("shown") + mark("end")
    body = f"<w:p>{mark('begin')}{code}{nested}{run('.')}{mark('end')}{run(' Then.')}</w:p>"
    assert whole(parse_bytes("a.docx", docx(body))) == "shown. Then."


def test_symbols_hyphens_and_readings_are_what_is_printed() -> None:
    def sign(font: str, place: str) -> str:
        return f'<w:r><w:sym w:font="{font}" w:char="{place}"/></w:r>'

    body = (
        f"<w:p>{sign('Symbol', 'F061')}{sign('Wingdings', 'F0FC')}{sign('Arial', '20AC')}"
        f"{sign('Nobody', 'F0FC')}{sign('Symbol', 'x')}"
        f"{run('no')}<w:r><w:noBreakHyphen/></w:r>{run('re')}<w:r><w:softHyphen/></w:r>{run('ad')}"
        f"<w:r><w:ptab/></w:r><w:r><w:ruby><w:rt>{run('とう')}</w:rt>"
        f"<w:rubyBase>{run('東')}</w:rubyBase></w:ruby></w:r></w:p>"
    )
    assert whole(parse_bytes("a.docx", docx(body))) == "α✓€no-read 東"


def test_formulas_are_read_as_they_are_typed() -> None:
    def math(name: str, *inside: str) -> str:
        return f"<m:{name}>{''.join(inside)}</m:{name}>"

    def letters(text: str) -> str:
        return math("r", math("t", text))

    fraction = math("f", math("num", letters("a+b")), math("den", letters("c")))
    power = math("sSup", math("e", letters("x")), math("sup", letters("2")))
    brackets = math("d", math("e", letters("y")))
    root = math("rad", math("deg"), math("e", letters("z")))
    row = math("mr", math("e", letters("1")), math("e", letters("0")))
    formula = math("oMath", fraction, power, brackets, root, math("m", row, row))
    body = f'<w:p xmlns:m="urn:m">{run("So ")}{math("oMathPara", formula)}{run(".")}</w:p>'
    read = whole(parse_bytes("a.docx", docx(body)))
    assert read == "So (a+b)/c x^2(y)√(z)1 0; 1 0."


def test_pages_are_those_that_word_noted() -> None:
    body = (
        paragraph("One.", inside='<w:r><w:br w:type="page"/></w:r>')
        + f"<w:p>{BREAK.format('Two begins')}{BREAK.format('and three goes on.')}</w:p>"
    )
    outlined = parse_bytes("a.docx", docx(body))
    assert outlined.document.paged
    assert [text.strip() for text in texts(outlined)] == [
        "One.",
        "Two begins",
        "and three goes on.",
    ]


def test_without_word_s_breaks_there_are_sections() -> None:
    body = paragraph("One.", inside='<w:r><w:br w:type="page"/></w:r>') + paragraph("Two.")
    outlined = parse_bytes("a.docx", docx(body))
    assert not outlined.document.paged
    assert texts(outlined) == ["One.\n", "Two."]


def test_list_marks_are_those_that_word_shows() -> None:
    numbering = (
        '<w:numbering><w:abstractNum w:abstractNumId="1">'
        '<w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="decimal"/>'
        '<w:lvlText w:val="%1."/></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="lowerRoman"/>'
        '<w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>'
        '<w:num w:numId="7"><w:abstractNumId w:val="1"/></w:num></w:numbering>'
    )

    def item(text: str, level: int) -> str:
        place = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="7"/></w:numPr>'
        return f"<w:p><w:pPr>{place}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"

    body = item("oil", 0) + item("whale", 1) + item("seal", 1) + item("gas", 0) + item("coal", 1)
    assert whole(parse_bytes("a.docx", docx(body, numbering=numbering))).split("\n") == [
        "3. oil",
        "3.i) whale",
        "3.ii) seal",
        "4. gas",
        "4.i) coal",
    ]


def test_lists_made_after_one_another_are_counted_on_and_restart_where_they_say() -> None:
    numbering = (
        '<w:numbering><w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:start w:val="1"/>'
        '<w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl></w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>'
        '<w:num w:numId="2"><w:abstractNumId w:val="1"/><w:lvlOverride w:ilvl="0">'
        '<w:startOverride w:val="5"/></w:lvlOverride></w:num></w:numbering>'
    )

    def item(text: str, name: int, mark: str = "") -> str:
        place = f'<w:numPr><w:ilvl w:val="0"/><w:numId w:val="{name}"/></w:numPr>'
        return f"<w:p><w:pPr>{place}{mark}</w:pPr>{run(text)}</w:p>"

    table = f"<w:tbl><w:tr><w:tc>{item('four', 1)}</w:tc><w:tc>{paragraph('x')}</w:tc></w:tr>"
    body = (
        item("one", 1)
        + item("", 1, "<w:rPr><w:del/></w:rPr>")
        + item("five", 2)
        + item("six", 2)
        + f"{table}</w:tbl>"
    )
    read = whole(parse_bytes("a.docx", docx(body, numbering=numbering)))
    assert read == "1. one\n5. five\n6. six\n\n| 7. four | x |"


def test_a_row_that_begins_further_right_keeps_its_columns() -> None:
    rows = word_table([["a", "b", "c"], ["d", "e"]])
    late = rows.replace("</w:tr><w:tr>", '</w:tr><w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>')
    assert whole(parse_bytes("a.docx", docx(late))) == "| a | b | c |\n|  | d | e |"


def test_merged_cells_are_filled_in() -> None:
    body = (
        "<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr>"
        + paragraph("Year")
        + "</w:tc><w:tc>"
        + paragraph("Lamps")
        + "</w:tc></w:tr>"
        "<w:tr><w:tc><w:tcPr><w:vMerge w:val='restart'/></w:tcPr>"
        + paragraph("1887")
        + "</w:tc><w:tc>"
        + paragraph("May")
        + "</w:tc><w:tc>"
        + paragraph("14")
        + "</w:tc></w:tr><w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>"
        + paragraph("unseen")
        + "</w:tc><w:tc>"
        + paragraph("June")
        + "</w:tc><w:tc>"
        + paragraph("15")
        + "</w:tc></w:tr></w:tbl>"
    )
    assert whole(parse_bytes("a.docx", docx(body))).split("\n") == [
        "| Year | Year | Lamps |",
        "| 1887 | May | 14 |",
        "| 1887 | June | 15 |",
    ]


def test_a_table_over_a_page_end_repeats_its_header() -> None:
    rows = word_table([["Year", "Lamps"], ["1887", "14"], ["1888", "15"]])
    rows = rows.replace("<w:t>1888", "<w:lastRenderedPageBreak/><w:t>1888")
    outlined = parse_bytes("a.docx", docx(rows))
    assert [text.strip() for text in texts(outlined)] == [
        "| Year | Lamps |\n| 1887 | 14 |",
        "| Year | Lamps |\n| 1888 | 15 |",
    ]


def test_files_inside_a_document_are_attached_to_it() -> None:
    inner = docx(paragraph("Inside."))
    data = docx(paragraph("Outside."))
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("word/embeddings/Inner.docx", inner)
    (attachment,) = parse_bytes("a.docx", file.getvalue()).attachments
    assert (attachment.name, attachment.data) == ("Inner.docx", inner)


# -- PowerPoint


def test_a_slide_is_a_page_whatever_its_file_is_called() -> None:
    slides = [
        shape("First", "title") + shape("One\nTwo"),
        "",
        shape("Third", "ctrTitle") + shape("3", "sldNum"),
    ]
    outlined = parse_bytes("a.pptx", pptx(slides, {3: "Speak up."}))
    assert outlined.document.paged
    assert texts(outlined) == ["First\n\nOne\nTwo\n", "", "Third\n\nNotes: Speak up."]
    assert [page.heading for page in outlined.document.pages] == ["First", None, "Third"]


# -- Excel


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


# -- OpenDocument


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


# -- books and Rich Text


def test_chapters_come_in_the_order_of_the_spine_under_their_names() -> None:
    data = epub({"Oil": "<p>Oil first.</p>", "Gas": "<p>Gas next.</p>"}, title="Lights")
    outlined = parse_bytes("a.epub", data)
    assert outlined.document.title == "Lights"
    assert [(page.heading, page.text.strip()) for page in outlined.document.pages] == [
        ("Oil", "Oil first."),
        ("Gas", "Gas next."),
    ]


def test_rich_text_gives_words_and_tables() -> None:
    outlined = parse_bytes("a.rtf", RTF)
    assert outlined.document.title == "Minutes"
    assert whole(outlined).split("\n\n") == [
        "The café opened in 1887.",
        "Second paragraph.",
        "| Year | Lamps |\n| 1887 | 14 |",
        "End.",
    ]


# -- what is refused


def reason(name: str, data: bytes) -> str:
    with pytest.raises(DocumentError) as caught:
        parse_bytes(name, data)
    return caught.value.reason


def test_what_only_a_password_opens_is_encrypted() -> None:
    locked_office = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    locked_office += "EncryptedPackage".encode("utf-16-le") + bytes(64)
    manifest = "<m><file-entry><encryption-data/></file-entry></m>"
    rights = '<e><EncryptedData><EncryptionMethod Algorithm="urn:x"/></EncryptedData></e>'
    assert reason("a.docx", locked_office) == "encrypted"
    assert reason("a.xlsx", locked_office) == "encrypted"
    parts = {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "x"}
    assert reason("a.odt", packed({**parts, "META-INF/manifest.xml": manifest})) == "encrypted"
    book = {"mimetype": "application/epub+zip", "META-INF/encryption.xml": rights}
    assert reason("a.epub", packed(book)) == "encrypted"


def test_an_archive_that_unpacks_to_too_much_is_too_large() -> None:
    bomb = docx(paragraph("x"), media1=bytes(129 << 20), styles=bytes(129 << 20))
    assert len(bomb) < 1 << 20
    with pytest.raises(DocumentError, match=r"unpacks to 129 MB, 128 MB is the limit") as caught:
        parse_bytes("a.docx", bomb)
    assert caught.value.reason == "too_large"


def test_what_an_archive_is_is_told_without_unpacking_it() -> None:
    media = b"application/vnd.oasis.opendocument.text".ljust(32 << 20)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", media)
    bomb = made.getvalue()
    assert len(bomb) < 1 << 17
    tracemalloc.start()
    try:
        assert identify("a.odt", bomb).format == "odf"
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pptx", "a.odt", "a.epub"])
def test_a_broken_archive_is_damaged_and_none_is_no_document(name: str) -> None:
    sound = docx(paragraph("words " * 400))
    assert reason(name, sound[: len(sound) // 2]) == "damaged"
    assert reason(name, b"These are words.") == "not_a_document"
    assert reason(name, packed({"notes.txt": "words"})) == "not_a_document"


def test_entities_are_not_resolved_and_deep_nesting_is_damage() -> None:
    bomb = '<!DOCTYPE w [<!ENTITY a "lol"><!ENTITY b "&a;&a;">]>'
    body = "<w:p><w:r><w:t>x</w:t></w:r></w:p>"
    deep = "<w:sdt>" * 5_000 + body + "</w:sdt>" * 5_000
    assert reason("a.docx", docx(deep)) == "damaged"
    parts = {
        "word/document.xml": f'{bomb}<w:document xmlns:w="u"><w:body><w:p><w:r><w:t>&b;fine</w:t>'
        "</w:r></w:p></w:body></w:document>"
    }
    assert "lollol" not in whole(parse_bytes("a.docx", packed(parts)))

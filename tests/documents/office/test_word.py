from __future__ import annotations

import io
import zipfile

from docpager.documents.loaders import parse_bytes
from tests.documents.making import docx, paragraph, word_table
from tests.documents.reading import texts, whole

STYLES = (
    '<w:styles><w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>'
    '<w:style w:styleId="Mine"><w:basedOn w:val="H2"/></w:style>'
    '<w:style w:styleId="Title"><w:name w:val="Title"/></w:style></w:styles>'
)
HIDDEN = "<w:r><w:rPr><w:vanish/></w:rPr><w:t>"
BREAK = "<w:r><w:lastRenderedPageBreak/><w:t>{}</w:t></w:r>"


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

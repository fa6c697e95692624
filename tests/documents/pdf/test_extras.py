"""What is on a PDF beside print, in which order it comes, and what is said about its pages."""

from __future__ import annotations

import io
from collections.abc import Callable

import pikepdf
import pytest
from fpdf import FPDF
from reportlab.pdfgen.canvas import Canvas

from docpager.documents.chunking import ChunkSize, chunk_document
from docpager.documents.loaders import parse_bytes
from docpager.documents.outline import OutlinedDocument
from docpager.documents.pdf.options import PdfOptions
from docpager.documents.pdf.quality import quality
from docpager.errors import DocumentError
from docpager.testing import CharacterCounter

BODY = "The quick brown fox jumps over the lazy dog while it rains."


def drawn(*pages: Callable[[Canvas], None]) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out)
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def changed(data: bytes, change: Callable[[pikepdf.Pdf], object], **save: object) -> bytes:
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(data)) as pdf:
        change(pdf)
        pdf.save(out, **save)
    return out.getvalue()


def words(*lines: str) -> Callable[[Canvas], None]:
    def draw(canvas: Canvas) -> None:
        for number, line in enumerate(lines):
            canvas.drawString(72, 760 - 14 * number, line)

    return draw


def read(data: bytes, **options: object) -> OutlinedDocument:
    return parse_bytes("x.pdf", data, PdfOptions(**options))  # type: ignore[arg-type]


def text_of(data: bytes, page: int = 0) -> str:
    return read(data).document.pages[page].text


def encrypted(user: str) -> bytes:
    encryption = pikepdf.Encryption(owner="owner", user=user)
    return changed(drawn(words("Secret words.")), lambda pdf: None, encryption=encryption)


def test_filled_fields_are_lines_of_their_page() -> None:
    def form(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "Application")
        canvas.acroForm.textfield(name="town", tooltip="Town of birth", value="Dovrin", x=72, y=600)
        canvas.acroForm.checkbox(name="agreed", checked=True, x=72, y=560)
        canvas.acroForm.checkbox(name="refused", checked=False, x=72, y=520)
        canvas.acroForm.textfield(name="left_empty", value="", x=72, y=480)

    text = text_of(drawn(form))
    assert text.startswith("Application\n")
    assert "Town of birth (town): Dovrin" in text and "agreed" in text
    assert "refused" not in text and "left_empty" not in text


def test_a_note_that_repeats_what_is_printed_is_left_out() -> None:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica", size=11)
    pdf.multi_cell(0, 6, "A printed remark.")
    pdf.text_annotation(20, 20, "printed remark")
    pdf.text_annotation(20, 40, "Another one.")
    assert text_of(bytes(pdf.output())) == "A printed remark.\nAnother one."


def test_the_words_of_an_xfa_form_follow_the_page_that_stands_for_it() -> None:
    template = (
        "<template xmlns='http://www.xfa.org/schema/xfa-template/3.3/'><subform name='f'>"
        "<draw><value><text>Name of the ship</text></value></draw></subform></template>"
    )
    data = "<xfa:datasets xmlns:xfa='http://www.xfa.org/schema/xfa-data/1.0/'><xfa:data><ship>Merganser</ship></xfa:data></xfa:datasets>"

    def add(pdf: pikepdf.Pdf) -> None:
        pdf.Root.NeedsRendering = True
        packets = [
            part
            for name, packet in (("template", template), ("datasets", data))
            for part in (pikepdf.String(name), pdf.make_stream(packet.encode()))
        ]
        pdf.Root.AcroForm = pikepdf.Dictionary(Fields=pikepdf.Array(), XFA=pikepdf.Array(packets))

    outlined = read(changed(drawn(words("Please open this in another program.")), add))
    (page,) = outlined.document.pages
    assert page.text.endswith("Name of the ship\nship: Merganser")
    assert page.flags == ("xfa_placeholder",) and "XFA" in outlined.document.warnings[0]


def test_an_entity_in_an_xfa_form_is_not_expanded() -> None:
    bomb = (
        "<!DOCTYPE t [<!ENTITY a 'lol'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>"
        "<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;'>]><template><text>Ship &c;</text></template>"
    )

    def add(pdf: pikepdf.Pdf) -> None:
        pdf.Root.NeedsRendering = True
        stream = pdf.make_stream(bomb.encode())
        packets = pikepdf.Array([pikepdf.String("template"), stream])
        pdf.Root.AcroForm = pikepdf.Dictionary(Fields=pikepdf.Array(), XFA=packets)

    text = text_of(changed(drawn(words("Please open this in another program.")), add))
    assert "lol" * 10 not in text


def test_attached_files_are_handed_on_by_name() -> None:
    def attach(pdf: pikepdf.Pdf) -> None:
        for name, data in (("a.txt", b"one"), ("b.txt", b"two" * 50)):
            pdf.attachments[name] = pikepdf.AttachedFileSpec(pdf, data, filename=name)

    data = changed(drawn(words(BODY)), attach)
    found = read(data).attachments
    assert {(attachment.name, attachment.data) for attachment in found} == {
        ("a.txt", b"one"),
        ("b.txt", b"two" * 50),
    }
    cramped = read(data, max_attached_bytes=10)
    assert [attachment.data for attachment in cramped.attachments] == [b"one"]
    assert "1 attachments could not be read" in cramped.document.warnings[0]


def test_title_and_author_are_taken_from_the_file() -> None:
    def named(canvas: Canvas) -> None:
        canvas.setTitle("The Byelaws")
        canvas.setAuthor("Hester Maravell")
        canvas.drawString(72, 700, BODY)

    document = read(drawn(named)).document
    assert (document.title, document.author) == ("The Byelaws", "Hester Maravell")


def test_a_table_of_contents_is_no_title() -> None:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica", size=24)
    pdf.multi_cell(0, 12, "Contents", new_x="LMARGIN", new_y="NEXT")
    pdf.set_font("helvetica", size=11)
    pdf.multi_cell(0, 6, f"{BODY} " * 8)
    assert parse_bytes("x.pdf", bytes(pdf.output())).document.title is None


def test_sections_of_one_name_each_have_their_bookmark() -> None:
    def twice(canvas: Canvas) -> None:
        for number, place in ((1, 760), (2, 400)):
            canvas.bookmarkPage(f"k{number}")
            canvas.addOutlineEntry("Results", f"k{number}")
            canvas.drawString(72, place, "Results")
            canvas.drawString(72, place - 20, BODY)

    assert [heading.title for heading in read(drawn(twice)).headings] == ["Results", "Results"]


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_sheet_that_is_turned_to_be_read_reads_as_any_other(turn: int) -> None:
    def lying(canvas: Canvas) -> None:
        canvas.translate(300, 400)
        canvas.rotate(turn)
        canvas.drawString(0, 0, "First line.")
        canvas.drawString(0, -14, "Second line.")

    data = drawn(lying)

    def rotate(pdf: pikepdf.Pdf) -> None:
        pdf.pages[0].rotate(turn, relative=False)

    assert text_of(changed(data, rotate)) == "First line.\nSecond line."


def test_columns_are_read_one_after_the_other() -> None:
    def columns(canvas: Canvas) -> None:
        for left, name in ((72, "left"), (320, "right")):
            for number in range(6):
                canvas.drawString(left, 700 - 14 * number, f"The {name} column, line {number}.")

    lines = text_of(drawn(columns)).split("\n")
    assert lines == [
        f"The {name} column, line {n}." for name in ("left", "right") for n in range(6)
    ]


def test_rows_of_numbers_are_indexed_with_their_header_and_each_is_one_line() -> None:
    def table(canvas: Canvas) -> None:
        canvas.drawString(72, 780, "Soundings of the year in fathoms, as they were taken.")
        rows = [
            ("Station", "Depth in fathoms", "Bottom"),
            *((n, 7 * n, f"{n}.5") for n in range(40)),
        ]
        for number, cells in enumerate(rows):
            for column, cell in enumerate(cells):
                canvas.drawString(72 + 150 * column, 760 - 14 * number, str(cell))

    outlined = read(drawn(table))
    (found,) = outlined.tables
    text = outlined.document.pages[0].text
    assert found.header == "Station | Depth in fathoms | Bottom"
    assert text[found.start : found.body] == "Station Depth in fathoms Bottom\n"
    assert text[found.body : found.end].split("\n") == [f"{n} {7 * n} {n}.5" for n in range(40)]
    chunks = chunk_document(outlined, CharacterCounter(), ChunkSize(60, 80, 10, 20))
    later = [chunk for chunk in chunks if chunk.start > found.body]
    assert len(later) > 1
    for chunk in later:
        assert chunk.heading.endswith("Station | Depth in fathoms | Bottom")
        assert set(chunk.text.split("\n")) <= set(text.split("\n"))


def test_prose_with_numbers_is_no_table() -> None:
    lines = [
        "In the year of the flood",
        *(f"they took {n} of {n * 3} boats in {n} days" for n in range(9)),
    ]
    assert read(drawn(words(*lines))).tables == ()


def test_a_word_hyphenated_at_a_line_end_is_whole_and_ligatures_are_letters() -> None:
    text = text_of(drawn(words("The keeper of the light was an exam-", "ple to all the others.")))
    assert "example to all" in text
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica", size=11)
    pdf.multi_cell(0, 6, "plain")
    assert text_of(bytes(pdf.output())) == "plain"


@pytest.mark.parametrize("user", ["u", "пароль"])
def test_one_of_the_passwords_given_opens_a_file(user: str) -> None:
    data = encrypted(user)
    assert read(data, passwords=("no", user)).document.pages[0].text == "Secret words."
    assert read(encrypted(""), passwords=("no",)).document.pages[0].text == "Secret words."
    for passwords in ((), ("no", "neither")):
        with pytest.raises(DocumentError) as caught:
            read(data, passwords=passwords)
        assert caught.value.reason == "encrypted" and "--password" in str(caught.value)
        assert "neither" not in str(caught.value)


def test_a_password_is_not_shown_with_the_options() -> None:
    assert "hunter2" not in repr(PdfOptions(passwords=("hunter2",)))


def test_a_file_with_one_page_of_picture_is_ready_and_says_so() -> None:
    def picture(canvas: Canvas) -> None:
        canvas.rect(0, 0, 500, 700, fill=1)

    document = read(drawn(words(BODY), picture)).document
    assert [page.flags for page in document.pages] == [(), ("no_text_layer",)]
    assert [page.quality for page in document.pages] == [1.0, 0.0]
    assert document.warnings == ("There is no text layer, which --ocr can make up for: page 2.",)


def test_a_file_without_any_text_names_the_way_out() -> None:
    def picture(canvas: Canvas) -> None:
        canvas.rect(0, 0, 500, 700, fill=1)

    with pytest.raises(DocumentError, match=r"--ocr") as caught:
        read(drawn(picture))
    assert caught.value.reason == "no_text_layer"


def test_more_pages_than_allowed_are_too_large() -> None:
    with pytest.raises(DocumentError) as caught:
        read(drawn(*[words(BODY)] * 4), max_pages=3)
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize(
    "poor",
    [
        "(a) A lette r fr*om the Aaal^ggfitted fc&ugsx Com;pany eecepting 3s«teer!ship and",
        "\ufffd\ufffd\ufffd words with \ufffd\ufffd glyphs \ufffd that stand for \ufffd nothing",
    ],
)
def test_poor_recognition_and_lost_glyphs_have_less_quality_than_text(poor: str) -> None:
    text = f"{BODY} " * 6
    assert quality(text) > 0.9 > 0.5 > quality(f"{poor} {poor} {poor} {poor}")


def test_tables_of_numbers_and_units_are_not_garbled() -> None:
    assert (
        quality("\n".join(f"{n} 61° {n}' N 9° {n}' W {n * 7} sand 4.95" for n in range(40))) > 0.9
    )

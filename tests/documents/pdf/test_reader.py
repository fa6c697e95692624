"""PDFs: text by page, labels, titles, headings; and each reason why there is none."""

from __future__ import annotations

import io

import pikepdf
import pytest
from fpdf import FPDF

from docpager.documents.chunking import chunk_document
from docpager.documents.loaders import parse_bytes
from docpager.documents.outline import OutlinedDocument
from docpager.documents.pdf.quality import looks_garbled
from docpager.errors import DocumentError
from docpager.testing import CharacterCounter

BODY = "The quick brown fox jumps over the lazy dog while it rains. " * 6


def make_pdf(
    *pages: tuple[str, str], title: str = "", bookmarks: bool = False, head: str = ""
) -> bytes:
    """A PDF with a heading and a text on each page."""
    pdf = FPDF()
    if title:
        pdf.set_title(title)
    for heading, text in pages:
        pdf.add_page()
        if head:
            pdf.set_font("helvetica", size=18)
            pdf.multi_cell(0, 10, head, new_x="LMARGIN", new_y="NEXT")
        if heading:
            if bookmarks:
                pdf.start_section(heading)
            pdf.set_font("helvetica", size=11 if bookmarks else 16)
            pdf.multi_cell(0, 9, heading, new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("helvetica", size=11)
        if text:
            pdf.multi_cell(0, 6, text, new_x="LMARGIN", new_y="NEXT")
    return bytes(pdf.output())


def change(data: bytes, **save: object) -> bytes:
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(data)) as pdf:
        pdf.save(out, **save)
    return out.getvalue()


def headings(outlined: OutlinedDocument) -> list[str]:
    return [heading.title for heading in outlined.headings]


def reason_of(data: bytes, name: str = "x.pdf") -> str:
    with pytest.raises(DocumentError) as caught:
        parse_bytes(name, data)
    assert str(caught.value).count(". ") >= 1, "a message says what happened and what to do"
    return caught.value.reason


def test_each_page_keeps_its_number_and_the_document_its_title() -> None:
    parsed = parse_bytes("x.pdf", make_pdf(("", "One."), ("", ""), ("", "Three."), title="T"))
    document = parsed.document
    assert [(page.page_number, page.text) for page in document.pages] == [
        (1, "One."),
        (2, ""),
        (3, "Three."),
    ]
    assert document.paged and document.title == "T" and not document.warnings
    assert {page.engine for page in document.pages} == {"pdfium"}


@pytest.mark.parametrize("title", ["untitled", "Microsoft Word - final.doc", "q3.pdf", "  "])
def test_a_title_that_says_nothing_is_none(title: str) -> None:
    assert parse_bytes("x.pdf", make_pdf(("", BODY), title=title)).document.title is None


def test_printed_page_labels_are_kept() -> None:
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(make_pdf(("", "a"), ("", "b"), ("", "c")))) as pdf:
        pdf.Root.PageLabels = pikepdf.Dictionary(
            Nums=[0, pikepdf.Dictionary(S=pikepdf.Name.r), 2, pikepdf.Dictionary(S=pikepdf.Name.D)]
        )
        pdf.save(out)
    pages = parse_bytes("x.pdf", out.getvalue()).document.pages
    assert [page.page_label for page in pages] == ["i", "ii", "1"]


def test_headings_are_lines_in_taller_letters_but_for_running_heads() -> None:
    data = make_pdf(*((f"Chapter {name}", BODY) for name in "ABCD"), head="Running head")
    outlined = parse_bytes("x.pdf", data)
    assert headings(outlined) == ["Chapter A", "Chapter B", "Chapter C", "Chapter D"]
    chunks = chunk_document(outlined, CharacterCounter())
    assert [chunk.heading for chunk in chunks if "quick" in chunk.text] == headings(outlined)


def test_chapters_that_differ_by_their_number_alone_are_headings() -> None:
    data = make_pdf(*((f"Chapter {number}", BODY) for number in range(1, 5)))
    assert headings(parse_bytes("x.pdf", data)) == [f"Chapter {n}" for n in range(1, 5)]


def test_bookmarks_go_before_the_look_of_lines() -> None:
    data = make_pdf(("Alpha words", BODY), ("Beta words", BODY), bookmarks=True)
    assert headings(parse_bytes("x.pdf", data)) == ["Alpha words", "Beta words"]


def test_section_numbers_make_headings_but_lists_do_not() -> None:
    text = f"1 Introduction\n{BODY}\n1.1 Scope of it\n{BODY}\n1. Apples\n2. Pears\n3. Plums\n{BODY}"
    outlined = parse_bytes("x.pdf", make_pdf(("", text)))
    assert headings(outlined)[:2] == ["1 Introduction", "1.1 Scope of it"]
    assert "1. Apples" not in headings(outlined)


def test_a_file_under_another_name_or_behind_junk_is_a_pdf() -> None:
    data = make_pdf(("", "Found anyway."))
    for name, bytes_ in (("x.txt", data), ("x", data), ("x.pdf", b"HTTP/1.1 200 OK\r\n" + data)):
        assert parse_bytes(name, bytes_).document.pages[0].text == "Found anyway."


def test_notes_and_text_boxes_are_part_of_their_page() -> None:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica", size=11)
    pdf.multi_cell(0, 6, "Printed words.")
    pdf.text_annotation(20, 20, "A note\nby hand.")
    pdf.free_text_annotation("In a box.", 20, 40, 60, 10)
    (page,) = parse_bytes("x.pdf", bytes(pdf.output())).document.pages
    assert page.text == "Printed words.\nA note by hand.\nIn a box."


def test_encryption_with_an_empty_password_opens_and_with_another_does_not() -> None:
    data = make_pdf(("", "Secret."))
    opened = change(data, encryption=pikepdf.Encryption(owner="o", user=""))
    assert parse_bytes("x.pdf", opened).document.pages[0].text == "Secret."
    closed = change(data, encryption=pikepdf.Encryption(owner="o", user="u"))
    assert reason_of(closed) == "encrypted"


def test_each_reason_why_a_pdf_has_no_text() -> None:
    scan = FPDF()
    scan.add_page()
    scan.rect(10, 10, 50, 50)
    assert reason_of(bytes(scan.output())) == "no_text_layer"
    assert reason_of(make_pdf(("", ""))) == "empty"
    assert reason_of(b"%PDF-1.7\n" + b"nothing of the kind " * 30) == "damaged"
    assert reason_of(b"Please log in to read this.") == "not_a_document"
    assert reason_of(b"words", "x.xyz") == "unsupported_format"


def test_a_truncated_file_is_read_as_far_as_it_goes() -> None:
    data = make_pdf(*(("", f"Page {number}. {BODY}") for number in range(8)))
    parsed = parse_bytes("x.pdf", data[: int(len(data) * 0.8)]).document
    assert parsed.pages[0].text.startswith("Page 0.")


@pytest.mark.parametrize(
    ("text", "garbled"),
    [
        (BODY, False),
        ("Řeřicha a křen patří k sobě jako nůž a vidlička", False),
        ("北京是中国的首都，也是全国的政治中心。" * 2, False),
        ("12.5 37.4 1,204 88.0 12.5 37.4 1,204 88.0", False),
        ("3HQČåQtSURVWĜHGN\\QD~þWHFK", True),
        ("\ue001\ue002\ue003\ue004 " * 20, True),
        ("(cid:12)(cid:33)(cid:4)(cid:12)(cid:33)", True),
        ("T h i s i s p u l l e d a p a r t i n t o l e t t e r s", True),
    ],
)
def test_garbled_text_is_noticed(text: str, garbled: bool) -> None:
    assert looks_garbled(text) is garbled

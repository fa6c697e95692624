from __future__ import annotations

from docpager.documents.loaders import parse_bytes
from tests.documents.making import pptx, shape
from tests.documents.reading import texts


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

from __future__ import annotations

from docpager.documents.loaders import parse_bytes
from tests.documents.making import ONE_BAD_BYTE, epub


def test_chapters_come_in_the_order_of_the_spine_under_their_names() -> None:
    data = epub({"Oil": "<p>Oil first.</p>", "Gas": "<p>Gas next.</p>"}, title="Lights")
    outlined = parse_bytes("a.epub", data)
    assert outlined.document.title == "Lights"
    assert [(page.heading, page.text.strip()) for page in outlined.document.pages] == [
        ("Oil", "Oil first."),
        ("Gas", "Gas next."),
    ]


def test_what_leaves_doubts_in_chapters_is_told_once_of_the_book() -> None:
    book = epub({"Oil": "<p>Oil.</p>", "Gas": ONE_BAD_BYTE, "Wax": ONE_BAD_BYTE})
    assert parse_bytes("a.epub", book).document.warnings == ("1 bytes are not UTF-8.",)

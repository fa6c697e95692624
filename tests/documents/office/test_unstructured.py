"""What only the extra reads says so without it, and is read with it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from docpager.documents.loaders import ParseTask, parse_bytes
from docpager.errors import DocumentError
from docpager.testing import CharacterCounter
from tests.documents.making import msg, ole, xls

OLD_WORD = ole("WordDocument", b"words")


def refusal(name: str, data: bytes) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        parse_bytes(name, data)
    return caught.value


def test_an_old_word_file_says_what_to_save_it_as() -> None:
    error = refusal("a.doc", OLD_WORD)
    assert error.reason == "unsupported_format" and ".docx" in str(error)


def test_a_file_of_no_known_kind_is_no_document() -> None:
    assert refusal("a.xls", ole("Something", b"else")).reason == "not_a_document"


def test_without_the_extra_it_is_named() -> None:
    if find_spec("unstructured") is not None:
        assert "Lamps" in parse_bytes("a.xls", xls([["Lamps", "Year"]])).document.pages[0].text
        return
    error = refusal("a.xls", xls([["Lamps"]]))
    assert error.reason == "unsupported_format" and "docpager[unstructured]" in str(error)


@pytest.mark.extras
def test_old_excel_files_give_sheets_as_pages() -> None:
    outlined = parse_bytes("a.xls", xls([["Year", "Lamps"], [1887, 14], [1888, 15]]))
    (page,) = outlined.document.pages
    assert outlined.document.paged and page.heading == "Lamps"
    assert page.text.split("\n\n") == ["Lamps", "| Year | Lamps |\n| 1887 | 14 |\n| 1888 | 15 |"]


@pytest.mark.extras
def test_an_outlook_message_is_read_with_what_is_attached_to_it() -> None:
    rows = b"Year,Lamps\n1887,14\n"
    message = msg("The café was lit in 1887.\n\nSee the rows.", [("rows.csv", rows)], "Lamps")
    outlined = parse_bytes("a.msg", message)
    (page,) = outlined.document.pages
    assert outlined.document.title == "Lamps"
    assert page.text.split("\n\n") == [
        'From: "Ann Blake" <ann@example.org>\nTo: cyril@example.org\nSubject: Lamps',
        "The café was lit in 1887.",
        "See the rows.",
    ]
    assert [(one.name, one.data) for one in outlined.attachments] == [("rows.csv", rows)]
    assert parse_bytes("rows.xls", message).document.pages[0].text == page.text


@pytest.mark.extras
@pytest.mark.parametrize("kept", [600, 1_500, 3_000])
def test_a_message_that_is_cut_off_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "a.msg"
    path.write_bytes(msg("Words.", [("rows.csv", b"1,2")])[:kept])
    with pytest.raises(DocumentError) as caught:
        ParseTask(CharacterCounter())(str(path))
    assert caught.value.reason in {"damaged", "not_a_document", "empty"}


@pytest.mark.extras
def test_a_broken_one_is_damaged() -> None:
    broken = xls([["Year", "Lamps"]])[:1700]
    assert refusal("a.xls", broken).reason == "damaged"

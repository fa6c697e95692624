"""A format is told by the first bytes, then by the content, then by the name."""

from __future__ import annotations

import io
import zipfile
from pathlib import PurePath

import pytest

from docpager.documents.formats import HEAD_BYTES, detect
from docpager.documents.loaders import parse_bytes
from docpager.errors import DocumentError
from tests.documents.making import examples, packed

EXAMPLES = examples()
UNMISTAKABLE = ("a.docx", "a.pptx", "a.xlsx", "a.odt", "a.ods", "a.epub", "a.rtf", "a.html")


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.txt", b"%PDF-1.7", "pdf"),
        ("a.txt", b"A PDF begins with %PDF-1.7.", "text"),
        ("a.bin", b"HTTP/1.1 200 OK\n\n%PDF-1.7", "pdf"),
        ("a.pdf", b"words", "pdf"),
        ("README", b"words", "text"),
        ("README", "wörter".encode() * 900 + b"\xc3", "text"),
        ("README", b"\x00\x01\x02", None),
        ("syslog", bytes(999) + b"words", "text"),
        ("disk", bytes(4096), None),
        ("a.xyz", b"words", None),
        ("a.xyz", b"<!DOCTYPE html><p>words", "html"),
        ("a.MD", b"", "markdown"),
        ("a.md", b"<p align=center>words", "markdown"),
        ("a.txt", b"\n<!-- made by hand -->\n<html>", "html"),
        ("a.txt", b"<?xml version='1.0'?><log/>", "xml"),
        ("a.xhtml", b"<?xml version='1.0'?><html/>", "html"),
        ("message", b"From: a@b\nTo: c@d\nSubject: x\n\nHi", "mail"),
        ("note", b"To: all who read this\n\nHi", "text"),
        ("a.zip", b"PK\x03\x04" + bytes(99), None),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "further"),
    ],
)
def test_a_format_is_told_by_magic_then_content_then_name(
    name: str, head: bytes, expected: str | None
) -> None:
    assert detect(name, head) == expected


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_read_in_silence_under_its_own_name(name: str) -> None:
    document = parse_bytes(name, EXAMPLES[name]).document
    assert "1887" in "".join(page.text for page in document.pages) or name == "a.eml"
    assert document.warnings == ()


@pytest.mark.parametrize("name", UNMISTAKABLE)
@pytest.mark.parametrize("other", ["a.txt", "a.pdf", "a.docx", "a.csv", "a.bin"])
def test_a_misleading_name_changes_a_warning_and_nothing_else(name: str, other: str) -> None:
    true, false = (parse_bytes(one, EXAMPLES[name]) for one in (name, other))
    assert [page.text for page in false.document.pages] == [
        page.text for page in true.document.pages
    ]
    is_told = bool(false.document.warnings)
    assert is_told == (other not in {name, "a.bin"})
    assert all(PurePath(other).suffix in warning for warning in false.document.warnings)


@pytest.mark.parametrize("name", UNMISTAKABLE)
def test_a_document_is_found_by_its_beginning_alone(name: str) -> None:
    assert detect("download", EXAMPLES[name][:HEAD_BYTES]) is not None


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx", "a.odt", "a.ods", "a.epub"])
def test_a_package_is_read_whichever_way_the_slashes_in_it_lean(name: str) -> None:
    with zipfile.ZipFile(io.BytesIO(EXAMPLES[name])) as archive:
        parts = {entry.replace("/", "\\"): archive.read(entry) for entry in archive.namelist()}
    leaning = packed(parts)
    assert parse_bytes(name, leaning) == parse_bytes(name, EXAMPLES[name])
    assert (
        parse_bytes("download", leaning).document.pages == parse_bytes(name, leaning).document.pages
    )
    assert detect("download", leaning[:HEAD_BYTES]) is not None


def test_what_no_reader_takes_says_what_can_be_done() -> None:
    for name, data, reason in (
        ("a.xyz", b"words", "unsupported_format"),
        ("a.pdf", b"Please log in.", "not_a_document"),
        ("a.rtf", b"words", "not_a_document"),
        ("a.docx", b"\x89PNG" + bytes(99), "not_a_document"),
    ):
        with pytest.raises(DocumentError) as caught:
            parse_bytes(name, data)
        assert caught.value.reason == reason
        assert len(str(caught.value).split(". ")) >= 2

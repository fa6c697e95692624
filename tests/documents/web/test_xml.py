from __future__ import annotations

import pytest

from docpager.documents.loaders import parse_bytes
from docpager.errors import DocumentError
from tests.documents.reading import whole


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", b"[" * 100_000 + b"]" * 100_000),
        ("a.json", b'{"a":' * 20_000 + b"1" + b"}" * 20_000),
        ("a.xml", b"<a>" * 20_000 + b"</a>" * 20_000),
        ("a.xml", b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>"),
        ("a.xml", b"<!DOCTYPE a [<!ENTITY x 'lol'><!ENTITY y '&x;&x;'>]><a>&y;</a>"),
        ("a.xml", b"<!DOCTYPE a [<!ENTITY % x SYSTEM 'http://x.invalid/x'>%x;]><a/>"),
    ],
)
def test_what_is_made_to_do_harm_is_damaged(name: str, data: bytes) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_bytes(name, data)
    assert caught.value.reason == "damaged"


def test_xml_gives_paths_to_values_and_paragraphs_of_prose() -> None:
    text = (
        "<book><title>Lights</title><sec><title>Oil</title><p>Lit in <b>1887</b>.</p></sec>"
        "<lamp id='7'>14</lamp><lamp id='8'>15</lamp></book>"
    )
    outlined = parse_bytes("a.xml", text.encode())
    assert outlined.document.title == "Lights"
    assert [one.title for one in outlined.headings] == ["Lights", "Oil"]
    assert whole(outlined).split("\n\n") == [
        "Lights",
        "Oil",
        "Lit in 1887.",
        "book/lamp[1] id=7: 14\nbook/lamp[2] id=8: 15",
    ]


def test_broken_xml_is_read_as_far_as_it_goes_and_told() -> None:
    outlined = parse_bytes("a.xml", b"<log><lamp>14</lamp><lamp>15")
    assert "14" in whole(outlined) and "15" in whole(outlined)
    assert "not well-formed" in outlined.document.warnings[0]

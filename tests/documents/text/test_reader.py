"""Bytes of any charset become clean text in sections that know their lines."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.documents.loaders import parse_bytes
from docpager.documents.text.normalise import clean, one_line, whole_character_end
from docpager.documents.text.reader import SECTION_LIMIT, decode, read_markdown, read_text
from docpager.errors import DocumentError


@given(st.text())
def test_clean_text_can_be_stored_and_stays_as_it_is(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert clean(cleaned) == cleaned == unicodedata.normalize("NFC", cleaned)
    assert not any(ord(character) < 32 and character not in "\n\t" for character in cleaned)


def test_clean_text_has_no_surrogates_marks_or_carriage_returns() -> None:
    assert clean("a\r\nb\rc\x00\ud800\ufeff\xad\ufffed") == "a\nb\nc\ufffdd"
    assert clean("e\u0301") == "é"
    assert one_line(" a\n b\t c ") == "a b c"


def test_a_cut_leaves_no_accent_alone() -> None:
    assert whole_character_end("ae\u0301", 0, 2) == 1
    assert whole_character_end("\u0301" * 5, 0, 3) == 3


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("utf-8-sig", "Grüße"),
        ("utf-16", "Grüße, 東京"),
        ("utf-32", "Grüße, 東京"),
        ("utf-16-le", "plain words in two bytes each"),
        ("utf-16-be", "plain words in two bytes each"),
        ("cp1252", "Le café où Zoé était assise “hier” à Genève, près de la forêt."),
        ("gb18030", "北京是中国的首都，也是全国的政治和文化中心，人口很多。"),
        ("shift_jis", "東京は日本の首都です。人口はとても多いです。"),
    ],
)
def test_text_is_read_in_its_charset(charset: str, text: str) -> None:
    assert decode(text.encode(charset)) == (text, ())


def test_a_few_bad_bytes_in_utf8_are_replaced_and_told() -> None:
    text, warnings = decode("Grüße, 東京. ".encode() * 60 + b"tail \xff\xfe")
    assert text.endswith("tail \ufffd\ufffd") and warnings == ("2 bytes are not UTF-8.",)


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n" + bytes(99), b"PK\x03\x04" + bytes(99)])
def test_binary_data_under_a_text_name_is_no_document(data: bytes) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_bytes("x.txt", data)
    assert caught.value.reason == "not_a_document"


@pytest.mark.parametrize("zeros", [8, 4_095, 70_000])
@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["x.log", "x.csv", "x.json"])
def test_zeros_before_a_text_are_left_out_and_told(name: str, charset: str, zeros: int) -> None:
    zeros += zeros % 2 if charset != "utf-8" else 0
    document = parse_bytes(name, bytes(zeros) + "ready: Zoé sat here\n".encode(charset)).document
    assert [page.text.strip() for page in document.pages] == ["ready: Zoé sat here"]
    assert any("zero bytes" in warning for warning in document.warnings)


@pytest.mark.parametrize("data", [bytes(9_000), bytes(9_000) + b"\x01\x02\x03\x04" * 99])
def test_zeros_alone_or_before_binary_data_are_no_document(data: bytes) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_bytes("x.log", data)
    assert caught.value.reason == "not_a_document"


@pytest.mark.parametrize(
    ("struck", "read"),
    [
        ("N\bNA\bAM\bME\bE\n", "NAME\n"),
        ("N\bN\bN\bN", "N"),
        ("_\bf_\bi_\bl_\be and f\b_", "file and f"),
        ("word\b\b\b\b____", "word"),
        ("10%\b\b\b20%\n", "20%\n"),
        ("\b\bé_\b", "é_"),
    ],
)
def test_what_was_struck_twice_is_read_once(struck: str, read: str) -> None:
    assert decode(struck.encode()) == (read, ())
    assert parse_bytes("man.txt", struck.encode()).document.pages[0].text == read.rstrip()


@pytest.mark.parametrize("data", [b"", b" \n ", b"\xef\xbb\xbf"])
def test_a_file_without_ink_is_empty(data: bytes) -> None:
    with pytest.raises(DocumentError) as caught:
        from docpager.documents.chunking import chunk_document
        from docpager.documents.loaders import ParseTask
        from docpager.testing import CharacterCounter

        outlined = parse_bytes("x.txt", data)
        assert not chunk_document(outlined, CharacterCounter())
        ParseTask(CharacterCounter())("/dev/null")
    assert caught.value.reason in {"empty", "unreadable"}


@given(st.lists(st.text(st.sampled_from("ab .\n#`-=\t"), max_size=400), max_size=30))
@settings(max_examples=80, deadline=None)
def test_sections_of_markdown_join_to_the_text(parts: list[str]) -> None:
    text = "\n".join(parts)
    pages = read_markdown(text.encode()).document.pages
    assert "\n".join(page.text for page in pages) == clean(text)
    line = 1
    for page in pages:
        assert page.first_line == line
        line += page.text.count("\n") + 1


@given(st.text(st.sampled_from("ab .\n。"), max_size=9).map(lambda unit: unit * 4_000))
@settings(max_examples=40, deadline=None)
def test_sections_of_plain_text_lose_no_ink_and_stay_short(text: str) -> None:
    pages = read_text(text.encode()).document.pages
    ink = "".join("".join(page.text.split()) for page in pages)
    assert ink == "".join(text.split())
    assert all(len(page.text) <= SECTION_LIMIT + 1 for page in pages)


def test_form_feeds_part_plain_text() -> None:
    pages = read_text(b"one\ntwo\n\fthree\ffour").document.pages
    assert [(page.text, page.first_line) for page in pages] == [
        ("one\ntwo\n", 1),
        ("three", 3),
        ("four", 3),
    ]


MARKDOWN = b"""---
title: "The *Report*"
---
# Heading one #
text
```
# no heading
```
Underlined
==========
more
    # code, no heading

- item
---
### [Deep](http://x) `end` ##
| a | b |
"""


def test_markdown_headings_are_found_outside_fences() -> None:
    outlined = read_markdown(MARKDOWN)
    assert outlined.document.title == "The *Report*"
    assert [(heading.level, heading.title) for heading in outlined.headings] == [
        (1, "Heading one"),
        (1, "Underlined"),
        (3, "Deep end"),
    ]
    assert [page.heading for page in outlined.document.pages] == ["Heading one", "Underlined"]

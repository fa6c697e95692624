"""Web pages, data files and mail give their text with what it belongs to."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.documents.loaders import parse_bytes
from docpager.documents.outline import OutlinedDocument
from docpager.errors import DocumentError
from tests.documents.making import epub, mail


def whole(outlined: OutlinedDocument) -> str:
    return "\n".join(page.text for page in outlined.document.pages)


def html(text: str) -> str:
    return whole(parse_bytes("a.html", text.encode()))


# -- HTML


def test_a_page_is_what_its_reader_sees() -> None:
    text = (
        "<title>T</title><script>no()</script><style>no{}</style><template>no</template>"
        "<p hidden>no</p><p style='display: none'>no</p><!-- no -->"
        "<h2>Oil  <em>and</em> gas</h2><p>One<br>two &amp; three</p>four<div>five</div>"
        "<pre>  keep\n    this</pre>"
    )
    assert html(text).split("\n\n") == [
        "Oil and gas",
        "One\ntwo & three",
        "four",
        "five",
        "  keep\n    this",
    ]


def test_lists_keep_their_marks_together() -> None:
    text = "<ol start=4><li><div><p>oil</p></div><li>gas<ul><li>coal</ul></ol><p>end"
    assert html(text) == "4. oil\n5. gas\n- coal\n\nend"


def test_spans_of_cells_are_filled_in() -> None:
    text = (
        "<table><caption>Lamps</caption><tr><th colspan=2>When<th>How many"
        "<tr><td rowspan=2>1887<td>May<td>14<tr><td>June<td>15</table>"
    )
    assert html(text) == (
        "Lamps\n\n| When | When | How many |\n| 1887 | May | 14 |\n| 1887 | June | 15 |"
    )


def test_a_table_for_the_layout_is_no_table() -> None:
    text = "<table><tr><td><h1>Menu</h1><td><p>One</p><p>Two</p></table>"
    assert html(text) == "Menu\n\nOne\n\nTwo"


def test_frames_are_told_and_their_stand_in_is_read() -> None:
    text = b"<frameset><frame src=nav.html><noframes><p>No frames.</p></noframes></frameset>"
    outlined = parse_bytes("a.html", text)
    assert whole(outlined) == "No frames."
    assert "nav.html" in outlined.document.warnings[0]


@pytest.mark.parametrize("charset", ["iso-8859-1", "shift_jis", "utf-8", "gb2312", "unheard-of"])
def test_a_page_is_read_in_the_charset_it_names_if_it_can_be(charset: str) -> None:
    words = {"shift_jis": "東京の灯台", "gb2312": "北京的灯塔", "iso-8859-1": "“café”"}
    text = words.get(charset, "Grüße")
    coded = {"iso-8859-1": "cp1252", "unheard-of": "utf-8"}.get(charset, charset)
    page = f"<meta charset={charset}><p>{text}</p>".encode(coded)
    assert whole(parse_bytes("a.html", page)) == text


def test_a_charset_that_the_bytes_belie_is_not_believed() -> None:
    page = '<meta charset="utf-8"><p>Le café où Zoé était assise à Genève</p>'.encode("cp1252")
    assert whole(parse_bytes("a.html", page)) == "Le café où Zoé était assise à Genève"


@pytest.mark.parametrize("tag", ["div", "b", "ul", "blockquote", "table", "span"])
def test_depth_is_no_danger(tag: str) -> None:
    assert "bottom" in html(f"<{tag}>" * 3_000 + "bottom")


# -- CSV


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_mark_between_cells_is_found(mark: str) -> None:
    rows = [["Name", "Town", "Lamps"], ["Ann, B.", "Ellery", "1"], ["Cy", "Lo; Hi", "2"]]
    cells = [[f'"{cell}"' if mark in cell else cell for cell in row] for row in rows]
    text = "\n".join(mark.join(row) for row in cells)
    expected = [" ".join(row) for row in rows]
    found = whole(parse_bytes("a.csv", text.encode())).replace("| ", "").replace(" |", "")
    assert found.split("\n") == expected


def test_a_quotation_mark_that_is_never_closed_loses_no_row() -> None:
    lines = ["Name,Lamps", 'Ann,"14'] + [f"person {n},{n}" for n in range(20_000)]
    found = whole(parse_bytes("a.csv", "\n".join(lines).encode()))
    assert "| person 19999 | 19999 |" in found


def test_the_line_of_a_section_is_that_of_the_file() -> None:
    lines = ["Name,Lamps"] + [f"person {n},{n}" for n in range(500)]
    for page in parse_bytes("a.csv", "\n".join(lines).encode()).document.pages:
        first_row = page.text.split("\n")[1].strip("| ").replace(" | ", ",")
        assert page.first_line and lines[page.first_line] == first_row


def test_rows_too_long_for_a_line_name_each_cell() -> None:
    text = "Name,Story\nAnn," + "It was a dark night. " * 200
    assert "Name: Ann\nStory: It was a dark night." in whole(parse_bytes("a.csv", text.encode()))


# -- JSON and XML


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abc é", max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("xyz", min_size=1), inner),
    max_leaves=20,
)


@given(JSON.filter(bool))
@settings(max_examples=60, deadline=None)
def test_every_value_of_json_is_found(value: object) -> None:
    def leaves(value: object) -> list[str]:
        if isinstance(value, dict):
            return [leaf for inner in value.values() for leaf in leaves(inner)]
        if isinstance(value, list):
            return [leaf for inner in value for leaf in leaves(inner)]
        return ["null" if value is None else str(value)]

    found = whole(parse_bytes("a.json", json.dumps({"top": value}).encode())).lower()
    assert all(leaf.strip().lower() in found for leaf in leaves(value))


def test_paths_lead_to_values_and_numbers_stay_as_they_are_written() -> None:
    text = '{"lamps": [{"year": 1887, "cost": 0.10, "names": ["Ann", "Cy"]}, {"year": 1888}]}'
    assert whole(parse_bytes("a.json", text.encode())).split("\n") == [
        "lamps[0].year: 1887",
        "lamps[0].cost: 0.10",
        "lamps[0].names: Ann, Cy",
        "",
        "lamps[1].year: 1888",
    ]


def test_what_is_no_json_is_read_and_told() -> None:
    outlined = parse_bytes("a.json", b"{not json")
    assert whole(outlined) == "{not json" and "not valid JSON" in outlined.document.warnings[0]
    lines = parse_bytes("a.json", b'{"a": 1}\n{"a": 2}\n')
    assert [page.first_line for page in lines.document.pages] == [1, 2]
    torn = parse_bytes("a.jsonl", b'{"a": 1}\n{"a": ')
    assert "1 lines" in torn.document.warnings[0] and '{"a":' in whole(torn)


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


# -- mail


def test_the_plain_one_of_two_alternatives_is_read() -> None:
    outlined = parse_bytes("a.eml", mail("Plain words.", html="<p>Rich words.</p>"))
    assert "Plain words." in whole(outlined) and "Rich words." not in whole(outlined)
    assert outlined.document.title == "The report"
    only = mail(" ", html="<p>Rich words.</p>")
    assert "Rich words." in whole(parse_bytes("a.eml", only))


ONE_BAD_BYTE = f"<p>{'Zoé à Genève. ' * 20}".encode() + b"\xff</p>"


@pytest.mark.parametrize(
    ("page", "warning"),
    [
        (ONE_BAD_BYTE, "1 bytes are not UTF-8."),
        (b"<frameset><frame src=nav.html></frameset>", "not followed: nav.html."),
    ],
)
def test_what_leaves_doubts_in_a_page_is_told_of_the_mail(page: bytes, warning: str) -> None:
    head = b"Subject: x\nMIME-Version: 1.0\nContent-Type: text/html\n"
    data = head + b"Content-Transfer-Encoding: 8bit\n\n" + page
    (told,) = parse_bytes("a.eml", data).document.warnings
    assert told.endswith(warning)


def test_what_leaves_doubts_in_chapters_is_told_once_of_the_book() -> None:
    book = epub({"Oil": "<p>Oil.</p>", "Gas": ONE_BAD_BYTE, "Wax": ONE_BAD_BYTE})
    assert parse_bytes("a.epub", book).document.warnings == ("1 bytes are not UTF-8.",)


def test_attachments_come_with_their_names_and_bytes() -> None:
    inner = mail("Inner words.", [("deep.txt", b"Deep.")])
    data = mail(attachments=[("a.csv", b"x,y"), ("../../etc/passwd", b"x"), ("inner.eml", inner)])
    outlined = parse_bytes("a.eml", data)
    assert [one.name for one in outlined.attachments] == ["a.csv", "../../etc/passwd", "inner.eml"]
    assert outlined.attachments[2].data == inner


def test_a_forwarded_message_is_attached_and_pictures_are_not() -> None:
    text = (
        b"Subject: Fwd\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n"
        b"--x\nContent-Type: text/plain\n\nSee below.\n"
        b"--x\nContent-Type: image/png; name=logo.png\nContent-ID: <1>\n\nxx\n"
        b"--x\nContent-Type: message/rfc822\n\nSubject: A/B\nFrom: a@b\n\nOriginal.\n--x--\n"
    )
    (attachment,) = parse_bytes("a.eml", text).attachments
    assert attachment.name == "A-B.eml" and b"Original." in attachment.data


def test_headers_in_any_charset_are_decoded_and_broken_ones_are_no_end() -> None:
    text = (
        b"Subject: =?utf-8?b?R3LDvMOfZQ==?=\nFrom: =?x?y?z\nTo: <<<,;@>\nDate: yesterday\n\nWords."
    )
    outlined = parse_bytes("a.eml", text)
    assert outlined.document.title == "Grüße" and "Words." in whole(outlined)


def test_a_message_of_nothing_but_ciphers_is_encrypted() -> None:
    text = (
        b"Subject: x\nMIME-Version: 1.0\n"
        b"Content-Type: application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m\n"
        b"Content-Transfer-Encoding: base64\n\nAAAA\n"
    )
    with pytest.raises(DocumentError) as caught:
        parse_bytes("a.eml", text)
    assert caught.value.reason == "encrypted"

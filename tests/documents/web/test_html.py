from __future__ import annotations

import pytest

from docpager.documents.loaders import parse_bytes
from tests.documents.reading import whole


def html(text: str) -> str:
    return whole(parse_bytes("a.html", text.encode()))


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

from __future__ import annotations

from docpager.documents.loaders import parse_bytes
from tests.documents.making import RTF
from tests.documents.reading import whole


def test_rich_text_gives_words_and_tables() -> None:
    outlined = parse_bytes("a.rtf", RTF)
    assert outlined.document.title == "Minutes"
    assert whole(outlined).split("\n\n") == [
        "The café opened in 1887.",
        "Second paragraph.",
        "| Year | Lamps |\n| 1887 | 14 |",
        "End.",
    ]

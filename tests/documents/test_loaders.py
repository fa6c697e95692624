from __future__ import annotations

from pathlib import Path

import pytest

from docpager.documents.loaders import ParseTask, SizeLimits
from docpager.errors import DocumentError
from docpager.testing import CharacterCounter


@pytest.mark.parametrize(
    ("name", "head", "given", "allowed"),
    [
        ("a.pdf", b"%PDF-1.7\n", 64, "64 MB"),
        ("a.pdf", b"%PDF-1.7\n", 1024, "1,024 MB"),
        ("a.txt", b"words\n", 64, "16 MB"),
        ("a.docx", b"PK\x03\x04", 64, "16 MB"),
        ("a.txt", b"words\n", 1, "0.25 MB"),
    ],
)
def test_a_limit_in_mb_is_named_as_it_was_given_and_a_quarter_holds_for_all_but_pdf(
    tmp_path: Path, name: str, head: bytes, given: int, allowed: str
) -> None:
    file = tmp_path / name
    file.write_bytes(head)
    with file.open("r+b") as stream:
        stream.truncate(2 * (given << 20))  # sparse: it takes no room on the disk
    parse = ParseTask(CharacterCounter(), limits=SizeLimits(file_bytes=given << 20))
    with pytest.raises(DocumentError) as caught:
        parse(str(file))
    assert caught.value.reason == "too_large"
    assert str(caught.value).startswith(
        f"The file has {2 * given:,} MB, {allowed} is the limit. Split it"
    )

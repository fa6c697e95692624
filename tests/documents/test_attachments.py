"""Files inside a file have names of their own below it, and limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.documents.attachments import (
    AttachmentLimits,
    attached_to,
    place_name,
    with_attachments,
)
from docpager.documents.loaders import ParsedFile, ParseTask
from docpager.errors import DocumentError
from docpager.testing import CharacterCounter
from tests.documents.making import mail


@given(st.text(max_size=300), st.sets(st.text(min_size=1, max_size=5)))
def test_an_attachment_s_name_is_one_harmless_component(name: str, taken: set[str]) -> None:
    placed = place_name(name, taken)
    assert placed and placed not in taken and placed not in {".", ".."}
    assert not set(placed) & set("/\\\n\r\t\0") and len(placed) <= 130
    assert not placed.startswith(".") and placed == placed.strip()
    placed.encode()


@pytest.mark.parametrize(
    ("name", "placed"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ann\\q3.pdf", "q3.pdf"),
        ("..", "attachment"),
        ("report\u202efdp.exe", "reportfdp.exe"),
        ("a" * 300 + ".pdf", "a" * 116 + ".pdf"),
        ("q3.pdf", "q3~2.pdf"),
    ],
)
def test_names_lead_nowhere_else(name: str, placed: str) -> None:
    assert place_name(name, {"q3.pdf"} if placed == "q3~2.pdf" else ()) == placed


def test_names_alone_say_what_is_attached_to_what() -> None:
    names = ["c/a.eml", "c/a.eml/b.eml", "c/a.eml/b.eml/d.txt", "c/a.em", "c/x/y.txt"]
    assert attached_to(names) == {"c/a.eml/b.eml": "c/a.eml", "c/a.eml/b.eml/d.txt": "c/a.eml"}
    assert with_attachments(["c/x/y.txt", "c/a.eml"], names) == (
        "c/x/y.txt",
        "c/a.eml",
        "c/a.eml/b.eml",
        "c/a.eml/b.eml/d.txt",
    )


def parsed(folder: Path, data: bytes, limits: AttachmentLimits | None = None) -> ParsedFile:
    path = folder / "a.eml"
    path.write_bytes(data)
    return ParseTask(CharacterCounter(), attachments=limits or AttachmentLimits())(str(path))


def test_attachments_of_attachments_follow_them(tmp_path: Path) -> None:
    inner = mail("Inner.", [("deep.txt", b"Deep words.")])
    file = parsed(tmp_path, mail(attachments=[("inner.eml", inner), ("b.txt", b"Words.")]))
    assert [one.name for one in file.attachments] == ["inner.eml", "inner.eml/deep.txt", "b.txt"]
    outcomes = [one.outcome for one in file.attachments]
    assert all(isinstance(one, ParsedFile) and one.chunks for one in outcomes)


def test_a_bad_attachment_is_its_own_failure(tmp_path: Path) -> None:
    file = parsed(tmp_path, mail(attachments=[("a.pdf", b"%PDF-1.7 no"), ("b.txt", b"Words.")]))
    first, second = (one.outcome for one in file.attachments)
    assert isinstance(first, DocumentError) and first.reason == "damaged"
    assert isinstance(second, ParsedFile)


def test_what_no_reader_takes_is_named_in_a_warning(tmp_path: Path) -> None:
    file = parsed(tmp_path, mail(attachments=[("photo.png", b"\x89PNG" + bytes(9))]))
    assert not file.attachments
    assert "photo.png" in file.parsed.warnings[0]


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        (AttachmentLimits(count=2), 2),
        (AttachmentLimits(total_bytes=9), 1),
        (AttachmentLimits(depth=0), 0),
    ],
)
def test_what_is_beyond_the_limits_is_named_in_a_warning(
    tmp_path: Path, limits: AttachmentLimits, kept: int
) -> None:
    files = [(f"{n}.txt", b"Words.") for n in range(4)]
    file = parsed(tmp_path, mail(attachments=files), limits)
    assert len(file.attachments) == kept
    assert f"{4 - kept} attachments" in file.parsed.warnings[0]


def test_mail_in_mail_ends_at_the_limit_of_depth(tmp_path: Path) -> None:
    data = mail("The innermost.")
    for _ in range(8):
        data = mail(attachments=[("next.eml", data)])
    file = parsed(tmp_path, data)
    assert [one.name.count("/") for one in file.attachments] == [0, 1, 2]
    assert "beyond the limits" in file.parsed.warnings[0]

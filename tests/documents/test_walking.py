"""The walk is the same everywhere, and names lead back to their files."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.documents.walking import FoundFile, path_of, safe_name, walk
from docpager.errors import UserError
from docpager.types import Document


def put(path: Path, text: str = "words") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def names(*paths: Path | str, known: tuple[Document, ...] = ()) -> list[str]:
    return [file.name for file in walk([str(path) for path in paths], known).files]


def as_known(file: FoundFile) -> Document:
    return Document(file.name, "ready", "0" * 64, file.size, file.root)


def test_files_come_in_the_order_of_their_path_components(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.md", "a/b/c.txt", "a.txt", "a-b/x.txt"):
        put(tmp_path / "corpus" / name)
    assert names(tmp_path / "corpus") == [
        "corpus/a/b/c.txt",
        "corpus/a/z.md",
        "corpus/a-b/x.txt",
        "corpus/a.txt",
        "corpus/b.txt",
    ]


def test_what_is_no_document_is_ignored_and_counted(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    for name in (".DS_Store", "~$x.txt", ".hidden.md", "x.pdf:Zone.Identifier", "a.xyz"):
        put(corpus / name)
    put(corpus / ".git" / "one.txt")
    put(corpus / ".git" / "two.txt")
    (corpus / "picture").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    os.mkfifo(corpus / "pipe.txt")
    put(corpus / "kept.txt")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(corpus / "s.md"))
        found = walk([str(corpus)])
    assert [file.name for file in found.files] == ["corpus/kept.txt"]
    assert found.ignored == 9


def test_links_out_of_the_folder_and_loops_are_not_followed(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    put(corpus / "a.txt")
    outside = put(tmp_path / "outside" / "secret.txt")
    (corpus / "out.txt").symlink_to(outside)
    (corpus / "folder").symlink_to(outside.parent)
    (corpus / "loop").symlink_to(corpus)
    (corpus / "self.txt").symlink_to(corpus / "self.txt")
    (corpus / "inside.txt").symlink_to(corpus / "a.txt")
    found = walk([str(corpus)])
    assert [file.name for file in found.files] == ["corpus/a.txt", "corpus/inside.txt"]
    assert found.ignored == 4


def test_names_that_are_no_text_are_made_safe_and_lead_back(tmp_path: Path) -> None:
    corpus = os.fsencode(tmp_path / "corpus")
    os.mkdir(corpus)
    for name in (b"bad\xff\xe9.txt", b"new\nline.txt", b"back\\x0aslash.txt", "ü 東.txt".encode()):
        with open(corpus + b"/" + name, "wb") as file:
            file.write(b"words")
    found = walk([str(tmp_path / "corpus")]).files
    assert {file.name for file in found} == {
        "corpus/bad\\xff\\xe9.txt",
        "corpus/new\\u000aline.txt",
        "corpus/back\\u005cx0aslash.txt",
        "corpus/ü 東.txt",
    }
    assert [path_of(as_known(file)) for file in found] == [file.path for file in found]


@given(st.binary(min_size=1).filter(lambda name: b"/" not in name and b"\0" not in name))
def test_a_safe_name_can_be_stored_and_is_given_back(raw: bytes) -> None:
    name = os.fsdecode(raw)
    safe = safe_name(name)
    safe.encode("utf-8")
    assert safe.isprintable() or safe_name(safe) != safe or not safe.isascii()
    document = Document(f"r/{safe}", "ready", "", 0, "/root")
    assert os.fsencode(path_of(document)) == b"/root/" + raw or raw in (b".", b"..")


def test_a_second_root_of_the_same_name_gets_a_number_and_keeps_it(tmp_path: Path) -> None:
    one, two = put(tmp_path / "1" / "corpus" / "a.txt"), put(tmp_path / "2" / "corpus" / "a.txt")
    first = walk([str(one.parent)]).files
    assert names(two.parent, known=tuple(map(as_known, first))) == ["corpus~2/a.txt"]
    both = walk([str(one.parent), str(two.parent)]).files
    assert [file.name for file in both] == ["corpus/a.txt", "corpus~2/a.txt"]
    assert names(two.parent, known=tuple(map(as_known, both))) == ["corpus~2/a.txt"]


def test_a_single_file_is_named_from_its_folder_or_from_a_known_root(tmp_path: Path) -> None:
    file = put(tmp_path / "corpus" / "reports" / "q3.txt")
    assert names(file) == ["reports/q3.txt"]
    known = tuple(map(as_known, walk([str(tmp_path / "corpus")]).files))
    assert names(file, known=known) == ["corpus/reports/q3.txt"]
    assert names(file, file) == ["reports/q3.txt"]


def test_the_current_folder_has_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "corpus" / "a.txt")
    monkeypatch.chdir(tmp_path / "corpus")
    assert names(".") == names("../corpus/") == ["corpus/a.txt"]


def test_an_unknown_format_is_kept_where_it_was_named_itself(tmp_path: Path) -> None:
    (file,) = walk([str(put(tmp_path / "a.xyz"))]).files
    assert file.explicit


def test_a_path_that_does_not_exist_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no file or folder .*nothing"):
        walk([str(tmp_path / "nothing")])

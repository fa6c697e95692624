"""The walk is the same everywhere, and names lead back to their files."""

from __future__ import annotations

import os
import socket
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.errors import UserError
from docpager.ingest.ignore import PathFilter
from docpager.ingest.walk import FoundFile, path_of, safe_name, walk
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
    assert Counter(entry.kind for entry in found.left_out) == {
        "hidden": 5,
        "format": 2,
        "no_file": 2,
    }


def test_links_are_not_followed_wherever_they_lead(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    put(corpus / "a.txt")
    outside = put(tmp_path / "outside" / "secret.txt")
    (corpus / "out.txt").symlink_to(outside)
    (corpus / "folder").symlink_to(outside.parent)
    (corpus / "loop").symlink_to(corpus)
    (corpus / "self.txt").symlink_to(corpus / "self.txt")
    (corpus / "inside.txt").symlink_to(corpus / "a.txt")
    found = walk([str(corpus)])
    assert [file.name for file in found.files] == ["corpus/a.txt"]
    assert [(entry.path, entry.kind) for entry in found.left_out] == [
        ("corpus/folder", "link"),
        ("corpus/inside.txt", "link"),
        ("corpus/loop", "link"),
        ("corpus/out.txt", "link"),
        ("corpus/self.txt", "link"),
    ]
    assert names(corpus / "inside.txt") == ["corpus/inside.txt"], "what is named itself is taken"
    assert names(corpus / "folder") == ["folder/secret.txt"]


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


# ---- what a person leaves out


def left(folder: Path, *paths: Path, **selection: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names that are taken and that a rule leaves out, without the folder's own."""
    found = walk([str(path) for path in paths or (folder,)], (), PathFilter(**selection))
    ruled = [entry.path for entry in found.left_out if entry.kind == "rule"]
    return [file.name.partition("/")[2] for file in found.files], [
        name.partition("/")[2] for name in ruled
    ]


def test_include_and_exclude_are_patterns_below_the_folder_given(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    for name in ("a.txt", "b.md", "drafts/a.txt", "sub/a.txt", "sub/drafts/c.txt"):
        put(corpus / name)
    assert left(corpus, include=["*.txt"], exclude=["drafts/"]) == (
        ["a.txt", "sub/a.txt"],
        ["b.md", "drafts", "sub/drafts"],
    )
    assert left(corpus, include=["/sub/**"])[0] == ["sub/a.txt", "sub/drafts/c.txt"]
    assert left(corpus, exclude=["*", "!b.md"])[0] == ["b.md"]
    assert left(corpus, corpus / "sub", include=["/a.txt"])[0] == ["a.txt"]


def test_ignore_files_hold_from_their_folder_down_and_the_nearest_decides(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    for name in ("a.log.txt", "keep.log.txt", "sub/a.log.txt", "sub/b.txt", "out/x.txt", "x.txt"):
        put(corpus / name)
    put(corpus / ".docpagerignore", "# notes\n*.log.txt\n!keep.log.txt\n/out/\n")
    put(corpus / "sub" / ".docpagerignore", "!a.log.txt\nb.txt\n")
    expected = (["keep.log.txt", "sub/a.log.txt", "x.txt"], ["a.log.txt", "out", "sub/b.txt"])
    assert left(corpus) == expected
    known = [as_known(file) for file in walk([str(corpus)]).files]
    assert walk([str(corpus / "out")], known).files == ()
    assert left(corpus, corpus / "out")[0] == ["x.txt"], "a root of its own has its own rules"
    assert names(corpus / "a.log.txt") == ["corpus/a.log.txt"], "what is named itself is taken"


def test_ignore_files_above_a_folder_hold_where_its_root_is_known(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    put(corpus / "sub" / "a.txt")
    put(corpus / "sub" / "b.txt")
    known = tuple(map(as_known, walk([str(corpus)]).files))
    put(corpus / ".docpagerignore", "sub/a.txt\n")
    assert names(corpus / "sub", known=known) == ["corpus/sub/b.txt"]


def test_patterns_fit_names_that_are_no_text(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    put(corpus / "a.txt")
    for name in (b"bad\xff.txt", b"new\nline.txt"):
        (corpus / os.fsdecode(name)).write_text("words")
    (corpus / ".docpagerignore").write_bytes(b"bad\xff.txt\nnew*\n")
    assert names(corpus) == ["corpus/a.txt"]


def test_an_ignore_file_that_is_a_fifo_or_a_link_is_not_read(tmp_path: Path) -> None:
    put(tmp_path / "one" / "a.txt")
    put(tmp_path / "two" / "a.txt")
    os.mkfifo(tmp_path / "one" / ".docpagerignore")
    (tmp_path / "two" / ".docpagerignore").symlink_to(put(tmp_path / "rules", "*\n"))
    assert names(tmp_path / "one", tmp_path / "two") == ["one/a.txt", "two/a.txt"]


def test_a_bad_pattern_is_the_users_error(tmp_path: Path) -> None:
    put(tmp_path / "corpus" / "a.txt")
    with pytest.raises(UserError, match="--exclude holds no pattern"):
        PathFilter(exclude=["!"])
    put(tmp_path / "corpus" / ".docpagerignore", "!\n")
    with pytest.raises(UserError, match=r"docpagerignore holds no pattern"):
        walk([str(tmp_path / "corpus")])


# ---- the odd folder


def test_sixty_levels_are_walked_and_what_is_too_deep_for_the_system_is_told(
    tmp_path: Path,
) -> None:
    deep = tmp_path / "corpus"
    put(deep / Path(*["level"] * 60) / "a.txt")
    assert names(deep) == ["corpus/" + "level/" * 60 + "a.txt"]
    here = Path.cwd()
    try:
        os.chdir(deep)
        for _ in range(60):
            os.mkdir("x" * 200)
            os.chdir("x" * 200)
        Path("b.txt").write_text("words")
        os.chdir(deep)
        found = walk([str(deep)])
    finally:
        os.chdir(here)
        subprocess.run(["rm", "-rf", str(deep / ("x" * 200))], check=True)
    assert [file.name[-5:] for file in found.files] == ["a.txt"]
    assert [(entry.kind, entry.message) for entry in found.left_out] == [
        ("unreadable", "its path is too long")
    ]


def test_ten_thousand_small_files_are_found_in_order(tmp_path: Path) -> None:
    wanted = []
    for number in range(10_000):
        folder = tmp_path / "corpus" / f"{number % 50:02}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:06}.txt").touch()
        wanted.append(f"corpus/{number % 50:02}/{number:06}.txt")
    assert names(tmp_path / "corpus") == sorted(wanted)

"""Ingest: content decides, order does not depend on workers, and nothing finished is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest

from docpager.documents.loaders import ParsedFile
from docpager.documents.sandbox import Sandbox
from docpager.errors import DocumentError, NothingToDo, UserError
from docpager.ingest.committing import FlushAt
from docpager.types import IngestCounts
from tests.ingest.benches import TASK, Bench


def test_new_files_are_added_in_walk_order(bench: Bench) -> None:
    for name in ("b.md", "a/x.txt", "a.txt"):
        bench.put(name, f"# Title\n\nWords of {name}.")
    bench.put("picture.png", "no document")
    report = bench.run()
    assert (report.added, report.ignored, report.failed) == (3, 1, 0)
    assert (report.passages, report.pages) == (3, 3)
    assert [outcome.path for outcome in report.files] == [
        "corpus/a/x.txt",
        "corpus/a.txt",
        "corpus/b.md",
    ]
    assert [hit.document for hit in bench.archive.passages(["P1", "P2", "P3"])] == [
        outcome.path for outcome in report.files
    ]
    assert bench.seen[-1] == IngestCounts(files=3, total=3, pages=3, passages=3, failed=0)
    row = bench.rows["corpus/a/x.txt"]
    assert (row.root, row.state, row.paged) == (str(bench.folder), "ready", False)


def test_a_bad_file_is_a_row_with_a_reason_and_the_others_go_on(bench: Bench) -> None:
    bench.put("a.txt", "Words.")
    (bench.folder / "bad.pdf").write_bytes(b"%PDF-1.4\nnothing of the kind")
    bench.put("empty.txt", "")
    bench.put("z.txt", "More words.")
    report = bench.run()
    assert bench.statuses(report) == {
        "corpus/a.txt": "added",
        "corpus/bad.pdf": "damaged",
        "corpus/empty.txt": "empty",
        "corpus/z.txt": "added",
    }
    assert bench.rows["corpus/bad.pdf"].reason == "damaged"
    again = bench.run()
    assert (again.failed, again.unchanged) == (2, 2) and not bench.parsed
    assert bench.statuses(again)["corpus/bad.pdf"] == "damaged"


def test_a_file_that_became_bad_loses_its_old_text(bench: Bench) -> None:
    path = bench.put("a.txt", "Words.")
    bench.run()
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(30))
    assert bench.run().failed == 1
    assert bench.rows["corpus/a.txt"].reason == "not_a_document"
    assert bench.archive.passage_count == 0


def test_a_copy_of_a_bad_file_fails_for_the_same_reason(bench: Bench) -> None:
    for name in ("a.pdf", "b.pdf"):
        (bench.folder / name).write_bytes(b"%PDF-1.4\nnothing of the kind")
    report = bench.run()
    assert set(bench.statuses(report).values()) == {"damaged"} and bench.parsed == ["a.pdf"]


def test_a_copy_of_another_suffix_does_not_fail_for_the_name_of_the_first(bench: Bench) -> None:
    for name in ("a.pdf", "b.txt", "c.pdf", "d.txt", "e.md"):
        bench.put(name, "Plain text of whales.")
    report = bench.run()
    assert bench.statuses(report) == {
        "corpus/a.pdf": "not_a_document",
        "corpus/b.txt": "added",
        "corpus/c.pdf": "not_a_document",
        "corpus/d.txt": "duplicate",
        "corpus/e.md": "duplicate",
    }
    assert bench.rows["corpus/d.txt"].duplicate_of == "corpus/b.txt"
    assert bench.archive.passage_count == 1
    again = bench.run()
    assert (again.unchanged, again.failed) == (3, 2) and not bench.parsed


def test_a_file_named_itself_of_an_unknown_format_fails(bench: Bench) -> None:
    report = bench.run(bench.put("a.xyz", "words"))
    assert bench.statuses(report) == {"corpus/a.xyz": "unsupported_format"}


def test_a_file_that_vanishes_is_unreadable_and_tried_again(bench: Bench) -> None:
    path = bench.put("a.txt", "Words.")
    real = bench.parse

    def parse(paths: Iterable[str]) -> Generator[ParsedFile | DocumentError, None, None]:
        def vanishing() -> Iterator[str]:
            for each in paths:
                Path(each).rename(path.with_suffix(".away"))
                yield each

        return real(vanishing())

    bench.parse = parse  # type: ignore[method-assign]
    assert bench.statuses(bench.run()) == {"corpus/a.txt": "unreadable"}
    bench.parse = real  # type: ignore[method-assign]
    path.with_suffix(".away").rename(path)
    assert bench.statuses(bench.run()) == {"corpus/a.txt": "added"}


def test_nothing_found_and_nothing_there_are_told(bench: Bench) -> None:
    with pytest.raises(NothingToDo, match="No documents"):
        bench.run()
    with pytest.raises(UserError, match="Check the path"):
        bench.run(bench.folder / "nowhere")


def test_an_interrupted_ingest_keeps_what_was_committed_and_ends_its_workers(
    bench: Bench,
) -> None:
    for number in range(9):
        bench.put(f"{number}.txt", f"Words of {number}.")
    closed = []
    real = bench.parse

    def parse(paths: Iterable[str]) -> Generator[ParsedFile | DocumentError, None, None]:
        try:
            for number, result in enumerate(real(paths)):
                if number == 5:
                    raise KeyboardInterrupt
                yield result
        finally:
            closed.append(True)

    bench.parse = parse  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        bench.run(flush=FlushAt(passages=2, most_passages=2))
    assert closed == [True]
    kept = len(bench.ready)
    assert bench.ready == [f"corpus/{number}.txt" for number in range(kept)] and kept <= 5
    bench.parse = real  # type: ignore[method-assign]
    report = bench.run()
    assert (report.added, report.unchanged) == (9 - kept, kept)


def test_with_real_workers_a_folder_gives_what_it_gives_without(tmp_path: Path) -> None:
    archives = []
    for workers in (0, 3):
        folder = tmp_path / str(workers)
        folder.mkdir()
        bench = Bench(folder)
        for number in range(6):
            bench.put(f"{number}.md", f"# T\n\nWords of {number}. " * (1 + number * 30))
        (bench.folder / "bad.pdf").write_bytes(b"%PDF-1.4\nnothing of the kind")
        if workers:
            bench.parse = Sandbox(TASK, workers).map  # type: ignore[method-assign]
        bench.run()
        archives.append(bench.archive)
    ids = [f"P{n}" for n in range(1, archives[0].passage_count + 1)]
    assert archives[0].passages(ids) == archives[1].passages(ids) != ()
    assert archives[0].content_hash() == archives[1].content_hash()


def test_names_that_are_no_text_reach_the_archive_as_text(bench: Bench) -> None:
    with open(os.fsencode(bench.folder) + b"/bad\xff\nname.txt", "wb") as file:
        file.write(b"A lone surrogate: " + b"\xed\xa0\x80 and words. " + "é".encode() * 40)
    report = bench.run()
    (name,) = bench.rows
    assert name == "corpus/bad\\xff\\u000aname.txt" and report.added == 1
    "\n".join([name, bench.archive.page(name, 1).text]).encode("utf-8")
    shutil.rmtree(bench.folder)


def test_a_fifo_that_is_named_itself_is_unreadable_and_not_waited_for(bench: Bench) -> None:
    os.mkfifo(bench.folder / "pipe.txt")
    report = bench.run(bench.folder / "pipe.txt")
    assert bench.statuses(report) == {"corpus/pipe.txt": "unreadable"}


def test_a_profile_says_where_the_time_went(bench: Bench) -> None:
    path = bench.put("a.txt", "Words.")
    profile = bench.run().profile
    assert set(profile.seconds) == {
        "walk",
        "hash",
        "read",
        "wait to read",
        "embed",
        "write",
        "wait to write",
    }
    assert profile.bytes == path.stat().st_size


def test_warnings_are_told_beside_success(bench: Bench) -> None:
    bench.put("a.txt", "<!doctype html><p>Words.")
    (outcome,) = bench.run().files
    assert outcome.status == "added" and "HTML" in outcome.warnings[0]

"""Ingest: content decides, order does not depend on workers, and nothing finished is lost."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from docpager.documents.loaders import ParsedFile, ParseTask
from docpager.documents.sandbox import Sandbox
from docpager.errors import (
    ArchiveError,
    DocumentError,
    FailureReason,
    ModelAuthError,
    ModelError,
    NothingToDo,
    UserError,
)
from docpager.ingest.committing import FlushAt, Writing
from docpager.ingest.ignore import PathFilter
from docpager.ingest.plan import Retries
from docpager.ingest.run import Options, ingest
from docpager.protocols import ArchiveWriter, Vectors
from docpager.testing import CharacterCounter, FrozenClock, HashEmbedder, InMemoryStore
from docpager.types import Document, EmbedderIdentity, IngestCounts, IngestReport
from tests.documents.making import mail

TASK = ParseTask(CharacterCounter())


class CountingEmbedder:
    """A HashEmbedder that notes what it is asked for and fails when told to."""

    batch_size = 4

    def __init__(self) -> None:
        self._inner = HashEmbedder()
        self.asked: list[str] = []
        self.failures: dict[int, Exception] = {}
        self.calls = 0

    @property
    def identity(self) -> EmbedderIdentity:
        return self._inner.identity

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        if self.calls in self.failures:
            raise self.failures[self.calls]
        self.asked += texts
        return self._inner.embed(texts)


class Bench:
    """An archive in memory, a folder of files, and an ingest that brings them together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "corpus"
        self.folder.mkdir()
        self.embedder = CountingEmbedder()
        self.archive = InMemoryStore(self.embedder.identity)
        self.parsed: list[str] = []
        self.bursts = 0
        self.open = False
        self.seen: list[IngestCounts] = []
        self.clock = FrozenClock()

    def put(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    @contextmanager
    def open_writer(self) -> Iterator[ArchiveWriter]:
        assert not self.open
        self.open, self.bursts = True, self.bursts + 1
        try:
            yield self.archive
        finally:
            self.open = False

    def parse(self, paths: Iterable[str]) -> Generator[ParsedFile | DocumentError, None, None]:
        for path in paths:
            self.parsed.append(os.path.basename(path))
            try:
                yield TASK(path)
            except DocumentError as error:
                yield error

    def run(
        self,
        *paths: Path,
        flush: FlushAt | None = None,
        paid: bool = False,
        options: Options | None = None,
    ) -> IngestReport:
        self.parsed, self.embedder.asked = [], []
        return ingest(
            [str(path) for path in paths or (self.folder,)],
            known=self.archive.documents(),
            writing=Writing(self.open_writer, self.embedder, paid, flush or FlushAt()),
            parse=self.parse,
            clock=self.clock,
            progress=self.seen.append,
            options=options,
        )

    @property
    def rows(self) -> dict[str, Document]:
        return {document.name: document for document in self.archive.documents()}

    @property
    def ready(self) -> list[str]:
        return [name for name, row in self.rows.items() if row.state == "ready"]

    def statuses(self, report: IngestReport) -> dict[str, str]:
        return {outcome.path: outcome.reason or outcome.status for outcome in report.files}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


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


def test_an_unchanged_second_run_reads_and_embeds_nothing(bench: Bench) -> None:
    bench.put("a.txt", "Words.")
    bench.put("b.txt", "Others.")
    bench.run()
    generation, bench.bursts = bench.archive.generation, 0
    report = bench.run()
    assert report.unchanged == 2 and not bench.parsed and not bench.embedder.asked
    assert bench.archive.generation == generation and bench.bursts == 0


def test_a_touched_file_is_unchanged_and_its_new_time_is_kept(bench: Bench) -> None:
    path = bench.put("a.txt", "Words.")
    bench.run()
    os.utime(path, ns=(5, 5))
    assert bench.run().unchanged == 1 and not bench.parsed
    assert bench.rows["corpus/a.txt"].mtime_ns == 5 and bench.archive.passage_count == 1


def test_a_changed_file_takes_the_place_of_what_was_there(bench: Bench) -> None:
    path = bench.put("a.txt", "Old words.")
    bench.run()
    bench.put("a.txt", "New words, more of them.")
    os.utime(path, ns=(7, 7))
    report = bench.run()
    assert report.updated == 1 and bench.archive.passage_count == 1
    assert bench.archive.page("corpus/a.txt", 1).text == "New words, more of them."


def test_a_moved_file_keeps_its_passages_and_vectors(bench: Bench) -> None:
    path = bench.put("a.txt", "Words.")
    bench.run()
    (bench.folder / "sub").mkdir()
    path.rename(bench.folder / "sub" / "b.txt")
    report = bench.run()
    assert report.moved == 1 and not bench.parsed and not bench.embedder.asked
    assert list(bench.rows) == ["corpus/sub/b.txt"]
    assert bench.archive.passages(["P1"])[0].document == "corpus/sub/b.txt"


def test_a_copy_is_a_duplicate_that_stays_one(bench: Bench) -> None:
    bench.put("a.txt", "Words.")
    bench.put("b.txt", "Words.")
    report = bench.run()
    assert (report.added, report.duplicate, bench.archive.passage_count) == (1, 1, 1)
    assert bench.rows["corpus/b.txt"].duplicate_of == "corpus/a.txt"
    assert bench.run().unchanged == 2 and not bench.parsed


@pytest.mark.parametrize("changed", ["a.txt", "b.txt"])
def test_of_two_copies_the_one_left_unchanged_keeps_the_text(bench: Bench, changed: str) -> None:
    bench.put("a.txt", "Words.")
    bench.put("b.txt", "Words.")
    bench.run()
    os.utime(bench.put(changed, "Something else."), ns=(9, 9))
    report = bench.run()
    assert (report.updated, report.unchanged) == (1, 1)
    texts = {name: bench.archive.page(name, 1).text for name in bench.rows}
    other = ({"a.txt", "b.txt"} - {changed}).pop()
    assert texts == {f"corpus/{changed}": "Something else.", f"corpus/{other}": "Words."}
    assert bench.run().unchanged == 2 and not bench.parsed


def test_a_new_copy_takes_over_the_text_of_what_changes_after_it(bench: Bench) -> None:
    bench.put("b.txt", "Words.")
    bench.run()
    bench.put("a.txt", "Words.")
    os.utime(bench.put("b.txt", "Something else."), ns=(9, 9))
    assert bench.run().failed == 0
    texts = {name: bench.archive.page(name, 1).text for name in bench.rows}
    assert texts == {"corpus/a.txt": "Words.", "corpus/b.txt": "Something else."}


def test_a_copy_that_changes_into_itself_again_is_found_by_its_bytes(bench: Bench) -> None:
    first, second = bench.put("a.txt", "One."), bench.put("b.txt", "Two!")
    bench.run()
    first.write_text("Two!")
    second.write_text("One.")
    for path in (first, second):
        os.utime(path, ns=(11, 11))
    report = bench.run()
    assert report.failed == 0
    assert bench.archive.page("corpus/a.txt", 1).text == "Two!"
    assert {row.content_hash for row in bench.rows.values()} == {
        row.content_hash for row in bench.rows.values() if row.state != "failed"
    }
    assert bench.run().unchanged == 2


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


def test_equal_texts_are_embedded_once_and_stored_vectors_never_again(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.put(f"{name}.md", f"## Same\n\nSame words.\n\n## {name}\n\nWords of {name}.")
    bench.run()
    assert len(bench.embedder.asked) == len(set(bench.embedder.asked)) == 3
    bench.put("c.md", "## Same\n\nSame words.\n\n## New\n\nNew words.")
    bench.run()
    assert bench.embedder.asked == ["New\n## New\n\nNew words."]


@pytest.mark.parametrize("paid", [False, True])
def test_a_refused_key_stops_the_ingest_and_what_was_complete_stays(
    bench: Bench, paid: bool
) -> None:
    for number in range(12):
        bench.put(f"{number:02}.txt", f"Words of {number}.")
    bench.embedder.failures = {3: ModelAuthError("The key is refused.")}
    with pytest.raises(ModelAuthError):
        bench.run(paid=paid)
    assert bench.ready == [f"corpus/{number:02}.txt" for number in range(8)]
    assert {row.state for row in bench.rows.values()} == {"ready", "pending"}
    assert bench.run().added == 4


def test_vectors_that_were_paid_for_are_kept_before_their_document_is(bench: Bench) -> None:
    bench.put("a.md", "\n\n".join(f"## S{n}\n\nWords of {n}." for n in range(12)))
    bench.embedder.failures = {3: ModelAuthError("The key is refused.")}
    with pytest.raises(ModelAuthError):
        bench.run(paid=True)
    assert [row.state for row in bench.rows.values()] == ["pending"]
    bench.run(paid=True)
    assert len(bench.embedder.asked) == 4 and bench.archive.passage_count == 12


def test_what_was_paid_for_is_kept_where_its_document_cannot_be(bench: Bench) -> None:
    for number in range(6):
        bench.put(f"{number}.txt", f"Words of {number}.")
    real = bench.archive.store

    def store(document: Document, *rest: Any) -> Document:
        raise ArchiveError("The disk is full.")

    bench.archive.store = store  # type: ignore[method-assign]
    with pytest.raises(ArchiveError):
        bench.run(paid=True)
    bench.archive.store = real  # type: ignore[method-assign]
    assert len(bench.embedder.asked) == 6
    assert bench.run(paid=True).added == 6
    assert bench.embedder.asked == []


def test_one_failed_embedding_call_fails_its_documents_until_the_next_run(bench: Bench) -> None:
    for number in range(12):
        bench.put(f"{number:02}.txt", f"Words of {number}.")
    bench.embedder.failures = {2: ModelError("The endpoint answered nonsense.")}
    report = bench.run()
    assert (report.added, report.failed) == (8, 4)
    assert {file.reason for file in report.files if file.status == "failed"} == {"embedding_failed"}
    again = bench.run()
    assert (again.added, again.unchanged, again.failed) == (4, 8, 0)


def test_embedding_that_fails_in_a_row_stops_the_ingest_and_blames_no_document(
    bench: Bench,
) -> None:
    for number in range(20):
        bench.put(f"{number:02}.txt", f"Words of {number}.")
    bench.embedder.failures = {n: ModelError("Unreachable.") for n in (2, 3, 4)}
    with pytest.raises(ModelError, match="Unreachable"):
        bench.run()
    assert [row.state for row in bench.rows.values()] == ["ready"] * 4 + ["pending"] * 16


def test_the_archive_is_opened_in_short_bursts(bench: Bench) -> None:
    for number in range(9):
        bench.put(f"{number}.txt", f"Words of {number}.")
    bench.run(flush=FlushAt(passages=3, most_passages=3))
    # Announced, three batches looked up and kept, compacted; one is looked up in the burst that
    # keeps the batch before, if it is there by then.
    assert 1 + 4 + 1 <= bench.bursts <= 1 + 3 * 2 + 1


def test_what_is_read_during_a_commit_grows_into_one_batch(bench: Bench) -> None:
    for number in range(30):
        bench.put(f"{number:02}.txt", f"Words of {number}.")
    read, store = threading.Event(), bench.archive.store

    def parse(paths: Iterable[str]) -> Generator[ParsedFile | DocumentError, None, None]:
        for path in paths:
            if path.endswith("25.txt"):
                read.set()
            yield TASK(path)

    def store_late(*arguments: Any) -> Document:
        assert read.wait(60)
        return store(*arguments)

    bench.parse = parse  # type: ignore[method-assign]
    bench.archive.store = store_late  # type: ignore[method-assign]
    assert bench.run(flush=FlushAt(passages=1, most_passages=100)).added == 30
    assert bench.bursts < 20


def test_a_batch_is_embedded_while_the_one_before_is_committed(bench: Bench) -> None:
    for number in range(3):
        bench.put(f"{number}.txt", f"Words of {number}.")
    embedding, stored = threading.Event(), threading.Event()
    embed, store = bench.embedder.embed, bench.archive.store

    def embed_beside(texts: Sequence[str]) -> Vectors:
        if "Words of 1." in texts:
            embedding.set()
            assert stored.wait(60)
        return embed(texts)

    def store_beside(*arguments: Any) -> Document:
        assert embedding.wait(60)
        document = store(*arguments)
        stored.set()
        return document

    bench.embedder.embed = embed_beside  # type: ignore[method-assign]
    bench.archive.store = store_beside  # type: ignore[method-assign]
    # Parsing ends before anything is written, so that batches wait for the thread that writes.
    assert bench.run(flush=FlushAt(passages=1, most_passages=1)).added == 3


def test_what_is_embedded_in_the_batch_before_is_not_asked_for_again(bench: Bench) -> None:
    for number in range(4):
        bench.put(f"{number}.md", f"## Same\n\nSame words.\n\n## {number}\n\nWords.")
    assert bench.run(flush=FlushAt(passages=1, most_passages=1)).added == 4
    assert len(bench.embedder.asked) == len(set(bench.embedder.asked)) == 5


def test_a_text_that_failed_with_the_batch_before_is_asked_for_again(bench: Bench) -> None:
    same = "## Same\n\nSame words."
    bench.put("a.md", same)
    bench.put("b.md", f"{same}\n\n## B\n\nOther words.")
    bench.embedder.failures = {1: ModelError("The embedder failed.")}
    report = bench.run(flush=FlushAt(passages=1, most_passages=1))
    assert list(bench.statuses(report).items()) == [
        ("corpus/a.md", "embedding_failed"),
        ("corpus/b.md", "added"),
    ]


def test_passage_ids_do_not_depend_on_bursts(tmp_path: Path) -> None:
    contents = []
    for flush in (FlushAt(passages=1, most_passages=1), FlushAt()):
        folder = tmp_path / str(flush.passages)
        folder.mkdir()
        bench = Bench(folder)
        for number in range(7):
            bench.put(f"{number}.md", f"# T{number}\n\n" + "Some words here. " * 90 * number + ".")
        bench.run(flush=flush)
        ids = [f"P{n}" for n in range(1, bench.archive.passage_count + 1)]
        contents.append(bench.archive.passages(ids))
    assert contents[0] == contents[1] and len(contents[0]) > 7


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


def test_vectors_are_those_of_the_indexed_texts(bench: Bench) -> None:
    bench.put("a.md", "# Title\n\nWords.")
    bench.run()
    assert bench.embedder.asked == ["Title\n# Title\n\nWords."]
    (best,) = bench.archive.vector_search(HashEmbedder().embed(bench.embedder.asked)[0], 1)
    assert best.passage_id == "P1" and np.isclose(best.score, 1.0)


# ---- what is told apart between two runs


def failing(bench: Bench, *names: str) -> None:
    for name in names:
        (bench.folder / name).write_bytes(b"%PDF-1.4\nnothing of the kind" + name.encode())


def test_every_kind_of_change_is_told_apart_and_counted(bench: Bench) -> None:
    for name in ("changed", "gone", "moved", "same", "touched"):
        bench.put(f"{name}.txt", f"Words of {name}.")
    failing(bench, "bad.pdf", "mended.pdf")
    bench.run(options=Options(retries=Retries("1")))
    os.utime(bench.put("changed.txt", "Other words."), ns=(1, 1))
    os.utime(bench.folder / "touched.txt", ns=(1, 1))
    (bench.folder / "gone.txt").unlink()
    (bench.folder / "moved.txt").rename(bench.folder / "new place.txt")
    bench.put("copy.txt", "Words of same.")
    bench.put("new.txt", "New words.")
    os.utime(bench.put("mended.pdf", "Words after all."), ns=(1, 1))
    report = bench.run(options=Options(retries=Retries("1")))
    assert bench.statuses(report) == {
        "corpus/bad.pdf": "damaged",
        "corpus/changed.txt": "updated",
        "corpus/copy.txt": "duplicate",
        "corpus/gone.txt": "gone",
        "corpus/mended.pdf": "not_a_document",
        "corpus/new place.txt": "moved",
        "corpus/new.txt": "added",
        "corpus/same.txt": "unchanged",
        "corpus/touched.txt": "unchanged",
    }
    assert [f.path for f in report.files if not f.tried] == ["corpus/bad.pdf"]
    assert (report.failed, report.gone, report.removed) == (2, 1, 0)
    assert sorted(bench.embedder.asked) == ["New words.", "Other words."]
    again = bench.run(options=Options(retries=Retries("1")))
    assert (again.unchanged, again.failed, again.gone) == (6, 2, 1) and not bench.parsed


def test_what_is_gone_is_kept_until_it_is_pruned(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.put(f"{name}.txt", "The same words.")
    bench.put("c.txt", "Other words.")
    failing(bench, "x.pdf")
    bench.run()
    for name in ("a.txt", "c.txt", "x.pdf"):
        (bench.folder / name).unlink()
    assert bench.run().gone == 3 and bench.archive.passage_count == 2
    report = bench.run(options=Options(prune=True))
    assert (report.removed, report.gone, report.unchanged) == (3, 0, 1)
    assert bench.ready == list(bench.rows) == ["corpus/b.txt"], "the copy takes the text over"
    assert bench.archive.page("corpus/b.txt", 1).text == "The same words."
    (bench.folder / "b.txt").unlink()
    assert bench.run(options=Options(prune=True)).removed == 1 and not bench.rows


def test_pruning_forgets_nothing_outside_the_folders_named_and_nothing_that_is_there(
    bench: Bench,
) -> None:
    for name in ("one/a.txt", "one/b.txt", "two/a.txt"):
        bench.put(name, f"Words of {name}.")
    bench.run()
    for name in ("one/a.txt", "two/a.txt"):
        (bench.folder / name).unlink()
    selection = PathFilter(exclude=["b.txt"])
    report = bench.run(bench.folder / "one", options=Options(selection, prune=True))
    assert bench.statuses(report) == {"corpus/one/a.txt": "removed"}
    assert list(bench.rows) == ["corpus/one/b.txt", "corpus/two/a.txt"]


def test_what_failed_is_tried_again_when_asked_or_when_its_reader_changed(bench: Bench) -> None:
    failing(bench, "x.pdf")
    for options, attempts in (
        (Options(retries=Retries("1")), 1),
        (Options(retries=Retries("1")), 1),
        (Options(retries=Retries("1", every=True)), 2),
        (Options(retries=Retries("2")), 3),
        (Options(retries=Retries("2")), 3),
        (Options(retries=Retries("2", reasons=frozenset({"damaged"}))), 4),
        (Options(retries=Retries("2", reasons=frozenset({"encrypted"}))), 4),
    ):
        report = bench.run(options=options)
        row = bench.rows["corpus/x.pdf"]
        assert (row.attempts, row.reader, report.failed) == (attempts, options.retries.reader, 1)
        assert bool(bench.parsed) == report.files[0].tried
    failing(bench, "x.pdf")
    with open(bench.folder / "x.pdf", "ab") as file:
        file.write(b"more")
    bench.run(options=Options(retries=Retries("2")))
    assert bench.rows["corpus/x.pdf"].attempts == 1, "other bytes have been tried once"


def recognising(recogniser: str, *lacking: str) -> Options:
    return Options(retries=Retries("1", recogniser, frozenset(lacking)))


def test_a_document_with_pages_without_text_is_read_again_once_by_each_recogniser(
    bench: Bench,
) -> None:
    for name in ("a", "copy", "whole"):
        bench.put(f"{name}.txt", f"Words of {'a' if name == 'copy' else name}.")
    failing(bench, "x.pdf")
    bench.run(options=Options(retries=Retries("1")))
    for recogniser, read in (("r 1", ["a.txt"]), ("r 1", []), ("", []), ("r 2", ["a.txt"])):
        report = bench.run(options=recognising(recogniser, "corpus/a.txt"))
        assert (bench.parsed, bench.embedder.asked) == (read, [])
        assert bench.statuses(report) == {
            "corpus/a.txt": "updated" if read else "unchanged",
            "corpus/copy.txt": "unchanged",
            "corpus/whole.txt": "unchanged",
            "corpus/x.pdf": "damaged",
        }
        assert bench.ready == ["corpus/a.txt", "corpus/whole.txt"]
    assert bench.rows["corpus/a.txt"].reader == "1; with r 2"
    assert bench.rows["corpus/a.txt"].attempts == 3


def test_where_reading_again_fails_what_was_read_before_is_kept(bench: Bench) -> None:
    bench.put("a.txt", "Words.")
    bench.run(options=Options(retries=Retries("1")))
    options = recognising("r 1", "corpus/a.txt")
    read = bench.parse
    bench.parse = lambda paths: (DocumentError("timed_out", "No.") for _ in paths)  # type: ignore
    (outcome,) = bench.run(options=options).files
    assert outcome.reason == "timed_out" and "is kept" in str(outcome.message)
    assert bench.archive.page("corpus/a.txt", 1).text == "Words."
    bench.parse = read  # type: ignore[method-assign]
    assert bench.run(options=options).unchanged == 1 and not bench.parsed


def test_what_has_no_text_layer_is_tried_once_by_each_recogniser(bench: Bench) -> None:
    bench.put("a.txt", "Words.")
    bench.parse = lambda paths: (DocumentError("no_text_layer", "No.") for _ in paths)  # type: ignore
    for recogniser, tried in (("", True), ("", False), ("r 1", True), ("r 1", False), ("", False)):
        assert bench.run(options=recognising(recogniser)).files[0].tried == tried
    assert bench.run(options=recognising("r 2")).files[0].tried


@pytest.mark.parametrize(("reason", "tries"), [("timed_out", 2), ("damaged", 1), ("unreadable", 5)])
def test_how_often_a_file_is_tried_depends_on_its_reason(
    bench: Bench, reason: FailureReason, tries: int
) -> None:
    bench.put("a.txt", "Words.")
    bench.parse = lambda paths: (DocumentError(reason, "No.") for _ in paths)  # type: ignore
    tried = sum(bench.run().files[0].tried for _ in range(5))
    assert tried == tries == bench.rows["corpus/a.txt"].attempts


def test_what_an_ingest_did_not_get_to_is_pending_and_goes_with_its_file(bench: Bench) -> None:
    for number in range(6):
        bench.put(f"{number}.txt", f"Words of {number}.")
    bench.embedder.failures = {1: ModelAuthError("The key is refused.")}
    with pytest.raises(ModelAuthError):
        bench.run()
    assert [row.state for row in bench.rows.values()] == ["pending"] * 6
    (bench.folder / "0.txt").unlink()
    report = bench.run(options=Options(PathFilter(exclude=["1.txt"])))
    assert (report.added, report.gone, report.failed) == (4, 0, 0)
    assert list(bench.rows) == bench.ready == [f"corpus/{number}.txt" for number in range(2, 6)]


def test_equal_chunks_of_a_changed_file_keep_their_vectors(bench: Bench) -> None:
    parts = [f"## Part {n}\n\nWords of {n}." for n in range(6)]
    bench.put("a.md", "\n\n".join(parts))
    bench.run()
    parts[3] = "## Part 3\n\nNew words."
    os.utime(bench.put("a.md", "\n\n".join(parts)), ns=(3, 3))
    assert bench.run().updated == 1
    assert bench.embedder.asked == ["Part 3\n## Part 3\n\nNew words."]
    assert bench.archive.passage_count == 6


def test_a_fifo_that_is_named_itself_is_unreadable_and_not_waited_for(bench: Bench) -> None:
    os.mkfifo(bench.folder / "pipe.txt")
    report = bench.run(bench.folder / "pipe.txt")
    assert bench.statuses(report) == {"corpus/pipe.txt": "unreadable"}


def test_nothing_is_written_where_nothing_was_found(bench: Bench) -> None:
    (bench.folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    for path, error in ((bench.folder / "typo", UserError), (bench.folder, NothingToDo)):
        with pytest.raises(error):
            bench.run(path)
    assert bench.bursts == 0


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


def test_an_error_while_writing_ends_the_ingest(bench: Bench) -> None:
    for number in range(50):
        bench.put(f"{number:02}.txt", f"Words of {number}.")
    real = bench.archive.store

    def store(document: Document, *rest: Any) -> Document:
        if document.name == "corpus/07.txt":
            raise ArchiveError("The disk is full.")
        return real(document, *rest)

    bench.archive.store = store  # type: ignore[method-assign]
    with pytest.raises(ArchiveError, match="disk is full"):
        bench.run(flush=FlushAt(passages=4, most_passages=4))
    assert bench.ready == [f"corpus/{number:02}.txt" for number in range(4)]


# -- attachments


def message(*attachments: tuple[str, str], text: str = "See what is attached.") -> str:
    parts = [(name, words.encode()) for name, words in attachments]
    return mail(text, parts).decode()


def test_attachments_are_documents_below_the_file_that_holds_them(bench: Bench) -> None:
    bench.put("a.eml", message(("b.txt", "Words of b."), ("c.txt", "Words of c.")))
    report = bench.run()
    assert report.added == 3 and report.passages == 3
    assert sorted(bench.rows) == ["corpus/a.eml", "corpus/a.eml/b.txt", "corpus/a.eml/c.txt"]
    assert bench.archive.page("corpus/a.eml/b.txt", 1).text == "Words of b."


def test_attachments_of_an_unchanged_file_cost_nothing(bench: Bench) -> None:
    bench.put("a.eml", message(("b.txt", "Words of b."), ("c.txt", " ")))
    first = bench.run()
    generation = bench.archive.generation
    second = bench.run()
    assert (second.unchanged, second.failed) == (2, 1) and first.failed == 1
    assert bench.statuses(second)["corpus/a.eml/c.txt"] == "empty"
    assert not bench.parsed and bench.archive.generation == generation


def test_attachments_are_replaced_and_removed_with_their_file(bench: Bench) -> None:
    bench.put("a.eml", message(("b.txt", "Words of b."), ("c.txt", "Words of c.")))
    bench.run()
    bench.put("a.eml", message(("c.txt", "Words of c."), ("d.txt", "Words of d."), text="Anew."))
    report = bench.run()
    assert bench.statuses(report) == {
        "corpus/a.eml": "updated",
        "corpus/a.eml/c.txt": "unchanged",
        "corpus/a.eml/d.txt": "added",
    }
    assert sorted(bench.rows) == ["corpus/a.eml", "corpus/a.eml/c.txt", "corpus/a.eml/d.txt"]
    bench.put("a.eml", " ")
    bench.run()
    assert [(row.name, row.state) for row in bench.archive.documents()] == [
        ("corpus/a.eml", "failed")
    ]


def test_attachments_move_with_their_file(bench: Bench) -> None:
    path = bench.put("a.eml", message(("b.txt", "Words of b."), ("c.txt", " ")))
    bench.run()
    path.rename(bench.folder / "z.eml")
    report = bench.run()
    assert bench.statuses(report) == {
        "corpus/z.eml": "moved",
        "corpus/z.eml/b.txt": "moved",
        "corpus/z.eml/c.txt": "empty",
    }
    assert "corpus/z.eml/b.txt" in bench.rows and "corpus/a.eml/b.txt" not in bench.rows
    assert not bench.parsed


def test_a_copy_takes_the_attachments_over(bench: Bench) -> None:
    text = message(("b.txt", "Words of b."))
    bench.put("a.eml", text)
    bench.put("z.eml", text)
    assert bench.run().duplicate == 1
    bench.put("a.eml", message(text="Another."))
    bench.run()
    assert sorted(bench.rows) == ["corpus/a.eml", "corpus/z.eml", "corpus/z.eml/b.txt"]
    assert all(row.state == "ready" for row in bench.rows.values())
    assert bench.run().unchanged == 3


def test_a_copy_takes_over_the_attachments_of_what_is_pruned(bench: Bench) -> None:
    text = message(("b.txt", "Words of b."), ("c.txt", " "))
    path = bench.put("a.eml", text)
    for name in ("y.eml", "z.eml"):
        bench.put(name, text)
    bench.run()
    path.unlink()
    assert bench.run(options=Options(prune=True)).removed == 3
    assert {name: row.state for name, row in bench.rows.items()} == {
        "corpus/y.eml": "ready",
        "corpus/y.eml/b.txt": "ready",
        "corpus/y.eml/c.txt": "failed",
        "corpus/z.eml": "duplicate",
    }
    assert bench.archive.page("corpus/y.eml/b.txt", 1).text == "Words of b."
    again = bench.run(options=Options(prune=True))
    assert (again.unchanged, again.failed, again.removed) == (3, 1, 0) and not bench.parsed


@pytest.mark.parametrize("attached", [(), (("b.txt", "Other."),)])
def test_a_mail_that_moves_onto_another_leaves_none_of_its_attachments(
    bench: Bench, attached: tuple[tuple[str, str], ...]
) -> None:
    bench.put("a.eml", message(("b.txt", "Words of b."), ("c.txt", "Words of c."), ("d.txt", " ")))
    moving = bench.put("z.eml", message(*attached, text="Another."))
    bench.run()
    moving.rename(bench.folder / "a.eml")
    bench.run(options=Options(prune=True))
    assert bench.archive.page("corpus/a.eml", 1).text.endswith("Another.")
    assert bench.ready == list(bench.rows)
    assert bench.ready == ["corpus/a.eml", *(f"corpus/a.eml/{name}" for name, _ in attached)]
    for name, words in attached:
        assert bench.archive.page(f"corpus/a.eml/{name}", 1).text == words
    assert bench.archive.passage_count == len(bench.ready)
    assert bench.run().unchanged == len(bench.ready)


def test_a_file_like_an_attachment_is_a_document_beside_it(bench: Bench) -> None:
    bench.put("a.eml", message(("b.txt", "Words of b.")))
    bench.put("b.txt", "Words of b.")
    report = bench.run()
    assert report.added == 3 and len(bench.embedder.asked) == 2
    assert bench.run().unchanged == 3


def test_attachments_that_failed_for_a_passing_reason_are_tried_again(bench: Bench) -> None:
    bench.put("a.eml", message(("b.txt", "Words of b.")))
    bench.embedder.failures = {1: ModelError("down")}
    bench.run()
    bench.embedder.failures = {}
    report = bench.run()
    assert report.failed == 0 and report.passages >= 1
    assert {row.state for row in bench.rows.values()} == {"ready"}


def test_a_kill_between_an_attachment_and_its_file_is_mended(bench: Bench) -> None:
    bench.put("a.eml", message(("b.txt", "Words of b.")))
    bench.run()
    undisturbed = [hit.document for hit in bench.archive.passages(["P1", "P2", "P3"])]
    bench.archive.remove(["corpus/a.eml"])
    bench.run()
    assert bench.archive.page("corpus/a.eml/b.txt", 1).text == "Words of b."
    assert [hit.document for hit in bench.archive.passages(["P1"])] == undisturbed[:1]


def test_warnings_are_told_beside_success(bench: Bench) -> None:
    bench.put("a.txt", "<!doctype html><p>Words.")
    (outcome,) = bench.run().files
    assert outcome.status == "added" and "HTML" in outcome.warnings[0]

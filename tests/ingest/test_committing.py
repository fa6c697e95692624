from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from docpager.documents.loaders import ParsedFile
from docpager.errors import (
    ArchiveError,
    DocumentError,
    ModelAuthError,
    ModelError,
    NothingToDo,
    UserError,
)
from docpager.ingest.committing import FlushAt
from docpager.protocols import Vectors
from docpager.testing import HashEmbedder
from docpager.types import Document
from tests.ingest.benches import TASK, Bench


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


def test_vectors_are_those_of_the_indexed_texts(bench: Bench) -> None:
    bench.put("a.md", "# Title\n\nWords.")
    bench.run()
    assert bench.embedder.asked == ["Title\n# Title\n\nWords."]
    (best,) = bench.archive.vector_search(HashEmbedder().embed(bench.embedder.asked)[0], 1)
    assert best.passage_id == "P1" and np.isclose(best.score, 1.0)


def test_equal_chunks_of_a_changed_file_keep_their_vectors(bench: Bench) -> None:
    parts = [f"## Part {n}\n\nWords of {n}." for n in range(6)]
    bench.put("a.md", "\n\n".join(parts))
    bench.run()
    parts[3] = "## Part 3\n\nNew words."
    os.utime(bench.put("a.md", "\n\n".join(parts)), ns=(3, 3))
    assert bench.run().updated == 1
    assert bench.embedder.asked == ["Part 3\n## Part 3\n\nNew words."]
    assert bench.archive.passage_count == 6


def test_nothing_is_written_where_nothing_was_found(bench: Bench) -> None:
    (bench.folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    for path, error in ((bench.folder / "typo", UserError), (bench.folder, NothingToDo)):
        with pytest.raises(error):
            bench.run(path)
    assert bench.bursts == 0

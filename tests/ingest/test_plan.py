from __future__ import annotations

import os

import pytest

from docpager.errors import DocumentError, FailureReason, ModelAuthError
from docpager.ingest.ignore import PathFilter
from docpager.ingest.plan import Retries
from docpager.ingest.run import Options
from tests.ingest.benches import Bench


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

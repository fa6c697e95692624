from __future__ import annotations

import pytest

from docpager.errors import ModelError
from docpager.ingest.run import Options
from tests.documents.making import mail
from tests.ingest.benches import Bench


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

"""`Archive`: one opened store for many calls, released where it must be, typed results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import docpager
from docpager.testing import LoopbackReply, LoopbackRequest, LoopbackServer, call, wire_reply

TEXTS = {"mill.txt": "The mill at Teme was built in 1887.", "ferry.txt": "The ferry sank in 1902."}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def path(tmp_path: Path, corpus: Path) -> Path:
    made = tmp_path / "a.duckdb"
    docpager.Archive(made).ingest([corpus])
    return made


def test_it_finds_and_reads_what_it_ingested(path: Path) -> None:
    with docpager.Archive(path) as archive:
        page = archive.search("when was the mill built", page_size=1)
        assert len(page) == 1 and [hit.rank for hit in page] == [0]
        text = archive.read("mill.txt")
        assert [stored.text for stored in text] == [TEXTS["mill.txt"]] and len(text) == 1
        assert text.document in archive.documents()
        assert archive.status().passages == 2
        assert archive.traces() == ()


def test_passages_and_vectors_are_in_the_same_order(path: Path) -> None:
    with docpager.Archive(path) as archive:
        passages = list(archive.passages())
        ids, vectors = archive.vectors()
    assert [passage.passage_id for passage in passages] == list(ids) == ["P1", "P2"]
    assert {passage.text for passage in passages} == set(TEXTS.values())
    assert vectors.shape[0] == 2 and vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_an_empty_archive_has_no_passages_and_no_vectors(path: Path) -> None:
    with docpager.Archive(path) as archive:
        archive.remove([document.name for document in archive.documents()])
        assert list(archive.passages()) == []
        ids, vectors = archive.vectors()
        assert ids == () and len(vectors) == 0
        with pytest.raises(docpager.NothingToDo):
            archive.search("mill")


def test_its_own_ingest_and_removal_are_seen_by_the_next_call(path: Path, corpus: Path) -> None:
    with docpager.Archive(path) as archive:
        assert len(archive.documents()) == 2
        (corpus / "weir.txt").write_text("The weir at Onny fell in 1911.", encoding="utf-8")
        assert archive.ingest([corpus]).added == 1
        assert len(archive.documents()) == 3
        gone = archive.remove(["weir.txt", "ferry.txt"])
        assert gone.documents == ("corpus/weir.txt", "corpus/ferry.txt") and gone.passages == 2
        assert [hit.passage.document for hit in archive.search("1911 1902")] == ["corpus/mill.txt"]


def test_a_closed_archive_lets_another_process_write_and_can_be_used_again(
    path: Path, corpus: Path
) -> None:
    archive = docpager.Archive(path)
    assert len(archive.documents()) == 2
    archive.close()
    (corpus / "weir.txt").write_text("The weir at Onny fell in 1911.", encoding="utf-8")
    arguments = ["-m", "docpager", "ingest", str(corpus), "-a", str(path), "-q"]
    subprocess.run([sys.executable, *arguments], check=True)
    assert len(archive.documents()) == 3
    archive.close()
    archive.close()


def test_many_searches_read_the_store_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from docpager import wiring

    opened = []
    really = wiring.open_store
    monkeypatch.setattr(wiring, "open_store", lambda config: opened.append(1) or really(config))
    with docpager.Archive(path) as archive:
        first = archive.search("mill")
        assert all(archive.search("mill") == first for _ in range(5))
    assert len(opened) == 1


def cited(request: LoopbackRequest) -> LoopbackReply:
    quote = {"passage_id": "P2", "quote": TEXTS["mill.txt"]}
    message = call("send_message", message="1887", citations=[quote], not_found=False)
    return wire_reply(message)


def test_questions_share_one_model_and_leave_traces(path: Path) -> None:
    with (
        LoopbackServer(cited) as server,
        docpager.Archive(
            path, model="m", base_url=server.base_url, tool_mode="tools", context_window=8192
        ) as archive,
    ):
        introductions: list[str] = []
        answers = [
            archive.ask(f"When was the mill built, asked {n}?", say=introductions.append)
            for n in range(2)
        ]
        assert [answer.status for answer in answers] == ["answered", "answered"]
        assert len(set(introductions)) == 1 and "m at " in introductions[0]
        runs = archive.traces()
        assert {run.run_id for run in runs} == {answer.run_id for answer in answers}
        assert archive.trace(runs[0].run_id[:8]).events[-1]["event"] == "answer"
        with pytest.raises(docpager.UserError):
            archive.trace("no such run")


def test_settings_and_config_name_the_same_archive(path: Path) -> None:
    config = docpager.load({"archive": str(path)})
    for archive in (
        docpager.Archive(config=config),
        docpager.Archive(archive=str(path)),
        docpager.Archive(path, config=docpager.load({})),
    ):
        with archive:
            assert archive.status().passages == 2


def test_the_functions_are_ways_into_it(path: Path) -> None:
    with docpager.Archive(path) as archive:
        assert archive.search("mill") == docpager.search("mill", archive=str(path))

"""`Archive`: one opened store for many calls, released where it must be, typed results."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import docpager
from docpager.agent.functions import own_functions
from docpager.errors import FunctionError
from docpager.messages import AssistantMessage, ChatRequest
from docpager.protocols import Vectors
from docpager.testing import (
    HashEmbedder,
    LoopbackReply,
    LoopbackRequest,
    LoopbackServer,
    ScriptedChat,
    call,
    wire_reply,
)
from docpager.types import JSONValue

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
    from docpager.wiring import resources

    opened = []
    really = resources.open_store
    monkeypatch.setattr(resources, "open_store", lambda config: opened.append(1) or really(config))
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


def pressure(pump: str, bar: float = 1.0) -> str:
    """The pressure of a pump as measured now.

    Args:
        pump: its name
        bar: the least that counts
    """
    if pump != "P7":
        raise FunctionError(f"no pump {pump}. Name P7.")
    return f"[P1] {pump}: {bar + 3} bar"


def scripted(path: Path, server: LoopbackServer, mode: str = "tools") -> docpager.Archive:
    return docpager.Archive(
        path, model="m", base_url=server.base_url, tool_mode=mode, context_window=8192
    )


def test_a_function_of_ones_own_is_offered_called_and_its_faults_go_back(path: Path) -> None:
    replies = [
        wire_reply(call("pressure", pump="P8")),
        wire_reply(call("pressure", pump="P7", bar="1.5")),
        cited,
    ]
    asked: list[LoopbackRequest] = []

    def answer(request: LoopbackRequest) -> LoopbackReply:
        asked.append(request)
        reply = replies[len(asked) - 1]
        return reply if isinstance(reply, LoopbackReply) else reply(request)

    with LoopbackServer(answer) as server, scripted(path, server) as archive:
        with_it = archive.ask("When was the mill built?", functions=[pressure])
        asked.clear()
        replies[:] = [cited]
        without = archive.ask("When was the mill built?")
        events = archive.trace(with_it.run_id).events
    assert with_it.status == without.status == "answered"
    assert with_it.run_id != without.run_id
    results = [event["text"] for event in events if event.get("name") == "pressure"]
    # No line of a result can pass for the header of a passage.
    assert results == ["Failed: no pump P8. Name P7.", " [P1] P7: 4.5 bar"]
    [last] = asked
    assert "pressure" not in str(last.body["tools"])


def broken(pump: str) -> str:
    """The pressure of a pump as measured now.

    Args:
        pump: its name
    """
    raise LookupError(f"no {pump}: " + "long " * 200)


def test_what_a_function_of_ones_own_raises_is_traced_whole(path: Path) -> None:
    chat = ScriptedChat([call("broken", pump="P8"), call("broken"), answering])
    with docpager.Archive(path, chat=chat) as archive:
        answer = archive.ask("When was the mill built?", functions=[broken])
        events = archive.trace(answer.run_id).events
    assert answer.status == "answered"
    told = [event["text"] for event in events if event.get("name") == "broken" and "text" in event]
    assert str(told[0]).startswith("Failed: it ended in LookupError: no P8: long")
    assert len(str(told[0])) < 400 and "pump" in str(told[1])
    [fault] = [event for event in events if event["event"] == "function_error"]
    assert (fault["name"], fault["type"]) == ("broken", "LookupError")
    assert fault["error"] == "no P8: " + "long " * 200
    assert 'raise LookupError(f"no {pump}' in str(fault["traceback"])


def test_a_function_of_ones_own_is_described_by_its_signature() -> None:
    [function] = own_functions([pressure])
    assert function.spec.description == "The pressure of a pump as measured now."
    assert function.spec.parameters == {
        "type": "object",
        "properties": {
            "pump": {"type": "string"},
            "bar": {"type": "number"},
            "request_heartbeat": {"type": "boolean"},
        },
        "required": ["pump"],
    }


def undescribed(pump: str) -> str:
    """The pressure of a pump."""
    return pump


def untyped(pump) -> str:  # type: ignore[no-untyped-def]
    """The pressure of a pump.

    Args:
        pump: its name
    """
    return str(pump)


def read_document(document: str) -> str:
    """A name that docpager has.

    Args:
        document: its name
    """
    return document


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ([undescribed], "not described"),
        ([untyped], "without a schema"),
        ([read_document], "already"),
        ([pressure, pressure], "already"),
        ([lambda: ""], "docstring"),
    ],
)
def test_a_function_that_cannot_be_offered_is_refused_before_a_model_is_asked(
    path: Path, functions: list[Callable[..., str]], said: str
) -> None:
    with LoopbackServer([]) as server, scripted(path, server) as archive:
        with pytest.raises(docpager.UserError, match=said):
            archive.ask("When?", functions=functions)
        assert not server.requests and not archive.traces()


def test_guided_mode_refuses_functions_that_it_would_never_call(path: Path) -> None:
    with (
        LoopbackServer([]) as server,
        scripted(path, server, "guided") as archive,
        pytest.raises(docpager.UserError, match="guided"),
    ):
        archive.ask("When?", functions=[pressure])


def test_a_model_of_ones_own_answers(path: Path, tmp_path: Path) -> None:
    quote: JSONValue = {"passage_id": "P2", "quote": TEXTS["mill.txt"]}
    sent = call("send_message", message="1887", citations=[quote], not_found=False)
    chat = ScriptedChat([sent])
    with docpager.Archive(path, chat=chat, cache=tmp_path / "calls.jsonl") as archive:
        answer = archive.ask("When was the mill built?")
        # The cache holds the call: the chat has no reply left.
        assert archive.ask("When was the mill built?").answer == "1887"
    assert (answer.status, answer.model, answer.tool_mode) == ("answered", "ScriptedChat", "tools")
    assert len(chat.requests) == 1
    with (
        docpager.Archive(path, chat=chat, model="mine", max_cost=1.0) as archive,
        pytest.raises(docpager.UserError, match="mine"),
    ):
        archive.ask("When was the mill built?")


class Counting(HashEmbedder):
    """Counts how many texts it embeds, and is slow enough for threads to meet."""

    def __init__(self) -> None:
        super().__init__(16)
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return super().embed(texts)


def answering(request: ChatRequest) -> AssistantMessage:
    """Cites what every question finds first."""
    assert any(TEXTS["mill.txt"] in message.text for message in request.messages)
    quote: JSONValue = {"passage_id": "P2", "quote": TEXTS["mill.txt"]}
    return call("send_message", message="1887", citations=[quote], not_found=False)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "q.jsonl"
    lines = [
        json.dumps({"id": f"q{n}", "question": f"When was mill {n} built?", "expected": "1887"})
        for n in range(6)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("jobs", [None, 3])
def test_a_batch_asks_models_of_ones_own(
    tmp_path: Path, corpus: Path, questions: Path, jobs: int | None
) -> None:
    chat, embedder, said = ScriptedChat(answering), Counting(), list[str]()
    results, path = tmp_path / "r.jsonl", tmp_path / "own.duckdb"
    with docpager.Archive(path, chat=chat, text_embedder=embedder, model="mine-1") as archive:
        archive.ingest([corpus])
        assert archive.estimate(questions).questions == 6
        summary = archive.batch(questions, results, jobs=jobs, say=said.append)
        assert (summary.asked, summary.groups["all"].passed) == (6, 6)
        assert sum("When was mill" in text for text in embedder.embedded) == 6
        again = archive.batch(questions, results, jobs=jobs)
        assert (again.asked, again.groups["all"].passed) == (0, 6)
    [notice] = [text for text in said if "code" in text]
    assert "mine-1" in notice and "redo" in notice
    with (
        docpager.Archive(path, chat=chat, text_embedder=embedder, model="mine-2") as archive,
        pytest.raises(docpager.UserError, match="another model"),
    ):
        archive.batch(questions, results)


def test_models_of_ones_own_are_asked_by_one_thread_unless_jobs_says_otherwise(
    path: Path, tmp_path: Path, questions: Path
) -> None:
    inside, most = [0], [0]

    def slow(request: ChatRequest) -> AssistantMessage:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.05)
        inside[0] -= 1
        return answering(request)

    with docpager.Archive(path, chat=ScriptedChat(slow)) as archive:
        archive.batch(questions, tmp_path / "r1.jsonl")
        assert most == [1]
        archive.batch(questions, tmp_path / "r2.jsonl", jobs=4)
        assert most[0] > 1


def test_one_embedder_is_made_for_searches_questions_and_batches(
    path: Path, tmp_path: Path, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from docpager.models import embedders

    made: list[int] = []

    class Made(embedders.StaticEmbedder):
        def __init__(self) -> None:
            made.append(1)

    monkeypatch.setattr(embedders, "StaticEmbedder", Made)
    cache = tmp_path / "calls.jsonl"
    with docpager.Archive(path, chat=ScriptedChat(answering), cache=cache) as archive:
        archive.search("mill")
        archive.ask("When was the mill built?")
        seen: list[int] = []
        archive.batch(
            questions,
            tmp_path / "r.jsonl",
            on_result=lambda *_: seen.append(len(archive.search("ferry"))),
        )
        archive.ask("When was the mill built?")
    assert made == [1] and seen == [2] * 6


def test_a_question_keeps_the_archive_open(path: Path, corpus: Path) -> None:
    refused: list[str] = []

    def meddling(request: ChatRequest) -> AssistantMessage:
        for change in (archive.close, lambda: archive.ingest([corpus])):
            with pytest.raises(docpager.ArchiveLocked, match="Wait until") as caught:
                change()
            refused.append(str(caught.value))
        return answering(request)

    archive = docpager.Archive(path, chat=ScriptedChat(meddling))
    with archive:
        assert archive.ask("When was the mill built?").status == "answered"
    assert len(refused) == 2


def test_an_embedder_of_ones_own_makes_the_vectors_and_is_needed_again(
    tmp_path: Path, corpus: Path
) -> None:
    path = tmp_path / "hashed.duckdb"
    with docpager.Archive(path, text_embedder=HashEmbedder(16)) as archive:
        archive.ingest([corpus])
        assert archive.vectors()[1].shape == (2, 16)
        [hit, *_] = archive.search("when was the mill built", mode="vector")
        assert hit.passage.text == TEXTS["mill.txt"]
        copy = pickle.loads(pickle.dumps(archive))
    with copy:
        assert len(copy.search("mill")) == 2
    with docpager.Archive(path) as archive, pytest.raises(docpager.UserError, match="hash"):
        archive.search("mill")
    with docpager.Archive(path, text_embedder=HashEmbedder(8)) as archive:
        with pytest.raises(docpager.UserError):
            archive.search("mill")
        with pytest.raises(docpager.UserError):
            archive.ingest([corpus])


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

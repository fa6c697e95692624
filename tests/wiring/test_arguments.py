"""Wrong types and values from a Python caller: each is a UserError that says what is wanted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import docpager
from docpager.messages import AssistantMessage, ChatReply
from docpager.testing import HashEmbedder, ScriptedChat, call
from docpager.types import EmbedderIdentity

Call = Callable[[docpager.Archive], object]
FILES = ("q.jsonl", "r.jsonl")


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "corpus").mkdir()
    (folder / "corpus" / "mill.txt").write_text("The mill was built in 1887.", encoding="utf-8")
    (folder / "q.jsonl").write_text(json.dumps({"question": "When?"}), encoding="utf-8")
    docpager.Archive(folder / "a.duckdb").ingest([folder / "corpus"])
    return folder


@pytest.fixture
def archive(ingested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> docpager.Archive:
    folder = tmp_path / "copy"
    shutil.copytree(ingested, folder)
    monkeypatch.chdir(folder)
    chat = ScriptedChat(lambda _: call("send_message", message="", not_found=True))
    return docpager.Archive("a.duckdb", chat=chat)


WRONG: list[tuple[Any, str]] = [
    (lambda a: a.search(None), "query must be a text, not None"),
    (lambda a: a.search(b"mill"), "query must be a text"),
    (lambda a: a.search("mill", mode="hybird"), "mode must be one of hybrid, lexical, vector"),
    (lambda a: a.search("mill", page="0"), "page must be a whole number, not '0'"),
    (lambda a: a.search("mill", page=True), "page must be a whole number"),
    (lambda a: a.search("mill", page_size=2.5), "page_size must be a whole number"),
    (lambda a: a.search("mill", document=3), "document must be a text"),
    (lambda a: a.read(Path("mill.txt")), "document must be a text"),
    (lambda a: a.read("mill.txt", "1"), "page must be a whole number"),
    (lambda a: a.ingest(None), "paths must be a list of paths, not None"),
    (lambda a: a.ingest([3]), "each of paths must be a path, not 3"),
    (lambda a: a.ingest(["corpus"], on_progress=3), "on_progress must be a function"),
    (lambda a: a.remove(3), "names must be a list of texts"),
    (lambda a: a.remove([None]), "each of names must be a text"),
    (lambda a: a.ask(["When?"]), "question must be a text"),
    (lambda a: a.ask("When?", functions=3), "functions must be a list of functions"),
    (lambda a: a.ask("When?", functions=[3]), "each of functions must be a function"),
    (lambda a: a.ask("When?", say=None), "say must be a function"),
    (lambda a: a.ask("When?", watchers=[3]), "each of watchers must be"),
    (lambda a: a.trace(3), "run_id must be a text"),
    (lambda a: a.batch(None, "r.jsonl"), "questions must be the path of a file, not None"),
    (lambda a: a.batch("q.jsonl", "\0"), "results must be the path of a file"),
    (lambda a: a.batch(*FILES, jobs=0), "jobs must be a whole number from 1 to 256, not 0"),
    (lambda a: a.batch(*FILES, jobs=1.5), "jobs must be a whole number from 1 to 256"),
    (lambda a: a.batch(*FILES, grading="f1"), "grading must be a docpager.Grading, not 'f1'"),
    (lambda a: a.batch(*FILES, selection="tag"), "selection must be a docpager.Selection"),
    (lambda a: a.batch(*FILES, bounds=3), "bounds must be a docpager.BatchLimits"),
    (lambda a: a.batch(*FILES, on_result=3), "on_result must be a function"),
    (lambda a: a.batch(*FILES, interrupt=3), "interrupt must be a docpager.Interrupt"),
    (lambda a: a.batch(*FILES, report=3), "report must be the path of a file"),
    (lambda a: a.estimate(3), "questions must be the path of a file"),
    (lambda a: a.estimate("q.jsonl", selection=3), "selection must be a docpager.Selection"),
    (lambda _: docpager.Archive(3), "path must be the path of a file, not 3"),
    (lambda _: docpager.Archive(""), "--archive must be a path that is not empty"),
    (lambda _: docpager.Archive("\0"), "path must be the path of a file"),
    (lambda _: docpager.Archive(archive="a\0"), "without a null character"),
    (lambda _: docpager.Archive("a", config=3), "config must be a docpager.Config"),
    (lambda _: docpager.Archive("a", chat="gpt-4.1"), "no tool_mode. To name a model, use `model`"),
    (lambda _: docpager.Archive("a", text_embedder=3), "no identity. To name a model, use"),
    (lambda _: docpager.Archive("a", chat=ScriptedChat([], tool_mode="x")), "chat.tool_mode"),
    (lambda _: docpager.Selection(tags="tag"), "tags must be several texts, not 'tag'"),
    (lambda _: docpager.BatchLimits(max_tokens=-1), "max_tokens must be a number above 0"),
    (lambda _: docpager.BatchLimits(seconds=0), "seconds must be a number above 0"),
    (lambda _: docpager.BatchLimits(max_cost=float("nan")), "max_cost must be a number above 0"),
    (lambda _: docpager.Grading(metric="rouge"), "metric must be one of exact_match"),
    (lambda _: docpager.Grading(pass_at="x"), "pass_at must be a number from 0 to 1"),
    (lambda _: docpager.Grading(fail_under=2), "fail_under must be a number from 0 to 1"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_wrong_argument_is_refused_and_said(
    archive: docpager.Archive, wrong: Call, said: str
) -> None:
    with archive, pytest.raises(docpager.UserError) as caught:
        wrong(archive)
    assert said in str(caught.value)
    assert not Path("r.jsonl").exists() and archive.traces() == ()


def test_one_text_is_not_taken_apart_into_letters(archive: docpager.Archive) -> None:
    with archive:
        assert archive.ingest("corpus").failed == 0
        assert archive.ingest(Path("corpus")).unchanged == 1
        assert archive.search("mill", page=np.int64(0)).page == 0  # type: ignore[arg-type]
        assert archive.remove("corpus/mill.txt").documents == ("corpus/mill.txt",)


class Chat:
    """A chat model of which only the reply is of interest."""

    tool_mode = "tools"

    def __init__(self, reply: Callable[[], Any], tokens: Any = 10) -> None:
        self._reply, self._tokens = reply, tokens

    def prompt_tokens(self, _: object) -> Any:
        return self._tokens

    def complete(self, _: object) -> Any:
        return self._reply()


@pytest.mark.parametrize(
    ("chat", "said"),
    [
        (Chat(lambda: 1 / 0), "Chat.complete raised ZeroDivisionError: division by zero"),
        (Chat(lambda: None), "Chat.complete must return a ChatReply"),
        (Chat(lambda: AssistantMessage("x")), "not AssistantMessage"),
        (Chat(lambda: ChatReply("x")), "Chat.complete must return"),  # type: ignore[arg-type]
    ],
)
def test_a_chat_of_ones_own_that_fails_is_a_model_error(
    archive: docpager.Archive, chat: Any, said: str
) -> None:
    with docpager.Archive("a.duckdb", chat=chat) as own:
        answer = own.ask("When?")
        summary = own.batch(*FILES)
    assert answer.status == "model_error" and said in str(answer.error)
    assert summary.statuses == {"model_error": 1}
    assert said in Path("r.jsonl").read_text(encoding="utf-8")


def test_an_assertion_in_a_chat_fails_the_test_that_asked(archive: docpager.Archive) -> None:
    chat = ScriptedChat([])
    with docpager.Archive("a.duckdb", chat=chat) as own, pytest.raises(AssertionError):
        own.ask("When?")


class Embedder(HashEmbedder):
    """An embedder that gives whatever it is told to."""

    def __init__(self, given: Callable[[Any], Any]) -> None:
        super().__init__(4)
        self._given = given

    @property
    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity("own", 4, normalised=True)

    def embed(self, texts: Any) -> Any:
        return self._given(super().embed(texts))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda _: 1 / 0, "Embedder.embed raised ZeroDivisionError"),
        (lambda _: None, "Embedder.embed must return an array of shape (1, 4)"),
        (lambda made: made[:, :3], "not (1, 3)"),
        (lambda made: np.concatenate([made, made]), "not (2, 4)"),
        (lambda made: made * 2, "rows of norm 1, not 2.0"),
        (lambda made: made * np.nan, "rows of norm 1, not nan"),
        (lambda made: made * 0, "rows of norm 1, not 0.0"),
    ],
)
def test_an_embedder_of_ones_own_that_fails_is_a_model_error(
    archive: docpager.Archive, given: Callable[[Any], Any], said: str
) -> None:
    own = docpager.Archive("own.duckdb", text_embedder=Embedder(given))
    with own, pytest.raises(docpager.ModelError) as caught:
        own.ingest(["corpus"])
    assert said in str(caught.value)


def test_rows_of_an_embedder_may_be_lists(archive: docpager.Archive) -> None:
    embedder = Embedder(lambda made: made.tolist())
    with docpager.Archive("own.duckdb", text_embedder=embedder) as own:
        assert own.ingest(["corpus"]).added == 1
        assert own.search("mill").total == 1

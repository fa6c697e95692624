"""The cache of model calls: what is kept, what makes a call another one, kills and many writers."""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.errors import ModelError, UserError
from docpager.function_results import Failure, PlainText
from docpager.messages import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    FunctionSpec,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from docpager.models.cache import (
    CachedChat,
    CachedEmbedder,
    CallCache,
    CallClock,
    NotRecorded,
    cached_mode,
    chat_key,
)
from docpager.testing import FrozenClock, HashEmbedder, ScriptedChat, call, say
from docpager.types import Usage

REQUEST = ChatRequest((SystemMessage("Do."), UserMessage("What?")), max_tokens=50)
CLOCK = FrozenClock()


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[CallCache]:
    with CallCache(tmp_path / "calls.jsonl", CLOCK) as found:
        yield found


def cached(inner: ScriptedChat, cache: CallCache, clock: CallClock | None = None) -> CachedChat:
    times = iter(range(1000))
    return CachedChat(
        inner,
        cache,
        model="m",
        seed=None,
        clock=clock or CallClock(cache.began),
        stopwatch=lambda: float(next(times)),
        on_replay=lambda request, usage: None,
    )


@pytest.mark.parametrize(
    "reply",
    [
        ChatReply(say("Graz \ud83d\ude00 灯塔"), Usage(7, 3, 2), "length", "cut off"),
        ChatReply(call("send_message", message="a\nb"), Usage(1, 0, 1), "calls"),
    ],
)
def test_a_reply_comes_back_whole_and_the_call_is_not_made_again(
    cache: CallCache, reply: ChatReply
) -> None:
    inner = ScriptedChat([reply])
    first = cached(inner, cache).complete(REQUEST)
    assert cached(inner, cache).complete(REQUEST) == first
    assert (first.usage, first.finish_reason, first.problem) == (
        reply.usage,
        reply.finish_reason,
        reply.problem,
    )
    assert len(inner.requests) == 1


def test_time_passes_as_it_did_when_the_call_was_made(cache: CallCache) -> None:
    made, replayed = CallClock(cache.began), CallClock(cache.began)
    cached(ScriptedChat([say("a")]), cache, made).complete(REQUEST)
    cached(ScriptedChat([]), cache, replayed).complete(REQUEST)
    assert made.monotonic() == replayed.monotonic() == 1.0
    assert made.now() == replayed.now() > cache.began


def test_a_replayed_call_is_told_so_that_estimates_are_learnt(cache: CallCache) -> None:
    told: list[Usage] = []
    for _ in range(2):
        chat = CachedChat(
            ScriptedChat([ChatReply(say("a"), Usage(9, 0, 1))]),
            cache,
            model="m",
            seed=None,
            clock=CallClock(cache.began),
            stopwatch=lambda: 0.0,
            on_replay=lambda request, usage: told.append(usage),
        )
        chat.complete(REQUEST)
    assert told == [Usage(9, 0, 1)]


def test_a_failure_is_not_kept(cache: CallCache) -> None:
    chat = cached(ScriptedChat([ModelError("down"), say("a")]), cache)
    with pytest.raises(ModelError):
        chat.complete(REQUEST)
    assert len(cache) == 0
    assert chat.complete(REQUEST).message.text == "a"


OTHERS = [
    replace(REQUEST, messages=(*REQUEST.messages, AssistantMessage("x"))),
    replace(REQUEST, messages=(SystemMessage("Do."), UserMessage("What"))),
    replace(REQUEST, functions=(FunctionSpec("f", "does", {"type": "object"}),)),
    replace(REQUEST, response_schema={"type": "object"}),
    replace(REQUEST, max_tokens=51),
    replace(REQUEST, stop=("\n",)),
]


def test_all_that_decides_a_reply_is_in_its_key() -> None:
    keys = {chat_key(request, "m", None) for request in (REQUEST, *OTHERS)}
    keys |= {chat_key(REQUEST, "n", None), chat_key(REQUEST, "m", 1)}
    assert len(keys) == len(OTHERS) + 3
    event = replace(REQUEST, messages=(SystemMessage("Do."), UserMessage("What?", "nudge")))
    assert chat_key(event, "m", None) == chat_key(REQUEST, "m", None)


@given(st.text(), st.text())
def test_keys_differ_where_texts_do_even_with_lone_surrogates(one: str, other: str) -> None:
    keys = {
        chat_key(replace(REQUEST, messages=(UserMessage(text),)), "m", None)
        for text in (one, other, one + "\ud800")
    }
    assert len(keys) == len({one, other, one + "\ud800"})


def test_only_replaying_names_the_call_that_is_missing(cache: CallCache, tmp_path: Path) -> None:
    cached(ScriptedChat([say("a")]), cache).complete(REQUEST)
    with CallCache(tmp_path / "calls.jsonl", CLOCK, replay=True) as replay:
        inner = ScriptedChat([])
        assert cached(inner, replay).complete(REQUEST).message.text == "a"
        with pytest.raises(NotRecorded, match=r"calls.jsonl holds no reply.*'What'"):
            cached(inner, replay).complete(OTHERS[1])
        with pytest.raises(NotRecorded, match="tool mode of m"):
            cached_mode(replay, "m", lambda: "json")


def test_a_missing_call_is_named_by_its_number_and_what_it_follows(
    cache: CallCache, tmp_path: Path
) -> None:
    """The working context ends every call, and names none."""
    context = UserMessage("Working context: empty.", "context")
    asked = (SystemMessage("Do."), UserMessage("Where is it?"))
    shown = (
        *asked,
        call("look_up", query="it"),
        ToolResult("c1", "look_up", PlainText("It is here.")),
    )
    first, second = (replace(REQUEST, messages=(*said, context)) for said in (asked, shown))
    cached(ScriptedChat([say("a")]), cache).complete(first)
    with CallCache(tmp_path / "calls.jsonl", CLOCK, replay=True) as replay:
        chat = cached(ScriptedChat([]), replay)
        chat.complete(first)
        with pytest.raises(
            NotRecorded, match=r"call 2 of 'Where is it\?', after look_up gave 'It is"
        ):
            chat.complete(second)
        with pytest.raises(NotRecorded, match=r"no reply to call 1 of 'Where is it\?'\. Doc"):
            cached(ScriptedChat([]), replay).complete(replace(first, max_tokens=7))


def test_a_mode_is_settled_once(cache: CallCache) -> None:
    assert cached_mode(cache, "m", lambda: "json") == "json"
    assert cached_mode(cache, "m", lambda: "text") == "json"


def test_vectors_are_kept_to_the_bit(cache: CallCache, tmp_path: Path) -> None:
    inner = HashEmbedder()
    made = CachedEmbedder(inner, cache).embed(["a b", "c", "a b"])
    assert (made == inner.embed(["a b", "c", "a b"])).all()
    with CallCache(tmp_path / "calls.jsonl", CLOCK, replay=True) as replay:
        assert (CachedEmbedder(inner, replay).embed(["c", "a b"]) == made[[1, 0]]).all()
        with pytest.raises(NotRecorded, match="'d'"):
            CachedEmbedder(inner, replay).embed(["c", "d"])


KEY = f"{7:064x}"


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_torn_by_a_kill_is_passed_over(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "calls.jsonl"
    with CallCache(path, CLOCK) as cache:
        for n in range(3):
            cache.put(f"{n:064x}", {"n": n})
    path.write_bytes(path.read_bytes()[:-cut])
    with CallCache(path, CLOCK) as cache:
        assert cache.get(f"{2:064x}") is None or cut == 1
        cache.put(f"{2:064x}", {"n": 2})
        cache.put(f"{3:064x}", {"n": 3})
    with CallCache(path, CLOCK, replay=True) as cache:
        found = [cache.get(f"{n:064x}") for n in range(4)]
    assert [record and record["n"] for record in found] == [0, 1, 2, 3]


def test_a_line_torn_behind_a_bracket_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with CallCache(path, CLOCK) as cache:
        cache.put(KEY, {"said": "{torn}", "more": 1})
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"{torn}") + len(b"{torn}")])
    for _ in range(2):  # first it is made anew, then it is found
        with CallCache(path, CLOCK) as cache:
            again = cache.get(KEY)
            cache.put(KEY, {"said": "whole"})
            assert cache.get(KEY) == {"key": KEY, "said": "whole"}
    assert again == {"key": KEY, "said": "whole"}


def test_a_checkout_that_changed_line_ends_is_read(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with CallCache(path, CLOCK) as cache:
        cache.put(KEY, {"n": 1})
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with CallCache(path, CLOCK, replay=True) as cache:
        assert cache.get(KEY) == {"key": KEY, "n": 1}


@pytest.mark.parametrize("content", [b"hello\n", b"{}\n", b"[1]\n", b'{"docpager_cache": 9}\n'])
def test_another_file_is_never_appended_to(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match="--cache"):
        CallCache(path, CLOCK)
    assert path.read_bytes() == content


def test_a_missing_recording_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be opened"):
        CallCache(tmp_path / "none.jsonl", CLOCK, replay=True)
    with pytest.raises(UserError, match="cannot be opened"):
        CallCache(tmp_path, CLOCK)


def test_threads_share_it(cache: CallCache, tmp_path: Path) -> None:
    def write(start: int) -> None:
        for n in range(start, start + 50):
            cache.put(f"{n:064x}", {"n": n})
            assert cache.get(f"{n:064x}") == {"key": f"{n:064x}", "n": n}

    threads = [threading.Thread(target=write, args=(start,)) for start in range(0, 100, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (tmp_path / "calls.jsonl").read_text().splitlines()[1:]
    assert sorted(json.loads(line)["n"] for line in lines) == list(range(125))


def _write_many(path: Path, start: int) -> None:
    with CallCache(path, CLOCK) as cache:
        for n in range(start, start + 200):
            cache.put(f"{n:064x}", {"n": n, "filling": "x" * 500})


def test_processes_share_it_and_see_each_others_calls(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with CallCache(path, CLOCK) as mine:
        context = multiprocessing.get_context("spawn")
        writers = [context.Process(target=_write_many, args=(path, at)) for at in (0, 100, 200)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
            assert writer.exitcode == 0
        assert all((mine.get(f"{n:064x}") or {})["n"] == n for n in range(400))
        assert len(mine) == 400
    assert len(path.read_text().splitlines()) == 401


def test_keys_stay_what_they_are_in_the_caches_that_people_keep() -> None:
    call = ToolCall("c1", "archival_memory_search", "{}")
    request = ChatRequest(
        (
            SystemMessage("s"),
            UserMessage("q"),
            AssistantMessage("", (call,)),
            ToolResult("c1", "archival_memory_search", PlainText("Showing 1")),
            ToolResult("c2", "x", Failure("no")),
        ),
        (FunctionSpec("f", "d", {"type": "object"}),),
    )
    key = "4589db458718a97e3ecd2138c3a77cc2a9a1da17207bc7fdac51ce6c5d7b1019"
    assert chat_key(request, "m", 3) == key

"""The doubles keep the laws of what they stand for."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import urllib.error
import urllib.request
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import docpager.testing
from docpager.errors import ModelError
from docpager.messages import ChatReply, ChatRequest, FunctionSpec, UserMessage
from docpager.models.chat import OpenAIChat
from docpager.models.endpoint import Endpoint
from docpager.models.tool_modes import JsonChat, TextChat
from docpager.protocols import Chat
from docpager.testing import (
    CharacterCounter,
    FrozenClock,
    HashEmbedder,
    LoopbackReply,
    LoopbackRequest,
    LoopbackServer,
    ScriptedChat,
    call,
    say,
    several,
    wire_reply,
)
from docpager.types import Usage

ASKED = ChatRequest((UserMessage("Who built the mill?"),))


def test_every_public_name_is_listed_and_documented() -> None:
    assert docpager.testing.__all__ == sorted(docpager.testing.__all__)
    for name in docpager.testing.__all__:
        assert getattr(docpager.testing, name).__doc__


# ---- replies ---------------------------------------------------------------------------------


def test_call_writes_json_arguments_and_keeps_the_thought() -> None:
    reply = call("core_memory_append", thought="note it", section="notes", content="数据")
    (item,) = reply.calls
    assert reply.text == "note it"
    assert item.name == "core_memory_append"
    assert item.arguments == '{"section": "notes", "content": "数据"}'


def test_several_calls_have_ids_of_their_own() -> None:
    reply = several(call("a", thought="one"), call("b", thought="two"), call("a"))
    assert [item.name for item in reply.calls] == ["a", "b", "a"]
    assert len({item.call_id for item in reply.calls}) == 3
    assert reply.text == "one\ntwo"


# ---- scripted chat ---------------------------------------------------------------------------


def test_replies_come_in_order_and_requests_are_recorded() -> None:
    chat = ScriptedChat([say("one"), lambda request: say(request.messages[0].text), say("three")])
    assert [chat.complete(ASKED).message.text for _ in range(3)] == [
        "one",
        "Who built the mill?",
        "three",
    ]
    assert chat.requests == [ASKED] * 3


def test_one_callable_may_answer_everything() -> None:
    chat = ScriptedChat(lambda request: call("search", query=request.messages[0].text))
    for number in range(3):
        reply = chat.complete(ASKED)
        assert reply.finish_reason == "calls"
        assert reply.message.calls[0].call_id == f"call_{number}_0"


def test_an_exception_is_raised_and_its_request_recorded() -> None:
    chat = ScriptedChat([ModelError("down"), lambda request: ModelError("down again")])
    for words in ("down", "down again"):
        with pytest.raises(ModelError, match=words):
            chat.complete(ASKED)
    assert len(chat.requests) == 2


def test_a_whole_reply_is_given_as_it_is() -> None:
    reply = ChatReply(say("cut"), Usage(7, 0, 3), "length", problem="cut off")
    assert ScriptedChat([reply]).complete(ASKED) == reply


def test_running_out_of_replies_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="no reply left for request 1"):
        ScriptedChat([]).complete(ASKED)


def test_the_mode_and_the_counter_are_as_given() -> None:
    chat = ScriptedChat([], tool_mode="json", counter=CharacterCounter(1))
    assert chat.tool_mode == "json"
    assert chat.prompt_tokens(ASKED) == len("Who built the mill?") + 4


def test_functions_and_schemas_count() -> None:
    chat = ScriptedChat([])
    spec = FunctionSpec("search", "Search the documents.", {"type": "object"})
    counts = [
        chat.prompt_tokens(request)
        for request in (
            ASKED,
            ChatRequest(ASKED.messages, (spec,)),
            ChatRequest(ASKED.messages, (spec, spec), {"type": "object"}),
        )
    ]
    assert counts == sorted(set(counts))


# ---- small parts -----------------------------------------------------------------------------


@given(st.text(max_size=60), st.integers(1, 5), st.integers(-1, 20))
def test_a_cut_is_the_longest_prefix_that_fits(text: str, size: int, limit: int) -> None:
    counter = CharacterCounter(size)
    cut = counter.cut(text, limit)
    assert text.startswith(cut)
    assert counter.count(cut) <= max(limit, 0)
    assert cut == text or counter.count(text[: len(cut) + 1]) > limit


def test_a_frozen_clock_moves_when_it_is_told_to() -> None:
    clock = FrozenClock()
    start = clock.now()
    assert (clock.now(), clock.monotonic()) == (start, 0.0)
    clock.sleep(2.5)
    clock.advance(1.0)
    assert clock.now() - start == timedelta(seconds=3.5)
    assert clock.monotonic() == 3.5
    assert clock.slept == [2.5]
    assert start.utcoffset() == timedelta(0)


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), max_size=4), st.integers(2, 40))
def test_hash_vectors_are_units_and_repeatable(texts: list[str], dimension: int) -> None:
    vectors = HashEmbedder(dimension).embed(texts)
    assert vectors.shape == (len(texts), dimension)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert vectors.tobytes() == HashEmbedder(dimension).embed(texts).tobytes()


def test_texts_that_share_words_are_nearer() -> None:
    mill, wheel, cat = HashEmbedder().embed(
        ["the mill wheel of 1902", "a mill wheel", "my cat sleeps"]
    )
    assert mill @ wheel > mill @ cat
    identity = HashEmbedder(8).identity
    assert (identity.name, identity.dimension, len(identity.probe)) == ("hash", 8, 8)


# ---- the loopback server ---------------------------------------------------------------------


def fetch(url: str, body: object = None) -> tuple[int, Any]:
    content = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, content), timeout=5) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_it_knows_the_three_paths_and_no_other() -> None:
    with LoopbackServer([wire_reply(say("hi"))], models=("one", "two")) as server:
        status, models = fetch(f"{server.base_url}/models")
        assert (status, [item["id"] for item in models["data"]]) == (200, ["one", "two"])
        _, chat = fetch(f"{server.base_url}/chat/completions", {"messages": []})
        assert chat["choices"][0]["message"]["content"] == "hi"
        _, embedded = fetch(f"{server.base_url}/embeddings", {"input": ["a", "b"]})
        assert [len(item["embedding"]) for item in embedded["data"]] == [32, 32]
        assert fetch(f"{server.base_url}/nothing")[0] == 404
        assert [request.path for request in server.requests] == [
            "/v1/models",
            "/v1/chat/completions",
            "/v1/embeddings",
            "/v1/nothing",
        ]
        assert server.bodies() == [{"messages": []}]


def test_a_script_that_ran_out_is_an_error_nobody_retries() -> None:
    with LoopbackServer([]) as server:
        status, body = fetch(f"{server.base_url}/chat/completions", {})
        assert (status, body["error"]["message"]) == (400, "The script has no reply left.")


def test_status_headers_and_raw_text_are_sent_as_given() -> None:
    reply = LoopbackReply("busy, no JSON", 503, {"retry-after": "3"})
    with LoopbackServer([reply]) as server:
        url = f"{server.base_url}/chat/completions"
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(url, b"{}", timeout=5)
        with caught.value as error:
            assert (error.code, error.headers["retry-after"]) == (503, "3")
            assert error.read() == b"busy, no JSON"


def test_a_cut_connection_ends_in_the_middle_of_the_reply() -> None:
    with LoopbackServer([LoopbackReply("x" * 100, cut=True)]) as server:
        url = f"{server.base_url}/chat/completions"
        with (
            pytest.raises(http.client.IncompleteRead),
            urllib.request.urlopen(url, b"{}", timeout=5) as answer,
        ):
            answer.read()


@pytest.mark.parametrize("part", [b"", b"{}"])
def test_a_request_that_breaks_off_is_not_answered(part: bytes) -> None:
    with LoopbackServer(lambda request: wire_reply(say(request.body["messages"]))) as server:
        host, port = server.base_url.removeprefix("http://").removesuffix("/v1").split(":")
        with socket.create_connection((host, int(port))) as client:
            head = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 99\r\n\r\n"
            client.sendall(head + part)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(100) == b""
    assert server.requests == []


def test_leaving_it_does_not_wait_for_a_slow_reply() -> None:
    arrived = threading.Event()

    def slow(request: LoopbackRequest) -> LoopbackReply:
        arrived.set()
        return LoopbackReply({}, delay_s=60.0)

    with LoopbackServer(slow) as server:
        connection = http.client.HTTPConnection(server.base_url.split("/")[2], timeout=5)
        connection.request("POST", "/v1/chat/completions", b"{}")
        assert arrived.wait(5)
    with connection.getresponse() as answer:
        assert answer.status == 200
    connection.close()


def test_it_listens_on_this_machine_only_and_only_inside() -> None:
    server = LoopbackServer([])
    with pytest.raises(RuntimeError, match="with"):
        _ = server.base_url
    with server:
        assert server.base_url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("mode", ["tools", "json", "text"])
def test_the_same_reply_reaches_the_client_in_every_mode(mode: Any) -> None:
    wanted = call("search", thought="look", query="mill", page=0)
    spec = FunctionSpec("search", "Search.", {"type": "object", "properties": {}})
    other = FunctionSpec("stop", "Stop.", {"type": "object", "properties": {}})
    with LoopbackServer([wire_reply(wanted, mode, usage=Usage(9, 4, 2))]) as server:
        endpoint = Endpoint(server.base_url, None, clock=FrozenClock())
        native = OpenAIChat("loopback", endpoint, CharacterCounter())
        chats: dict[str, Chat] = {
            "tools": native,
            "json": JsonChat(native),
            "text": TextChat(native),
        }
        reply = chats[mode].complete(ChatRequest(ASKED.messages, (spec, other)))
        endpoint.close()
    assert reply.message.text == "look"
    assert [(item.name, json.loads(item.arguments)) for item in reply.message.calls] == [
        ("search", {"query": "mill", "page": 0})
    ]
    assert reply.usage == Usage(9, 4, 2)

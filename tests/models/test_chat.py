from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.errors import ModelAuthError, ModelError
from docpager.function_results import PlainText, SearchPage
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
from docpager.models.chat import OpenAIChat, wire_messages
from docpager.models.endpoint import Endpoint
from docpager.testing import (
    CharacterCounter,
    FrozenClock,
    LoopbackReply,
    LoopbackRequest,
    LoopbackServer,
    call,
    say,
    several,
    wire_reply,
)
from docpager.types import Usage

KEY = "sk-live-0123456789abcdef"
SEARCH = FunctionSpec(
    "archival_memory_search",
    "Search.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
ANSWER = FunctionSpec("send_message", "Answer.", {"type": "object", "properties": {}})
ASKED = ChatRequest((SystemMessage("Be brief."), UserMessage("Who?")), (SEARCH, ANSWER))
PLAIN = ChatRequest((SystemMessage("Be brief."), UserMessage("Who?")))


@contextmanager
def chat_with(
    replies: Any, clock: FrozenClock | None = None, **settings: Any
) -> Iterator[tuple[OpenAIChat, LoopbackServer]]:
    with LoopbackServer(replies) as server:
        endpoint = Endpoint(
            server.base_url, KEY, clock=clock or FrozenClock(), timeout_s=5.0, random=lambda: 0.0
        )
        yield OpenAIChat("tiny", endpoint, CharacterCounter(), **settings), server
        endpoint.close()


def reply_to(reply: LoopbackReply, request: ChatRequest = ASKED) -> ChatReply:
    with chat_with([reply]) as (chat, _):
        return chat.complete(request)


def raw(message: object, finish_reason: str = "stop", **more: object) -> LoopbackReply:
    body = {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}], **more}
    return LoopbackReply(json.dumps(body))


# ---- to the wire -----------------------------------------------------------------------------


def test_a_conversation_on_the_wire() -> None:
    messages = (
        SystemMessage("Be brief."),
        UserMessage("Who?"),
        AssistantMessage("Look.", (ToolCall("c1", "archival_memory_search", '{"query": "x"}'),)),
        ToolResult("c1", "archival_memory_search", SearchPage((), 0, 0, 0)),
        UserMessage("Notes: none.", kind="context"),
    )
    assert wire_messages(messages) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Who?"},
        {
            "role": "assistant",
            "content": "Look.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "archival_memory_search", "arguments": '{"query": "x"}'},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": "Showing 0 of 0 results (page 0/0)",
        },
        {"role": "user", "content": "Notes: none."},
    ]


def test_neighbouring_user_messages_become_one() -> None:
    messages = (UserMessage("Who?"), UserMessage("Warning."), UserMessage("Notes."))
    assert wire_messages(messages) == [{"role": "user", "content": "Who?\n\nWarning.\n\nNotes."}]


def test_broken_arguments_of_the_past_are_sent_as_readable_json() -> None:
    broken = AssistantMessage("", (ToolCall("c1", "f", '{"query": '),))
    (wired,) = wire_messages([broken])
    arguments = wired["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"unreadable": '{"query": '}


def test_half_characters_are_mended_before_they_are_sent() -> None:
    with chat_with([wire_reply(say("ok"))]) as (chat, server):
        chat.complete(ChatRequest((UserMessage("a\ud800b"),)))
        assert server.bodies()[0]["messages"][0]["content"] == "a\ufffdb"


def test_what_a_request_holds() -> None:
    with chat_with(
        lambda request: wire_reply(say("ok")), seed=7, extra_body={"cache_prompt": True}
    ) as (chat, server):
        chat.complete(ChatRequest(ASKED.messages, ASKED.functions, max_tokens=99, stop=("END",)))
        (body,) = server.bodies()
        assert body["model"] == "tiny"
        assert body["temperature"] == 0
        assert body["max_tokens"] == 99
        assert body["seed"] == 7
        assert body["stop"] == ["END"]
        assert body["cache_prompt"] is True
        assert [tool["function"]["name"] for tool in body["tools"]] == [
            "archival_memory_search",
            "send_message",
        ]
        assert "tool_choice" not in body
        assert {request.path for request in server.requests} == {"/v1/chat/completions"}


def test_a_single_function_must_be_called() -> None:
    with chat_with([wire_reply(call("send_message"))]) as (chat, server):
        chat.complete(ChatRequest(ASKED.messages, (ANSWER,)))
        assert server.bodies()[0]["tool_choice"] == "required"


def test_a_schema_constrains_a_reply_without_functions() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    with chat_with([wire_reply(say("{}"))]) as (chat, server):
        chat.complete(ChatRequest(PLAIN.messages, response_schema=schema))
        sent = server.bodies()[0]["response_format"]
        assert sent["type"] == "json_schema"
        assert sent["json_schema"]["schema"] == schema


def refusing(*fields: str) -> Any:
    """A server that refuses requests with one of these fields, by name."""

    def answer(request: LoopbackRequest) -> LoopbackReply:
        for field in fields:
            if field in request.body:
                error = {"message": f"Unsupported parameter: {field}", "param": field}
                return LoopbackReply(json.dumps({"error": error}), 400)
        return wire_reply(say("ok"))

    return answer


def test_a_field_that_a_model_refuses_is_left_out_from_then_on() -> None:
    with chat_with(refusing("temperature", "max_tokens", "seed"), seed=1) as (chat, server):
        chat.complete(PLAIN)
        assert len(server.bodies()) == 4
        chat.complete(PLAIN)
        last = server.bodies()[4]
        assert last["max_completion_tokens"] == PLAIN.max_tokens
        assert not last.keys() & {"temperature", "seed", "max_tokens"}


@pytest.mark.parametrize("field", ["messages", "tools", "model", "max_completion_tokens"])
def test_a_field_that_cannot_be_left_out_is_an_error(field: str) -> None:
    error = {"message": "no", "param": field}
    with (
        chat_with(lambda request: LoopbackReply(json.dumps({"error": error}), 400)) as (chat, _),
        pytest.raises(ModelError, match="refuses the request"),
    ):
        chat.complete(ASKED)


# ---- from the wire ---------------------------------------------------------------------------


def test_several_calls_are_kept_in_order_with_the_thought() -> None:
    both = several(
        call("archival_memory_search", thought="First.", query="Hale"),
        call("archival_memory_search", query="mill"),
    )
    reply = reply_to(wire_reply(both))
    assert reply.message == both
    assert (reply.finish_reason, reply.problem) == ("calls", None)


def test_prose_is_a_reply_without_calls() -> None:
    reply = reply_to(wire_reply(say("I think it was Hale.")))
    assert reply.message == say("I think it was Hale.")
    assert (reply.finish_reason, reply.problem) == ("stop", None)


def test_broken_arguments_are_handed_on_as_written() -> None:
    broken = AssistantMessage("", (ToolCall("c", "archival_memory_search", '{"query": Hale'),))
    assert reply_to(wire_reply(broken)).message == broken


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ({"function": {"name": "f", "arguments": {"a": 1}}}, '{"a": 1}'),
        ({"function": {"name": "f", "arguments": None}}, "{}"),
        ({"function": {"name": "f", "arguments": ""}}, "{}"),
        ({"function": {"name": "f"}}, "{}"),
        ({"id": 5, "function": {"name": "f", "arguments": "{}"}}, "{}"),
    ],
)
def test_calls_of_an_unusual_shape_are_read(written: object, arguments: str) -> None:
    reply = reply_to(raw({"role": "assistant", "content": None, "tool_calls": [written]}))
    assert reply.message.calls == (ToolCall("call_2_0", "f", arguments),)


def test_calls_with_the_same_id_are_told_apart() -> None:
    written = {"id": "same", "function": {"name": "f", "arguments": "{}"}}
    reply = reply_to(raw({"content": "", "tool_calls": [written, written]}))
    assert [item.call_id for item in reply.message.calls] == ["same", "call_2_1"]


def test_the_old_form_of_a_call_and_an_unknown_role_are_read() -> None:
    message = {"role": "robot", "function_call": {"name": "f", "arguments": "{}"}}
    assert reply_to(raw(message)).message.calls == (ToolCall("call_2_0", "f", "{}"),)


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "It was "}, {"type": "text", "text": "Hale."}, {"x": 1}]
    assert reply_to(raw({"content": parts})).message.text == "It was Hale."


def test_a_call_cut_off_by_the_length_limit_is_a_problem() -> None:
    cut = AssistantMessage("", (ToolCall("c", "send_message", '{"message": "It was'),))
    reply = reply_to(wire_reply(cut, finish_reason="length"))
    assert reply.message.calls == ()
    assert reply.finish_reason == "length"
    assert "send_message was cut off" in (reply.problem or "")


def test_a_whole_call_before_the_cut_is_kept() -> None:
    whole = ToolCall("a", "archival_memory_search", '{"query": "Hale"}')
    cut = AssistantMessage("", (whole, ToolCall("b", "send_message", '{"mess')))
    reply = reply_to(wire_reply(cut, finish_reason="length"))
    assert reply.message.calls == (whole,)
    assert reply.problem is None


@pytest.mark.parametrize(
    ("message", "reason", "words"),
    [
        ({"content": ""}, "stop", "empty"),
        ({"content": None}, "stop", "empty"),
        ({}, "stop", "empty"),
        ({"content": 7}, "stop", "empty"),
        ({"content": "I was thinking", "tool_calls": []}, "length", "cut off"),
        ({"content": None}, "content_filter", "withheld"),
        ({"content": None, "refusal": "I cannot."}, "stop", "I cannot."),
        ({"content": "", "tool_calls": [{"function": {}}, 4, None]}, "stop", "empty"),
        ({"content": "", "tool_calls": "none"}, "stop", "empty"),
    ],
)
def test_a_reply_of_nothing_says_what_is_wrong(message: object, reason: str, words: str) -> None:
    reply = reply_to(raw(message, reason))
    assert reply.message.calls == ()
    assert words in (reply.problem or "")


def test_a_text_at_the_length_limit_is_fine_where_no_call_was_wanted() -> None:
    reply = reply_to(raw({"content": "A long summary"}, "length"), PLAIN)
    assert (reply.finish_reason, reply.problem) == ("length", None)


@pytest.mark.parametrize(
    "body",
    [
        {"choices": []},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"message": "text"}]},
        {},
        [],
        None,
        7,
        {"error": {"message": "model overloaded", "code": "E17"}},
        {"error": "model overloaded"},
    ],
)
def test_a_reply_without_a_choice_is_asked_for_again_then_an_error(body: object) -> None:
    empty = LoopbackReply(json.dumps(body))
    with chat_with([empty, wire_reply(say("ok"))]) as (chat, _):
        assert chat.complete(PLAIN).message == say("ok")
    with chat_with(lambda request: empty) as (chat, server):
        with pytest.raises(ModelError, match=r"tiny at http.* answers with"):
            chat.complete(PLAIN)
        assert len(server.requests) == 4


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["content", "tool_calls", "function", "name", "arguments", "id", "refusal"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


class Canned:
    """An endpoint without a network: it hands over one decoded reply."""

    url = "http://canned"
    is_openai = False

    def __init__(self, reply: object) -> None:
        self.reply = reply

    def post(self, path: str, body: object, read: Any) -> Any:
        return read(self.reply)


@given(json_values, json_values, st.sampled_from(["stop", "length", None, 3]))
def test_no_shape_of_a_reply_is_a_crash(message: object, usage: object, reason: object) -> None:
    reply = {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}
    chat = OpenAIChat("tiny", Canned(reply), CharacterCounter())
    try:
        read = chat.complete(ASKED)
    except ModelError:
        assert not isinstance(message, dict)
    else:
        assert read.message.calls or read.message.text or read.problem


# ---- failures --------------------------------------------------------------------------------


def test_rate_limits_are_waited_for() -> None:
    clock = FrozenClock()
    limited = LoopbackReply({"error": {"message": "slow down"}}, 429, {"retry-after": "20"})
    with chat_with([limited, wire_reply(say("ok"))], clock) as (chat, _):
        assert chat.complete(PLAIN).message == say("ok")
    assert clock.slept == [20.0]


def test_a_refused_key_is_fatal_and_not_shown() -> None:
    refused = LoopbackReply({"error": {"message": f"Bad key {KEY}"}}, 401)
    with chat_with([refused]) as (chat, _):
        with pytest.raises(ModelAuthError) as caught:
            chat.complete(PLAIN)
        assert KEY not in f"{caught.value} {chat!r} {caught.value.__cause__!r}"


# ---- counting --------------------------------------------------------------------------------


def test_usage_is_the_endpoint_s_own_with_what_was_cached() -> None:
    usage = Usage(prompt_tokens=900, cached_tokens=800, completion_tokens=12)
    assert reply_to(wire_reply(say("ok"), usage=usage)).usage == usage


def test_usage_is_counted_where_the_endpoint_does_not() -> None:
    with chat_with([wire_reply(call("archival_memory_search", query="Hale"))]) as (chat, _):
        usage = chat.complete(ASKED).usage
        assert usage.prompt_tokens == chat.prompt_tokens(ASKED)
        assert usage.completion_tokens > 5


def test_everything_that_is_sent_counts() -> None:
    with chat_with([]) as (chat, _):
        bare = chat.prompt_tokens(ChatRequest(()))
        texts = chat.prompt_tokens(PLAIN)
        assert bare < texts < chat.prompt_tokens(ASKED)
        turn = (
            AssistantMessage("", (ToolCall("c", "archival_memory_search", '{"query": "x"}'),)),
            ToolResult("c", "archival_memory_search", PlainText("found " * 100)),
        )
        longer = chat.prompt_tokens(ChatRequest(PLAIN.messages + turn))
        assert longer >= texts + CharacterCounter().count("found " * 100) + 15


sizes = st.lists(st.integers(1, 60_000), min_size=2, max_size=8)


@given(sizes, st.floats(1.0, 3.0), st.integers(0, 400))
def test_an_estimate_that_was_too_low_is_not_too_low_for_the_same_request_again(
    lengths: list[int], finer: float, wrapped: int
) -> None:
    chat = OpenAIChat("tiny", Canned(None), CharacterCounter())
    for length in lengths:
        request = ChatRequest((UserMessage("x" * length),))
        actual = int((length / 4 + 8) * finer) + wrapped
        usage = {"prompt_tokens": actual, "completion_tokens": 1}
        chat._endpoint.reply = {
            "choices": [{"message": {"content": "ok"}}],
            "usage": usage,
        }
        chat.complete(request)
        assert chat.prompt_tokens(request) >= actual


def test_a_small_prompt_does_not_teach_a_large_factor() -> None:
    usage = Usage(prompt_tokens=300, completion_tokens=1)
    with chat_with([wire_reply(say("ok"), usage=usage)]) as (chat, _):
        large = ChatRequest((UserMessage("x" * 16_000),))
        before = chat.prompt_tokens(large)
        chat.complete(PLAIN)
        assert before < chat.prompt_tokens(large) < before + 400

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from docpager.errors import BudgetReached, ModelError
from docpager.function_results import PlainText
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
from docpager.models.failures import RefusedRequest
from docpager.models.tool_modes import (
    REPAIR_RESERVE,
    JsonChat,
    TextChat,
    WrittenCall,
    describe,
    read_call,
    strict_schema,
    union_schema,
)
from docpager.protocols import Chat
from docpager.testing import CharacterCounter, ScriptedChat, call, say
from docpager.types import Usage

SEARCH = FunctionSpec(
    "archival_memory_search",
    "Search the documents.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "page": {"type": "integer", "minimum": 0},
            "request_heartbeat": {"type": "boolean"},
        },
        "required": ["query"],
    },
)
ANSWER = FunctionSpec(
    "send_message",
    "Answer.",
    {
        "type": "object",
        "properties": {
            "message": {"type": "string"},
            "citations": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"passage_id": {"type": "string"}, "quote": {"type": "string"}},
                    "required": ["passage_id", "quote"],
                },
            },
        },
        "required": ["message"],
    },
)
NAMES = (SEARCH.name, ANSWER.name)
ASKED = ChatRequest(
    (SystemMessage("You answer from documents."), UserMessage("Who built it?")), (SEARCH, ANSWER)
)
WRITTEN = (
    '{"thought": "look", "function": "archival_memory_search", "arguments": {"query": "mill"}}'
)
LOOKED = WrittenCall("look", "archival_memory_search", {"query": "mill"})


def modes(replies: Any) -> list[tuple[Chat, ScriptedChat]]:
    inner = [ScriptedChat(replies), ScriptedChat(replies)]
    return [(JsonChat(inner[0]), inner[0]), (TextChat(inner[1]), inner[1])]


# ---- what the model is shown -----------------------------------------------------------------


def test_functions_are_described_in_a_line_each() -> None:
    assert describe([SEARCH, ANSWER]).splitlines()[1:] == [
        "Functions:",
        "- archival_memory_search(query: string, page?: integer, request_heartbeat?: boolean): "
        "Search the documents.",
        "- send_message(message: string, citations?: [{passage_id: string, quote: string}]): "
        "Answer.",
    ]


def test_enums_and_descriptions_are_shown() -> None:
    spec = FunctionSpec(
        "f",
        "Do.",
        {
            "type": "object",
            "properties": {
                "section": {"type": "string", "enum": ["user", "notes"]},
                "n": {"type": "integer", "description": "how many"},
                "any": {},
            },
        },
    )
    assert "f(section?: user|notes, n?: integer (how many), any?: any): Do." in describe([spec])


def test_the_description_is_shorter_than_the_schemas() -> None:
    schemas = [[spec.name, spec.description, spec.parameters] for spec in (SEARCH, ANSWER)]
    assert len(describe([SEARCH, ANSWER])) < len(json.dumps(schemas))


def test_a_conversation_without_native_calls() -> None:
    turn = (
        AssistantMessage("look", (ToolCall("c", SEARCH.name, '{"query": "mill"}'),)),
        ToolResult("c", SEARCH.name, PlainText("Showing 1 of 1 results (page 0/0)")),
    )
    request = ChatRequest(ASKED.messages + turn, ASKED.functions)
    for chat, inner in modes([say(WRITTEN)]):
        chat.complete(request)
        sent = inner.requests[0]
        system, question, reply, result = sent.messages
        assert sent.functions == ()
        assert system.text == f"You answer from documents.\n\n{describe(ASKED.functions)}"
        assert question.text == "Who built it?"
        assert reply == say(WRITTEN)
        assert isinstance(result, UserMessage)
        assert result.text == f"Result of {SEARCH.name}: Showing 1 of 1 results (page 0/0)"


def test_a_missing_system_message_is_made() -> None:
    for chat, inner in modes([say(WRITTEN)]):
        chat.complete(ChatRequest((UserMessage("Who?"),), ASKED.functions))
        assert inner.requests[0].messages[0] == SystemMessage(describe(ASKED.functions))


def test_broken_arguments_of_the_past_are_shown_as_text() -> None:
    turn = (AssistantMessage("", (ToolCall("c", "f", '{"query": '),)),)
    for chat, inner in modes([say(WRITTEN)]):
        chat.complete(ChatRequest(ASKED.messages + turn, ASKED.functions))
        shown = json.loads(inner.requests[0].messages[2].text)
        assert shown["arguments"] == '{"query": '


def test_without_functions_the_request_passes_through() -> None:
    request = ChatRequest(ASKED.messages, response_schema={"type": "object"})
    for chat, inner in modes([say("A summary.")]):
        reply = chat.complete(request)
        assert inner.requests == [request]
        assert reply.message == say("A summary.")
        assert chat.prompt_tokens(request) == inner.prompt_tokens(request)


def test_each_mode_names_itself() -> None:
    assert [chat.tool_mode for chat, _ in modes([])] == ["json", "text"]


# ---- schemas ---------------------------------------------------------------------------------


def test_the_union_ties_arguments_to_their_function() -> None:
    schema = union_schema([SEARCH, ANSWER])
    assert [item["properties"]["function"]["enum"] for item in schema["anyOf"]] == [
        [SEARCH.name],
        [ANSWER.name],
    ]
    for item in schema["anyOf"]:
        assert item["required"] == ["thought", "function", "arguments"]
        assert item["additionalProperties"] is False
        assert item["properties"]["arguments"]["additionalProperties"] is False


def test_with_one_function_the_schema_is_just_that() -> None:
    schema = union_schema([ANSWER])
    assert schema["properties"]["function"]["enum"] == [ANSWER.name]
    assert strict_schema([ANSWER])["properties"]["arguments"]["type"] == "object"


def objects_in(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for item in schema for found in objects_in(item)]
    if not isinstance(schema, dict):
        return []
    here = [schema] if schema.get("type") == "object" else []
    return here + [found for item in schema.values() for found in objects_in(item)]


def test_the_strict_form_requires_every_property_and_allows_no_other() -> None:
    schema = strict_schema([SEARCH, ANSWER])
    assert schema["type"] == "object"
    assert len(objects_in(schema)) == 4
    for item in objects_in(schema):
        assert item["required"] == list(item["properties"])
        assert item["additionalProperties"] is False
    assert "minimum" not in json.dumps(schema)


def test_an_endpoint_that_refuses_the_union_is_sent_the_strict_form_from_then_on() -> None:
    nulls = (
        '{"thought": "", "function": "archival_memory_search", '
        '"arguments": {"query": "mill", "page": null, "request_heartbeat": null}}'
    )
    inner = ScriptedChat([RefusedRequest("No anyOf at the root."), say(nulls), say(WRITTEN)])
    chat = JsonChat(inner)
    assert json.loads(chat.complete(ASKED).message.calls[0].arguments) == {"query": "mill"}
    chat.complete(ASKED)
    schemas = [request.response_schema for request in inner.requests]
    strict = strict_schema(ASKED.functions)
    assert schemas == [union_schema(ASKED.functions), strict, strict]


def test_an_endpoint_that_refuses_both_forms_is_an_error() -> None:
    refused = RefusedRequest("No schemas here.")
    with pytest.raises(ModelError, match="No schemas here"):
        JsonChat(ScriptedChat([refused, refused])).complete(ASKED)


# ---- replies ---------------------------------------------------------------------------------


def test_a_call_is_read_out_of_the_reply() -> None:
    for chat, _ in modes([say(WRITTEN)]):
        reply = chat.complete(ASKED)
        assert reply.message == AssistantMessage(
            "look", (ToolCall("call_2", SEARCH.name, '{"query": "mill"}'),)
        )
        assert (reply.finish_reason, reply.problem) == ("calls", None)


def test_json_mode_does_not_ask_twice() -> None:
    inner = ScriptedChat([say("I think it was Hale.")])
    reply = JsonChat(inner).complete(ASKED)
    assert reply.message == say("I think it was Hale.")
    assert "no complete JSON object" in (reply.problem or "")


def test_a_cut_reply_says_so() -> None:
    cut = ChatReply(say(WRITTEN[:-12]), finish_reason="length")
    reply = JsonChat(ScriptedChat([cut])).complete(ASKED)
    assert "cut off" in (reply.problem or "")


def test_text_mode_asks_for_a_repair_once_and_counts_it() -> None:
    inner = ScriptedChat([say("It was Hale."), say(WRITTEN)])
    reply = TextChat(inner).complete(ASKED)
    assert reply.message.calls[0].name == SEARCH.name
    first, second = inner.requests
    assert second.messages[:-1] == first.messages
    assert "It was Hale." in second.messages[-1].text
    assert reply.usage.prompt_tokens == sum(map(inner.prompt_tokens, inner.requests))


def test_a_repair_that_fails_too_is_a_problem_for_the_agent() -> None:
    inner = ScriptedChat([say("It was Hale."), say("Hale!")])
    reply = TextChat(inner).complete(ASKED)
    assert len(inner.requests) == 2
    assert reply.message.calls == ()
    assert reply.problem is not None


def test_a_repair_beyond_the_budget_leaves_the_first_reply() -> None:
    inner = ScriptedChat([say("It was Hale."), BudgetReached("tokens", "Used up.")])
    reply = TextChat(inner).complete(ASKED)
    assert reply.message == say("It was Hale.")
    assert reply.problem is not None


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
@example("\U000e0001" * 200)
def test_the_room_for_a_repair_is_counted_in(text: str) -> None:
    inner = ScriptedChat([say(text), say(WRITTEN)], counter=CharacterCounter(2))
    chat = TextChat(inner)
    counted = chat.prompt_tokens(ASKED)
    chat.complete(ASKED)
    assert all(inner.prompt_tokens(request) <= counted for request in inner.requests)
    assert counted == inner.prompt_tokens(inner.requests[0]) + REPAIR_RESERVE


# ---- the tolerant reader ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        WRITTEN,
        f"Sure! Here is my call:\n```json\n{WRITTEN}\n```\nDone.",
        f"```\n{WRITTEN}```",
        WRITTEN.replace('"', "'"),
        WRITTEN.replace("}}", ",},}"),
        WRITTEN[:-1],
        WRITTEN[:-2],
        "{thought: 'look', function: \"archival_memory_search\", arguments: {query: 'mill'}}",
        f"<think>I could use {{}} or send_message.</think>{WRITTEN}",
        f"<think>{WRITTEN.replace('mill', 'dam')}</think>{WRITTEN}",
        f'{{"function": "dance", "arguments": {{}}}} {WRITTEN}',
        f"{{}} {WRITTEN} {WRITTEN.replace('mill', 'dam')}",
        f"{{broken {WRITTEN}",
        '<tool_call>{"name": "archival_memory_search", "thought": "look", '
        '"arguments": {"query": "mill"}}</tool_call>',
        '{"thought": "look", "function": {"name": "archival_memory_search", '
        '"parameters": {"query": "mill"}}}',
        '{"thought": "look", "tool": "archival_memory_search", "args": {"query": "mill"}}',
        '{"thought": "look", "function": "archival_memory_search", '
        '"arguments": "{\\"query\\": \\"mill\\"}"}',
        '{"thought": "look", "function": " archival_memory_search ", "query": "mill"}',
    ],
)
def test_a_call_is_found_however_it_is_written(text: str) -> None:
    assert read_call(text, NAMES) == LOOKED


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("True", True),
        ("false", False),
        ("null", None),
        ("None", None),
        ("12", 12),
        ("-1.5", -1.5),
        ("[1, 'a', ]", [1, "a"]),
        ("'it's late'", "it's late"),
        ('"he said "no" to it"', 'he said "no" to it'),
        ('"two\nlines"', "two\nlines"),
        (r"'a\tb\'c\u00e9\q'", "a\tb'cé" + "q"),
        ("'数据：\"好\"'", '数据："好"'),
    ],
)
def test_values_of_a_careless_writer(written: str, value: object) -> None:
    # The single quotes around the name keep the strict reader out of it.
    text = f"{{'function': 'send_message', 'arguments': {{'message': {written}}}}}"
    assert read_call(text, NAMES) == WrittenCall("", "send_message", {"message": value})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no complete JSON object"),
        ("I think it was Hale.", "no complete JSON object"),
        ("{", '"function"'),
        ('{"message": "x"}', '"function"'),
        ('{"function": 7, "arguments": {}}', '"function"'),
        ('{"function": "send_message", "arguments": [1]}', '"function"'),
        ('{"function": "dance", "arguments": {}}', "no function 'dance'"),
        ('{"function": "send_message", "arguments": {"message": nan}}', "JSON"),
        ('{"function": "send_message", "arguments": {"message": "unfinished', "JSON"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    problem = read_call(text, NAMES)
    assert isinstance(problem, str)
    assert words in problem


def test_brackets_missing_from_a_cut_reply_are_not_made_up() -> None:
    assert isinstance(read_call(WRITTEN[:-1], NAMES, complete=False), str)


braces = st.text(alphabet="{}[]\"':,\\ aN1-.\n", max_size=300)


@given(st.text(max_size=200) | braces | st.text(alphabet="{'\"", max_size=2000))
def test_the_reader_never_raises(text: str) -> None:
    assert isinstance(read_call(text, NAMES), str | WrittenCall)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=4), st.booleans())
def test_what_was_written_properly_is_read_back(arguments: dict[str, Any], ascii: bool) -> None:
    written = {"thought": "", "function": "send_message", "arguments": arguments}
    text = f"Well:\n```json\n{json.dumps(written, ensure_ascii=ascii)}\n```"
    assert read_call(text, NAMES) == WrittenCall("", "send_message", arguments)


def test_half_characters_do_not_reach_the_arguments() -> None:
    text = WRITTEN.replace("mill", r"mi\ud800ll")
    for chat, _ in modes([say(text)]):
        (item,) = chat.complete(ASKED).message.calls
        assert json.loads(item.arguments) == {"query": "mi\ufffdll"}


@pytest.mark.parametrize("text", ["{" * 200_000, "{'" * 100_000, '{"a":' * 50_000])
def test_a_flood_of_braces_is_read_in_bounded_time(text: str) -> None:
    assert isinstance(read_call(text, NAMES), str)


def test_a_scripted_call_survives_both_modes() -> None:
    wanted = call("send_message", thought="done", message="Hale", citations=[])
    written = json.dumps({"thought": "done", "function": "send_message", "arguments": {}})
    filled = written.replace("{}", wanted.calls[0].arguments)
    for chat, _ in modes([say(filled)]):
        reply = chat.complete(ASKED)
        assert reply.message.calls[0].arguments == wanted.calls[0].arguments
        assert reply.usage != Usage()

"""Guided mode: one passage at a time, checked in code, and an end for any replies."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.errors import BudgetReached
from docpager.messages import (
    AssistantMessage,
    ChatRequest,
    FunctionSpec,
    Message,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from docpager.models.guided import (
    EXCERPT_CHARACTERS,
    GuidedChat,
    accepted_quote,
    descriptions,
    excerpt,
)
from docpager.testing import CharacterCounter, ScriptedChat, say

MILL = "The mill at Orrin Ford was designed by Tamsin Hale and opened in 1887."
BORN = "Tamsin Hale was born in the harbour town of Kestwick in 1851."
LOCK = "The lock at Pell Point was opened in 1902 by Corin Hale."
SPECS = tuple(
    FunctionSpec(name, "", {})
    for name in ("archival_memory_search", "core_memory_append", "send_message")
)


def page(*passages: tuple[str, str]) -> str:
    lines = [f"Showing {len(passages)} of {len(passages)} results (page 0/0)"]
    for passage_id, text in passages:
        lines += [f"[{passage_id}] corpus/mills.pdf p. 1", text]
    return "\n".join(lines)


def reader(
    plan: list[str], answers: dict[str, str], compared: str = "", other: str = ""
) -> ScriptedChat:
    """A small model: its plan, and for words of a look-up the answer it reads out of a passage.

    Of the descriptions that it may choose from it takes the shortest.
    """

    def reply(request: ChatRequest) -> AssistantMessage:
        asked = request.messages[-1].text
        if "steps" in request.response_schema["properties"]:
            return say(json.dumps({"steps": plan}))
        if "description" in request.response_schema["properties"]:
            choices = request.response_schema["properties"]["description"]["enum"]
            return say(json.dumps({"description": min(choices, key=len)}))
        if "question" in request.response_schema["properties"]:
            return say(json.dumps({"question": other}))
        if asked.startswith("Facts:"):
            return say(json.dumps({"answer": compared}))
        passage, _, question = asked.rpartition("Question: ")
        found = [a for words, a in answers.items() if words in question and a in passage]
        return say(json.dumps({"answer": found[0] if found else "none"}))

    return ScriptedChat(reply, counter=CharacterCounter())


def drive(
    inner: ScriptedChat,
    question: str,
    search: Callable[[str], str],
    *,
    window: int = 8192,
    most: int = 40,
) -> list[ToolCall]:
    """Run the chat as the agent does; the calls it made, the last being `send_message`."""
    chat = GuidedChat(inner, window)
    first = ToolCall("c0", "archival_memory_search", json.dumps({"query": question, "page": 0}))
    messages: list[Message] = [
        SystemMessage("instructions"),
        UserMessage(question),
        AssistantMessage("", (first,)),
        ToolResult("c0", first.name, search(question)),
    ]
    calls: list[ToolCall] = []
    for _ in range(most):
        reply = chat.complete(ChatRequest(tuple(messages), SPECS))
        [call] = reply.message.calls
        calls.append(call)
        if call.name == "send_message":
            return calls
        query = json.loads(call.arguments).get("query", "")
        text = search(query) if call.name == "archival_memory_search" else "Added."
        messages += [reply.message, ToolResult(call.call_id, call.name, text)]
    raise AssertionError("no answer was sent")


def sent(calls: list[ToolCall]) -> dict[str, object]:
    return json.loads(calls[-1].arguments)


def library(query: str) -> str:
    return page(("P1", MILL), ("P2", BORN), ("P3", LOCK))


def test_what_a_question_describes_is_found_noted_put_in_and_cited() -> None:
    inner = reader([], {"designer": "Tamsin Hale", "born": "Kestwick"})
    calls = drive(inner, "Where was the designer of the mill at Orrin Ford born?", library)
    assert [call.name for call in calls] == [
        "archival_memory_search",
        "core_memory_append",
        "archival_memory_search",
        "core_memory_append",
        "send_message",
    ]
    queries = [json.loads(calls[at].arguments)["query"] for at in (0, 2)]
    assert queries == [
        "Who is the designer of the mill at Orrin Ford?",
        "Where was Tamsin Hale born?",
    ]
    assert "[P1]" in json.loads(calls[1].arguments)["content"]
    assert sent(calls) == {
        "message": "Kestwick",
        "citations": [{"passage_id": "P1", "quote": MILL}, {"passage_id": "P2", "quote": BORN}],
        "not_found": False,
    }


def test_what_is_described_within_a_description_is_found_first() -> None:
    question = "Who is mayor of the town where the builder of the Hallow Bridge lives?"
    assert descriptions(question) == [
        "the builder of the Hallow Bridge",
        "the builder of the Hallow Bridge lives",
    ]


@pytest.mark.parametrize(
    "question",
    [
        "How long is the Hallow Bridge?",
        "Who designed the mill at Orrin Ford?",
        "What is the birthplace of the engineer Tamsin Hale?",
        "",
        "the the the",
    ],
)
def test_what_is_called_by_its_name_is_not_described(question: str) -> None:
    assert descriptions(question) == []


def test_a_chinese_question_in_two_steps_follows_its_plan() -> None:
    tower, man = "秋江灯塔建于一九三一年，由工程师陆远山设计。", "陆远山是苏州人，早年学医。"
    inner = reader(["秋江灯塔由谁设计？", "#1是哪里人？"], {"设计": "陆远山", "哪里人": "苏州"})
    calls = drive(inner, "设计秋江灯塔的人是哪里人？", lambda q: page(("P1", tower), ("P2", man)))
    assert sent(calls)["message"] == "苏州"


def test_a_comparison_looks_up_both_sides_and_compares_once() -> None:
    inner = reader(
        ["When was the mill at Orrin Ford opened?", "When was the lock at Pell Point opened?"],
        {"mill": "1887", "lock": "1902"},
        compared="the mill at Orrin Ford",
    )
    question = "Which was opened first, the mill at Orrin Ford or the lock at Pell Point?"
    calls = drive(inner, question, library)
    assert sent(calls)["message"] == "the mill at Orrin Ford"
    assert [item["passage_id"] for item in sent(calls)["citations"]] == ["P1", "P3"]


def test_a_plan_that_drops_a_name_is_not_followed() -> None:
    inner = reader(["Who designed the mill?"], {"Orrin Ford": "Tamsin Hale"})
    calls = drive(inner, "Who designed the mill at Orrin Ford?", library)
    assert sent(calls)["message"] == "Tamsin Hale"
    assert "Orrin Ford" in json.loads(calls[0].arguments)["content"]


def test_what_a_result_says_of_a_cut_is_never_quoted() -> None:
    note = '(cut; for the rest: read_document document="corpus/mills.pdf" page=1 part=0)'
    cut = "Tamsin Hale designed the mill at Orrin\n" + note
    inner = reader(["Who designed the mill at Orrin?"], {"designed": "Tamsin Hale"})
    calls = drive(inner, "Who designed the mill at Orrin?", lambda query: page(("P1", cut)))
    [citation] = sent(calls)["citations"]
    assert citation["quote"] == "Tamsin Hale designed the mill at Orrin"


def test_a_look_up_beside_the_chain_is_not_followed() -> None:
    plan = ["Who designed the mill at Orrin Ford?", "When was Orrin Ford's lock opened?"]
    inner = reader(plan, {"designed": "Tamsin Hale", "lock": "1887"})
    calls = drive(inner, "Who designed the mill at Orrin Ford?", library)
    assert sent(calls)["message"] == "Tamsin Hale"


def test_nothing_acceptable_is_not_found_after_one_other_search() -> None:
    inner = reader(["Who painted the mill at Orrin Ford?"], {})
    calls = drive(inner, "Who painted the mill at Orrin Ford?", library)
    assert sent(calls)["not_found"] is True
    assert [json.loads(call.arguments)["query"] for call in calls[:-1]] == ["Orrin Ford"]


@pytest.mark.parametrize(
    ("other", "query"),
    [
        ("Whose painting shows the mill at Orrin Ford?",) * 2,
        ("Who made a picture of the mill?", "Orrin Ford"),
    ],
)
def test_nothing_found_is_asked_once_in_other_words_that_keep_the_names(
    other: str, query: str
) -> None:
    calls = drive(reader([], {}, other=other), "Who painted the mill at Orrin Ford?", library)
    assert [json.loads(call.arguments)["query"] for call in calls[:-1]] == [query]
    assert sent(calls)["not_found"] is True


def test_a_chinese_question_is_answered_in_chinese() -> None:
    text = "秋江灯塔建于一九三一年，由工程师陆远山设计。"
    inner = reader(["秋江灯塔由谁设计？"], {"设计": "陆远山"})
    calls = drive(inner, "秋江灯塔由谁设计？", lambda query: page(("P1", text), ("P2", BORN)))
    assert sent(calls)["message"] == "陆远山"
    assert sent(calls)["citations"] == [{"passage_id": "P1", "quote": text}]


def test_a_forced_answer_comes_from_what_is_known_without_a_call() -> None:
    inner = reader(["Who designed the mill at Orrin Ford?"], {"designed": "Tamsin Hale"})
    chat = GuidedChat(inner)
    question = UserMessage("Who designed the mill at Orrin Ford?")
    first = ToolResult("c0", "archival_memory_search", library(""))
    chat.complete(ChatRequest((question, first), SPECS))
    spent = len(inner.requests)
    [call] = chat.complete(ChatRequest((question, first), SPECS[-1:])).message.calls
    assert json.loads(call.arguments)["message"] == "Tamsin Hale"
    assert len(inner.requests) == spent


def test_a_new_question_begins_anew() -> None:
    inner = reader(["Who designed the mill at Orrin Ford?"], {"designed": "Tamsin Hale"})
    chat = GuidedChat(inner)
    first = ToolResult("c0", "archival_memory_search", library(""))
    for text in ("Who designed the mill at Orrin Ford?", "Who designed Orrin Ford's mill?"):
        reply = chat.complete(ChatRequest((UserMessage(text), first), SPECS))
        assert reply.message.calls[0].name == "core_memory_append"


def test_a_bound_reached_in_a_small_call_passes_through() -> None:
    inner = ScriptedChat([BudgetReached("time", "no time")])
    with pytest.raises(BudgetReached):
        drive(inner, "Who designed the mill?", library)


@pytest.mark.parametrize(
    ("asked", "answer", "text"),
    [
        ("Who designed the mill?", "Ada Lane", MILL),
        ("Who designed the mill?", "none", MILL),
        ("Who designed the mill?", "1887", MILL),
        ("When was the mill opened?", "Orrin Ford", MILL),
        ("How many mills were there?", "Tamsin Hale", MILL),
        ("Who was Tamsin Hale?", "Tamsin Hale", MILL),
        ("Who designed the mill?", "amsin Hal", MILL),
        ("Who designed the mill?", "", MILL),
    ],
)
def test_answers_that_fail_a_check_are_not_believed(asked: str, answer: str, text: str) -> None:
    assert accepted_quote(asked, answer, text) == ""


def test_the_quote_is_the_sentence_nearest_to_the_look_up() -> None:
    text = "It closed in 1887 for a year. " + MILL + " The rent was nine crowns a year."
    assert accepted_quote("When was the Orrin Ford mill opened?", "1887", text) == MILL


def test_a_short_line_is_quoted_with_its_neighbours() -> None:
    text = "Vessel\nSaltire\n438 tons\n1889\nBrig"
    quote = accepted_quote("What tonnage had the Saltire?", "438 tons", text)
    assert quote in text
    assert len(quote.split()) >= 4


@given(st.text(st.sampled_from("ab. AB\n。中1"), min_size=1, max_size=3000))
def test_an_excerpt_holds_only_words_of_the_passage(text: str) -> None:
    cut = excerpt("A b?", text)
    assert set(cut.split()) <= set(text.split()) | {"".join(text.split())} or cut in text
    assert len(cut) <= max(EXCERPT_CHARACTERS * 2, len(text))


REPLIES = st.one_of(
    st.text(max_size=30),
    st.lists(st.text(max_size=20), max_size=4).map(lambda steps: json.dumps({"steps": steps})),
    st.sampled_from(["Tamsin Hale", "1887", "Kestwick", "none", "Pell Point"]).map(
        lambda answer: json.dumps({"answer": answer})
    ),
    st.sampled_from(['{"answer": 3}', "[]", '{"steps": ["#9 x"]}', "null"]),
)
RESULTS = st.sampled_from(
    [
        library(""),
        page(),
        "Failed: no room for this result. Ask again.",
        "",
        "Already shown: see P1",
    ]
)


@settings(max_examples=80, deadline=None)
@given(
    replies=st.lists(REPLIES, min_size=1, max_size=30),
    results=st.lists(RESULTS, min_size=1, max_size=8),
    question=st.text(st.sampled_from("Who 1887Mil 中文谁?"), min_size=1, max_size=60),
    window=st.integers(500, 8192),
)
def test_it_ends_for_any_replies_and_results_and_keeps_to_its_window(
    replies: list[str], results: list[str], question: str, window: int
) -> None:
    inner = ScriptedChat(
        lambda request: say(replies[len(inner.requests) % len(replies)]),
        counter=CharacterCounter(),
    )
    calls = drive(inner, question, lambda query: results[len(query) % len(results)], window=window)
    assert calls[-1].name == "send_message"
    for request in inner.requests:
        assert inner.prompt_tokens(request) + request.max_tokens <= window

"""Guided mode: one passage at a time, checked in code, and an end for any replies."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.errors import BudgetReached
from docpager.function_results import (
    AlreadyShown,
    Failure,
    FunctionResult,
    PlainText,
    SearchPage,
    ShownPassage,
)
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
from docpager.models.guided.chat import GuidedChat
from docpager.models.guided.evidence import EXCERPT_CHARACTERS, SeenPassage, accepted_quote, excerpt
from docpager.models.guided.questions import descriptions
from docpager.testing import CharacterCounter, ScriptedChat, say

MILL = "The mill at Orrin Ford was designed by Tamsin Hale and opened in 1887."
BORN = "Tamsin Hale was born in the harbour town of Kestwick in 1851."
LOCK = "The lock at Pell Point was opened in 1902 by Corin Hale."
SPECS = tuple(
    FunctionSpec(name, "", {})
    for name in ("archival_memory_search", "core_memory_append", "send_message")
)


def passage(text: str, place: str = "corpus/mills.pdf p. 1") -> SeenPassage:
    return SeenPassage("P1", place, text)


def page(*passages: tuple[str, str]) -> SearchPage:
    shown = [
        ShownPassage(passage_id, text, "corpus/mills.pdf p. 1") for passage_id, text in passages
    ]
    return SearchPage(tuple(shown), len(shown), 0, 0)


def reader(
    plan: list[str],
    answers: dict[str, str],
    compared: str = "",
    other: str = "",
    doubted: str = "",
) -> ScriptedChat:
    """A small model: its plan, and for words of a look-up the answer it reads out of a passage.

    Of the descriptions that it may choose from it takes the shortest. Shown an answer again, it
    stands by it unless it is the one `doubted`.
    """

    def reply(request: ChatRequest) -> AssistantMessage:
        asked = request.messages[-1].text
        if "steps" in request.response_schema["properties"]:
            return say(json.dumps({"steps": plan}))
        if "description" in request.response_schema["properties"]:
            choices = request.response_schema["properties"]["description"]["enum"]
            return say(json.dumps({"description": min(choices, key=len)}))
        if "look_up" in request.response_schema["properties"]:
            return say(json.dumps({"look_up": plan[0]}))
        if "question" in request.response_schema["properties"]:
            return say(json.dumps({"question": other}))
        if "answered" in request.response_schema["properties"]:
            verdict = "no" if asked.endswith(f"Answer: {doubted}") else "yes"
            return say(json.dumps({"answered": verdict}))
        if asked.startswith("Facts:"):
            return say(json.dumps({"answer": compared}))
        passage, _, question = asked.rpartition("Question: ")
        found = [a for words, a in answers.items() if words in question and a in passage]
        return say(json.dumps({"answer": found[0] if found else "none"}))

    return ScriptedChat(reply, counter=CharacterCounter())


def drive(
    inner: ScriptedChat,
    question: str,
    search: Callable[[str], FunctionResult],
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
        is_search = call.name == "archival_memory_search"
        result = search(query) if is_search else PlainText("Added.")
        messages += [reply.message, ToolResult(call.call_id, call.name, result)]
    raise AssertionError("no answer was sent")


def sent(calls: list[ToolCall]) -> dict[str, object]:
    return json.loads(calls[-1].arguments)


def library(query: str) -> SearchPage:
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
    assert [found.phrase for found in descriptions(question)] == [
        "the builder of the Hallow Bridge",
        "the builder of the Hallow Bridge lives",
    ]


@pytest.mark.parametrize(
    ("question", "look_up", "answer", "left"),
    [
        (
            "Which yard built the boat that brought the lens to Pell Point?",
            "Which boat brought the lens to Pell Point?",
            "Heron",
            "Which yard built the boat Heron?",
        ),
        (
            "In what year was the tug built that the Trust hired to clear the Narrows?",
            "Which tug is it that the Trust hired to clear the Narrows?",
            "the tug Anna",
            "In what year was the tug Anna built?",
        ),
        (
            "How much does the bottle hold that the nephew of Ann Hale looked after?",
            "Which bottle is it that the nephew of Ann Hale looked after?",
            "Nansen bottle",
            "How much does Nansen bottle hold?",
        ),
        (
            "What limit is set by the byelaw that the Tern's master broke?",
            "Which byelaw is it that the Tern's master broke?",
            "61",
            "What limit is set by the byelaw 61?",
        ),
        (
            "How high is the bridge built by Corin Hale?",
            "Which bridge was built by Corin Hale?",
            "Pell Bridge",
            "How high is Pell Bridge?",
        ),
        (
            "Who invented the device with which the Tern sounded the gully?",
            "Which device is it with which the Tern sounded the gully?",
            "lead line",
            "Who invented the device lead line?",
        ),
    ],
)
def test_a_description_is_asked_for_and_replaced_by_a_name(
    question: str, look_up: str, answer: str, left: str
) -> None:
    longest = max(descriptions(question), key=lambda found: len(found.phrase))
    assert (longest.look_up, longest.named(question, answer)) == (look_up, left)


def test_a_verb_that_did_calls_for_is_no_part_of_a_description() -> None:
    question = "At which light did the rescuer of the Tern later become keeper?"
    assert "the rescuer of the Tern later become keeper" not in {
        found.phrase for found in descriptions(question)
    }


def test_an_answer_that_the_model_does_not_stand_by_is_not_believed() -> None:
    other = "The mill at Orrin Ford was drawn by Jonas Ash, its designer, in 1886."
    inner = reader([], {"mill": "Tamsin Hale", "Ford": "Jonas Ash"}, doubted="Tamsin Hale")
    results = page(("P1", MILL), ("P4", other))
    calls = drive(inner, "Who designed the mill at Orrin Ford?", lambda query: results)
    assert sent(calls)["message"] == "Jonas Ash"


def test_of_answers_confirmed_only_in_context_the_nearest_is_taken() -> None:
    lamp = "No. 7. Brass lamp with two wicks and a hood. With a year's oil: 14 crowns."
    kettle = "No. 9. Copper kettle for the galley, two handles. With a lid: 31 crowns."
    inner = reader([], {"kettle": "crowns"}, doubted="")

    def reply(request: ChatRequest) -> AssistantMessage:
        asked = request.messages[-1].text
        if "answered" in request.response_schema["properties"]:
            sentence = asked.split("\n", 1)[0]
            return say(json.dumps({"answered": "yes" if "No." in sentence else "no"}))
        if asked.startswith("<passage>"):
            return say(json.dumps({"answer": "14 crowns" if "lamp" in asked else "31 crowns"}))
        return inner.complete(request).message

    results = page(("P1", lamp), ("P2", kettle))
    chat = ScriptedChat(reply, counter=CharacterCounter())
    calls = drive(chat, "How much does a copper kettle with two handles cost?", lambda q: results)
    assert sent(calls)["message"] == "31 crowns"


def test_other_words_are_tried_before_further_pages() -> None:
    first = replace(page(("P2", BORN)), last_page=5)
    other = "Whose painting shows the mill at Orrin Ford?"
    calls = drive(reader([], {}, other=other), "Who painted Orrin Ford?", lambda query: first)
    searched = [json.loads(call.arguments) for call in calls[:-1]]
    assert [(call["query"] == other, call["page"]) for call in searched] == [
        (True, 0),
        (False, 1),
        (True, 1),
        (False, 2),
        (True, 2),
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
        ["When was the mill at Orrin Ford opened?"],
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
        ("Who made a picture of the mill?", "Orrin Ford Who made a picture of the mill?"),
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


def test_a_forced_answer_is_no_fact_on_the_way_to_one() -> None:
    inner = reader([], {"designer": "Tamsin Hale", "born": "Kestwick"})
    chat = GuidedChat(inner)
    question = UserMessage("Where was the designer of the mill at Orrin Ford born?")
    first = ToolResult("c0", "archival_memory_search", library(""))
    noted = []
    for _ in range(2):
        noted += chat.complete(ChatRequest((question, first), SPECS)).message.calls
    assert "Tamsin Hale" in noted[1].arguments
    [call] = chat.complete(ChatRequest((question, first), SPECS[-1:])).message.calls
    assert json.loads(call.arguments)["not_found"] is True


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
    assert accepted_quote(asked, answer, passage(text)) == ""


def test_the_quote_is_the_sentence_nearest_to_the_look_up() -> None:
    text = "It closed in 1887 for a year. " + MILL + " The rent was nine crowns a year."
    assert accepted_quote("When was the Orrin Ford mill opened?", "1887", passage(text)) == MILL


def test_where_names_stand_apart_the_passages_with_half_of_them_are_read() -> None:
    inner = reader([], {"designed": "Tamsin Hale"}, other="Who drew it?")
    asked = "Who designed the mill at Orrin Ford for Corin Pell?"
    calls = drive(inner, asked, library)
    assert sent(calls)["message"] == "Tamsin Hale"
    unnamed = "Who designed the lock for Tamsin Voss?"
    assert sent(drive(inner, unnamed, library))["not_found"] is True
    far = "Who designed the mill at Orrin for Edda Voss of Lunen?"
    assert sent(drive(inner, far, library))["not_found"] is True


def test_what_a_passage_has_of_two_things_asked_for_is_an_answer() -> None:
    inner = reader([], {"born": "1851; none"}, other="")
    asked = "When was Tamsin Hale born and when did she die?"
    reply = ScriptedChat(
        lambda request: (
            say(json.dumps({"answer": "1851; none"}))
            if "answer" in request.response_schema["properties"]
            else inner.complete(request).message
        ),
        counter=CharacterCounter(),
    )
    assert sent(drive(reply, asked, library))["message"] == "1851"


def test_of_what_a_passage_is_about_the_quote_is_what_is_said_of_it() -> None:
    text = "# Corin Hale\n\nCorin Hale was a builder of locks. In 1902 he opened the lock at Pell."
    about = passage(text, "corpus/people.md § Corin Hale, line 1")
    asked = "Who opened the lock at Pell?"
    assert accepted_quote(asked, "Corin Hale", about) == "In 1902 he opened the lock at Pell."
    elsewhere = passage(text, "corpus/people.md, line 1")
    assert "Corin Hale" in accepted_quote(asked, "Corin Hale", elsewhere)


def test_a_row_of_a_table_is_quoted_alone() -> None:
    rows = [
        f"Wayland {name} 44,8{at} steam tug 190{at} Hallett Bros 221 12{at}"
        for at, name in enumerate(("Lea", "Mere", "Oak"))
    ]
    assert (
        accepted_quote("In what year was the Wayland Oak built?", "1902", passage("\n".join(rows)))
        == rows[2]
    )


def test_a_short_line_is_quoted_with_its_neighbours() -> None:
    text = "Vessel\nSaltire\n438 tons\n1889\nBrig"
    quote = accepted_quote("What tonnage had the Saltire?", "438 tons", passage(text))
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
        Failure("no room for this result. Ask again."),
        PlainText(""),
        AlreadyShown(("P1",), None),
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
    replies: list[str], results: list[FunctionResult], question: str, window: int
) -> None:
    inner = ScriptedChat(
        lambda request: say(replies[len(inner.requests) % len(replies)]),
        counter=CharacterCounter(),
    )
    calls = drive(inner, question, lambda query: results[len(query) % len(results)], window=window)
    assert calls[-1].name == "send_message"
    for request in inner.requests:
        assert inner.prompt_tokens(request) + request.max_tokens <= window

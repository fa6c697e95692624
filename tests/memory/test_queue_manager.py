"""The queue manager: what leaves, what stays, what is warned of, and what a prompt keeps."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.errors import BudgetReached, ModelError
from docpager.function_results import SearchPage, ShownPassage
from docpager.memory.fifo import FifoQueue
from docpager.memory.queue_manager import Flush, Frame, QueueManager, reply_reserve
from docpager.memory.summary import ExtractiveSummarizer, ModelSummarizer
from docpager.messages import (
    AssistantMessage,
    ChatRequest,
    Message,
    ToolCall,
    ToolResult,
    Turn,
    UserMessage,
)
from docpager.testing import CharacterCounter, ScriptedChat, call, say
from tests.agent.worlds import World

COUNTER = CharacterCounter()


class Log:
    """Recall storage as a list."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def record(self, messages: Sequence[Message]) -> None:
        self.messages += messages


class FactorChat(ScriptedChat):
    """A chat whose estimate can be corrected upward, as by an endpoint's own counts."""

    factor = 1.0

    def prompt_tokens(self, request: ChatRequest) -> int:
        return int(super().prompt_tokens(request) * self.factor)


class Flood:
    """A summarizer that returns far more than it may."""

    def summarize(self, previous: str, evicted: Sequence[Message], limit: int) -> str:
        return previous + "too much " * 2000


def manager_of(
    window: int = 3000, summarizer: object | None = None, chat: ScriptedChat | None = None
) -> tuple[QueueManager, Log, list[Flush]]:
    log, flushes = Log(), []
    manager = QueueManager(
        chat=chat or ScriptedChat([], counter=COUNTER),
        frame=Frame("Do your work. " * 20, (), lambda: "notes", window),
        queue=FifoQueue(),
        recall=log,
        summarizer=summarizer or ExtractiveSummarizer(COUNTER),
        counter=COUNTER,
        on_flush=flushes.append,
    )
    return manager, log, flushes


def exchange(number: int, size: int) -> Turn:
    asked = ToolCall(f"c{number}", "archival_memory_search", f'{{"query": "{number}"}}')
    shown = ShownPassage(f"P{number}", "word" * size, "a.pdf p. 1")
    result = ToolResult(f"c{number}", asked.name, SearchPage((shown,), 1, 0, 0))
    return Turn((AssistantMessage("", (asked,)), result))


QUESTION = Turn((UserMessage("Which mill?"),))


def test_a_flush_leaves_half_keeps_question_and_newest_and_summarises_the_rest() -> None:
    manager, log, flushes = manager_of()
    manager.append(QUESTION)
    turns = [exchange(number, 150) for number in range(14)]
    for turn in turns:
        manager.append(turn)
    manager.relieve_pressure()
    [flush] = flushes
    kept = manager.queue.turns
    assert kept[0] == QUESTION
    assert kept[-1] == turns[-1]
    assert list(kept[1:]) == turns[-len(kept) + 1 :]
    assert flush.after <= manager.usable * 0.5 + manager.summary_limit
    assert "[P0]" in manager.queue.summary or "[P1]" in manager.queue.summary
    assert len(log.messages) == 1 + 2 * len(turns)


def test_the_warning_goes_out_once_a_pressure_period() -> None:
    manager, _, _ = manager_of()
    manager.append(QUESTION)
    number, warnings = 0, []
    for _ in range(3):
        while manager.pressure < 0.72:
            number += 1
            manager.append(exchange(number, 60))
        for _ in range(3):
            warning = manager.relieve_pressure()
            if warning is not None:
                warnings.append(warning)
                manager.append(warning)
        manager.flush(keep_last=1)
    assert len(warnings) == 3
    assert "Memory pressure" in warnings[0].messages[0].text


def test_a_summary_that_is_too_long_is_held_to_its_limit() -> None:
    manager, _, _ = manager_of(summarizer=Flood())
    manager.append(QUESTION)
    for number in range(20):
        manager.append(exchange(number, 150))
        request = manager.request()
        assert manager._chat.prompt_tokens(request) + request.max_tokens <= 3000
    assert manager.cost((UserMessage(manager.queue.summary, "summary"),)) <= manager.summary_limit


def test_a_reply_far_over_its_reserve_is_cut_in_the_queue_and_whole_in_recall() -> None:
    manager, log, _ = manager_of()
    manager.append(QUESTION)
    manager.append(Turn((say("endless " * 4000),)))
    request = manager.request()
    assert manager._chat.prompt_tokens(request) + request.max_tokens <= 3000
    assert log.messages[-1].text == "endless " * 4000


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 160), min_size=1, max_size=25),
    factor=st.floats(1.0, 1.6),
    at=st.integers(0, 24),
)
def test_a_correction_of_the_estimate_never_makes_a_request_too_large(
    sizes: list[int], factor: float, at: int
) -> None:
    chat = FactorChat([], counter=COUNTER)
    manager, _, _ = manager_of(chat=chat)
    manager.append(QUESTION)
    for number, size in enumerate(sizes):
        manager.append(exchange(number, size))
        if number == at:
            chat.factor = factor
        manager.relieve_pressure()
        request = manager.request()
        assert chat.prompt_tokens(request) + request.max_tokens <= 3000
        assert request.messages[1].kind in ("question", "summary")


def test_a_window_without_room_for_question_and_result_says_so() -> None:
    manager, _, _ = manager_of(window=2048)
    manager.append(Turn((UserMessage("why " * 2100),)))
    with pytest.raises(ModelError, match="larger --context-window"):
        manager.request()


@pytest.mark.parametrize(("window", "reserve"), [(2048, 170), (8192, 682), (200_000, 1024)])
def test_the_reply_reserve_grows_with_the_window(window: int, reserve: int) -> None:
    assert reply_reserve(window) == reserve


def test_prompts_keep_nine_tenths_of_the_one_before_away_from_flushes() -> None:
    documents = {
        f"corpus/d{n}.pdf": [f"Entry {n} about the mill. " + "Words of it. " * 60]
        for n in range(60)
    }
    searches = [call("archival_memory_search", query=f"mill {n}") for n in range(20)]
    world = World(
        [*searches, *[call("send_message", message="x", not_found=True)] * 2], documents=documents
    )
    world.ask("mill")
    flushed = {event["step"] for event in world.trace.events if event["event"] == "flush"}
    texts = ["\x00".join(m.text for m in request.messages) for request in world.chat.requests]
    kept = [
        len(common_prefix(before, after)) / len(before)
        for step, (before, after) in enumerate(itertools.pairwise(texts), 1)
        if step not in flushed
    ]
    assert len(kept) >= 10
    assert statistics.median(kept) >= 0.9


def common_prefix(first: str, second: str) -> str:
    return "".join(
        a
        for a, _ in itertools.takewhile(
            lambda pair: pair[0] == pair[1], zip(first, second, strict=False)
        )
    )


# ---- summaries -----------------------------------------------------------------------------------

MESSAGES = [message for number in range(30) for message in exchange(number, 80).messages]


def test_the_model_is_given_the_old_summary_and_what_is_evicted() -> None:
    chat = ScriptedChat([say("Lane built it [P3].")], counter=COUNTER)
    fallback = ExtractiveSummarizer(COUNTER)
    made = ModelSummarizer(chat, COUNTER, 8192, fallback).summarize("old facts", MESSAGES[:4], 200)
    assert made == "Lane built it [P3]."
    assert "old facts" in chat.requests[0].messages[1].text
    assert "[P1]" in chat.requests[0].messages[1].text


def test_too_much_to_summarise_at_once_is_summarised_in_parts_that_fit() -> None:
    chat = ScriptedChat(lambda request: say(f"part {len(chat.requests)}"), counter=COUNTER)
    fallback = ExtractiveSummarizer(COUNTER)
    made = ModelSummarizer(chat, COUNTER, 2048, fallback).summarize("", MESSAGES, 150)
    assert len(chat.requests) > 1
    assert made == f"part {len(chat.requests)}"
    assert "part 1" in chat.requests[1].messages[1].text
    for request in chat.requests:
        assert chat.prompt_tokens(request) + request.max_tokens <= 2048


@pytest.mark.parametrize(
    "reply", [ModelError("down"), BudgetReached("tokens", "none left"), say(""), say("  ")]
)
def test_a_model_that_gives_no_summary_is_replaced_by_code(reply: object) -> None:
    chat = ScriptedChat([reply] * 9, counter=COUNTER)
    fallback = ExtractiveSummarizer(COUNTER)
    made = ModelSummarizer(chat, COUNTER, 4096, fallback).summarize("old", MESSAGES, 300)
    assert made == fallback.summarize("old", MESSAGES, 300)
    assert "[P29]" in made


@given(st.integers(1, 400), st.text(max_size=300))
def test_an_extractive_summary_stays_within_its_limit(limit: int, previous: str) -> None:
    made = ExtractiveSummarizer(COUNTER).summarize(previous, MESSAGES, limit)
    assert COUNTER.count(made) <= limit

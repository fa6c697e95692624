"""The queue: whole Turns leave from the front, never the question, never the newest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from docpager.function_results import PlainText
from docpager.memory.fifo import FifoQueue
from docpager.messages import AssistantMessage, ToolCall, ToolResult, Turn, UserMessage


def turn(number: int) -> Turn:
    call = ToolCall(f"c{number}", "read_document", "{}")
    return Turn(
        (AssistantMessage("", (call,)), ToolResult(call.call_id, call.name, PlainText("text")))
    )


@given(
    count=st.integers(0, 12),
    question_at=st.integers(0, 12),
    excess=st.integers(-3, 20),
    keep_last=st.integers(0, 4),
)
def test_what_leaves_is_a_prefix_without_the_question_and_order_is_kept(
    count: int, question_at: int, excess: int, keep_last: int
) -> None:
    queue = FifoQueue()
    turns = [turn(number) for number in range(count)]
    turns.insert(min(question_at, count), Turn((UserMessage("why?"),)))
    for item in turns:
        queue.append(item)
    evicted = queue.evict(excess, lambda _: 1, keep_last)
    assert len(evicted) <= max(0, excess)
    assert [item for item in turns if item in evicted] == list(evicted)
    assert [item for item in turns if item not in evicted] == list(queue.turns)
    assert any(item.is_question for item in queue.turns)
    if keep_last:
        assert queue.turns[-1] == turns[-1]
    if len(evicted) < excess:
        left = queue.turns[: max(0, len(queue.turns) - keep_last)]
        assert all(item.is_question for item in left)


def test_a_result_is_in_sight_until_its_turn_leaves() -> None:
    queue = FifoQueue()
    for number in range(3):
        queue.append(turn(number))
    queue.evict(1, lambda _: 1, keep_last=1)
    assert [queue.holds_result(f"c{number}") for number in range(3)] == [False, True, True]


def test_the_summary_is_the_head() -> None:
    queue = FifoQueue("earlier facts")
    queue.append(turn(1))
    assert [message.role for message in queue.messages()] == ["user", "assistant", "tool"]
    assert queue.messages()[0].text.endswith("earlier facts")

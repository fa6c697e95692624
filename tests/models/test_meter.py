from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.errors import BudgetReached, ModelError
from docpager.messages import ChatReply, ChatRequest, UserMessage
from docpager.models.meter import Meter, Reserve, RunLimits
from docpager.testing import FrozenClock, ScriptedChat, say
from docpager.types import Usage

ASKED = ChatRequest((UserMessage("Who built the mill?"),), max_tokens=50)


def spending(usage: Usage, clock: FrozenClock | None = None, seconds: float = 0.0) -> ScriptedChat:
    """A chat whose every call costs `usage` and takes `seconds`."""

    def reply(request: ChatRequest) -> ChatReply:
        if clock is not None:
            clock.advance(seconds)
        return ChatReply(say("ok"), usage)

    return ScriptedChat(reply)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), max_size=9))
def test_the_usage_is_the_sum_of_all_calls(spent: list[tuple[int, int, int]]) -> None:
    replies = [ChatReply(say("ok"), Usage(*tokens)) for tokens in spent]
    meter = Meter(ScriptedChat(replies), FrozenClock())
    for _ in spent:
        meter.complete(ASKED)
    assert meter.calls == len(spent)
    assert meter.usage == Usage(*(sum(kind) for kind in zip(*spent, strict=True)))


@given(st.integers(0, 2_000), st.integers(1, 60), st.integers(1, 50), st.integers(0, 300))
def test_no_call_goes_past_the_bound(limit: int, prompt: int, completion: int, kept: int) -> None:
    # A call costs at most what was counted for it beforehand: the law is for honest counts.
    inner = spending(Usage(min(prompt, 8), 0, completion))
    meter = Meter(
        inner, FrozenClock(), limits=RunLimits(tokens=limit), reserve=Reserve(tokens=kept)
    )
    with pytest.raises(BudgetReached) as reached:
        while True:
            meter.complete(ASKED)
    assert reached.value.stopped_by == "tokens"
    assert "--max-tokens" in str(reached.value)
    assert meter.usage.total_tokens <= max(limit - kept, 0)


def test_the_refused_call_is_not_made() -> None:
    inner = spending(Usage(10, 0, 10))
    meter = Meter(inner, FrozenClock(), limits=RunLimits(tokens=10))
    with pytest.raises(BudgetReached):
        meter.complete(ASKED)
    assert inner.requests == []
    assert meter.usage == Usage()


def test_the_reserve_is_for_the_last_call() -> None:
    needed = ScriptedChat([]).prompt_tokens(ASKED) + ASKED.max_tokens
    inner = spending(Usage(5, 0, 5))
    meter = Meter(inner, FrozenClock(), limits=RunLimits(tokens=needed), reserve=Reserve(tokens=1))
    assert meter.limit_reached(needed, 0) == "tokens"
    with pytest.raises(BudgetReached):
        meter.complete(ASKED)
    meter.release_reserve()
    assert meter.limit_reached(needed, 0) is None
    meter.complete(ASKED)
    assert len(inner.requests) == 1


def test_no_call_begins_after_the_deadline() -> None:
    clock = FrozenClock()
    meter = Meter(
        spending(Usage(), clock, seconds=4.0),
        clock,
        limits=RunLimits(seconds=10.0),
        reserve=Reserve(seconds=1.0),
    )
    for _ in range(3):
        meter.complete(ASKED)
    assert meter.limit_reached(1, 0) == "time"
    with pytest.raises(BudgetReached, match="--timeout") as reached:
        meter.complete(ASKED)
    assert reached.value.stopped_by == "time"


def test_the_seconds_kept_back_are_for_the_last_call() -> None:
    clock = FrozenClock()
    meter = Meter(
        spending(Usage()), clock, limits=RunLimits(seconds=10.0), reserve=Reserve(seconds=5.0)
    )
    clock.advance(6.0)
    assert meter.limit_reached(1, 0) == "time"
    meter.release_reserve()
    assert meter.complete(ASKED).message == say("ok")


def test_without_bounds_nothing_is_refused() -> None:
    clock = FrozenClock()
    meter = Meter(spending(Usage(10**9, 0, 10**9)), clock)
    meter.complete(ASKED)
    clock.advance(10**9)
    assert meter.limit_reached(10**9, 0) is None


def test_each_call_is_told_with_the_time_it_took() -> None:
    clock = FrozenClock()
    told: list[tuple[ChatRequest, ChatReply, float]] = []
    meter = Meter(
        spending(Usage(1, 0, 1), clock, seconds=2.5),
        clock,
        on_call=lambda request, reply, elapsed: told.append((request, reply, elapsed)),
    )
    reply = meter.complete(ASKED)
    assert told == [(ASKED, reply, 2.5)]


def test_a_failed_call_costs_nothing_and_is_passed_on() -> None:
    meter = Meter(ScriptedChat([ModelError("down"), say("ok")]), FrozenClock())
    with pytest.raises(ModelError, match="down"):
        meter.complete(ASKED)
    assert meter.calls == 0
    assert meter.complete(ASKED).message == say("ok")


def test_it_speaks_and_counts_as_the_chat_inside() -> None:
    inner = ScriptedChat([], tool_mode="text")
    meter = Meter(inner, FrozenClock())
    assert meter.tool_mode == "text"
    assert meter.prompt_tokens(ASKED) == inner.prompt_tokens(ASKED)

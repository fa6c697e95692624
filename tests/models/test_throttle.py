"""The throttle halves, pauses and grows; the budget holds every call back beforehand."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.clocks import SystemClock, WorkClock
from docpager.errors import BudgetReached, ModelError
from docpager.messages import ChatReply, ChatRequest, UserMessage
from docpager.models.budget import BatchBound, BudgetedChat, SharedBudget
from docpager.models.endpoint import Endpoint
from docpager.models.throttle import LongPause, Throttle, WaitInterrupted
from docpager.testing import (
    FrozenClock,
    LoopbackReply,
    LoopbackServer,
    ScriptedChat,
    say,
    wire_reply,
)
from docpager.types import Price, Usage

REQUEST = ChatRequest((UserMessage("x" * 360),), max_tokens=6)  # 94 tokens as ScriptedChat counts


def good(throttle: Throttle) -> None:
    with throttle.slot():
        throttle.succeeded()


def bad(throttle: Throttle, delay: float | None = None) -> None:
    with throttle.slot() as turn:
        throttle.rate_limited(turn, delay)


def test_a_refusal_halves_and_good_replies_let_one_more_through() -> None:
    throttle = Throttle(16, SystemClock())
    seen = []
    for _ in range(6):
        bad(throttle)
        seen.append(throttle.allowed)
    assert seen == [8, 4, 2, 1, 1, 1]
    for _ in range(sum(range(1, 16))):
        good(throttle)
    assert throttle.allowed == 16
    for _ in range(100):
        good(throttle)
    assert throttle.allowed == 16
    assert throttle.traffic.fewest_at_once == 1


def test_refusals_of_calls_that_were_under_way_together_count_once() -> None:
    throttle = Throttle(8, SystemClock())
    with throttle.slot() as one, throttle.slot() as two, throttle.slot() as three:
        for turn in (one, two, three):
            throttle.rate_limited(turn, None)
    assert throttle.allowed == 4


def test_nothing_is_sent_before_the_time_that_was_named() -> None:
    throttle = Throttle(4, SystemClock())
    bad(throttle, 0.2)
    with throttle.slot() as turn:
        assert turn.waited >= 0.15


def test_a_pause_beyond_patience_ends_the_wait_and_says_how_long_it_is() -> None:
    throttle = Throttle(4, FrozenClock())
    bad(throttle, 3600.0)
    with pytest.raises(LongPause) as caught, throttle.slot(600.0):
        pass
    assert caught.value.seconds == 3600.0


@pytest.mark.parametrize("delay", [3600.0, 11.0])
def test_nobody_waits_beyond_the_end_of_all(delay: float) -> None:
    clock = FrozenClock()
    throttle = Throttle(4, clock, ends_at=10.0)
    throttle.rest(9.0)
    with pytest.raises(BatchBound), throttle.slot() as turn:
        throttle.rate_limited(turn, delay)
        throttle.rest(delay)
    with pytest.raises(BatchBound), throttle.slot(600.0):
        pass
    assert clock.monotonic() == 9.0


def test_who_is_interrupted_no_longer_waits_but_may_send_what_need_not_wait() -> None:
    stop = threading.Event()
    throttle = Throttle(1, SystemClock(), interrupted=stop.is_set)
    heard: list[type[Exception]] = []
    sent: list[str] = []

    def wait() -> None:
        try:
            good(throttle)
            sent.append("waiting")
        except WaitInterrupted as error:
            heard.append(type(error))

    with throttle.slot():
        sent.append("first")
        waiting = threading.Thread(target=wait)
        waiting.start()
        stop.set()
        waiting.join()
        with pytest.raises(WaitInterrupted):
            throttle.rest(500.0)
    good(throttle)
    sent.append("last")
    assert heard == [WaitInterrupted]
    assert sent == ["first", "last"]


def test_a_call_behind_a_long_pause_fails_unasked_and_says_why() -> None:
    clock = FrozenClock()
    reply = LoopbackReply({"error": {"message": "slow"}}, 429, {"retry-after": "3600"})
    with LoopbackServer(lambda request: reply) as server:
        throttle = Throttle(4, clock)
        endpoint = Endpoint(server.base_url, None, clock=clock, throttle=throttle)
        for words in ("asks to wait 3600 s, ", "asks to wait 3600 s more"):
            with pytest.raises(ModelError, match=words):
                endpoint.post("/chat/completions", {"model": "m"}, lambda reply: reply)
        endpoint.close()
        assert len(server.requests) == 1


@given(st.lists(st.booleans(), max_size=60))
def test_it_stays_between_one_and_the_most(replies: list[bool]) -> None:
    throttle = Throttle(5, SystemClock())
    for is_good in replies:
        (good if is_good else bad)(throttle)
        assert 1 <= throttle.allowed <= 5


def test_no_more_are_in_flight_than_allowed() -> None:
    throttle = Throttle(3, SystemClock())
    flying, most, sent = [0], [0], [0]
    lock = threading.Lock()

    def send() -> None:
        for _ in range(5):
            with throttle.slot():
                with lock:
                    flying[0] += 1
                    sent[0] += 1
                    most[0] = max(most[0], flying[0])
                time.sleep(0.002)
                with lock:
                    flying[0] -= 1

    threads = [threading.Thread(target=send) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 3
    assert sent[0] == 45


def test_what_is_waited_for_a_rate_limit_is_told_and_not_counted() -> None:
    slow = LoopbackReply({"error": {"message": "slow"}}, 429)
    replies = [
        LoopbackReply(slow.body, 429, {"retry-after": "30"}),
        LoopbackReply(slow.body, 429, {"x-ratelimit-reset-requests": "1m30s"}),
        wire_reply(say("a")),
    ]
    clock, work = FrozenClock(), WorkClock()
    before = work.monotonic()
    with LoopbackServer(replies) as server:
        endpoint = Endpoint(server.base_url, None, clock=clock, throttle=Throttle(4, clock))
        endpoint.for_run(work.exclude).post(
            "/chat/completions", {"model": "m"}, lambda reply: reply
        )
        endpoint.close()
    assert sum(clock.slept) == 120
    assert work.monotonic() - before < 0  # two minutes less than the real time that went by


def test_a_call_that_could_go_beyond_the_bound_is_not_made() -> None:
    inner = ScriptedChat([ChatReply(say("a"), Usage(60, 0, 4))] * 9)
    chat = BudgetedChat(inner, SharedBudget(max_tokens=250))
    for _ in range(3):
        chat.complete(REQUEST)
    with pytest.raises(BudgetReached) as caught:
        chat.complete(REQUEST)
    assert (caught.value.stopped_by, chat.refused_by, len(inner.requests)) == (
        "tokens",
        "tokens",
        3,
    )


@given(st.lists(st.integers(1, 100), min_size=1, max_size=12), st.integers(100, 600))
def test_however_many_ask_at_once_the_bound_holds(sizes: list[int], most: int) -> None:
    budget = SharedBudget(Price(1000.0, 1000.0), max_cost=most / 1000)

    def spend(size: int) -> None:
        reply = ChatReply(say("a"), Usage(size, 0, 0))
        chat = BudgetedChat(ScriptedChat([reply]), budget)
        try:
            chat.complete(REQUEST)
        except BudgetReached:
            assert (budget.spent.cost_usd or 0) + 0.1 > most / 1000

    threads = [threading.Thread(target=spend, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (budget.spent.cost_usd or 0) <= most / 1000


def test_what_was_held_for_a_call_that_failed_is_free_again() -> None:
    chat = BudgetedChat(ScriptedChat([ModelError("down"), say("a")]), SharedBudget(max_tokens=110))
    with pytest.raises(ModelError):
        chat.complete(REQUEST)
    assert chat.complete(REQUEST).message.text == "a"


def test_the_end_of_one_question_is_not_the_end_of_all() -> None:
    inner = ScriptedChat([BudgetReached("time", "up"), BatchBound("time", "up")])
    chat = BudgetedChat(inner, SharedBudget())
    for refused_by in (None, "time"):
        with pytest.raises(BudgetReached):
            chat.complete(REQUEST)
        assert chat.refused_by == refused_by


def test_without_a_price_only_tokens_are_bounded() -> None:
    budget = SharedBudget(max_cost=0.000001)
    BudgetedChat(ScriptedChat([say("a")]), budget).complete(REQUEST)
    assert budget.spent.cost_usd is None


def test_a_price_counts_cached_tokens_apart() -> None:
    usage = Usage(1_000_000, 400_000, 100_000)
    assert Price(2.0, 8.0, 0.5).cost(usage) == pytest.approx(1.2 + 0.2 + 0.8)
    assert Price(2.0, 8.0).cost(usage) == pytest.approx(2.8)

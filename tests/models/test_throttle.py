"""The throttle halves, pauses and grows; the purse holds every call back beforehand."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.errors import BudgetReached, ModelError
from docpager.messages import ChatReply, ChatRequest, UserMessage
from docpager.models.endpoint import Endpoint
from docpager.models.purse import Purse, PursedChat
from docpager.models.throttle import Throttle
from docpager.testing import (
    FrozenClock,
    LoopbackReply,
    LoopbackServer,
    ScriptedChat,
    say,
    wire_reply,
)
from docpager.types import Price, Usage
from docpager.wiring import SystemClock, WorkClock

REQUEST = ChatRequest((UserMessage("x" * 360),), max_tokens=6)  # 94 tokens as ScriptedChat counts


def good(throttle: Throttle) -> None:
    with throttle.turn():
        throttle.eased()


def bad(throttle: Throttle, delay: float | None = None) -> None:
    with throttle.turn() as turn:
        throttle.pressed(turn, delay)


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
    with throttle.turn() as one, throttle.turn() as two, throttle.turn() as three:
        for turn in (one, two, three):
            throttle.pressed(turn, None)
    assert throttle.allowed == 4


def test_nothing_is_sent_before_the_time_that_was_named() -> None:
    throttle = Throttle(4, SystemClock())
    bad(throttle, 0.2)
    with throttle.turn() as turn:
        assert turn.waited >= 0.15


@given(st.lists(st.booleans(), max_size=60))
def test_it_stays_between_one_and_the_most(replies: list[bool]) -> None:
    throttle = Throttle(5, SystemClock())
    for is_good in replies:
        (good if is_good else bad)(throttle)
        assert 1 <= throttle.allowed <= 5


def test_no_more_are_in_flight_than_allowed() -> None:
    throttle = Throttle(3, SystemClock())
    flying, most = [0], [0]
    lock = threading.Lock()

    def send() -> None:
        for _ in range(5):
            with throttle.turn():
                with lock:
                    flying[0] += 1
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
    assert throttle.traffic.requests == 45


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
        endpoint.telling(work.excuse).post("/chat/completions", {"model": "m"}, lambda reply: reply)
        endpoint.close()
    assert sum(clock.slept) == 120
    assert work.monotonic() - before < 0  # two minutes less than the real time that went by


def test_a_call_that_could_go_beyond_the_bound_is_not_made() -> None:
    inner = ScriptedChat([ChatReply(say("a"), Usage(60, 0, 4))] * 9)
    chat = PursedChat(inner, Purse(max_tokens=250))
    for _ in range(3):
        chat.complete(REQUEST)
    with pytest.raises(BudgetReached) as caught:
        chat.complete(REQUEST)
    assert (caught.value.stopped_by, chat.starved, len(inner.requests)) == ("tokens", "tokens", 3)


@given(st.lists(st.integers(1, 100), min_size=1, max_size=12), st.integers(100, 600))
def test_however_many_ask_at_once_the_bound_holds(sizes: list[int], most: int) -> None:
    purse = Purse(Price(1000.0, 1000.0), max_cost=most / 1000)

    def spend(size: int) -> None:
        reply = ChatReply(say("a"), Usage(size, 0, 0))
        chat = PursedChat(ScriptedChat([reply]), purse)
        try:
            chat.complete(REQUEST)
        except BudgetReached:
            assert (purse.spent.cost_usd or 0) + 0.1 > most / 1000

    threads = [threading.Thread(target=spend, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (purse.spent.cost_usd or 0) <= most / 1000


def test_what_was_held_for_a_call_that_failed_is_free_again() -> None:
    chat = PursedChat(ScriptedChat([ModelError("down"), say("a")]), Purse(max_tokens=110))
    with pytest.raises(ModelError):
        chat.complete(REQUEST)
    assert chat.complete(REQUEST).message.text == "a"


def test_without_a_price_only_tokens_are_bounded() -> None:
    purse = Purse(max_cost=0.000001)
    PursedChat(ScriptedChat([say("a")]), purse).complete(REQUEST)
    assert purse.spent.cost_usd is None


def test_a_price_counts_cached_tokens_apart() -> None:
    usage = Usage(1_000_000, 400_000, 100_000)
    assert Price(2.0, 8.0, 0.5).cost(usage) == pytest.approx(1.2 + 0.2 + 0.8)
    assert Price(2.0, 8.0).cost(usage) == pytest.approx(2.8)

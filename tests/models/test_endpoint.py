from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.errors import BudgetReached, ModelAuthError, ModelError
from docpager.models.endpoint import Endpoint, RetryPolicy
from docpager.models.failures import FailingServer
from docpager.models.replies import UnusableReply
from docpager.testing import FrozenClock, LoopbackReply, LoopbackRequest, LoopbackServer
from tests.models.endpoints import FINE, KEY, endpoint, failing, post

# ---- trying again ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_a_passing_failure_is_tried_again(status: int) -> None:
    clock = FrozenClock()
    with LoopbackServer([failing(status), FINE]) as server:
        assert post(server, clock) == {"fine": True}
    assert len(clock.slept) == 1


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422, 302])
def test_what_cannot_pass_is_not_tried_again(status: int) -> None:
    clock = FrozenClock()
    with LoopbackServer([failing(status), FINE]) as server:
        with pytest.raises(ModelError):
            post(server, clock)
        assert len(server.requests) == 1
    assert clock.slept == []


def test_tries_are_bounded_and_their_delays_double_with_jitter() -> None:
    clock = FrozenClock()
    with LoopbackServer(lambda request: failing(500)) as server:
        with pytest.raises(FailingServer, match="status 500"):
            post(server, clock, jitter=0.0)
        assert len(server.requests) == 6
    assert clock.slept == [0.25, 0.5, 1.0, 2.0, 4.0]


@settings(max_examples=15)
@given(st.floats(0.0, 0.999), st.integers(1, 12), st.floats(1.0, 100.0))
def test_the_time_spent_on_trying_is_bounded(jitter: float, tries: int, total: float) -> None:
    clock = FrozenClock()
    policy = RetryPolicy(tries=tries, connection_tries=tries, total_seconds=total)
    nobody = endpoint("http://127.0.0.1:9/v1", clock, retry=policy, jitter=jitter)
    with pytest.raises(ModelError, match="cannot be reached"):
        nobody.post("/chat/completions", {"model": "m"}, lambda reply: reply)
    nobody.close()
    assert len(clock.slept) < tries
    assert clock.monotonic() <= total


def test_a_server_that_loads_its_model_is_waited_for_by_time_alone() -> None:
    clock = FrozenClock()
    loading = [failing(503)] * 9
    with LoopbackServer([*loading, FINE]) as server:
        assert post(server, clock) == {"fine": True}
    assert len(clock.slept) == 9


def test_a_server_that_loads_for_ever_is_given_up() -> None:
    clock = FrozenClock()
    with (
        LoopbackServer(lambda request: failing(503)) as server,
        pytest.raises(FailingServer),
    ):
        post(server, clock, retry=RetryPolicy(total_seconds=20))
    assert 0 < clock.monotonic() <= 20


CUT = LoopbackReply({"text": "x" * 500}, cut=True)


def test_a_cut_connection_is_tried_again() -> None:
    with LoopbackServer([CUT, FINE]) as server:
        assert post(server, FrozenClock()) == {"fine": True}


def test_a_reply_that_breaks_off_has_as_many_tries_as_a_failing_server() -> None:
    clock = FrozenClock()
    with LoopbackServer([CUT, failing(429), CUT, failing(500), CUT, FINE]) as server:
        assert post(server, clock) == {"fine": True}
    with LoopbackServer(lambda request: CUT) as server:
        with pytest.raises(ModelError, match=r"broke off.*Try again"):
            post(server, clock)
        assert len(server.requests) == 6


def test_a_slow_endpoint_times_out_with_its_name() -> None:
    with (
        LoopbackServer(lambda request: LoopbackReply({}, delay_s=20.0)) as server,
        pytest.raises(ModelError, match=r"127\.0\.0\.1.* did not answer within 0\.1 s"),
    ):
        post(server, FrozenClock(), timeout_s=0.1)


def test_an_endpoint_that_is_down_is_given_up_sooner() -> None:
    clock = FrozenClock()
    nobody = endpoint("http://127.0.0.1:9/v1", clock)
    with pytest.raises(ModelError, match=r"cannot be reached.*Start the server"):
        nobody.post("/chat/completions", {"model": "m"}, lambda reply: reply)
    nobody.close()
    assert len(clock.slept) == 3


def test_an_unusable_reply_is_asked_for_again() -> None:
    seen: list[object] = []

    def second_only(reply: object) -> str:
        seen.append(reply)
        if len(seen) == 1:
            raise UnusableReply("Empty. Try again.")
        return "read"

    with LoopbackServer([FINE, FINE]) as server:
        made = endpoint(server.base_url, FrozenClock())
        assert made.post("/chat/completions", {"model": "m"}, second_only) == "read"
        made.close()


def test_a_page_of_html_is_not_an_api() -> None:
    with (
        LoopbackServer(lambda request: LoopbackReply("<html>Welcome</html>")) as server,
        pytest.raises(ModelError, match=r"not answer in JSON but: <html>Welcome.*/v1"),
    ):
        # However patient one is with limits: there is nothing to wait for.
        post(server, FrozenClock(), retry=RetryPolicy(tries=20, total_seconds=600))
    assert len(server.requests) == 4


def test_a_longer_delay_than_we_are_ready_to_wait_is_not_waited_for() -> None:
    clock = FrozenClock()
    with LoopbackServer([failing(429, retry_after="3600"), FINE]) as server:
        with pytest.raises(ModelError, match=r"429.*asks to wait 3600 s.*after 180 s") as caught:
            post(server, clock)
        assert len(server.requests) == 1
    assert "asked again" not in str(caught.value)
    assert clock.slept == []


@pytest.mark.parametrize("after", ["0", "0.01", "Sun, 31 Dec 2023 00:00:00 GMT"])
def test_a_wait_that_is_named_is_never_shorter_than_the_usual_one(after: str) -> None:
    clock = FrozenClock()
    with LoopbackServer(lambda request: failing(429, retry_after=after)) as server:
        with pytest.raises(ModelError, match="asked again without success"):
            post(server, clock)
        assert len(server.requests) == 6
    assert clock.slept == [0.25, 0.5, 1.0, 2.0, 4.0]


# ---- the time of whoever asks ----------------------------------------------------------------


@pytest.mark.parametrize(
    "reply", [LoopbackReply({}, delay_s=20.0), failing(500), CUT], ids=["slow", "500", "cut"]
)
def test_nothing_is_tried_again_when_the_time_of_the_asker_is_up(reply: LoopbackReply) -> None:
    left = [0.2]

    def answer(request: LoopbackRequest) -> LoopbackReply:
        left.append(0.0)
        return reply

    with LoopbackServer(answer) as server:
        made = endpoint(server.base_url, FrozenClock(), timeout_s=20.0)
        asking = made.for_run(lambda seconds: None, lambda: left[-1])
        with pytest.raises(BudgetReached, match=r"--timeout") as caught:
            asking.post("/chat/completions", {"model": "m"}, lambda reply: reply)
        assert caught.value.stopped_by == "time"
        with pytest.raises(BudgetReached):
            asking.post("/chat/completions", {"model": "m"}, lambda reply: reply)
        made.close()
        assert len(server.requests) == 1


def test_without_a_key_a_local_server_is_sent_a_placeholder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", KEY)
    monkeypatch.setenv("OPENAI_PROJECT_ID", KEY)
    with LoopbackServer([FINE]) as server:
        made = endpoint(server.base_url, FrozenClock(), key=None)
        made.post("/chat/completions", {"model": "m"}, lambda reply: reply)
        made.close()
        assert KEY not in str(server.requests[0].headers)


def test_openai_itself_is_not_asked_without_a_key() -> None:
    made = Endpoint(None, None, clock=FrozenClock())
    assert made.is_openai
    with pytest.raises(ModelAuthError, match="OPENAI_API_KEY"):
        made.post("/chat/completions", {"model": "m"}, lambda reply: reply)


def test_a_redirect_is_not_followed() -> None:
    with LoopbackServer([FINE]) as elsewhere:
        there = f"{elsewhere.base_url}/chat/completions"
        moved = LoopbackReply({}, 307, {"location": there})
        with (
            LoopbackServer([moved]) as server,
            pytest.raises(ModelError, match=r"307.*Check --base-url"),
        ):
            post(server, FrozenClock())
        assert elsewhere.requests == []

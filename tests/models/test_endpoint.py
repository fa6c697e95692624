from __future__ import annotations

import traceback
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docpager.errors import BudgetReached, ModelAuthError, ModelError
from docpager.models.endpoint import (
    Endpoint,
    FailingServer,
    RefusedRequest,
    RetryPolicy,
    UnusableReply,
    asked_delay,
    parse_duration,
)
from docpager.testing import FrozenClock, LoopbackReply, LoopbackRequest, LoopbackServer

KEY = "sk-live-0123456789abcdef"
PATIENT = RetryPolicy()
FINE = LoopbackReply({"fine": True})


def endpoint(
    base_url: str,
    clock: FrozenClock,
    *,
    key: str | None = KEY,
    retry: RetryPolicy = PATIENT,
    timeout_s: float = 30.0,
    jitter: float = 0.0,
) -> Endpoint:
    return Endpoint(
        base_url, key, clock=clock, retry=retry, timeout_s=timeout_s, random=lambda: jitter
    )


def post(server: LoopbackServer, clock: FrozenClock, **chosen: Any) -> object:
    made = endpoint(server.base_url, clock, **chosen)
    try:
        return made.post("/chat/completions", {"model": "m"}, lambda reply: reply)
    finally:
        made.close()


def failing(status: int, code: str | None = None, **headers: str) -> LoopbackReply:
    body: dict[str, object] = {"error": {"message": f"status {status}", "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return LoopbackReply(body, status, named)


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


# ---- what the endpoint asks for --------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "slept"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0"}, 0.25),
        ({"retry_after_ms": "1500"}, 1.5),
        ({"retry_after": "7", "x_ratelimit_reset_tokens": "1m"}, 7.0),
        ({"x_ratelimit_reset_tokens": "1m30s"}, 90.0),
        ({"x_ratelimit_reset_tokens": "6ms", "x_ratelimit_reset_requests": "2s"}, 2.0),
        (
            {
                "x_ratelimit_reset_tokens": "6s",
                "x_ratelimit_remaining_tokens": "0",
                "x_ratelimit_reset_requests": "1m",
                "x_ratelimit_remaining_requests": "40",
            },
            6.0,
        ),
        ({"retry_after": "soon"}, 0.25),
        ({}, 0.25),
    ],
)
def test_the_delay_that_the_endpoint_asks_for_is_kept(
    headers: dict[str, str], slept: float
) -> None:
    clock = FrozenClock()
    with LoopbackServer([failing(429, **headers), FINE]) as server:
        post(server, clock)
    assert clock.slept == [pytest.approx(slept)]


def test_a_date_to_come_back_at_is_kept() -> None:
    clock = FrozenClock()
    later = format_datetime(clock.now() + timedelta(seconds=42), usegmt=True)
    assert asked_delay({"retry-after": later}, clock) == 42.0
    clock.advance(100)
    assert asked_delay({"retry-after": later}, clock) == 0.0


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1m30s", 90.0),
        ("6ms", 0.006),
        ("7.66s", 7.66),
        ("2h", 7200.0),
        ("1d2h3m4s", 93784.0),
        ("12", 12.0),
        ("", None),
        ("s", None),
        ("-3", None),
        ("nan", None),
        ("inf", None),
        ("3 apples", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == (None if seconds is None else pytest.approx(seconds))


@given(st.text(max_size=20))
def test_any_header_is_survived(text: str) -> None:
    headers = {"retry-after": text, "x-ratelimit-reset-tokens": text}
    delay = asked_delay(headers, FrozenClock())
    assert delay is None or delay >= 0


# ---- what is fatal ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (failing(401, "invalid_api_key"), "OPENAI_API_KEY"),
        (failing(403), "OPENAI_API_KEY"),
        (failing(402), "quota"),
        (failing(429, "insufficient_quota"), "quota"),
    ],
)
def test_key_and_quota_are_fatal_at_once(reply: LoopbackReply, words: str) -> None:
    with LoopbackServer(lambda request: reply) as server:
        with pytest.raises(ModelAuthError, match=words):
            post(server, FrozenClock())
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("error", "kind", "tries"),
    [
        ({"message": "no", "code": "insufficient_quota"}, ModelAuthError, 1),
        ({"message": "no", "type": "insufficient_quota", "code": None}, ModelAuthError, 1),
        ({"message": "no", "type": "authentication_error"}, ModelAuthError, 1),
        ({"message": "no", "code": 401}, ModelAuthError, 1),
        ({"message": "no", "code": "402"}, ModelAuthError, 1),
        ({"message": "long", "code": "context_length_exceeded"}, RefusedRequest, 1),
        ({"message": "down", "code": 502}, FailingServer, 6),
        ({"message": "slow", "type": "rate_limit_error"}, ModelError, 6),
        ({"message": "odd", "code": ["x"]}, UnusableReply, 4),
        ({"message": "odd", "code": 200}, UnusableReply, 4),
        ("odd", UnusableReply, 4),
    ],
)
def test_an_error_inside_a_200_is_what_it_says(
    error: object, kind: type[ModelError], tries: int
) -> None:
    def read(reply: object) -> object:
        raise UnusableReply(f"no reply but {reply}")

    body: Any = {"error": error}
    with LoopbackServer(lambda request: LoopbackReply(body)) as server:
        made = endpoint(server.base_url, FrozenClock())
        with pytest.raises(kind, match=r"no|long|down|slow") as caught:
            made.post("/chat/completions", {"model": "m"}, read)
        made.close()
        assert type(caught.value) is kind
        assert len(server.requests) == tries


def test_an_error_beside_a_reply_is_none() -> None:
    body: Any = {"error": {"code": 429}, "choices": [{}]}
    with LoopbackServer([LoopbackReply(body)]) as server:
        assert post(server, FrozenClock()) == body


@pytest.mark.parametrize("code", [{}, [], 7])
def test_a_code_of_any_kind_is_survived(code: object) -> None:
    body: Any = {"error": {"message": "no", "code": code, "type": code}}
    with LoopbackServer([LoopbackReply(body, 400)]) as server, pytest.raises(RefusedRequest):
        post(server, FrozenClock())


def test_an_unknown_model_is_named_with_its_endpoint() -> None:
    with (
        LoopbackServer([failing(404, "model_not_found")]) as server,
        pytest.raises(ModelError, match=rf"{server.base_url} has no model 'm'"),
    ):
        post(server, FrozenClock())


@pytest.mark.parametrize(
    "error",
    [
        {"message": "too long", "code": "context_length_exceeded"},
        {"message": "too long", "code": 400, "type": "exceed_context_size_error"},
    ],
)
def test_a_prompt_over_the_window_says_which_option_helps(error: dict[str, object]) -> None:
    reply = LoopbackReply({"error": error}, 400)
    with (
        LoopbackServer([reply]) as server,
        pytest.raises(RefusedRequest, match="--context-window"),
    ):
        post(server, FrozenClock())


def test_the_refused_field_is_known() -> None:
    body = {"error": {"message": "no", "param": "seed", "code": "unsupported_parameter"}}
    with LoopbackServer([LoopbackReply(body, 400)]) as server:
        with pytest.raises(RefusedRequest) as caught:
            post(server, FrozenClock())
        assert caught.value.parameter == "seed"


# ---- secrets, and where requests go ----------------------------------------------------------


def leaks(raised: BaseException) -> bool:
    shown = "".join(traceback.format_exception(raised)) + repr(raised)
    return KEY in shown or "0123456789" in shown


@pytest.mark.parametrize(
    "reply",
    [
        LoopbackReply({"error": {"message": f"Incorrect API key provided: {KEY}."}}, 401),
        LoopbackReply({"error": {"message": "Bad key sk-live-0123456789********cdef"}}, 403),
        LoopbackReply(f"<p>Authorization: Bearer {KEY}</p>", 500),
        LoopbackReply(f"Bearer {KEY}"),
        LoopbackReply({"error": {"message": f"Bearer {KEY}"}}, 400),
        LoopbackReply({"error": {"message": f"{KEY}"}}, 404),
    ],
)
def test_a_key_is_in_no_error_not_even_a_chained_one(reply: LoopbackReply) -> None:
    with LoopbackServer(lambda request: reply) as server:
        with pytest.raises(ModelError) as caught:
            post(server, FrozenClock())
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert not leaks(caught.value)


def test_a_key_is_in_no_repr() -> None:
    made = endpoint("https://user:0123456789@host.example/v1?key=0123456789", FrozenClock())
    assert repr(made) == "Endpoint('https://host.example/v1')"
    assert made.url == "https://host.example/v1"


def test_secrets_in_the_base_url_are_not_printed() -> None:
    made = endpoint("http://user:0123456789@127.0.0.1:9/v1", FrozenClock())
    with pytest.raises(ModelError) as caught:
        made.post("/chat/completions", {"model": "m"}, lambda reply: reply)
    made.close()
    assert not leaks(caught.value)


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

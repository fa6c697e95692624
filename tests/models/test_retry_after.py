from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.models.retry_after import asked_delay, parse_duration
from docpager.testing import FrozenClock, LoopbackServer
from tests.models.endpoints import FINE, failing, post


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

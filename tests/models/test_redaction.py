from __future__ import annotations

import traceback

import pytest

from docpager.errors import ModelError
from docpager.testing import FrozenClock, LoopbackReply, LoopbackServer
from tests.models.endpoints import KEY, endpoint, post


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

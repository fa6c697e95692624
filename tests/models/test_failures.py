from __future__ import annotations

from typing import Any

import pytest

from docpager.errors import ModelAuthError, ModelError
from docpager.models.failures import FailingServer, RefusedRequest
from docpager.models.replies import UnusableReply
from docpager.testing import FrozenClock, LoopbackReply, LoopbackServer
from tests.models.endpoints import endpoint, failing, post


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

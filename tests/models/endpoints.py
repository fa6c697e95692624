"""An endpoint over the loopback server, and its failures."""

from __future__ import annotations

from typing import Any

from docpager.models.endpoint import Endpoint, RetryPolicy
from docpager.testing import FrozenClock, LoopbackReply, LoopbackServer

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

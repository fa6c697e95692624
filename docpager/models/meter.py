"""`Meter`: what model calls cost is summed, bounded, and told to whoever keeps the trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from docpager.errors import BudgetReached
from docpager.messages import ChatReply, ChatRequest
from docpager.protocols import Chat, Clock
from docpager.types import Price, ToolMode, Usage

OnCall: TypeAlias = Callable[[ChatRequest, ChatReply, float], None]
"""Told of each call: what was asked, what came back, and the seconds it took."""


class Meter:
    """A `Chat` directly around the one on the wire, so that no call goes past it.

    A call that could go beyond a bound is refused before it is made: its prompt, its whole reply
    reserve, and the reserve kept back for one last forced answer are counted first.

    Args:
        price: Of the model; without one `usage.cost_usd` stays None and money is not bounded.
        max_tokens: Prompt and completion tokens of all calls together.
        max_cost: USD of all calls together.
        max_seconds: From now, by `clock`. No call begins later.
        reserve_tokens: Kept back from `max_tokens` until `release_reserve`.
        reserve_cost: Kept back from `max_cost` likewise.
        reserve_seconds: Kept back from `max_seconds` likewise.
        on_call: Called after each call that came back.
    """

    def __init__(
        self,
        inner: Chat,
        clock: Clock,
        *,
        price: Price | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        max_seconds: float | None = None,
        reserve_tokens: int = 0,
        reserve_cost: float = 0.0,
        reserve_seconds: float = 0.0,
        on_call: OnCall | None = None,
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._price = price
        self._max_tokens = max_tokens
        self._max_cost = max_cost
        self._max_seconds = max_seconds
        self._reserve_tokens = reserve_tokens
        self._reserve_cost = reserve_cost
        self._reserve_seconds = reserve_seconds
        self._on_call = on_call
        self._began = clock.monotonic()
        self._usage = Usage()
        self._calls = 0

    @property
    def tool_mode(self) -> ToolMode:
        """That of the chat inside."""
        return self._inner.tool_mode

    @property
    def usage(self) -> Usage:
        """Of all calls so far."""
        return self._usage

    @property
    def calls(self) -> int:
        """How many calls came back so far."""
        return self._calls

    def release_reserve(self) -> None:
        """Let the next call use what was kept back: it is the last, forced one."""
        self._reserve_tokens = 0
        self._reserve_cost = 0.0
        self._reserve_seconds = 0.0

    def limit_reached(
        self, prompt_tokens: int, reply_tokens: int
    ) -> Literal["tokens", "money", "time"] | None:
        """Which bound forbids a call of up to that many tokens."""
        if self._max_seconds is not None:
            spent = self._clock.monotonic() - self._began
            if spent >= self._max_seconds - self._reserve_seconds:
                return "time"
        if self._max_tokens is not None:
            left = self._max_tokens - self._usage.total_tokens - self._reserve_tokens
            if prompt_tokens + reply_tokens > left:
                return "tokens"
        if self._max_cost is not None and self._price is not None:
            # What the endpoint will have in its cache is not known before.
            upcoming = self._price.cost(Usage(prompt_tokens, 0, reply_tokens))
            spent = self._usage.cost_usd or 0.0
            if upcoming > self._max_cost - spent - self._reserve_cost:
                return "money"
        return None

    def prompt_tokens(self, request: ChatRequest) -> int:
        """As the chat inside counts."""
        return self._inner.prompt_tokens(request)

    def complete(self, request: ChatRequest) -> ChatReply:
        """The reply of the chat inside, counted.

        Raises:
            ModelError: as the chat inside.
            BudgetReached: the call could go beyond a bound; it was not made.
        """
        if (self._max_tokens, self._max_cost, self._max_seconds) != (None, None, None):
            self._check(self._inner.prompt_tokens(request), request.max_tokens)
        began = self._clock.monotonic()
        reply = self._inner.complete(request)
        elapsed = self._clock.monotonic() - began
        if self._price is not None:
            cost = self._price.cost(reply.usage)
            reply = replace(reply, usage=replace(reply.usage, cost_usd=cost))
        self._usage += reply.usage
        self._calls += 1
        if self._on_call is not None:
            self._on_call(request, reply, elapsed)
        return reply

    def _check(self, prompt_tokens: int, reply_tokens: int) -> None:
        bound = self.limit_reached(prompt_tokens, reply_tokens)
        if bound == "time":
            raise BudgetReached(
                bound, f"The {self._max_seconds:g} seconds allowed are used up. Raise --timeout."
            )
        if bound == "tokens":
            raise BudgetReached(
                bound,
                f"A model call of up to {prompt_tokens + reply_tokens} tokens does not fit what is "
                f"left of {self._max_tokens}. Raise --max-tokens.",
            )
        if bound == "money":
            raise BudgetReached(
                bound,
                f"Another model call could cost more than {self._max_cost:g} USD in all. "
                "Raise --max-cost.",
            )

"""`Meter`: sums what the model calls of one run cost, and refuses a call that could exceed a limit.

What many runs may spend together is `budget`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from docpager.errors import BudgetReached
from docpager.messages import ChatReply, ChatRequest
from docpager.protocols import Chat, Clock
from docpager.types import Price, ToolMode, Usage

OnCall: TypeAlias = Callable[[ChatRequest, ChatReply, float], None]
"""Called with the request, the reply, and the seconds that the call took."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What the calls of one run may spend together; None is unlimited."""

    tokens: int | None = None
    """Prompt and completion tokens."""
    cost: float | None = None
    """USD; kept only where the price of the model is known."""
    seconds: float | None = None
    """From the making of the meter, by its clock. No call begins later."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """What is kept back from each limit for the last, forced answer."""

    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


class Meter:
    """A `Chat` directly around the one on the wire, so that no call goes past it.

    A call that could exceed a limit is refused before it is made: its prompt, its whole reply
    reserve, and the reserve kept back for one last forced answer are counted first.

    Args:
        price: Of the model; without one `usage.cost_usd` stays None and money is not limited.
        limits: Of all calls together.
        reserve: Kept back from the limits until `release_reserve`.
        on_call: Called after each call that returned.
    """

    def __init__(
        self,
        inner: Chat,
        clock: Clock,
        *,
        price: Price | None = None,
        limits: RunLimits = RunLimits(),
        reserve: Reserve = Reserve(),
        on_call: OnCall | None = None,
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._price = price
        self._limits = limits
        self._reserve = reserve
        self._on_call = on_call
        self._began = clock.monotonic()
        self._usage = Usage()
        self._calls = 0

    @property
    def tool_mode(self) -> ToolMode:
        """That of the inner chat."""
        return self._inner.tool_mode

    @property
    def usage(self) -> Usage:
        """Of all calls so far."""
        return self._usage

    @property
    def calls(self) -> int:
        """How many calls returned so far."""
        return self._calls

    def release_reserve(self) -> None:
        """Let the next call use what was kept back: it is the last, forced one."""
        self._reserve = Reserve()

    def limit_reached(
        self, prompt_tokens: int, reply_tokens: int
    ) -> Literal["tokens", "money", "time"] | None:
        """The limit that forbids a call of up to that many tokens."""
        if self._limits.seconds is not None:
            spent = self._clock.monotonic() - self._began
            if spent >= self._limits.seconds - self._reserve.seconds:
                return "time"
        if self._limits.tokens is not None:
            left = self._limits.tokens - self._usage.total_tokens - self._reserve.tokens
            if prompt_tokens + reply_tokens > left:
                return "tokens"
        if self._limits.cost is not None and self._price is not None:
            # What the endpoint will have in its cache is not known before.
            upcoming = self._price.cost(Usage(prompt_tokens, 0, reply_tokens))
            spent = self._usage.cost_usd or 0.0
            if upcoming > self._limits.cost - spent - self._reserve.cost:
                return "money"
        return None

    def prompt_tokens(self, request: ChatRequest) -> int:
        """As the inner chat counts."""
        return self._inner.prompt_tokens(request)

    def complete(self, request: ChatRequest) -> ChatReply:
        """The reply of the inner chat, counted.

        Raises:
            ModelError: as the inner chat.
            BudgetReached: the call could exceed a limit; it was not made.
        """
        if self._limits != RunLimits():
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
                bound, f"The {self._limits.seconds:g} seconds allowed are used up. Raise --timeout."
            )
        if bound == "tokens":
            raise BudgetReached(
                bound,
                f"A model call of up to {prompt_tokens + reply_tokens} tokens does not fit what is "
                f"left of {self._limits.tokens}. Raise --max-tokens.",
            )
        if bound == "money":
            raise BudgetReached(
                bound,
                f"Another model call could cost more than {self._limits.cost:g} USD in all. "
                "Raise --max-cost.",
            )

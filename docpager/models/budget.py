"""`SharedBudget`: what many runs may spend together, kept to the last call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from docpager.errors import BudgetReached, Limit
from docpager.messages import ChatReply, ChatRequest
from docpager.protocols import Chat
from docpager.types import Price, ToolMode, Usage


class BatchBound(BudgetReached):
    """A bound of many runs together, not of the one that meets it."""


class SharedBudget:
    """Tokens and money of many runs at once, bounded; every call takes its most out beforehand.

    Args:
        max_tokens: Prompt and completion tokens of all calls.
        max_cost: USD of all calls; kept only where `price` is known.
    """

    def __init__(
        self,
        price: Price | None = None,
        *,
        max_tokens: int | None = None,
        max_cost: float | None = None,
    ) -> None:
        self._price = price
        self._max_tokens = max_tokens
        self._max_cost = max_cost if price is not None else None
        self._changed = threading.Condition()
        self._spent = Usage(cost_usd=0.0 if price else None)
        self._calls = 0
        self._held_tokens = 0
        self._held_cost = 0.0

    @property
    def spent(self) -> Usage:
        """Of all calls that came back."""
        with self._changed:
            return self._spent

    @property
    def calls(self) -> int:
        """How many calls came back."""
        with self._changed:
            return self._calls

    def limit_reached(self, tokens: float, cost: float) -> Limit | None:
        """Which bound leaves no room for so much more; None while there is room."""
        with self._changed:
            return self._lacking(tokens, cost)

    @contextmanager
    def held(self, prompt_tokens: int, reply_tokens: int) -> Iterator[None]:
        """Hold back the most that a call can take, for as long as it takes.

        Waits where calls under way may turn out cheaper than what was held for them.

        Raises:
            BatchBound: the call could go beyond a bound whatever becomes of the others.
        """
        tokens = prompt_tokens + reply_tokens
        cost = self._price.cost(Usage(prompt_tokens, 0, reply_tokens)) if self._price else 0.0
        with self._changed:
            while self._lacking(tokens + self._held_tokens, cost + self._held_cost):
                bound = self._lacking(tokens, cost)
                if bound is not None:
                    raise BatchBound(
                        bound,
                        f"Another model call could go beyond {self._bound(bound)} in all. "
                        "Raise it, and run the same command again.",
                    )
                self._changed.wait()
            self._held_tokens += tokens
            self._held_cost += cost
        try:
            yield
        finally:
            with self._changed:
                self._held_tokens -= tokens
                self._held_cost -= cost
                self._changed.notify_all()

    def spend(self, usage: Usage) -> None:
        """A call came back."""
        cost = self._price.cost(usage) if self._price else None
        with self._changed:
            self._calls += 1
            self._spent += Usage(
                usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, cost
            )

    def _lacking(self, tokens: float, cost: float) -> Limit | None:
        if self._max_tokens is not None and self._spent.total_tokens + tokens > self._max_tokens:
            return "tokens"
        if self._max_cost is not None and (self._spent.cost_usd or 0.0) + cost > self._max_cost:
            return "money"
        return None

    def _bound(self, bound: Limit) -> str:
        return f"{self._max_cost:g} USD" if bound == "money" else f"{self._max_tokens} tokens"


class BudgetedChat:
    """A `Chat` around the one on the wire, whose calls are paid for out of a shared budget."""

    def __init__(self, inner: Chat, budget: SharedBudget) -> None:
        self._inner = inner
        self._budget = budget
        self.refused_by: Limit | None = None
        """Which bound of the many runs refused a call."""

    @property
    def tool_mode(self) -> ToolMode:
        """That of the chat inside."""
        return self._inner.tool_mode

    def prompt_tokens(self, request: ChatRequest) -> int:
        """As the chat inside counts."""
        return self._inner.prompt_tokens(request)

    def complete(self, request: ChatRequest) -> ChatReply:
        """The reply of the chat inside, paid for.

        Raises:
            BatchBound: it could cost more than what is left; it was not made.
        """
        try:
            with self._budget.held(self._inner.prompt_tokens(request), request.max_tokens):
                reply = self._inner.complete(request)
                self._budget.spend(reply.usage)
                return reply
        except BatchBound as reached:
            self.refused_by = reached.stopped_by
            raise

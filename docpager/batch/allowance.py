"""What a batch may still take: its limits, and what the questions so far have taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from docpager.errors import Limit
from docpager.protocols import Clock
from docpager.types import Usage


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What the whole batch may take; None is no limit."""

    max_tokens: int | None = None
    max_cost: float | None = None
    """USD."""
    seconds: float | None = None
    """When no question is started any more."""
    question_tokens: float = 0.0
    """What a question is estimated to take while none is finished."""
    question_cost: float = 0.0


class SpendingLimit(Protocol):
    """What the batch has spent, and may spend."""

    @property
    def spent(self) -> Usage:
        """By calls that were made; replayed ones cost nothing."""

    def limit_reached(self, tokens: float, cost: float) -> Limit | None:
        """The limit that leaves no room for so much more."""


class Allowance:
    """Decides whether one more question is likely to fit."""

    def __init__(self, limits: BatchLimits, budget: SpendingLimit, clock: Clock) -> None:
        self._limits = limits
        self._budget = budget
        self._clock = clock
        self._began = clock.monotonic()
        self._finished = 0
        self._seconds = 0.0

    def take(self, seconds: float) -> None:
        """A question has finished, after so many seconds."""
        self._finished += 1
        self._seconds += seconds

    def limit_of_next(self, running: int) -> Limit | None:
        """The limit that one more question beside those running would probably exceed.

        Judged by those finished. The first is always asked: its calls are held to the limits one
        by one.
        """
        if self._limits.seconds is not None:
            spent = self._clock.monotonic() - self._began
            mean = self._seconds / self._finished if self._finished else 0.0
            if spent + mean >= self._limits.seconds:
                return "time"
        if not self._finished and not running:
            return self._budget.limit_reached(0.0, 0.0)
        tokens, cost = self._limits.question_tokens, self._limits.question_cost
        if self._finished:
            used = self._budget.spent
            tokens = used.total_tokens / self._finished
            cost = (used.cost_usd or 0.0) / self._finished
        likely = running + 1
        return self._budget.limit_reached(likely * tokens, likely * cost)

"""Whether one more question fits into the limits of a batch, judged by those finished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from docpager.errors import Limit, UserError
from docpager.protocols import Clock
from docpager.types import Usage


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of the whole batch; None is no limit."""

    max_tokens: int | None = None
    max_cost: float | None = None
    """USD."""
    seconds: float | None = None
    """After these no question is started."""
    question_tokens: float = 0.0
    """Tokens that a question is estimated to take, until one is finished."""
    question_cost: float = 0.0
    """USD, likewise."""

    def __post_init__(self) -> None:
        """Refuse a limit that leaves no room for anything.

        Raises:
            UserError: one is not a number above 0.
        """
        for name in ("max_tokens", "max_cost", "seconds"):
            value = getattr(self, name)
            if value is None:
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not value > 0:
                raise UserError(f"{name} must be a number above 0, not {value!r}. Correct it.")


class SpendingLimit(Protocol):
    """The budget of the batch: what is spent, and what is left."""

    @property
    def spent(self) -> Usage:
        """Usage of the calls made; replayed calls cost nothing."""

    def limit_reached(self, tokens: float, cost: float) -> Limit | None:
        """The limit that so much more would exceed; None if there is room."""


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
        """Record that a question finished after `seconds`."""
        self._finished += 1
        self._seconds += seconds

    def limit_of_next(self, running: int) -> Limit | None:
        """The limit that one more question, on top of those running, would probably exceed.

        The first question always fits: each of its calls is checked against the limits.
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

"""What a batch may take, before anything is spent: calls, tokens and money, with their range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from docpager.batch.answers import SCHEMA
from docpager.types import JSONValue, Price, ToolMode, Usage

_INSTRUCTIONS = 900
"""Tokens of instructions and schemas, in every mode less than this."""
_PAGE_SHARE = 0.25
"""Of the window, what one page of results takes at most."""


@dataclass(frozen=True, slots=True)
class Range:
    """The least, the likely and the most."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of the questions that are left to be asked."""

    questions: int
    done: int
    calls: Range
    tokens: Range
    cost_usd: Range | None
    """None where no price is known."""
    source: str
    """What it was reckoned from, in words."""


@dataclass(frozen=True, slots=True)
class _One:
    """What one question takes."""

    calls: float
    prompt_tokens: float
    completion_tokens: float


def estimate(
    questions: int,
    *,
    done: Sequence[tuple[int, Usage]],
    window: int,
    tool_mode: ToolMode | str,
    max_steps: int,
    price: Price | None,
) -> Estimate:
    """For so many questions: from the (steps, usage) of those `done` by the same model, else from
    what the loop does by its construction."""
    if done:
        cases = _from_results(done)
        source = f"the {len(done)} questions that are done"
    elif tool_mode == "guided":
        # Small prompts, many of them: a plan, then one passage at a time.
        cases = (_One(3, 1500, 90), _One(20, 12_000, 500), _One(4.0 * max_steps, 60_000, 3000))
        source = "what guided mode takes of a small model"
    else:
        cases = _from_loop(window, max_steps)
        source = f"a window of {window} tokens and at most {max_steps} steps"
    low, likely, high = cases

    def of(value: float) -> float:
        return round(value * questions, 6)

    def cost(one: _One) -> float:
        assert price is not None
        return of(price.cost(Usage(int(one.prompt_tokens), 0, int(one.completion_tokens))))

    return Estimate(
        questions=questions,
        done=len(done),
        calls=Range(of(low.calls), of(likely.calls), of(high.calls)),
        tokens=Range(*(of(one.prompt_tokens + one.completion_tokens) for one in cases)),
        cost_usd=None if price is None else Range(cost(low), cost(likely), cost(high)),
        source=source,
    )


def _from_results(done: Sequence[tuple[int, Usage]]) -> tuple[_One, _One, _One]:
    ordered = sorted(done, key=lambda item: item[1].total_tokens)
    n = len(ordered)
    mean = _One(
        sum(steps for steps, _ in ordered) / n,
        sum(usage.prompt_tokens for _, usage in ordered) / n,
        sum(usage.completion_tokens for _, usage in ordered) / n,
    )
    least, most = ordered[n // 10], ordered[-1 - n // 10]
    return _of_one(least), mean, _of_one(most)


def _of_one(item: tuple[int, Usage]) -> _One:
    steps, usage = item
    return _One(steps, usage.prompt_tokens, usage.completion_tokens)


def _from_loop(window: int, max_steps: int) -> tuple[_One, _One, _One]:
    page = _PAGE_SHARE * (window - _INSTRUCTIONS)
    likely = min(5, max_steps)
    most = 0.8 * window * max_steps
    return (
        _One(1, _INSTRUCTIONS + page, 80),
        _One(likely, likely * (_INSTRUCTIONS + 2 * page), 120 * likely),
        _One(max_steps, most, 400 * max_steps),
    )


def estimate_record(estimate: Estimate) -> dict[str, JSONValue]:
    """An estimate as `batch --dry-run --json` prints it."""
    return {
        "schema": SCHEMA,
        "questions": estimate.questions,
        "done": estimate.done,
        "calls": _range_record(estimate.calls),
        "tokens": _range_record(estimate.tokens),
        "cost_usd": None if estimate.cost_usd is None else _range_record(estimate.cost_usd),
        "source": estimate.source,
    }


def _range_record(found: Range) -> dict[str, JSONValue]:
    return {"low": found.low, "likely": found.likely, "high": found.high}

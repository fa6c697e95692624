"""The estimated calls, tokens and cost of a batch, as ranges, before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from docpager.batch.answers import SCHEMA
from docpager.types import JSONValue, Price, ToolMode, Usage

_INSTRUCTIONS = 900
"""Tokens; instructions and schemas take fewer in every mode."""
_PAGE_SHARE = 0.25
"""The largest share of the window that one page of results takes."""


@dataclass(frozen=True, slots=True)
class Range:
    """A low, a likely and a high value."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """What asking the remaining questions would take."""

    questions: int
    done: int
    calls: Range
    tokens: Range
    cost_usd: Range | None
    """None where no price is known."""
    source: str
    """What the estimate is based on, in words."""


@dataclass(frozen=True, slots=True)
class _PerQuestion:
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
    """Estimate what `questions` more questions take.

    Based on the (steps, usage) of the questions `done` by the same model; without any, on how the
    loop is built.
    """
    if done:
        cases = _from_results(done)
        source = f"the {len(done)} questions that are done"
    elif tool_mode == "guided":
        # Small prompts, many of them: a plan, then one passage at a time.
        cases = (
            _PerQuestion(3, 1500, 90),
            _PerQuestion(20, 12_000, 500),
            _PerQuestion(4.0 * max_steps, 60_000, 3000),
        )
        source = "what guided mode takes of a small model"
    else:
        cases = _from_loop(window, max_steps)
        source = f"a window of {window} tokens and at most {max_steps} steps"
    low, likely, high = cases

    def of(value: float) -> float:
        return round(value * questions, 6)

    def cost(one: _PerQuestion) -> float:
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


def _from_results(
    done: Sequence[tuple[int, Usage]],
) -> tuple[_PerQuestion, _PerQuestion, _PerQuestion]:
    ordered = sorted(done, key=lambda item: item[1].total_tokens)
    n = len(ordered)
    mean = _PerQuestion(
        sum(steps for steps, _ in ordered) / n,
        sum(usage.prompt_tokens for _, usage in ordered) / n,
        sum(usage.completion_tokens for _, usage in ordered) / n,
    )
    least, most = ordered[n // 10], ordered[-1 - n // 10]
    return _per_question(least), mean, _per_question(most)


def _per_question(item: tuple[int, Usage]) -> _PerQuestion:
    steps, usage = item
    return _PerQuestion(steps, usage.prompt_tokens, usage.completion_tokens)


def _from_loop(window: int, max_steps: int) -> tuple[_PerQuestion, _PerQuestion, _PerQuestion]:
    page = _PAGE_SHARE * (window - _INSTRUCTIONS)
    likely = min(5, max_steps)
    most = 0.8 * window * max_steps
    return (
        _PerQuestion(1, _INSTRUCTIONS + page, 80),
        _PerQuestion(likely, likely * (_INSTRUCTIONS + 2 * page), 120 * likely),
        _PerQuestion(max_steps, most, 400 * max_steps),
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

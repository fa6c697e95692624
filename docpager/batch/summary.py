"""The summary of a batch: counts, mean scores overall and by tag, cost, the worst questions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from docpager.batch.answers import SCHEMA
from docpager.batch.grading import Grading
from docpager.batch.metrics import METRICS, Metric
from docpager.batch.result import Result
from docpager.errors import UserError
from docpager.files import write_output
from docpager.types import JSONValue

WORST = 10


@dataclass(frozen=True, slots=True)
class Score:
    """A mean and the number of questions it is over; None over none."""

    mean: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Group:
    """The questions of one tag, or all of them."""

    questions: int
    passed: int
    failed: int
    scores: dict[Metric, Score]


@dataclass(frozen=True, slots=True)
class Worst:
    """A question that failed."""

    id: str
    question: str
    status: str
    answer: str
    expected: JSONValue
    value: float


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """The outcome of a batch: what `docpager batch --json` prints and `--summary` writes."""

    questions: int
    """How many are selected, with a result or without."""
    statuses: dict[str, int]
    errors: int
    """Results of status `model_error`."""
    skipped: int
    """Not asked, or cut short, because the budget of the batch was used up."""
    missing: int
    """Without a result, because the batch stopped earlier."""
    groups: dict[str, Group]
    """By tag; `all` comes first."""
    metric: Metric
    pass_at: float
    mean: Score
    """Of `metric`; a question for which only a status is expected counts 1 or 0."""
    fail_under: float | None
    worst: tuple[Worst, ...]
    """At most ten questions that failed, the worst first."""
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    asked: int = 0
    """Questions asked in this run; the others had been answered before."""
    calls: int = 0
    """Model calls made in this run; the others came from the cache."""
    retries: int = 0
    fewest_at_once: int = 0
    """The fewest calls in flight to which the throttle went down."""
    elapsed_s: float = 0.0
    interrupted: bool = False
    stopped: str | None = None
    """Why the batch stopped early, in words."""
    stop_code: int = 0
    """The exit code of what stopped it; 0 if nothing did."""

    @property
    def below_threshold(self) -> bool:
        """Whether the mean is below `fail_under`."""
        mean = self.mean.mean
        return self.fail_under is not None and (mean is None or mean < self.fail_under)

    @property
    def exit_codes(self) -> set[int]:
        """Every exit code that applies."""
        applies = {
            130: self.interrupted,
            4: self.errors > 0,
            5: self.skipped > 0 or self.statuses.get("budget", 0) > 0,
            1: self.below_threshold,
        }
        found = {code for code, does in applies.items() if does}
        return found | ({self.stop_code} - {0}) or {0}


def summarise(results: Iterable[Result], *, questions: int, grading: Grading) -> BatchSummary:
    """Count and average the results of the selected questions, iterating once.

    Args:
        questions: How many were selected, with a result or without.
    """
    sums = _Sums(grading.metric)
    for result in results:
        sums.add(result)
    return BatchSummary(
        questions=questions,
        statuses=dict(sorted(sums.statuses.items())),
        errors=sums.statuses["model_error"],
        skipped=sums.skipped,
        missing=questions - sums.seen,
        groups={tag: group.done() for tag, group in sums.groups.items()},
        metric=grading.metric,
        pass_at=grading.pass_at,
        mean=_mean(sums.values),
        fail_under=grading.fail_under,
        worst=tuple(sums.worst),
        prompt_tokens=sums.prompt_tokens,
        completion_tokens=sums.completion_tokens,
        cost_usd=round(sum(sums.costs), 6) if sums.costs else None,
    )


class _Sums:
    """Running sums over the results."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self.groups: dict[str, _GroupSums] = {"all": _GroupSums()}
        self.statuses: Counter[str] = Counter()
        self.seen = self.skipped = self.prompt_tokens = self.completion_tokens = 0
        self.costs: list[float] = []
        self.values: list[float] = []
        self.worst: list[Worst] = []

    def add(self, result: Result) -> None:
        self.seen += 1
        if result.skipped is not None:
            self.skipped += 1
            return
        usage = result.answer.usage
        self.statuses[result.answer.status] += 1
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        if usage.cost_usd is not None:
            self.costs.append(usage.cost_usd)
        for tag in dict.fromkeys(("all", *result.given.tags)):
            self.groups.setdefault(tag, _GroupSums()).add(result)
        value = result.value(self._metric)
        if value is None:
            return
        self.values.append(value)
        if result.scores.passed is False:
            ranked = sorted([*self.worst, _worst(result, value)], key=lambda one: one.value)
            self.worst = ranked[:WORST]


def summary_record(summary: BatchSummary) -> dict[str, JSONValue]:
    """The summary as JSON."""
    return {
        "schema": SCHEMA,
        "questions": summary.questions,
        "statuses": {**summary.statuses},
        "passed": summary.groups["all"].passed,
        "failed": summary.groups["all"].failed,
        "errors": summary.errors,
        "skipped": summary.skipped,
        "missing": summary.missing,
        "metric": summary.metric,
        "pass_at": summary.pass_at,
        "mean": summary.mean.mean,
        "n": summary.mean.n,
        "fail_under": summary.fail_under,
        "below_threshold": summary.below_threshold,
        "tags": {tag: _group_record(group) for tag, group in summary.groups.items()},
        "worst": [
            {
                "id": one.id,
                "question": one.question,
                "status": one.status,
                "answer": one.answer,
                "expected": one.expected,
                "value": one.value,
            }
            for one in summary.worst
        ],
        "usage": {
            "prompt_tokens": summary.prompt_tokens,
            "completion_tokens": summary.completion_tokens,
            "cost_usd": summary.cost_usd,
        },
        "asked": summary.asked,
        "calls": summary.calls,
        "retries": summary.retries,
        "fewest_at_once": summary.fewest_at_once,
        "elapsed_s": round(summary.elapsed_s, 3),
        "interrupted": summary.interrupted,
        "stopped": summary.stopped,
    }


class _GroupSums:
    """Running sums over the results of one tag."""

    def __init__(self) -> None:
        self._questions = self._passed = self._failed = 0
        self._sums: dict[Metric, list[float]] = {metric: [0.0, 0] for metric in METRICS}

    def add(self, result: Result) -> None:
        self._questions += 1
        self._passed += result.scores.passed is True
        self._failed += result.scores.passed is False
        for metric, sums in self._sums.items():
            value = result.scores.by(metric)
            if value is not None:
                sums[0] += value
                sums[1] += 1

    def done(self) -> Group:
        scores = {
            metric: Score(round(total / n, 6) if n else None, int(n))
            for metric, (total, n) in self._sums.items()
        }
        return Group(self._questions, self._passed, self._failed, scores)


def _mean(values: list[float]) -> Score:
    return Score(round(sum(values) / len(values), 6) if values else None, len(values))


def _worst(result: Result, value: float) -> Worst:
    answer = result.answer
    return Worst(
        id=result.id,
        question=answer.question,
        status=answer.status,
        answer=answer.answer,
        expected=result.given.expected or result.given.expected_status,
        value=value,
    )


def _group_record(group: Group) -> dict[str, JSONValue]:
    means: dict[str, JSONValue] = {
        metric: {"mean": score.mean, "n": score.n} for metric, score in group.scores.items()
    }
    return {
        "questions": group.questions,
        "passed": group.passed,
        "failed": group.failed,
        "scores": means,
    }


def write_summary(path: Path, summary: BatchSummary) -> None:
    """Write a summary as JSON.

    Raises:
        UserError: the file cannot be written.
    """
    text = json.dumps(summary_record(summary), ensure_ascii=False, indent=1)
    try:
        write_output(path, f"{text}\n".encode("utf-8", "replace"))
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}). Name another.") from error

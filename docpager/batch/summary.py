"""What a batch amounts to: counts, scores in all and by tag, cost, and the worst questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from docpager.batch.answers import SCHEMA
from docpager.batch.metrics import METRICS, Metric
from docpager.batch.results import Record, metric_value
from docpager.types import JSONValue

WORST = 10


@dataclass(frozen=True, slots=True)
class Score:
    """A mean, and over how many questions; None over none."""

    mean: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Group:
    """The questions of one tag, or all."""

    questions: int
    passed: int
    failed: int
    scores: dict[Metric, Score]


@dataclass(frozen=True, slots=True)
class Worst:
    """A question that did not pass."""

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
    """Selected, whether or not they have a result."""
    statuses: dict[str, int]
    errors: int
    """Results that are faults of the model or its endpoint."""
    skipped: int
    """Left for the budget of the batch."""
    missing: int
    """Without any result: the batch was stopped before."""
    groups: dict[str, Group]
    """By tag; `all` comes first."""
    metric: Metric
    pass_at: float
    mean: Score
    """Of `metric`, where a question of which only a status is expected counts 1 or 0."""
    fail_under: float | None
    worst: tuple[Worst, ...]
    """At most ten that did not pass, the worst first."""
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    asked: int = 0
    """Questions that this run asked; the others were done before."""
    calls: int = 0
    """Model calls that this run made; the others came from the cache."""
    retries: int = 0
    fewest_at_once: int = 0
    """What the number of calls in flight was brought down to."""
    elapsed_s: float = 0.0
    interrupted: bool = False
    stopped: str | None = None
    """Why the batch was stopped before its end, in words."""
    stop_code: int = 0
    """The exit code of that cause."""

    @property
    def below_threshold(self) -> bool:
        """Whether the mean is below the one that was asked for."""
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


def summarise(
    records: Iterable[Record],
    *,
    questions: int,
    metric: Metric,
    pass_at: float,
    fail_under: float | None,
) -> BatchSummary:
    """Counts and means over the results of the selected questions, read once."""
    groups: dict[str, _Adding] = {"all": _Adding()}
    statuses: Counter[str] = Counter()
    skipped = errors = seen = prompt = completion = 0
    costs: list[float] = []
    values: list[float] = []
    worst: list[Worst] = []
    for record in records:
        seen += 1
        if record["skipped"] is not None:
            skipped += 1
            continue
        statuses[str(record["status"])] += 1
        errors += record["status"] == "model_error"
        usage = cast("dict[str, float | None]", record["usage"])
        prompt += int(usage["prompt_tokens"] or 0)
        completion += int(usage["completion_tokens"] or 0)
        if usage["cost_usd"] is not None:
            costs.append(usage["cost_usd"])
        for tag in dict.fromkeys(("all", *cast("list[str]", record["tags"]))):
            groups.setdefault(tag, _Adding()).add(record)
        value = metric_value(record, metric)
        if value is None:
            continue
        values.append(value)
        if cast("dict[str, JSONValue]", record["scores"])["passed"] is False:
            worst.append(_worst(record, value))
            worst = sorted(worst, key=lambda one: one.value)[:WORST]
    return BatchSummary(
        questions=questions,
        statuses=dict(sorted(statuses.items())),
        errors=errors,
        skipped=skipped,
        missing=questions - seen,
        groups={tag: group.done() for tag, group in groups.items()},
        metric=metric,
        pass_at=pass_at,
        mean=_mean(values),
        fail_under=fail_under,
        worst=tuple(worst),
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost_usd=round(sum(costs), 6) if costs else None,
    )


def summary_record(summary: BatchSummary) -> Record:
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


class _Adding:
    """Sums of a group while its results are read."""

    def __init__(self) -> None:
        self._questions = self._passed = self._failed = 0
        self._sums: dict[Metric, list[float]] = {metric: [0.0, 0] for metric in METRICS}

    def add(self, record: Record) -> None:
        scores = cast("dict[str, float | None]", record["scores"])
        self._questions += 1
        self._passed += scores["passed"] is True
        self._failed += scores["passed"] is False
        for metric, sums in self._sums.items():
            value = scores[metric]
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


def _worst(record: Record, value: float) -> Worst:
    return Worst(
        id=str(record["id"]),
        question=str(record["question"]),
        status=str(record["status"]),
        answer=str(record["answer"]),
        expected=record["expected"] or record.get("expected_status"),
        value=value,
    )


def _group_record(group: Group) -> Record:
    means: dict[str, JSONValue] = {
        metric: {"mean": score.mean, "n": score.n} for metric, score in group.scores.items()
    }
    return {
        "questions": group.questions,
        "passed": group.passed,
        "failed": group.failed,
        "scores": means,
    }

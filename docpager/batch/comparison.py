"""`compare`: what is worse, better or merely different in the second of two result files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docpager.batch.answers import SCHEMA
from docpager.batch.metrics import Metric
from docpager.batch.result import Result
from docpager.batch.results import read_results
from docpager.errors import NothingToDo
from docpager.types import JSONValue
from docpager.unicode import shortened


@dataclass(frozen=True, slots=True)
class Change:
    """A question with its outcome before and after."""

    id: str
    question: str
    before: str
    after: str
    """The answer; without one the status in brackets."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A number before and after; None where it is not known."""

    before: float | None
    after: float | None

    @property
    def change(self) -> float | None:
        """After minus before."""
        if self.before is None or self.after is None:
            return None
        return round(self.after - self.before, 6)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs over the questions that both have; the others are listed by id."""

    metric: Metric
    shared: int
    new_failures: tuple[Change, ...]
    """Passed before, fail now."""
    new_errors: tuple[Change, ...]
    """Answered before; now a model error, or skipped when the budget of the batch was used up."""
    lost: tuple[Change, ...]
    """Passed before, have no result now: not asked, or the batch stopped earlier."""
    fixed: tuple[Change, ...]
    changed: tuple[Change, ...]
    """Another answer, neither a new failure nor fixed."""
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    mean: Delta
    """Of the metric, over the questions that both score."""
    passed: Delta
    tokens: Delta
    cost_usd: Delta

    @property
    def regressed(self) -> bool:
        """Whether anything is worse: a new failure, a new error or a lost result."""
        return bool(self.new_failures or self.new_errors or self.lost)


def compare_results(before: str | Path, after: str | Path, metric: Metric = "f1") -> Comparison:
    """Compare two files of results.

    Raises:
        UserError: one cannot be read, or is no file of results.
        NothingToDo: the first file holds no result.
    """
    one, other = _asked(read_results(Path(before))), _asked(read_results(Path(after)))
    if not one:
        raise NothingToDo(f"{before} holds no results to compare with. Name another file.")
    shared = [name for name in one if name in other]
    pairs = [(one[name], other[name]) for name in shared]
    failures, errors, fixed, changed = [], [], [], []
    for old, new in pairs:
        change = Change(new.id, new.answer.question, _outcome(old), _outcome(new))
        if _is_error(new) and not _is_error(old):
            errors.append(change)
        elif old.scores.passed is True and new.scores.passed is False:
            failures.append(change)
        elif new.scores.passed is True and old.scores.passed is not True:
            fixed.append(change)
        elif change.before != change.after:
            changed.append(change)
    values = [(old.value(metric), new.value(metric)) for old, new in pairs]
    scored = [(a, b) for a, b in values if a is not None and b is not None]
    return Comparison(
        metric=metric,
        shared=len(shared),
        new_failures=tuple(failures),
        new_errors=tuple(errors),
        lost=tuple(
            Change(old.id, old.answer.question, _outcome(old), "(no result)")
            for name, old in one.items()
            if name not in other and old.scores.passed is True
        ),
        fixed=tuple(fixed),
        changed=tuple(changed),
        only_before=tuple(name for name in one if name not in other),
        only_after=tuple(name for name in other if name not in one),
        mean=Delta(_mean([a for a, _ in scored]), _mean([b for _, b in scored])),
        passed=Delta(*(_passes(side) for side in _sides(pairs))),
        tokens=Delta(*(_tokens(side) for side in _sides(pairs))),
        cost_usd=Delta(*(_cost(side) for side in _sides(pairs))),
    )


def _asked(results: Mapping[str, Result]) -> dict[str, Result]:
    """The results without those of questions that had been removed from their file."""
    return {name: result for name, result in results.items() if not result.unasked}


def comparison_record(found: Comparison) -> dict[str, JSONValue]:
    """A comparison as `compare --json` prints it."""
    return {
        "schema": SCHEMA,
        "metric": found.metric,
        "shared": found.shared,
        "regressed": found.regressed,
        "new_failures": _change_records(found.new_failures),
        "new_errors": _change_records(found.new_errors),
        "lost": _change_records(found.lost),
        "fixed": _change_records(found.fixed),
        "changed": _change_records(found.changed),
        "only_before": [*found.only_before],
        "only_after": [*found.only_after],
        "mean": _delta_record(found.mean),
        "passed": _delta_record(found.passed),
        "tokens": _delta_record(found.tokens),
        "cost_usd": _delta_record(found.cost_usd),
    }


def comparison_markdown(found: Comparison) -> str:
    """A comparison for a pull request: the verdict, the numbers, then what changed."""
    verdict = "❌ got worse" if found.regressed else "✅ nothing got worse"
    lines = [
        f"### docpager: {verdict}",
        "",
        "| | before | after | change |",
        "| --- | --- | --- | --- |",
        *(f"| {name} | {a} | {b} | {change} |" for name, a, b, change in number_rows(found)),
    ]
    for title, changes in titled(found):
        if changes:
            lines += [
                "",
                f"<details{' open' * (title in _WORSE)}><summary>{title} ({len(changes)})"
                "</summary>",
                "",
                "| id | question | before | after |",
                "| --- | --- | --- | --- |",
            ]
            lines += [
                f"| {_cell(one.id)} | {_cell(one.question)} | {_cell(one.before)} "
                f"| {_cell(one.after)} |"
                for one in changes
            ]
            lines += ["", "</details>"]
    for name, ids in (("Only before", found.only_before), ("Only after", found.only_after)):
        if ids:
            lines += ["", f"{name}: {', '.join(map(_cell, ids))}"]
    return "\n".join(lines)


_WORSE = ("New failures", "New errors", "Passed before, no result now")


def titled(found: Comparison) -> tuple[tuple[str, tuple[Change, ...]], ...]:
    """The lists of a comparison with their titles, the worst first."""
    return (
        ("New failures", found.new_failures),
        ("New errors", found.new_errors),
        ("Passed before, no result now", found.lost),
        ("Fixed", found.fixed),
        ("Changed answers", found.changed),
    )


def number_rows(found: Comparison) -> list[tuple[str, str, str, str]]:
    """Name, before, after and change of each number, as text."""
    rows = (
        ("passed", found.passed, ".0f"),
        (f"mean {found.metric}", found.mean, ".3f"),
        ("tokens", found.tokens, ",.0f"),
        ("USD", found.cost_usd, ".4f"),
    )
    return [
        (name, _number(delta.before, form), _number(delta.after, form), _signed(delta, form))
        for name, delta, form in rows
    ]


def _number(value: float | None, form: str) -> str:
    return "unknown" if value is None else format(value, form)


def _signed(delta: Delta, form: str) -> str:
    return "" if delta.change is None else format(delta.change, f"+{form}")


def _cell(text: str) -> str:
    """Text for a table's cell: one line in which nothing is markup."""
    line = shortened(" ".join(text.split()), 200)
    for sign in "\\`*_{}[]<>|#@":
        line = line.replace(sign, f"\\{sign}" if sign not in "<>@" else _ENTITIES[sign])
    return line


_ENTITIES = {"<": "&lt;", ">": "&gt;", "@": "&#64;"}


def _outcome(result: Result) -> str:
    text = result.answer.answer.strip()
    return text if text and not _is_error(result) else f"({result.answer.status})"


def _is_error(result: Result) -> bool:
    return not result.is_judged


def _sides(pairs: Sequence[tuple[Result, Result]]) -> tuple[list[Result], list[Result]]:
    return [old for old, _ in pairs], [new for _, new in pairs]


def _passes(results: Sequence[Result]) -> float:
    return float(sum(result.scores.passed is True for result in results))


def _tokens(results: Sequence[Result]) -> int:
    return sum(result.answer.usage.total_tokens for result in results)


def _cost(results: Sequence[Result]) -> float | None:
    costs = [result.answer.usage.cost_usd for result in results]
    known = [cost for cost in costs if cost is not None]
    return round(sum(known), 6) if known else None


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 6) if values else None


def _change_records(changes: Sequence[Change]) -> list[JSONValue]:
    return [
        {"id": one.id, "question": one.question, "before": one.before, "after": one.after}
        for one in changes
    ]


def _delta_record(delta: Delta) -> dict[str, JSONValue]:
    return {"before": delta.before, "after": delta.after, "change": delta.change}

"""Batches, estimates and comparisons."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from docpager.render.terminal import printable, say
from docpager.unicode import shortened

if TYPE_CHECKING:
    from docpager.batch.comparison import Comparison
    from docpager.batch.estimate import Estimate
    from docpager.batch.result import Result
    from docpager.batch.summary import BatchSummary

_ANSWER_WIDTH = 120
"""Characters of an answer in a list."""


class BatchProgress:
    """Reports progress on standard error: a line for each result on a terminal or on request, else
    one line every ten seconds."""

    LINE_EVERY = 10.0

    def __init__(self, shown: bool, each: bool) -> None:
        self._shown = shown or each
        self._each = each or sys.stderr.isatty()
        self._last_line = time.monotonic()

    def __enter__(self) -> BatchProgress:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, done: int, total: int, result: Result) -> None:
        """Report that `done` of `total` questions are finished, the last one with this result."""
        if not self._shown:
            return
        now = time.monotonic()
        if self._each:
            answer = result.answer
            said = " ".join((answer.answer or answer.error or "").split())
            outcome = f"{_passed_word(result)} {answer.status}"
            took = f"{answer.elapsed_s:.1f} s"
            say(f"{done}/{total} {result.id}: {outcome}, {took}  {shortened(said, 80)}")
        elif now - self._last_line >= self.LINE_EVERY:
            self._last_line = now
            say(f"{done} of {total} questions")


def _passed_word(result: Result) -> str:
    passed = result.scores.passed
    return "unscored" if passed is None else "passed" if passed else "failed"


def summary_line(summary: BatchSummary) -> str:
    """The summary of a batch on one line."""
    everything = summary.groups["all"]
    parts = [
        f"{summary.questions} questions: {everything.passed} passed, {everything.failed} failed"
    ]
    counts = (("errors", summary.errors), ("left for budget", summary.skipped))
    parts += [f"{count} {name}" for name, count in (*counts, ("missing", summary.missing)) if count]
    if summary.mean.mean is not None:
        parts.append(f"mean {summary.metric} {summary.mean.mean:.3f} of {summary.mean.n}")
    if summary.below_threshold:
        parts.append(f"below {summary.fail_under:g}")
    cost = "price unknown" if summary.cost_usd is None else f"{summary.cost_usd:.4f} USD"
    parts.append(f"{summary.prompt_tokens + summary.completion_tokens} tokens, {cost}")
    parts.append(f"{summary.asked} asked with {summary.calls} calls in {summary.elapsed_s:.1f} s")
    if summary.retries:
        parts.append(f"{summary.retries} retries, down to {summary.fewest_at_once} at once")
    return ", ".join(parts)


def summary_text(summary: BatchSummary) -> str:
    """A table of scores by tag and overall, then the worst questions."""
    metrics = [name for name, score in summary.groups["all"].scores.items() if score.n]
    rows = [["", "n", "passed", *(name.replace("_", " ") for name in metrics)]]
    for tag, group in summary.groups.items():
        means = [group.scores[name] for name in metrics]
        shown = ["-" if one.mean is None else f"{one.mean:.2f} ({one.n})" for one in means]
        rows.append([printable(tag), str(group.questions), str(group.passed), *shown])
    lines = _columns(rows)
    if summary.worst:
        lines += ["", "Worst:"]
    for one in summary.worst:
        expected = one.expected if isinstance(one.expected, str) else None
        if isinstance(one.expected, list):
            expected = " / ".join(str(item) for item in one.expected)
        said = " ".join(one.answer.split()) or one.status
        head = f"  {one.id} ({summary.metric} {one.value:.2f}): {' '.join(one.question.split())}"
        lines += [head, f"    said {shortened(said, _ANSWER_WIDTH)!r}, expected {expected!r}"]
    return printable("\n".join(lines))


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def estimate_text(found: Estimate) -> str:
    """An estimate as a table."""
    rows = [["", "low", "likely", "high"]]
    for name, known, form in (
        ("calls", found.calls, ",.0f"),
        ("tokens", found.tokens, ",.0f"),
        ("USD", found.cost_usd, ",.4f"),
    ):
        if known is not None:
            values = (known.low, known.likely, known.high)
            rows.append([name, *(format(value, form) for value in values)])
    lines = [f"{found.questions} questions to ask, {found.done} done", *_columns(rows)]
    lines.append(f"Reckoned from {found.source}. Nothing was asked.")
    if found.cost_usd is None:
        lines.append("No price of the model is known: give one in docpager.toml.")
    return "\n".join(lines)


def comparison_text(found: Comparison) -> str:
    """A comparison: the numbers, then what got worse, better, or changed."""
    from docpager.batch.comparison import number_rows, titled

    lines = _columns([["", "before", "after", "change"], *map(list, number_rows(found))])
    for title, changes in titled(found):
        if changes:
            lines += ["", f"{title} ({len(changes)}):"]
        for one in changes:
            lines.append(f"  {one.id}: {' '.join(one.question.split())}")
            lines += [f"    - {_one_line(one.before)}", f"    + {_one_line(one.after)}"]
    for title, ids in (("Only before", found.only_before), ("Only after", found.only_after)):
        if ids:
            lines += ["", f"{title}: {', '.join(ids)}"]
    return printable("\n".join(lines))


def _one_line(text: str) -> str:
    return shortened(" ".join(text.split()), _ANSWER_WIDTH)

"""Commands about many questions: batch and compare."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from docpager.batch.metrics import METRICS
from docpager.errors import UserError

if TYPE_CHECKING:
    from docpager.batch import Interrupt
    from docpager.config import Config
from docpager.cli.options import CACHE_SETTINGS, MODEL_SETTINGS, cache_options, model_options
from docpager.cli.program import command, worst


class _Share(click.FloatRange):
    """A number from 0 to 1, and a number: `nan` passes the bounds of a range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number from 0 to 1.", param, ctx)
        return number


_SHARE = _Share(0, 1)
_QUESTION_BOUNDS = {
    "question_max_tokens": "max_tokens",
    "question_max_cost": "max_cost",
    "question_timeout": "timeout",
}
"""Options of `batch` that are settings under another name: there the plain names bound all."""


@command(*MODEL_SETTINGS, *CACHE_SETTINGS, "max_steps", "seed", "keep_runs")
@click.argument("questions", metavar="QUESTIONS.jsonl")
@click.option("-o", "--output", metavar="RESULTS.jsonl", help="Where results are kept.")
@model_options
@cache_options
@click.option("--jobs", type=click.IntRange(1, 256), metavar="N", help="Questions at once.")
@click.option("--filter", "tags", metavar="TAG", multiple=True, help="Only these; repeatable.")
@click.option("--resume", is_flag=True, help="Run what is missing (this is the default).")
@click.option("--retry-errors", is_flag=True, help="Run what failed at the model again, too.")
@click.option(
    "--redo",
    is_flag=True,
    help="Ask again what was made otherwise, else all; old results stay until then.",
)
@click.option("--dry-run", is_flag=True, help="Say what it may take, and ask nothing.")
@click.option("--metric", type=click.Choice(METRICS), default="f1", help="What is judged by.")
@click.option("--pass-at", type=_SHARE, default=0.6, metavar="X", help="A pass.")
@click.option("--fail-under", type=_SHARE, metavar="X", help="Least mean.")
@click.option("--junit-xml", metavar="FILE", help="Write a report for CI servers.")
@click.option("--summary", metavar="FILE", help="Write the summary as JSON.")
@click.option("--report", metavar="FILE.html", help="Write a report for people.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Limit on all tokens.")
@click.option("--max-cost", type=float, metavar="USD", help="Limit on all money.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Limit on all time.")
@click.option("--question-max-tokens", type=int, metavar="N", help="Limit for one question.")
@click.option("--question-max-cost", type=float, metavar="USD", help="Limit for one question.")
@click.option("--question-timeout", type=float, metavar="SECONDS", help="Limit for one question.")
@click.option("--max-steps", type=int, metavar="N", help="Limit on steps for one question.")
@click.option("--seed", type=int, metavar="N", help="Passed to the model.")
@click.option("--keep-runs", type=int, metavar="N", help="How many traces to keep.")
def batch(config: Config, questions: str, output: str | None, **options: Any) -> int:
    """Answer a file of questions, score them, and fail where they got worse. It can be resumed.

    \b
    Example:
      docpager batch questions.jsonl -o results.jsonl --junit-xml junit.xml --fail-under 0.7
    """
    from docpager import render
    from docpager.archive import Archive
    from docpager.batch import BatchLimits, Grading, Interrupt, Selection
    from docpager.batch.estimate import estimate_record
    from docpager.batch.summary import summary_record
    from docpager.config import revised

    own = {name: options.pop(option) for option, name in _QUESTION_BOUNDS.items()}
    config = revised(config, own)
    selection = Selection(options["tags"], options["retry_errors"], options["redo"])
    bounds = BatchLimits(
        _positive(options["max_tokens"], "--max-tokens"),
        _positive(options["max_cost"], "--max-cost"),
        _positive(options["timeout"], "--timeout"),
    )
    if options["dry_run"]:
        found = Archive(config=config).estimate(questions, output, selection=selection)
        if config.json:
            render.write_json(estimate_record(found))
        else:
            render.write(render.estimate_text(found))
        return 0
    if output is None:
        raise UserError("No file for the results is named. Name one with -o.")
    interrupt = Interrupt()
    shown = config.progress and not config.quiet and not config.json
    with (
        _interrupts(interrupt),
        render.BatchProgress(shown, config.verbose) as progress,
        Archive(config=config) as archive,
    ):
        summary = archive.batch(
            questions,
            output,
            grading=Grading(options["metric"], options["pass_at"], options["fail_under"]),
            selection=selection,
            bounds=bounds,
            jobs=options["jobs"],
            junit_xml=options["junit_xml"],
            summary=options["summary"],
            report=options["report"],
            say=render.say,
            on_result=progress,
            interrupt=interrupt,
        )
    if config.json:
        render.write_json(summary_record(summary))
    elif not config.quiet:
        render.write(render.summary_text(summary))
    render.say(render.summary_line(summary))
    if summary.stopped is not None:
        render.say(f"docpager: {summary.stopped}")
    return worst(summary.exit_codes)


def _positive(value: Any, option: str) -> Any:
    if value is not None and not value > 0:
        raise UserError(f"{option} must be above 0, not {value}. Correct it.")
    return value


@contextlib.contextmanager
def _interrupts(interrupt: Interrupt) -> Iterator[None]:
    """Ctrl-C, and the signal by which a CI server ends a job, ask `interrupt` to stop."""
    import signal

    def ask(*_: object) -> None:
        interrupt()
        if interrupt.count > 1:
            said = "stopping now. What is finished is kept."
        else:
            said = "finishing what runs, and keeping it. Once more stops at once."
        os.write(2, f"docpager: {said}\n".encode())

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@command()
@click.argument("before", metavar="A.jsonl")
@click.argument("after", metavar="B.jsonl")
@click.option("--metric", type=click.Choice(METRICS), default="f1", help="What is compared.")
@click.option("--markdown", is_flag=True, help="Print Markdown, for a pull request.")
def compare(config: Config, before: str, after: str, metric: Any, markdown: bool) -> int:
    """Say what got worse between two results of a batch, what got better, and what it cost.

    \b
    Example:
      docpager compare main.jsonl branch.jsonl --markdown
    """
    from docpager import render
    from docpager.batch import comparison

    found = comparison.compare_results(before, after, metric)
    if config.json:
        render.write_json(comparison.comparison_record(found))
    elif markdown:
        render.write(comparison.comparison_markdown(found))
    else:
        render.write(render.comparison_text(found))
    return 1 if found.regressed else 0

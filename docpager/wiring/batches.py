"""A batch: its files checked and opened, its questions asked, its end reported."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from docpager.clocks import SystemClock
from docpager.config import Config
from docpager.errors import NothingToDo, UserError
from docpager.wiring.chats import UNKNOWN_WINDOW, known_window, model_name
from docpager.wiring.endpoints import is_embedded, price_of, required_price
from docpager.wiring.questions import Say, drop_runs, load_ahead, open_runner
from docpager.wiring.runner import SharedLimits, question_bounds

if TYPE_CHECKING:
    from docpager.batch.allowance import BatchLimits
    from docpager.batch.estimate import Estimate
    from docpager.batch.finished import Subscriber
    from docpager.batch.grading import Grading
    from docpager.batch.questions import Question
    from docpager.batch.result import Result
    from docpager.batch.results import ResultsFile
    from docpager.batch.run import BatchEnd, Hooks, Interrupt, OnResult
    from docpager.batch.selection import Selection
    from docpager.batch.summary import BatchSummary
    from docpager.wiring.runner import QuestionRunner

JOBS = 4
"""Questions at once, unless the model is the embedded one, which answers one at a time."""


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """The files of a batch; reports are written where they are named."""

    questions: Path
    results: Path
    junit_xml: Path | None = None
    summary: Path | None = None
    report: Path | None = None

    @property
    def reports(self) -> dict[str, Path | None]:
        """The reports by their options."""
        named = {"--junit-xml": self.junit_xml, "--summary": self.summary}
        return {**named, "--report": self.report}

    def subscribers(self) -> Iterator[Subscriber]:
        """What is called with the finished batch, in order."""
        if self.junit_xml is not None:
            from docpager.batch.junit import write_junit

            yield partial(write_junit, self.junit_xml)
        if self.report is not None:
            from docpager.batch.report import write_report

            yield partial(write_report, self.report)
        summary = self.summary
        if summary is not None:
            from docpager.batch.summary import write_summary

            yield lambda batch: write_summary(summary, batch.summary)


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How a batch is run."""

    grading: Grading
    selection: Selection
    limits: BatchLimits
    jobs: int | None
    say: Say
    on_result: OnResult
    interrupt: Interrupt


def run_batch(config: Config, files: BatchFiles, options: BatchOptions) -> BatchSummary:
    """Answer a file of questions; see `Archive.batch`."""
    from docpager.batch.finished import FinishedBatch
    from docpager.batch.questions import read_questions
    from docpager.batch.results import ResultsFile
    from docpager.batch.selection import open_questions, select, unasked_notice

    # A session would make answers depend on the order in which they come.
    config = replace(config, session=None, trace=None)
    clock = SystemClock()
    began = clock.monotonic()
    questions = read_questions(files.questions)
    if options.limits.max_cost is not None:
        required_price(config, model_name(config), "--max-cost")
    check_files(config, files)
    shared = _shared_limits(config, options, clock, began)
    with ExitStack() as opened:
        results = opened.enter_context(ResultsFile(files.results))
        if open_questions(questions, results, options.selection, question_bounds(config)):
            load_ahead(config)
        runner = opened.enter_context(open_runner(config, shared))
        chosen, asked = select(questions, results, options.selection, runner)
        _require_questions(chosen, options.selection)
        options.say(runner.introduction)
        notice = unasked_notice(questions, results)
        if notice is not None:
            options.say(notice)
        end = _ask(config, asked, results, runner, shared, options)
        _rewrite(questions, results, options.grading)
        summary = _summary(chosen, results, options.grading, end)
        summary = _with_traffic(summary, shared, clock.monotonic() - began)
        finished = FinishedBatch(
            chosen, results.get, summary, runner.runs, runner.cited_text, end.failed, end.not_asked
        )
        for report in files.subscribers():
            report(finished)
        drop_runs(config, runner, len(questions))
    return summary


def estimate_batch(
    config: Config,
    questions: str | Path,
    results: str | Path | None,
    *,
    selection: Selection | None,
) -> Estimate:
    """What asking the questions without a result may take; see `Archive.estimate`."""
    from docpager.batch.questions import read_questions
    from docpager.batch.results import Entry, read_results
    from docpager.batch.selection import Selection

    selection = selection or Selection()
    chosen = [one for one in read_questions(Path(questions)) if selection.has(one)]
    if not chosen:
        raise NothingToDo(f"No question has the tag {' or '.join(selection.tags)}.")
    path = Path(results) if results is not None else None
    found = read_results(path) if path is not None and path.exists() else {}
    limits = question_bounds(config)
    done = [
        found[one.id]
        for one in chosen
        if one.id in found and not selection.opens(Entry.of(found[one.id]), limits)
    ]
    return _estimate(config, len(chosen) - len(done), done)


# -- before ---------------------------------------------------------------------------------------


def check_files(config: Config, files: BatchFiles) -> None:
    """Refuse, before anything is spent, files that cannot be written or would overwrite another."""
    named = {"the questions": files.questions, "-o": files.results, **files.reports}
    _require_apart({**named, "--cache": config.cache, "--archive": config.archive})
    for path in files.reports.values():
        if path is not None:
            _require_writable(path)


def _shared_limits(
    config: Config, options: BatchOptions, clock: SystemClock, began: float
) -> SharedLimits:
    from docpager.models.budget import SharedBudget
    from docpager.models.throttle import Throttle

    name, limits = model_name(config), options.limits
    price = price_of(config, name)
    throttle = Throttle(
        _jobs(config, options),
        clock,
        ends_at=began + (limits.seconds or math.inf),
        interrupted=lambda: options.interrupt.count > 0,
    )
    budget = SharedBudget(price, max_tokens=limits.max_tokens, max_cost=limits.max_cost)
    return SharedLimits(throttle, budget)


def _jobs(config: Config, options: BatchOptions) -> int:
    return options.jobs or (1 if is_embedded(model_name(config)) else JOBS)


def _require_questions(chosen: Sequence[Question], selection: Selection) -> None:
    if not chosen:
        raise NothingToDo(f"No question has the tag {' or '.join(selection.tags)}. Name another.")


def _require_apart(files: Mapping[str, Path | None]) -> None:
    """Refuse two options that name the same file: one would overwrite the other.

    Devices and pipes may be named more than once.
    """
    seen: dict[str, str] = {}
    for name, given in files.items():
        if given is None or (given.exists() and not given.is_file()):
            continue
        identity = _identity(given)
        if identity in seen:
            raise UserError(
                f"{seen[identity]} and {name} name the same file, {given}. Name another for one "
                "of them; nothing was asked."
            )
        seen[identity] = name


def _identity(path: Path) -> str:
    """A key that all paths to one file share, hard links too."""
    try:
        found = path.stat()
    except OSError:
        return os.path.realpath(path)
    return f"{found.st_dev}:{found.st_ino}"


def _require_writable(path: Path) -> None:
    """Refuse a report that cannot be written; a file that was not there is not left behind."""
    existed = path.exists()
    if existed and not path.is_file() and not path.is_dir():
        return  # whoever reads from a pipe would take its closing for the end
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror}). Name another file."
        ) from error
    if not existed:
        path.resolve().unlink()  # of a dangling link, what it points to


# -- asking ---------------------------------------------------------------------------------------


def _ask(
    config: Config,
    questions: Sequence[Question],
    results: ResultsFile,
    runner: QuestionRunner,
    shared: SharedLimits,
    options: BatchOptions,
) -> BatchEnd:
    from docpager.batch.allowance import Allowance
    from docpager.batch.recorder import Recorder
    from docpager.batch.run import Scheduler
    from docpager.batch.workers import Workers

    clock = SystemClock()
    limits = _with_estimate(options.limits, config, len(questions))
    scheduler = Scheduler(
        questions,
        Workers(runner, clock),
        Recorder(results, runner, options.grading),
        Allowance(limits, shared.budget, clock),
        _hooks(options, lambda: shared.throttle.refusal),
        _jobs(config, options),
    )
    return scheduler.run()


def _hooks(options: BatchOptions, refused: Callable[[], str | None]) -> Hooks:
    from docpager.batch.run import Hooks

    return Hooks(options.interrupt, refused, options.on_result)


def _estimate(config: Config, count: int, done: Sequence[Result]) -> Estimate:
    from docpager.batch.estimate import estimate

    name = model_name(config)
    embedded = is_embedded(name)
    return estimate(
        count,
        done=[(result.answer.steps, result.answer.usage) for result in done],
        window=config.context_window or known_window(name) or UNKNOWN_WINDOW,
        tool_mode="guided" if embedded and config.tool_mode == "auto" else config.tool_mode,
        max_steps=config.max_steps,
        price=price_of(config, name),
    )


def _with_estimate(limits: BatchLimits, config: Config, count: int) -> BatchLimits:
    """The limits with what a question is likely to take, until some are finished."""
    if not count:
        return limits
    found = _estimate(config, 1, [])
    cost = found.cost_usd.likely if found.cost_usd else 0.0
    return replace(limits, question_tokens=found.tokens.likely, question_cost=cost)


# -- after ----------------------------------------------------------------------------------------


def _rewrite(questions: Sequence[Question], results: ResultsFile, grading: Grading) -> None:
    """Put the results in the order of the questions, graded by what is expected now."""
    from docpager.batch.grading import graded

    by_id = {question.id: question for question in questions}
    results.rewrite([*by_id], lambda result: graded(result, by_id[result.id], grading))


def _summary(
    chosen: Sequence[Question], results: ResultsFile, grading: Grading, end: BatchEnd
) -> BatchSummary:
    from docpager.batch.summary import summarise

    found = (results.get(question.id) for question in chosen)
    kept = (result for result in found if result is not None)
    summary = summarise(kept, questions=len(chosen), grading=grading)
    return replace(
        summary,
        asked=end.asked,
        interrupted=end.interrupted,
        stopped=None if end.stopped is None else str(end.stopped),
        stop_code=0 if end.stopped is None else end.stopped.exit_code,
    )


def _with_traffic(summary: BatchSummary, shared: SharedLimits, seconds: float) -> BatchSummary:
    traffic = shared.throttle.traffic
    return replace(
        summary,
        calls=shared.budget.calls,
        retries=traffic.retries,
        fewest_at_once=traffic.fewest_at_once,
        elapsed_s=seconds,
    )

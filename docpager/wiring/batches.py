"""Wires a batch: checks and opens its files, asks its questions, calls its subscribers."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from docpager.clocks import SystemClock
from docpager.config import Config
from docpager.errors import NothingToDo, UserError
from docpager.wiring import arguments
from docpager.wiring.chats import UNKNOWN_WINDOW, known_window
from docpager.wiring.endpoints import is_embedded, price_of, required_price
from docpager.wiring.given import GivenModels
from docpager.wiring.questions import Say, drop_runs, load_ahead
from docpager.wiring.resources import Resources
from docpager.wiring.runner import SharedLimits, question_limits

if TYPE_CHECKING:
    from docpager.batch.allowance import BatchLimits
    from docpager.batch.estimate import Estimate
    from docpager.batch.finished import Subscriber
    from docpager.batch.grading import Grading
    from docpager.batch.questions import Question
    from docpager.batch.result import Result
    from docpager.batch.results import ResultsFile
    from docpager.batch.run import BatchEnd, Interrupt, OnResult
    from docpager.batch.selection import Selection
    from docpager.batch.summary import BatchSummary
    from docpager.protocols import Clock
    from docpager.wiring.runner import QuestionRunner

JOBS = 4
"""Questions at once; the embedded model, and models of the caller's own, answer one at a time."""

MOST_JOBS = 256
"""Each is a thread."""


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """The files of a batch; only the reports that are named are written."""

    questions: Path
    results: Path
    junit_xml: Path | None = None
    summary: Path | None = None
    report: Path | None = None

    @property
    def reports(self) -> dict[str, Path | None]:
        """The reports by the options that name them."""
        named = {"--junit-xml": self.junit_xml, "--summary": self.summary}
        return {**named, "--report": self.report}

    def subscribers(self) -> Iterator[Subscriber]:
        """Called with the finished batch, in order."""
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

    def __post_init__(self) -> None:
        """Refuse what is of another type, before anything is asked.

        Raises:
            UserError: an option is; the message says what it must be.
        """
        from docpager import batch

        arguments.instance("grading", self.grading, batch.Grading)
        arguments.instance("selection", self.selection, batch.Selection)
        arguments.instance("bounds", self.limits, batch.BatchLimits)
        arguments.instance("interrupt", self.interrupt, batch.Interrupt)
        for name, called in (("say", self.say), ("on_result", self.on_result)):
            arguments.function(name, called)
        if self.jobs is not None:
            arguments.whole("jobs", self.jobs, 1, MOST_JOBS)


@dataclass(frozen=True, slots=True)
class _Batch:
    """What the steps of one batch share."""

    config: Config
    given: GivenModels
    options: BatchOptions
    clock: Clock

    @property
    def jobs(self) -> int:
        """Questions at once; a model of the caller's own need not be safe for threads."""
        given = self.given
        own = given.chat is not None or given.embedder is not None
        alone = own or is_embedded(given.model_name(self.config))
        return self.options.jobs or (1 if alone else JOBS)


def run_batch(resources: Resources, files: BatchFiles, options: BatchOptions) -> BatchSummary:
    """Answer a file of questions; see `Archive.batch`."""
    from docpager.batch.finished import FinishedBatch
    from docpager.batch.questions import read_questions
    from docpager.batch.results import ResultsFile
    from docpager.batch.selection import open_questions, select

    # With a session, answers would depend on the order of the questions.
    config = replace(resources.config, session=None, trace=None)
    batch = _Batch(config, resources.given, options, SystemClock())
    began = batch.clock.monotonic()
    questions = read_questions(files.questions)
    if options.limits.max_cost is not None:
        required_price(config, batch.given.model_name(config), "--max-cost")
    check_files(config, files)
    shared = _shared_limits(batch, began)
    with ExitStack() as opened:
        results = opened.enter_context(ResultsFile(files.results))
        if open_questions(questions, results, options.selection, question_limits(config)):
            load_ahead(config, batch.given)
        runner = opened.enter_context(resources.answering_batch(config, shared))
        chosen, asked = select(questions, results, options.selection, runner)
        _require_questions(chosen, options.selection)
        _introduce(batch, questions, results, runner)
        end = _ask(batch, asked, results, runner, shared)
        _rewrite(questions, results, options.grading)
        summary = _summary(chosen, results, options.grading, end)
        summary = _with_traffic(summary, shared, batch.clock.monotonic() - began)
        finished = FinishedBatch(
            chosen, results.get, summary, runner.runs, runner.cited_text, end.failed, end.not_asked
        )
        for report in files.subscribers():
            report(finished)
        drop_runs(config, runner, len(questions))
    return summary


def estimate_batch(
    config: Config,
    given: GivenModels,
    questions: Path,
    results: Path | None,
    *,
    selection: Selection,
) -> Estimate:
    """Estimate what the questions without a result take; see `Archive.estimate`."""
    from docpager.batch.questions import read_questions
    from docpager.batch.results import Entry, read_results

    chosen = [one for one in read_questions(questions) if selection.has(one)]
    if not chosen:
        raise NothingToDo(f"No question has the tag {' or '.join(selection.tags)}.")
    found = read_results(results) if results is not None and _mode(results) else {}
    limits = question_limits(config)
    done = [
        found[one.id]
        for one in chosen
        if one.id in found and not selection.opens(Entry.of(found[one.id]), limits)
    ]
    return _estimate(config, given, len(chosen) - len(done), done)


# -- before ---------------------------------------------------------------------------------------


def check_files(config: Config, files: BatchFiles) -> None:
    """Refuse, before anything is spent, files that cannot be written or would overwrite another."""
    named = {"the questions": files.questions, "-o": files.results, **files.reports}
    _require_apart({**named, "--cache": config.cache, "--archive": config.archive})
    for path in files.reports.values():
        if path is not None:
            _require_writable(path)


def _shared_limits(batch: _Batch, began: float) -> SharedLimits:
    from docpager.models.budget import SharedBudget
    from docpager.models.throttle import Throttle

    limits, interrupt = batch.options.limits, batch.options.interrupt
    price = price_of(batch.config, batch.given.model_name(batch.config))
    throttle = Throttle(
        batch.jobs,
        batch.clock,
        ends_at=began + (limits.seconds or math.inf),
        interrupted=lambda: interrupt.count > 0,
    )
    budget = SharedBudget(price, max_tokens=limits.max_tokens, max_cost=limits.max_cost)
    return SharedLimits(throttle, budget)


def _require_questions(chosen: Sequence[Question], selection: Selection) -> None:
    if not chosen:
        raise NothingToDo(f"No question has the tag {' or '.join(selection.tags)}. Name another.")


def _require_apart(files: Mapping[str, Path | None]) -> None:
    """Refuse two options that name the same file: one would overwrite the other.

    Devices and pipes may be named more than once.
    """
    seen: dict[str, str] = {}
    for name, given in files.items():
        if given is None:
            continue
        mode = _mode(given)
        if mode and not stat.S_ISREG(mode):
            continue
        identity = _identity(given)
        if identity in seen:
            raise UserError(
                f"{seen[identity]} and {name} name the same file, {given}. Name another for one "
                "of them; nothing was asked."
            )
        seen[identity] = name


def _mode(path: Path) -> int:
    """What kind of file it is, as `stat` says; 0 where there is none, or it cannot be reached."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _identity(path: Path) -> str:
    """A key that all paths to one file share, hard links too."""
    try:
        found = path.stat()
    except OSError:
        return os.path.realpath(path)
    return f"{found.st_dev}:{found.st_ino}"


def _require_writable(path: Path) -> None:
    """Refuse a report that cannot be written; a file that was not there is not left behind."""
    mode = _mode(path)
    if mode and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return  # whoever reads from a pipe would take its closing for the end
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror}). Name another file."
        ) from error
    if not mode:
        path.resolve().unlink()  # of a dangling link, what it points to


# -- asking ---------------------------------------------------------------------------------------


def _introduce(
    batch: _Batch, questions: Sequence[Question], results: ResultsFile, runner: QuestionRunner
) -> None:
    """Say which model answers, and what the results cannot tell."""
    from docpager.batch.selection import unasked_notice

    say = batch.options.say
    say(runner.introduction)
    if batch.given.chat is not None:
        say(
            f"Results depend on the name of your chat model, {runner.info.model}, and not on its "
            "code. When that changes, give it another `model` name, or ask again with `redo`."
        )
    notice = unasked_notice(questions, results)
    if notice is not None:
        say(notice)


def _ask(
    batch: _Batch,
    questions: Sequence[Question],
    results: ResultsFile,
    runner: QuestionRunner,
    shared: SharedLimits,
) -> BatchEnd:
    from docpager.batch.allowance import Allowance
    from docpager.batch.recorder import Recorder
    from docpager.batch.run import Hooks, Scheduler
    from docpager.batch.workers import Workers

    options, clock = batch.options, batch.clock
    scheduler = Scheduler(
        questions,
        Workers(runner, clock),
        Recorder(results, runner, options.grading),
        Allowance(_with_estimate(batch, len(questions)), shared.budget, clock),
        Hooks(options.interrupt, lambda: shared.throttle.refusal, options.on_result),
        batch.jobs,
    )
    return scheduler.run()


def _estimate(config: Config, given: GivenModels, count: int, done: Sequence[Result]) -> Estimate:
    from docpager.batch.estimate import estimate

    name = given.model_name(config)
    tool_mode, window = config.tool_mode, config.context_window
    if given.chat is None:
        window = window or known_window(name)
        if tool_mode == "auto" and is_embedded(name):
            tool_mode = "guided"
    elif tool_mode == "auto":
        tool_mode = given.chat.tool_mode
    return estimate(
        count,
        done=[(result.answer.steps, result.answer.usage) for result in done],
        window=window or UNKNOWN_WINDOW,
        tool_mode=tool_mode,
        max_steps=config.max_steps,
        price=price_of(config, name),
    )


def _with_estimate(batch: _Batch, count: int) -> BatchLimits:
    """The limits with the estimate for one question, used until one is finished."""
    limits = batch.options.limits
    if not count:
        return limits
    found = _estimate(batch.config, batch.given, 1, [])
    cost = found.cost_usd.likely if found.cost_usd else 0.0
    return replace(limits, question_tokens=found.tokens.likely, question_cost=cost)


# -- after ----------------------------------------------------------------------------------------


def _rewrite(questions: Sequence[Question], results: ResultsFile, grading: Grading) -> None:
    """Write the results in the order of the questions, graded by what is expected now."""
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

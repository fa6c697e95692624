"""A batch: questions and results opened, asked, summed up, reported."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from docpager.clocks import SystemClock
from docpager.config import Config
from docpager.errors import NothingToDo, UserError
from docpager.types import Usage
from docpager.wiring.chats import UNKNOWN_WINDOW, known_window, model_name
from docpager.wiring.endpoints import is_embedded, price_of, required_price
from docpager.wiring.questions import Say, drop_runs, load_ahead, open_runner
from docpager.wiring.runner import SharedLimits, question_bounds

if TYPE_CHECKING:
    from docpager.batch.estimate import Estimate
    from docpager.batch.questions import Question
    from docpager.batch.results import Record, ResultsFile
    from docpager.batch.run import BatchLimits, Ended, Grading, Interrupt, OnResult, Selection
    from docpager.batch.summary import BatchSummary

JOBS = 4
"""Questions at once, unless the model is the embedded one, which answers one at a time."""


def run_batch(
    config: Config,
    questions: str | Path,
    results: str | Path,
    *,
    grading: Grading | None,
    selection: Selection | None,
    bounds: BatchLimits | None,
    jobs: int | None,
    junit_xml: str | Path | None,
    summary: str | Path | None,
    report: str | Path | None,
    say: Say,
    on_result: OnResult | None,
    interrupt: Interrupt | None,
) -> BatchSummary:
    """Answer a file of questions; see `docpager.run_batch`."""
    from docpager.batch import run as batch
    from docpager.batch.questions import read_questions
    from docpager.batch.results import ResultsFile
    from docpager.models.budget import SharedBudget
    from docpager.models.throttle import Throttle

    # A session would make answers depend on the order in which they come.
    config = replace(config, session=None, trace=None)
    grading, selection = grading or batch.Grading(), selection or batch.Selection()
    bounds, clock = bounds or batch.BatchLimits(), SystemClock()
    began = clock.monotonic()
    asked = read_questions(Path(questions))
    name = model_name(config)
    if bounds.max_cost is not None:
        required_price(config, name, "--max-cost")
    written = {"--junit-xml": junit_xml, "--summary": summary, "--report": report}
    files = {"the questions": questions, "-o": results, **written, "--cache": config.cache}
    _require_apart({**files, "--archive": config.archive})
    for path in written.values():
        _require_writable(path)
    budget = SharedBudget(
        price_of(config, name), max_tokens=bounds.max_tokens, max_cost=bounds.max_cost
    )
    jobs = jobs or (1 if is_embedded(name) else JOBS)
    stop = interrupt or batch.Interrupt()
    throttle = Throttle(
        jobs,
        clock,
        ends_at=began + (bounds.seconds or math.inf),
        interrupted=lambda: stop.count > 0,
    )
    with ExitStack() as opened:
        kept = opened.enter_context(ResultsFile(Path(results)))
        if batch.open_questions(asked, kept, selection, question_bounds(config)):
            load_ahead(config)
        shared = SharedLimits(throttle, budget)
        runner = opened.enter_context(open_runner(config, shared))
        chosen, open_ = batch.select(asked, kept, selection, runner)
        if not chosen:
            raise NothingToDo(
                f"No question has the tag {' or '.join(selection.tags)}. Name another."
            )
        say(runner.introduction)
        besides = batch.kept_besides(asked, kept)
        if besides is not None:
            say(besides)
        ended = batch.run(
            open_,
            kept,
            runner,
            budget=budget,
            bounds=_with_estimate(bounds, config, len(open_)),
            grading=grading,
            jobs=jobs,
            clock=clock,
            interrupt=stop,
            refused=lambda: throttle.refusal,
            on_result=on_result or _unheard,
        )
        outcome = _summary(asked, chosen, kept, grading, ended)
        traffic = throttle.traffic
        outcome = replace(
            outcome,
            calls=budget.calls,
            retries=traffic.retries,
            fewest_at_once=traffic.fewest_at_once,
            elapsed_s=clock.monotonic() - began,
        )
        if junit_xml is not None:
            from docpager.batch.junit import write_junit

            write_junit(
                Path(junit_xml),
                chosen,
                _reader(kept),
                outcome,
                runner.runs,
                ended.failed,
                ended.left,
            )
        if report is not None:
            from docpager.agent.runs import events_of
            from docpager.batch.report import write_report

            write_report(
                Path(report),
                chosen,
                _reader(kept),
                outcome,
                events_of=lambda run_id: events_of(runner.runs, run_id),
                page_of=runner.cited_text,
                failed={**ended.failed, **ended.left},
            )
        drop_runs(config, runner, len(asked))
    if summary is not None:
        _write_summary(Path(summary), outcome)
    return outcome


def estimate_batch(
    config: Config,
    questions: str | Path,
    results: str | Path | None,
    *,
    selection: Selection | None,
) -> Estimate:
    """What asking the questions without a result may take; see `docpager.estimate_batch`."""
    from docpager.batch.questions import read_questions
    from docpager.batch.results import entry_of, read_results
    from docpager.batch.run import Selection, is_open

    selection = selection or Selection()
    asked = read_questions(Path(questions))
    chosen = [one for one in asked if not selection.tags or set(selection.tags) & set(one.tags)]
    if not chosen:
        raise NothingToDo(f"No question has the tag {' or '.join(selection.tags)}.")
    path = Path(results) if results is not None else None
    records = read_results(path) if path is not None and path.exists() else {}
    bounds = question_bounds(config)
    done = [
        records[one.id]
        for one in chosen
        if one.id in records and not is_open(entry_of(records[one.id]), selection, bounds)
    ]
    return _estimate(config, len(chosen) - len(done), done)


def _estimate(config: Config, count: int, done: Sequence[Record]) -> Estimate:
    from docpager.batch.estimate import estimate

    name = model_name(config)
    usages = [cast("dict[str, int]", row["usage"]) for row in done]
    embedded = is_embedded(name)
    mode = "guided" if embedded and config.tool_mode == "auto" else config.tool_mode
    window = config.context_window or known_window(name) or UNKNOWN_WINDOW
    return estimate(
        count,
        done=[
            (
                cast(int, row["steps"]),
                Usage(used["prompt_tokens"], used["cached_tokens"], used["completion_tokens"]),
            )
            for row, used in zip(done, usages, strict=True)
        ],
        window=window,
        tool_mode=mode,
        max_steps=config.max_steps,
        price=price_of(config, name),
    )


def _with_estimate(bounds: BatchLimits, config: Config, count: int) -> BatchLimits:
    """The bounds with what a question is likely to take, until some are finished."""
    if not count:
        return bounds
    found = _estimate(config, 1, [])
    cost = found.cost_usd.likely if found.cost_usd else 0.0
    return replace(bounds, question_tokens=found.tokens.likely, question_cost=cost)


def _summary(
    asked: Sequence[Question],
    chosen: Sequence[Question],
    kept: ResultsFile,
    grading: Grading,
    ended: Ended,
) -> BatchSummary:
    """Put the results in order, scored by what is expected now, and sum them up."""
    from docpager.batch.results import scored
    from docpager.batch.summary import summarise

    by_id = {question.id: question for question in asked}

    def revised(record: Record) -> Record:
        question = by_id[str(record["id"])]
        return scored(record, question, grading.metric, grading.pass_at)

    kept.rewrite([question.id for question in asked], revised)
    outcome = summarise(
        (kept.read(question.id) for question in chosen if question.id in kept.entries),
        questions=len(chosen),
        metric=grading.metric,
        pass_at=grading.pass_at,
        fail_under=grading.fail_under,
    )
    return replace(
        outcome,
        asked=ended.asked,
        interrupted=ended.interrupted,
        stopped=None if ended.stopped is None else str(ended.stopped),
        stop_code=0 if ended.stopped is None else ended.stopped.exit_code,
    )


def _reader(kept: ResultsFile) -> Callable[[str], Record | None]:
    return lambda name: kept.read(name) if name in kept.entries else None


def _unheard(_done: int, _total: int, _record: Record) -> None:
    """Tells nobody."""


def _require_apart(files: Mapping[str, str | Path | None]) -> None:
    """Refuse two names of one file, of which one would be written over the other.

    Devices, to which everything may be written, may be named as often as one likes.
    """
    seen: dict[str, str] = {}
    for name, given in files.items():
        if given is None or (Path(given).exists() and not Path(given).is_file()):
            continue
        identity = _identity(Path(given))
        if identity in seen:
            raise UserError(
                f"{seen[identity]} and {name} name the same file, {given}. Name another for one "
                "of them; nothing was asked."
            )
        seen[identity] = name


def _identity(path: Path) -> str:
    """The same for all names of a file, hard links too."""
    try:
        found = path.stat()
    except OSError:
        return os.path.realpath(path)
    return f"{found.st_dev}:{found.st_ino}"


def _require_writable(path: str | Path | None) -> None:
    """Find out before anything is spent."""
    if path is None:
        return
    runner = Path(path)
    there = runner.exists()
    if there and not runner.is_file() and not runner.is_dir():
        return  # opening and closing a pipe would be the end of it to whoever reads
    try:
        runner.parent.mkdir(parents=True, exist_ok=True)
        runner.open("ab").close()
    except OSError as error:
        raise UserError(
            f"{runner} cannot be written ({error.strerror}). Name another file."
        ) from error
    if not there:
        runner.resolve().unlink()  # of a link that leads nowhere yet, what it leads to


def _write_summary(path: Path, outcome: BatchSummary) -> None:
    from docpager.batch.summary import summary_record

    text = json.dumps(summary_record(outcome), ensure_ascii=False, indent=1)
    try:
        path.write_text(text + "\n", encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}). Name another.") from error

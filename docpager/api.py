"""The things that docpager does, for programs; the command line calls them too.

Settings are those of `Config`, given by name (`archive="x.duckdb"`), else taken from the
environment and `docpager.toml` as on the command line; or whole, as `config`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

from docpager import wiring
from docpager.clocks import SystemClock
from docpager.config import Config, Settings, load
from docpager.errors import NothingToDo, UserError
from docpager.types import Answer, IngestReport, ResultPage, SearchMode, Usage

if TYPE_CHECKING:
    from docpager.agent.trace import Trace
    from docpager.batch import Bounds, Ended, Grading, Interrupt, OnResult, Selection
    from docpager.estimate import Estimate
    from docpager.questions import Question
    from docpager.results import Record, ResultsFile
    from docpager.summary import BatchSummary


def ingest_paths(
    paths: Sequence[str | Path],
    *,
    config: Config | None = None,
    on_progress: wiring.IngestProgress | None = None,
    on_recognition: wiring.RecognitionProgress | None = None,
    prune: bool = False,
    retry_failed: bool = False,
    **settings: Unpack[Settings],
) -> IngestReport:
    """Bring the archive up to date with files and folders; what has not changed costs nothing.

    A file that cannot be read is an entry in the report and stops none of the others.

    Args:
        on_progress: Told after each file how far it is, from another thread.
        on_recognition: Told before each page that is recognised, from other threads.
        prune: Forget documents whose file is gone from the folders given.
        retry_failed: Try again what failed before, even if nothing has changed.

    Raises:
        UserError: a path does not exist, or the archive was made with another embedder.
        NothingToDo: there is no document under the paths.
        ArchiveError: the archive is locked, damaged, or cannot be written.
        ModelError: the embedding endpoint fails.
    """
    return wiring.ingest_into(
        config or load(settings),
        [str(path) for path in paths],
        on_progress,
        on_recognition,
        prune=prune,
        retry_failed=retry_failed,
    )


def search(
    query: str,
    *,
    mode: SearchMode = "hybrid",
    page: int = 0,
    page_size: int = 5,
    document: str | None = None,
    config: Config | None = None,
    **settings: Unpack[Settings],
) -> ResultPage:
    """One page (0-based) of the passages that `query` finds; pages are slices of one ranking.

    Args:
        document: A glob; only documents whose name matches are searched.

    Raises:
        UserError: the query is empty, or the page is past the end.
        ArchiveError: the archive is missing, locked or damaged.
        NothingToDo: the archive is empty.
        ModelError: the embedding endpoint fails.
    """
    return wiring.search_page(config or load(settings), query, mode, page, page_size, document)


def answer_question(
    question: str,
    *,
    config: Config | None = None,
    say: wiring.Say = wiring.silent,
    watchers: Sequence[Trace] = (),
    **settings: Unpack[Settings],
) -> Answer:
    """The answer to one question, with citations that were checked against the stored pages.

    A model that fails at the question makes an Answer of status `model_error`, not an exception;
    one that cannot be made ready to be asked is an exception.

    Args:
        say: Told which model answers.
        watchers: Told every event of the run as it happens.

    Raises:
        UserError: the question is empty, or no model is configured.
        ArchiveError: the archive is missing, locked or damaged.
        NothingToDo: the archive is empty.
        ModelError: the embedded model cannot be loaded.
    """
    return wiring.question_task(config or load(settings))(question, say, watchers)


JOBS = 4
"""Questions at once, unless the model is the embedded one, which answers one at a time."""


def run_batch(
    questions: str | Path,
    results: str | Path,
    *,
    grading: Grading | None = None,
    selection: Selection | None = None,
    bounds: Bounds | None = None,
    jobs: int | None = None,
    junit_xml: str | Path | None = None,
    summary: str | Path | None = None,
    report: str | Path | None = None,
    config: Config | None = None,
    say: wiring.Say = wiring.silent,
    on_result: OnResult | None = None,
    interrupt: Interrupt | None = None,
    **settings: Unpack[Settings],
) -> BatchSummary:
    """Answer a file of questions, score the answers, and keep each in `results` as it comes.

    What has a result is not asked again, so that a run that was stopped goes on where it was. A
    fault at one question is its result; what stops all of them ends the batch and is told in the
    summary, and what is finished is kept.

    Args:
        grading: How a question passes; by F1 of 0.6 unless told otherwise.
        selection: Which questions are asked.
        bounds: On tokens, money and time of the whole; those of `settings` are for one question.
        jobs: Questions at once; how many calls are in flight adapts to the endpoint.
        junit_xml: Written at the end, for CI servers.
        summary: Written at the end, as JSON.
        report: Written at the end, as one HTML file for people.
        on_result: Told of each result as it comes.
        interrupt: Called once, it lets what runs finish, but for what only waits for the endpoint;
            called twice, it stops at once.

    Raises:
        UserError: a question is malformed, results belong to other questions or depend on what
            has changed, or a file cannot be written.
        NothingToDo: no question is selected, or the archive is empty.
        ArchiveError: the archive is missing, locked or damaged.
    """
    from docpager import batch
    from docpager.models.purse import Purse
    from docpager.models.throttle import Throttle
    from docpager.questions import read_questions
    from docpager.results import ResultsFile

    # A session would make answers depend on the order in which they come.
    config = replace(config or load(settings), session=None, trace=None)
    grading, selection = grading or batch.Grading(), selection or batch.Selection()
    bounds, clock = bounds or batch.Bounds(), SystemClock()
    began = clock.monotonic()
    asked = read_questions(Path(questions))
    name = wiring.model_name(config)
    if bounds.max_cost is not None:
        wiring.required_price(config, name, "--max-cost")
    written = {"--junit-xml": junit_xml, "--summary": summary, "--report": report}
    files = {"the questions": questions, "-o": results, **written, "--cache": config.cache}
    _require_apart({**files, "--archive": config.archive})
    for path in written.values():
        _require_writable(path)
    purse = Purse(
        wiring.price_of(config, name), max_tokens=bounds.max_tokens, max_cost=bounds.max_cost
    )
    jobs = jobs or (1 if wiring.is_embedded(name) else JOBS)
    stop = interrupt or batch.Interrupt()
    throttle = Throttle(
        jobs,
        clock,
        ends_at=began + (bounds.seconds or math.inf),
        interrupted=lambda: stop.count > 0,
    )
    with ExitStack() as opened:
        kept = opened.enter_context(ResultsFile(Path(results)))
        if batch.open_questions(asked, kept, selection, wiring.question_bounds(config)):
            wiring.load_ahead(config)
        shared = wiring.Shared(throttle, purse)
        place = opened.enter_context(wiring.open_workplace(config, shared))
        chosen, open_ = batch.select(asked, kept, selection, place)
        if not chosen:
            raise NothingToDo(
                f"No question has the tag {' or '.join(selection.tags)}. Name another."
            )
        say(place.introduction)
        besides = batch.kept_besides(asked, kept)
        if besides is not None:
            say(besides)
        ended = batch.run(
            open_,
            kept,
            place,
            account=purse,
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
            calls=purse.calls,
            retries=traffic.retries,
            fewest_at_once=traffic.fewest_at_once,
            elapsed_s=clock.monotonic() - began,
        )
        if junit_xml is not None:
            from docpager.junit import write_junit

            write_junit(
                Path(junit_xml),
                chosen,
                _reader(kept),
                outcome,
                place.runs,
                ended.failed,
                ended.left,
            )
        if report is not None:
            from docpager.report import write_report
            from docpager.runs import events_of

            write_report(
                Path(report),
                chosen,
                _reader(kept),
                outcome,
                events_of=lambda run_id: events_of(place.runs, run_id),
                page_of=place.cited_text,
                failed={**ended.failed, **ended.left},
            )
        wiring.drop_runs(config, place, len(asked))
    if summary is not None:
        _write_summary(Path(summary), outcome)
    return outcome


def estimate_batch(
    questions: str | Path,
    results: str | Path | None = None,
    *,
    selection: Selection | None = None,
    config: Config | None = None,
    **settings: Unpack[Settings],
) -> Estimate:
    """What asking the questions that have no result yet may take; nothing is asked or spent.

    Raises:
        UserError: a question is malformed, or no model is configured.
        NothingToDo: no question is selected.
    """
    from docpager.batch import Selection, is_open
    from docpager.questions import read_questions
    from docpager.results import entry_of, read_results

    config = config or load(settings)
    selection = selection or Selection()
    asked = read_questions(Path(questions))
    chosen = [one for one in asked if not selection.tags or set(selection.tags) & set(one.tags)]
    if not chosen:
        raise NothingToDo(f"No question has the tag {' or '.join(selection.tags)}.")
    path = Path(results) if results is not None else None
    records = read_results(path) if path is not None and path.exists() else {}
    bounds = wiring.question_bounds(config)
    done = [
        records[one.id]
        for one in chosen
        if one.id in records and not is_open(entry_of(records[one.id]), selection, bounds)
    ]
    return _estimate(config, len(chosen) - len(done), done)


def _estimate(config: Config, count: int, done: Sequence[Record]) -> Estimate:
    from docpager.estimate import estimate

    name = wiring.model_name(config)
    usages = [cast("dict[str, int]", row["usage"]) for row in done]
    embedded = wiring.is_embedded(name)
    mode = "guided" if embedded and config.tool_mode == "auto" else config.tool_mode
    window = config.context_window or wiring.known_window(name) or wiring.UNKNOWN_WINDOW
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
        price=wiring.price_of(config, name),
    )


def _with_estimate(bounds: Bounds, config: Config, count: int) -> Bounds:
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
    from docpager.results import scored
    from docpager.summary import summarise

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
    place = Path(path)
    there = place.exists()
    if there and not place.is_file() and not place.is_dir():
        return  # opening and closing a pipe would be the end of it to whoever reads
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.open("ab").close()
    except OSError as error:
        raise UserError(
            f"{place} cannot be written ({error.strerror}). Name another file."
        ) from error
    if not there:
        place.resolve().unlink()  # of a link that leads nowhere yet, what it leads to


def _write_summary(path: Path, outcome: BatchSummary) -> None:
    from docpager.summary import summary_record

    text = json.dumps(summary_record(outcome), ensure_ascii=False, indent=1)
    try:
        path.write_text(text + "\n", encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}). Name another.") from error

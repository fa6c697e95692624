"""The things that docpager does, for programs; the command line calls them too.

Settings are those of `Config`, given by name (`archive="x.duckdb"`), else taken from the
environment and `docpager.toml` as on the command line; or whole, as `config`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from docpager import wiring
from docpager.config import Config, Settings, load
from docpager.types import Answer, IngestReport, ResultPage, SearchMode

if TYPE_CHECKING:
    from docpager.agent.trace import Trace
    from docpager.batch.estimate import Estimate
    from docpager.batch.run import BatchLimits, Grading, Interrupt, OnResult, Selection
    from docpager.batch.summary import BatchSummary


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


def run_batch(
    questions: str | Path,
    results: str | Path,
    *,
    grading: Grading | None = None,
    selection: Selection | None = None,
    bounds: BatchLimits | None = None,
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
    return wiring.run_batch(
        config or load(settings),
        questions,
        results,
        grading=grading,
        selection=selection,
        bounds=bounds,
        jobs=jobs,
        junit_xml=junit_xml,
        summary=summary,
        report=report,
        say=say,
        on_result=on_result,
        interrupt=interrupt,
    )


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
    return wiring.estimate_batch(config or load(settings), questions, results, selection=selection)

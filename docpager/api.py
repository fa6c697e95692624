"""The three things docpager does, for programs; the command line calls them too.

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


def ingest_paths(
    paths: Sequence[str | Path],
    *,
    config: Config | None = None,
    on_progress: wiring.IngestProgress | None = None,
    prune: bool = False,
    retry_failed: bool = False,
    **settings: Unpack[Settings],
) -> IngestReport:
    """Bring the archive up to date with files and folders; what has not changed costs nothing.

    A file that cannot be read is an entry in the report and stops none of the others.

    Args:
        on_progress: Told after each file how far it is, from another thread.
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

    A model that fails makes an Answer of status `model_error`, not an exception.

    Args:
        say: Told which model answers.
        watchers: Told every event of the run as it happens.

    Raises:
        UserError: the question is empty, or no model is configured.
        ArchiveError: the archive is missing, locked or damaged.
        NothingToDo: the archive is empty.
    """
    return wiring.question_task(config or load(settings))(question, say, watchers)

"""`Archive`: what a user opens, and the functions that open one for a single call.

Settings are those of `Config`, given by name (`archive="x.duckdb"`), else taken from the
environment and `docpager.toml` as on the command line; or whole, as `config`. The command line
calls nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack, get_args

from docpager import wiring
from docpager.config import Config, Settings, load
from docpager.errors import NothingToDo
from docpager.types import (
    Answer,
    ArchiveStatus,
    Document,
    DocumentText,
    IngestReport,
    Passage,
    Removal,
    ResultPage,
    SearchMode,
)
from docpager.wiring import arguments

if TYPE_CHECKING:
    from types import TracebackType

    from docpager.agent.runs import Run
    from docpager.agent.trace import Trace
    from docpager.batch import BatchLimits, Grading, Interrupt, OnResult, Selection
    from docpager.batch.estimate import Estimate
    from docpager.batch.result import Result
    from docpager.batch.summary import BatchSummary
    from docpager.protocols import Chat, Embedder, Vectors


class Archive:
    """Documents that can be searched, read and asked about, in one DuckDB file.

    The file is opened, and a model or an embedder loaded, when a call first needs it; all stay
    until `close`, so many calls pay once. While the file is open, other processes can read it and
    none can write it: close the archive to let another process ingest. It can be used again
    afterwards. `ingest` and `remove` release it by themselves, and the next call sees what they
    changed, or a file that has been put in its place. Several threads may use one archive: calls
    take turns, and questions are answered at once.

        >>> import docpager, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "mill.txt").write_text("The mill at Teme was built in 1887.")
        >>> with docpager.Archive(folder / "mill.duckdb") as archive:
        ...     report = archive.ingest([folder / "mill.txt"])
        ...     page = archive.search("When was the mill built?")
        >>> report.added, [hit.passage.text for hit in page]
        (1, ['The mill at Teme was built in 1887.'])
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        chat: Chat | None = None,
        text_embedder: Embedder | None = None,
        config: Config | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        """Name an archive; nothing is opened yet, and the file need not exist.

        Args:
            path: The DuckDB file; by default that of the settings.
            chat: A chat model of your own (`docpager.protocols.Chat`), in place of the model of
                the settings; for `ask` and `batch`.
            text_embedder: An embedder of your own (`docpager.protocols.Embedder`), in place of
                that of the settings; the same one for as long as the archive lives.
            config: All settings at once, in place of `settings`.
            settings: Settings by name, as in `docpager.toml`.
        """
        if path is not None:
            arguments.path("path", path)
            settings["archive"] = path
        if config is None:
            config = load(settings)
        else:
            arguments.instance("config", config, Config)
            config = config if path is None else replace(config, archive=Path(path))
        given = wiring.GivenModels(arguments.chat(chat), arguments.embedder(text_embedder))
        self.config = config
        self._resources = wiring.Resources(config, given)

    def close(self) -> None:
        """Release the file, the model and the embedder; the next call opens them again.

        Raises:
            ArchiveLocked: another thread asks a question, ingests or removes.
        """
        self._resources.close()

    def __reduce__(self) -> tuple[Callable[..., Archive], tuple[Config, wiring.GivenModels]]:
        """Pickled as its settings: what is open stays behind."""
        return _named_by, (self.config, self._resources.given)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ---- what changes it

    def ingest(
        self,
        paths: str | Path | Sequence[str | Path],
        *,
        prune: bool = False,
        retry_failed: bool = False,
        on_progress: wiring.IngestProgress | None = None,
        on_recognition: wiring.RecognitionProgress | None = None,
    ) -> IngestReport:
        """Bring the archive up to date with files and folders; unchanged files cost nothing.

        A file that cannot be read is an entry in the report and stops none of the others.

        Args:
            prune: Forget documents whose file is gone from the folders given.
            retry_failed: Try again what failed before, even if nothing has changed.
            on_progress: Called after each file with the counts so far, from another thread.
            on_recognition: Called before each page that is recognised, from other threads.

        Raises:
            UserError: a path does not exist, or the archive was made with another embedder.
            NothingToDo: there is no document under the paths.
            ArchiveError: the archive is locked, damaged, or cannot be written.
            ModelError: the embedding endpoint fails.

            >>> report = archive.ingest([folder])
            >>> report.added, report.unchanged, report.failed
            (0, 1, 0)
        """
        named = arguments.paths("paths", paths)
        for name, callback in (("on_progress", on_progress), ("on_recognition", on_recognition)):
            if callback is not None:
                arguments.function(name, callback)
        with self._resources.changing():
            return wiring.ingest_into(
                self.config,
                named,
                on_progress,
                on_recognition,
                prune=prune,
                retry_failed=retry_failed,
                given=self._resources.given,
            )

    def remove(self, names: str | Sequence[str]) -> Removal:
        """Forget documents by their names or unique ends, with what is attached to them.

        All of them, or none where one is unknown. The files themselves stay.

        Raises:
            UserError: a name is unknown or not unique; the message lists the nearest ones.
            ArchiveError: the archive is missing, locked or damaged.

            >>> _ = (folder / "draft.txt").write_text("A draft.")
            >>> archive.ingest([folder]).added
            1
            >>> archive.remove(["draft.txt"])
            Removal(documents=('corpus/draft.txt',), passages=1)
            >>> (folder / "draft.txt").unlink()
        """
        named = arguments.texts("names", names)
        with self._resources.changing():
            return wiring.remove_documents(self.config, named)

    # ---- what it holds

    def status(self) -> ArchiveStatus:
        """Counts, size, embedder, and the failed documents with their reasons.

        Raises:
            ArchiveError: the archive is missing, locked or damaged.

            >>> archive.status().passages
            1
        """
        with self._resources.reading() as store:
            return store.status()

    def documents(self) -> tuple[Document, ...]:
        """All documents by name, failed ones and duplicates too.

        Raises:
            ArchiveError: the archive is missing, locked or damaged.

            >>> [(document.name, document.state) for document in archive.documents()]
            [('corpus/mill.txt', 'ready')]
        """
        with self._resources.reading() as store:
            return store.documents()

    def read(self, document: str, page: int | None = None) -> DocumentText:
        """The stored text of a document, page by page, or of one page (1-based).

        Args:
            document: Its name, or a unique end of it.
            page: Only this page; of files without pages, this section.

        Raises:
            UserError: there is no such document or page; the message says what there is.
            ArchiveError: the archive is missing, locked or damaged.

            >>> [page.text for page in archive.read("mill.txt")]
            ['The mill at Teme was built in 1887.']
        """
        arguments.text("document", document)
        if page is not None:
            page = arguments.whole("page", page)
        with self._resources.reading() as store:
            found = store.document(document)
            numbers = range(1, found.pages + 1) if page is None else [page]
            return DocumentText(found, tuple(store.page(found.name, number) for number in numbers))

    def passages(self) -> Iterator[Passage]:
        """Every passage in the order of their ids, read a thousand at a time.

        Raises:
            ArchiveError: the archive is missing, locked or damaged.

            >>> [passage.passage_id for passage in archive.passages()]
            ['P1']
        """
        with self._resources.reading() as store:
            ids = store.passage_ids()
        for first in range(0, len(ids), _AT_ONCE):
            with self._resources.reading() as store:
                found = store.passages(ids[first : first + _AT_ONCE])
            yield from found

    def vectors(self) -> tuple[tuple[str, ...], Vectors]:
        """The ids of all passages, in order, and an array of their vectors, shape (n, d).

        Each row is a float32 vector of norm 1, made from the passage's heading path and text.

        Raises:
            ArchiveError: the archive is missing, locked or damaged.

            >>> ids, vectors = archive.vectors()
            >>> ids, vectors.shape
            (('P1',), (1, 256))
        """
        with self._resources.reading() as store:
            return store.vectors()

    def search(
        self,
        query: str,
        *,
        mode: SearchMode = "hybrid",
        page: int = 0,
        page_size: int = 5,
        document: str | None = None,
    ) -> ResultPage:
        """One page (0-based) of the passages that `query` finds; pages are slices of one ranking.

        Args:
            mode: `hybrid`, or one half of it: `lexical` (BM25) or `vector` (cosine).
            document: A glob; only documents whose name matches are searched.

        Raises:
            UserError: the query is empty, or the page is past the end.
            ArchiveError: the archive is missing, locked or damaged.
            NothingToDo: the archive is empty.
            ModelError: the embedding endpoint fails.

            >>> page = archive.search("mill", mode="lexical")
            >>> len(page), page.total, page.hits[0].passage.document
            (1, 1, 'corpus/mill.txt')
        """
        from docpager.retrieval.pages import result_page
        from docpager.retrieval.search import search

        arguments.text("query", query)
        arguments.choice("mode", mode, get_args(SearchMode))
        page = arguments.whole("page", page)
        page_size = arguments.whole("page_size", page_size)
        if document is not None:
            arguments.text("document", document)
        with self._resources.reading() as store:
            if store.passage_count == 0:
                raise NothingToDo(wiring.EMPTY)
            embedder = self._resources.embedder()
            ranking = search(store, embedder, query, mode, document_glob=document)
            return result_page(store, ranking, page, page_size)

    # ---- questions

    def ask(
        self,
        question: str,
        *,
        functions: Sequence[Callable[..., str]] = (),
        say: wiring.Say = wiring.silent,
        watchers: Sequence[Trace] = (),
    ) -> Answer:
        """The answer to one question, with citations that were checked against the stored pages.

        A model that fails at the question makes an Answer of status `model_error`, not an
        exception; one that cannot be made ready to be asked is an exception.

        Args:
            functions: Functions of your own that the model may call, beside those of its memory;
                the schema is made from signature and docstring, as `docs/python.md` shows. Mode
                `guided` refuses them: it takes fixed steps.
            say: Called with the model that answers, in a line for people.
            watchers: Traces that receive every event of the run as it happens.

        Raises:
            UserError: the question is empty, or no model is configured.
            ArchiveError: the archive is missing, locked or damaged.
            NothingToDo: the archive is empty.
            ModelError: the embedded model cannot be loaded.

            >>> from docpager.testing import ScriptedChat, call
            >>> quote = {"passage_id": "P1", "quote": "The mill at Teme was built in 1887."}
            >>> chat = ScriptedChat([call("send_message", message="1887", citations=[quote])])
            >>> with Archive(archive.config.archive, chat=chat) as scripted:
            ...     answer = scripted.ask("When was the mill built?")
            >>> answer.status, answer.answer, [cited.verified for cited in answer.citations]
            ('answered', '1887', [True])
        """
        arguments.text("question", question)
        own = arguments.functions("functions", functions)
        arguments.function("say", say)
        watchers = arguments.traces("watchers", watchers)
        with self._resources.answering() as runner:
            say(runner.introduction)
            return runner.answer(question, watchers, own).answer

    def batch(
        self,
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
        say: wiring.Say = wiring.silent,
        on_result: OnResult | None = None,
        interrupt: Interrupt | None = None,
    ) -> BatchSummary:
        """Answer a file of questions, score the answers, and keep each in `results` as it comes.

        A question that has a result is not asked again, so a batch that was stopped resumes where
        it was. A fault at one question is its result; what stops all of them ends the batch and is
        in the summary, and what is finished is kept. Results of a chat model of your own depend on
        its name, not on its code: change `model` with it.

        Args:
            grading: How a question passes; by default F1 of at least 0.6.
            selection: Which questions are asked.
            bounds: Limits on tokens, money and time of the whole; those of the settings are for
                one question.
            jobs: Questions at once: by default 4, and 1 for the embedded model and for models of
                your own, which are called from that many threads. How many calls are in flight
                adapts to the endpoint.
            junit_xml: Written at the end, for CI servers.
            summary: Written at the end, as JSON.
            report: Written at the end, as one HTML file for people.
            say: Called with messages for whoever is watching.
            on_result: Called with each result as it comes.
            interrupt: Called once, it lets running questions finish, but for what only waits for
                the endpoint; called twice, it stops at once.

        Raises:
            UserError: a question is malformed, results belong to other questions or depend on what
                has changed, or a file cannot be written.
            NothingToDo: no question is selected, or the archive is empty.
            ArchiveError: the archive is missing, locked or damaged.

            >>> questions = folder.with_name("questions.jsonl")
            >>> _ = questions.write_text('{"question": "When was it built?", "expected": "1887"}')
            >>> summary = archive.batch(questions, folder.with_name("results.jsonl"))
            >>> summary.asked, summary.statuses, summary.mean.mean
            (1, {'answered': 1}, 1.0)
        """
        from docpager import batch as batches

        files = {"junit_xml": junit_xml, "summary": summary, "report": report}
        reports = [
            None if path is None else arguments.path(name, path) for name, path in files.items()
        ]
        return wiring.run_batch(
            self._resources,
            wiring.BatchFiles(
                arguments.path("questions", questions), arguments.path("results", results), *reports
            ),
            wiring.BatchOptions(
                grading or batches.Grading(),
                selection or batches.Selection(),
                bounds or batches.BatchLimits(),
                jobs,
                say,
                on_result or _ignore_result,
                interrupt or batches.Interrupt(),
            ),
        )

    def estimate(
        self,
        questions: str | Path,
        results: str | Path | None = None,
        *,
        selection: Selection | None = None,
    ) -> Estimate:
        """What asking the questions without a result may take; nothing is asked or spent.

        Raises:
            UserError: a question is malformed, or no model is configured.
            NothingToDo: no question is selected.

            >>> questions = folder.with_name("planned.jsonl")
            >>> _ = questions.write_text('{"question": "When was it built?"}')
            >>> estimate = archive.estimate(questions)
            >>> estimate.questions, estimate.tokens.likely <= estimate.tokens.high
            (1, True)
        """
        from docpager import batch as batches

        return wiring.estimate_batch(
            self.config,
            self._resources.given,
            arguments.path("questions", questions),
            None if results is None else arguments.path("results", results),
            selection=arguments.instance(
                "selection", selection or batches.Selection(), batches.Selection
            ),
        )

    def traces(self) -> tuple[Run, ...]:
        """The runs of which a trace is kept, the newest first; `Run.events` reads one.

        >>> answer = archive.ask("When was the mill built?")
        >>> answer.run_id in [run.run_id for run in archive.traces()]
        True
        """
        from docpager.agent.runs import list_runs

        return list_runs(wiring.run_folders(self.config))

    def trace(self, run_id: str) -> Run:
        """The run of that id, or the only one whose id begins with it.

        Raises:
            UserError: there is none, or there are several.

            >>> answer = archive.ask("When was the mill built?")
            >>> archive.trace(answer.run_id[:8]).events[-1]["status"]
            'answered'
        """
        from docpager.agent.runs import find_run

        return find_run(wiring.run_folders(self.config), arguments.text("run_id", run_id))


_AT_ONCE = 1000


def _ignore_result(_done: int, _total: int, _result: Result) -> None:
    """Does nothing."""


def _named_by(config: Config, given: wiring.GivenModels) -> Archive:
    return Archive(config=config, chat=given.chat, text_embedder=given.embedder)


def ingest_paths(
    paths: str | Path | Sequence[str | Path],
    *,
    config: Config | None = None,
    on_progress: wiring.IngestProgress | None = None,
    on_recognition: wiring.RecognitionProgress | None = None,
    prune: bool = False,
    retry_failed: bool = False,
    **settings: Unpack[Settings],
) -> IngestReport:
    """Bring an archive up to date with files and folders; see `Archive.ingest`."""
    with Archive(config=config or load(settings)) as archive:
        return archive.ingest(
            paths,
            prune=prune,
            retry_failed=retry_failed,
            on_progress=on_progress,
            on_recognition=on_recognition,
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
    """One page of the passages that `query` finds; see `Archive.search`."""
    with Archive(config=config or load(settings)) as archive:
        return archive.search(query, mode=mode, page=page, page_size=page_size, document=document)


def answer_question(
    question: str,
    *,
    config: Config | None = None,
    say: wiring.Say = wiring.silent,
    watchers: Sequence[Trace] = (),
    **settings: Unpack[Settings],
) -> Answer:
    """The answer to one question; see `Archive.ask`."""
    with Archive(config=config or load(settings)) as archive:
        return archive.ask(question, say=say, watchers=watchers)


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
    """Answer a file of questions and score the answers; see `Archive.batch`."""
    with Archive(config=config or load(settings)) as archive:
        return archive.batch(
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
    """What a batch may take; nothing is asked or spent; see `Archive.estimate`."""
    with Archive(config=config or load(settings)) as archive:
        return archive.estimate(questions, results, selection=selection)

"""The command line: parse, call, render. No decisions are made here but the exit code's.

Nothing heavy is imported at the top, so that help and mistakes are answered at once.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from docpager.batch.metrics import METRICS
from docpager.errors import DocpagerError, NothingToDo, UserError

if TYPE_CHECKING:
    from docpager.batch.run import Interrupt
    from docpager.config import Config
    from docpager.types import Answer

INTERRUPTED = 130
BROKEN_PIPE = 141
INTERNAL_FAULT = 70
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PRECEDENCE = (INTERRUPTED, 2, 3, 4, 5, 1, 6, 0)
"""Which exit code stands where several apply."""
_INGESTING = ("docpager-writer", "docpager-embedder")
"""Threads of an ingest that may be in a call or a commit when the program ends."""
_M_ARENA_MAX = -8
"""Of glibc's `mallopt`."""

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True)
class _Invocation:
    """What the seam around all commands must know of the one that runs."""

    debug: bool = False
    flags: dict[str, object] = field(default_factory=dict)


class _Program(click.Group):
    """The one place where failures become a line on standard error and an exit code."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except KeyboardInterrupt:
            # Click would take it for a question that was not answered.
            raise SystemExit(INTERRUPTED) from None

    def invoke(self, ctx: click.Context) -> Any:
        state = ctx.ensure_object(_Invocation)
        try:
            return super().invoke(ctx)
        except DocpagerError as error:
            _fail(ctx, str(error), error.exit_code, state.debug)
        except KeyboardInterrupt:
            _fail(ctx, "interrupted. What was finished is kept.", INTERRUPTED, state.debug)
        except BrokenPipeError:
            # The reader went away, as `| head` does; Python would complain again at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(BROKEN_PIPE)
        except OSError as error:
            if error.errno not in _FULL:
                _fail_inside(ctx, error, state.debug)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            text = f"the output cannot be written: {error.strerror}. Make room for it."
            _fail(ctx, text, UserError.exit_code, state.debug)
        except (click.exceptions.Exit, click.exceptions.Abort, click.ClickException):
            raise
        except Exception as error:  # noqa: BLE001  # the seam: a fault of docpager itself
            _fail_inside(ctx, error, state.debug)


def _fail_inside(ctx: click.Context, error: Exception, debug: bool) -> None:
    text = f"an internal fault, {type(error).__name__}: {error}. "
    _fail(ctx, f"{text}Run it again with --debug and report it.", INTERNAL_FAULT, debug)


def _fail(ctx: click.Context, message: str, code: int, debug: bool) -> None:
    if debug:
        import traceback

        traceback.print_exc(file=sys.stderr)
    from docpager.render import say

    say(f"docpager: {' '.join(message.split())}")
    if any(thread.name in _INGESTING for thread in threading.enumerate()):
        # Python would end them in the middle of native code, which aborts the whole process.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    ctx.exit(code)


def _common_options(function: F) -> F:
    """What every command takes, before it and after it."""
    for option in reversed(
        (
            click.option("-a", "--archive", metavar="FILE", help="The archive to use."),
            click.option("--json", is_flag=True, default=None, help="Print JSON."),
            click.option("-q", "--quiet", is_flag=True, default=None, help="Say only what failed."),
            click.option(
                "-v", "--verbose", is_flag=True, default=None, help="Say what is being done."
            ),
            click.option(
                "--debug", is_flag=True, default=None, help="Show the traceback of a failure."
            ),
            click.option("--no-progress", is_flag=True, default=None, help="Show no progress."),
            click.option(
                "--wait",
                is_flag=True,
                default=None,
                help="Wait for an archive that another process holds.",
            ),
        )
    ):
        function = option(function)
    return click.version_option(
        package_name="docpager", prog_name="docpager", message="%(prog)s %(version)s"
    )(function)


_COMMON = ("archive", "json", "quiet", "verbose", "debug", "no_progress", "wait")


def _flags(params: dict[str, Any], names: Sequence[str]) -> dict[str, object]:
    """Takes the named options out of `params`; those that were not given are left out."""
    given = {name: params.pop(name) for name in names}
    if given.pop("no_progress", None):
        given["progress"] = False
    # An option that may be repeated is an empty tuple where it is not given.
    return {name: value for name, value in given.items() if value not in (None, ())}


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@_common_options
@click.pass_context
def main(ctx: click.Context, /, **params: Any) -> None:
    """Ask questions of document folders that no context window can hold.

    \b
    docpager ingest ./reports
    docpager ask "Which plant made the part that failed in 2021?"

    Settings are taken from flags, then the environment, then docpager.toml in the current
    folder. Exit codes: 0 done, 1 no answer found, 2 usage, 3 documents or archive, 4 model,
    5 a bound was reached, 6 nothing to do, 70 a fault of docpager itself, 130 interrupted,
    141 the reader of the output went away.
    """
    _begin(ctx, _flags(params, _COMMON))


def _begin(ctx: click.Context, flags: dict[str, object]) -> None:
    state = ctx.ensure_object(_Invocation)
    state.flags.update(flags)
    state.debug = bool(state.flags.get("debug"))


def _command(
    *settings: str, group: click.Group = main
) -> Callable[[Callable[..., int]], click.Command]:
    """A command whose function is given the Config and its own parameters, and returns the exit
    code. `settings` are those of its options that belong to the Config."""

    def make(function: Callable[..., int]) -> click.Command:
        @functools.wraps(function)
        @click.pass_context
        def run(ctx: click.Context, /, **params: Any) -> None:
            _begin(ctx, _flags(params, (*_COMMON, *settings)))
            state = ctx.ensure_object(_Invocation)
            from docpager.config import load

            config = load(state.flags)
            state.debug = config.debug
            ctx.exit(function(config, **params))

        return group.command(name=function.__name__.rpartition("_")[2])(_common_options(run))

    return make


_MODEL_SETTINGS = ("model", "base_url", "tool_mode", "context_window")
_CACHE_SETTINGS = ("cache", "replay")


_base_url_option = click.option(
    "--base-url", metavar="URL", help="An OpenAI-compatible endpoint's address."
)


def _model_options(function: F) -> F:
    for option in reversed(
        (
            click.option("--model", metavar="NAME", help="A model, `local`, or `local:FILE.gguf`."),
            _base_url_option,
            click.option(
                "--tool-mode",
                type=click.Choice(["auto", "tools", "json", "text", "guided"]),
                help="How the model is made to call functions.",
            ),
            click.option(
                "--context-window", type=int, metavar="TOKENS", help="The model's window."
            ),
        )
    ):
        function = option(function)
    return function


def _cache_options(function: F) -> F:
    for option in reversed(
        (
            click.option("--cache", metavar="FILE", help="Keep model calls here, and reuse them."),
            click.option(
                "--replay", is_flag=True, default=None, help="Call no model: use the cache alone."
            ),
        )
    ):
        function = option(function)
    return function


_INGEST_SETTINGS = (
    "workers",
    "embedder",
    "base_url",
    "passwords",
    "ocr",
    "include",
    "exclude",
    "file_timeout",
    "page_timeout",
    "worker_memory",
    "max_file_size",
    "max_unpacked_size",
    "max_page_characters",
)


@_command(*_INGEST_SETTINGS)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--prune", is_flag=True, help="Forget documents whose file is gone from PATH.")
@click.option("--retry-failed", is_flag=True, help="Try again all that failed before.")
@click.option(
    "--include",
    multiple=True,
    metavar="GLOB",
    help="From folders, only files that fit (gitignore syntax; repeatable).",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="GLOB",
    help="From folders, not what fits; so does a file .docpagerignore in any folder.",
)
@click.option("--profile", is_flag=True, help="Say where the time went.")
@click.option("--workers", type=int, metavar="N", help="Parsing processes.")
@click.option("--embedder", metavar="NAME", help="`static`, or `openai:MODEL`.")
@_base_url_option
@click.option(
    "--password",
    "passwords",
    multiple=True,
    metavar="TEXT",
    help="Tried on encrypted files (repeatable).",
)
@click.option(
    "--ocr", is_flag=True, default=None, help="Recognise pages that are pictures (extra `ocr`)."
)
@click.option("--file-timeout", type=float, metavar="SECONDS", help="Limit for one file (300).")
@click.option("--page-timeout", type=float, metavar="SECONDS", help="Limit for one page (60).")
@click.option("--worker-memory", type=int, metavar="MB", help="Limit for one process (4096).")
@click.option("--max-file-size", type=int, metavar="MB", help="Largest file (1024; text 256).")
@click.option(
    "--max-unpacked-size", type=int, metavar="MB", help="Office files and EPUB unpacked (1024)."
)
@click.option(
    "--max-page-characters", type=int, metavar="N", help="Longest page (10000000 characters)."
)
def ingest(
    config: Config, paths: tuple[str, ...], prune: bool, retry_failed: bool, profile: bool
) -> int:
    """Read files and folders into the archive; unchanged ones cost nothing.

    \b
    Example:
      docpager ingest ./reports notes.md --exclude "drafts/"
    """
    from docpager import archive as api
    from docpager import render

    _use_one_arena()
    shown = config.progress and not config.quiet and not config.json
    with render.IngestProgress(shown, config.color) as progress:
        report = api.ingest_paths(
            paths,
            config=config,
            on_progress=progress,
            on_recognition=progress.recognising,
            prune=prune,
            retry_failed=retry_failed,
        )
    if config.json:
        record = render.report_record(report, profile=profile, full=config.verbose)
        render.write_json(record)
    else:
        if not config.quiet:
            render.say(render.report_text(report, full=config.verbose))
            if warnings := render.warnings_text(report, config.verbose):
                render.say(warnings)
        if failures := render.report_failures(report):
            render.say(failures)
        if profile:
            render.say(render.profile_text(report))
    return 3 if report.failed else 0


@_command(
    *_MODEL_SETTINGS,
    *_CACHE_SETTINGS,
    *("max_steps", "max_tokens", "max_cost", "timeout", "seed", "session", "trace", "keep_runs"),
)
@click.argument("question", metavar="QUESTION")
@_model_options
@_cache_options
@click.option("--timeout", type=float, metavar="SECONDS", help="Limit on time.")
@click.option("--max-steps", type=int, metavar="N", help="Limit on steps.")
@click.option("--max-tokens", type=int, metavar="N", help="Limit on tokens.")
@click.option("--max-cost", type=float, metavar="USD", help="Limit on money.")
@click.option("--seed", type=int, metavar="N", help="Passed to the model.")
@click.option("--session", metavar="NAME", help="Keep notes and recall under this name.")
@click.option("--trace", metavar="FILE", help="Write the run's trace here too.")
@click.option("--keep-runs", type=int, metavar="N", help="How many traces to keep.")
def ask(config: Config, question: str) -> int:
    """Answer one question, with citations that were checked. `-` reads standard input.

    \b
    Example:
      docpager ask "Who signed the contract that replaced the one of 2019?"
    """
    from docpager import archive as api
    from docpager import render

    text = _question(question)
    shown = config.verbose or (
        config.progress and not config.quiet and not config.json and sys.stderr.isatty()
    )
    answer = api.answer_question(
        text, config=config, say=render.say, watchers=[render.StepLines(shown)]
    )
    if config.json:
        render.write_json(render.answer_record(answer))
    else:
        if text := render.answer_text(answer):
            render.write(text)
        if answer.error is not None:
            render.say(f"docpager: {answer.error}")
    return answer_exit_code(answer)


def _question(question: str) -> str:
    text = _typed(question)
    if question == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise UserError("The question is empty. Say what you want to know.")
    return text.strip()


def _typed(text: str) -> str:
    """An argument as UTF-8 text, whatever the locale took its bytes for."""
    return os.fsencode(text).decode("utf-8", "replace") if _is_undecoded(text) else text


def _is_undecoded(text: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in text)


def _use_one_arena() -> None:
    """Let all threads allocate from one arena of glibc; elsewhere nothing is done.

    Each thread has one of its own otherwise, and what DuckDB frees in one is of no use to others:
    an ingest of 370,000 passages grew from 200 to 430 MB between its bursts within 18 minutes.
    """
    if sys.platform == "linux":
        import ctypes

        library = ctypes.CDLL(None)
        if hasattr(library, "mallopt"):
            library.mallopt(_M_ARENA_MAX, 1)


def answer_exit_code(answer: Answer) -> int:
    """0 with a verified citation; else what stopped it, by the contract's precedence."""
    if answer.status == "answered":
        return 0
    codes = {1}
    if answer.status == "model_error":
        codes.add(4)
    if answer.status == "budget" or answer.stopped_by in ("tokens", "money", "time"):
        codes.add(5)
    return worst(codes)


def worst(codes: set[int]) -> int:
    """The exit code that stands where several apply."""
    return min(codes or {0}, key=_PRECEDENCE.index)


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


@_command(*_MODEL_SETTINGS, *_CACHE_SETTINGS, "max_steps", "seed", "keep_runs")
@click.argument("questions", metavar="QUESTIONS.jsonl")
@click.option("-o", "--output", metavar="RESULTS.jsonl", help="Where results are kept.")
@_model_options
@_cache_options
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
    from docpager import archive as api
    from docpager import render
    from docpager.batch.estimate import estimate_record
    from docpager.batch.run import BatchLimits, Grading, Interrupt, Selection
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
        found = api.estimate_batch(questions, output, selection=selection, config=config)
        if config.json:
            render.write_json(estimate_record(found))
        else:
            render.write(render.estimate_text(found))
        return 0
    if output is None:
        raise UserError("No file for the results is named. Name one with -o.")
    interrupt = Interrupt()
    shown = config.progress and not config.quiet and not config.json
    with _interrupts(interrupt), render.BatchProgress(shown, config.verbose) as progress:
        summary = api.run_batch(
            questions,
            output,
            grading=Grading(options["metric"], options["pass_at"], options["fail_under"]),
            selection=selection,
            bounds=bounds,
            jobs=options["jobs"],
            junit_xml=options["junit_xml"],
            summary=options["summary"],
            report=options["report"],
            config=config,
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


@_command()
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


@_command("base_url")
@click.argument("query", metavar="QUERY")
@click.option("--page", type=click.IntRange(min=0), default=0, metavar="N", help="0-based.")
@click.option("--page-size", type=click.IntRange(1, 200), default=5, metavar="N")
@click.option("--mode", type=click.Choice(["hybrid", "lexical", "vector"]), default="hybrid")
@click.option("--document", metavar="GLOB", help="Only documents whose name matches.")
@_base_url_option
def search(config: Config, query: str, **options: Any) -> int:
    """Show the passages that a search finds, page by page, without a model.

    \b
    Example:
      docpager search "delivery penalty" --page 1 --document "contracts/*"
    """
    from docpager import archive as api
    from docpager import render

    result = api.search(_typed(query), config=config, **options)
    if config.json:
        render.write_json(render.result_page_record(result))
    else:
        render.write(render.result_page_text(result))
    return 0


@_command()
@click.argument("document", metavar="DOCUMENT")
@click.option("--page", type=click.IntRange(min=1), metavar="N", help="1-based.")
def read(config: Config, document: str, page: int | None) -> int:
    """Print the stored text of a document, or of one page of it.

    \b
    Example:
      docpager read q3.pdf --page 14
    """
    from docpager import render, wiring

    with wiring.open_store(config) as archive:
        found = archive.document(document)
        numbers = range(1, found.pages + 1) if page is None else [page]
        pages = [archive.page(found.name, number) for number in numbers]
    if config.json and page is not None:
        render.write_json(render.page_record(found, pages[0]))
    elif config.json:
        render.write_json(render.pages_record(found, pages))
    else:
        render.write(render.PAGE_BREAK.join(stored.text for stored in pages))
    return 0


@_command()
@click.option("--failed", is_flag=True, help="Only the failed files, with all that is known.")
def status(config: Config, failed: bool) -> int:
    """Say what is in the archive, and which files failed and why.

    \b
    Example:
      docpager status --failed
    """
    from docpager import render, wiring

    with wiring.open_store(config) as archive:
        found = archive.status()
    if config.json:
        render.write_json(render.status_record(config.archive.name, found))
    elif failed and found.failed:
        render.write(render.failed_text(found))
    elif failed:
        render.say("No file failed.")
    else:
        render.write(render.status_text(config.archive.name, found))
    return 0


@_command()
def ls(config: Config) -> int:
    """List the documents.

    \b
    Example:
      docpager ls --json
    """
    from docpager import render, wiring

    with wiring.open_store(config) as archive:
        documents = archive.documents()
    if config.json:
        rows = [render.document_record(document) for document in documents]
        render.write_json({"schema": render.SCHEMA, "documents": [*rows]})
    elif documents:
        render.write("\n".join(render.document_line(document) for document in documents))
    elif not config.quiet:
        render.say("The archive is empty. Run `docpager ingest PATH`.")
    return 0


@_command()
@click.argument("documents", metavar="DOCUMENT...", nargs=-1, required=True)
def rm(config: Config, documents: tuple[str, ...]) -> int:
    """Remove documents from the archive; the files themselves stay.

    \b
    Example:
      docpager rm corpus/old.pdf
    """
    from docpager import render, wiring

    removed, passages = wiring.remove_documents(config, documents)
    if config.json:
        render.write_json({"schema": render.SCHEMA, "removed": [*removed], "passages": passages})
    elif not config.quiet:
        render.say(f"Removed {len(removed)} documents with {passages} passages.")
    return 0


@_command()
@click.option("--check", is_flag=True, help="Read the whole file and compare its hash.")
@click.option("--obtain", metavar="parts|hub|FILE", help="Put the weights into the cache folder.")
@click.option("--remove", is_flag=True, help="Delete the weights from the cache folder.")
def model(config: Config, check: bool, obtain: str | None, remove: bool) -> int:
    """Show the embedded model; check, obtain or remove its weights. Nothing happens unasked.

    \b
    Example:
      docpager model --obtain parts
    """
    from docpager import render, wiring

    if check + remove + (obtain is not None) > 1:
        raise UserError("--check, --obtain and --remove exclude each other. Give one of them.")
    shown = config.progress and not config.quiet and not config.json
    label = "checking" if check else "obtaining"
    with render.BytesProgress(label, shown, config.color) as progress:
        if obtain is not None:
            wiring.obtain_weights(config, obtain, progress)
        elif remove:
            wiring.remove_weights(config)
        state = wiring.take_inventory(config, progress, checked=check)
    if config.json:
        render.write_json(render.inventory_record(state))
    else:
        render.write(render.inventory_text(state))
    return 0


@_command(*_MODEL_SETTINGS, "timeout", "embedder")
@_model_options
@click.option("--timeout", type=float, metavar="SECONDS", help="Limit on time.")
@click.option("--embedder", metavar="NAME", help="`static`, or `openai:MODEL`.")
def doctor(config: Config) -> int:
    """Check archive, embedder, vocabulary, endpoint and model; each is ok, warn or fail.

    \b
    Example:
      docpager doctor --model qwen3 --base-url http://localhost:11434/v1
    """
    from docpager import render
    from docpager.doctor import examine

    checks = []
    for check in examine(config):
        checks.append(check)
        if not config.json:
            render.write(render.check_line(check.name, check.state, check.message))
    if config.json:
        rows = [render.check_record(check.name, check.state, check.message) for check in checks]
        render.write_json({"schema": render.SCHEMA, "checks": [*rows]})
    return worst({check.exit_code for check in checks})


@_command()
@click.argument("run", metavar="RUN", required=False)
def trace(config: Config, run: str | None) -> int:
    """Replay a run step by step, or list the runs, the newest first.

    \b
    Example:
      docpager trace 3f9a
    """
    from docpager import render, wiring
    from docpager.agent import runs

    folders = wiring.run_folders(config)
    if run is None:
        kept = runs.list_runs(folders)
        if config.json:
            rows = [render.run_record(item, runs.read_run(item)) for item in kept]
            render.write_json({"schema": render.SCHEMA, "runs": [*rows]})
        elif kept:
            render.write("\n".join(render.run_line(item, runs.read_run(item)) for item in kept))
        else:
            raise NothingToDo("No runs are kept yet. `docpager ask` makes one.")
        return 0
    found = runs.find_run(folders, run)
    events = runs.read_run(found)
    if config.json:
        render.write_json({"schema": render.SCHEMA, "run_id": found.run_id, "events": [*events]})
    else:
        render.write("\n".join(render.event_text(event, config.verbose) for event in events))
    return 0


@main.group()
def bench() -> None:
    """Measure docpager on this machine, with what it makes for the purpose.

    \b
    Example:
      docpager bench ingest
    """


@_command("workers", group=bench)
@click.option("--workers", type=int, metavar="N", help="Parsing processes.")
@click.option("--files", type=click.IntRange(min=1), default=12, metavar="N", help="Of each kind.")
@click.option("--pages", type=click.IntRange(min=1), default=300, metavar="N", help="Of each file.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, metavar="N", help="Medians.")
def bench_ingest(config: Config, **sizes: int) -> int:
    """Time an ingest beside bare pypdfium2 text extraction, over PDFs made for it.

    Exit code 1 where it is slower than 60% of bare reading (bare up to 150 pages/s a process), or
    than 800 passages/s (where bare is faster).

    \b
    Example:
      docpager bench ingest --workers 2 --files 12 --pages 300
    """
    from docpager import render, wiring
    from docpager.bench.ingest import measure

    say = wiring.silent if config.quiet or config.json else render.say
    measured = measure(config, **sizes, say=say)
    if config.json:
        render.write_json(render.bench_record(measured))
    else:
        render.write(render.bench_text(measured))
    return 0 if all(item.passed for item in measured) else 1

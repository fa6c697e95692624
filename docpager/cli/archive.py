"""Commands about the archive itself: ingest, search, read, status, ls, rm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from docpager.config import Config
from docpager.cli.options import as_text, base_url_option
from docpager.cli.program import command

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


@command(*_INGEST_SETTINGS)
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
@base_url_option
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
@click.option("--max-file-size", type=int, metavar="MB", help="Largest PDF (1024; others 256).")
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
    from docpager import render
    from docpager.archive import Archive

    shown = config.progress and not config.quiet and not config.json
    with render.IngestProgress(shown, config.color) as progress:
        report = Archive(config=config).ingest(
            paths,
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


@command("base_url")
@click.argument("query", metavar="QUERY")
@click.option("--page", type=click.IntRange(min=0), default=0, metavar="N", help="0-based.")
@click.option("--page-size", type=click.IntRange(1, 200), default=5, metavar="N")
@click.option("--mode", type=click.Choice(["hybrid", "lexical", "vector"]), default="hybrid")
@click.option("--document", metavar="GLOB", help="Only documents whose name matches.")
@base_url_option
def search(config: Config, query: str, **options: Any) -> int:
    """Show the passages that a search finds, page by page, without a model.

    \b
    Example:
      docpager search "delivery penalty" --page 1 --document "contracts/*"
    """
    from docpager import render
    from docpager.archive import Archive

    with Archive(config=config) as archive:
        result = archive.search(as_text(query), **options)
    if config.json:
        render.write_json(render.result_page_record(result))
    else:
        render.write(render.result_page_text(result))
    return 0


@command()
@click.argument("document", metavar="DOCUMENT")
@click.option("--page", type=click.IntRange(min=1), metavar="N", help="1-based.")
def read(config: Config, document: str, page: int | None) -> int:
    """Print the stored text of a document, or of one page of it.

    \b
    Example:
      docpager read q3.pdf --page 14
    """
    from docpager import render
    from docpager.archive import Archive

    with Archive(config=config) as archive:
        text = archive.read(document, page)
    if config.json and page is not None:
        render.write_json(render.page_record(text.document, text.pages[0]))
    elif config.json:
        render.write_json(render.pages_record(text.document, text.pages))
    else:
        render.write(render.PAGE_BREAK.join(stored.text for stored in text))
    return 0


@command()
@click.option("--failed", is_flag=True, help="Only the failed files, with all that is known.")
def status(config: Config, failed: bool) -> int:
    """Say what is in the archive, and which files failed and why.

    \b
    Example:
      docpager status --failed
    """
    from docpager import render
    from docpager.archive import Archive

    with Archive(config=config) as archive:
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


@command()
def ls(config: Config) -> int:
    """List the documents.

    \b
    Example:
      docpager ls --json
    """
    from docpager import render
    from docpager.archive import Archive

    with Archive(config=config) as archive:
        documents = archive.documents()
    if config.json:
        rows = [render.document_record(document) for document in documents]
        render.write_json({"schema": render.SCHEMA, "documents": [*rows]})
    elif documents:
        render.write("\n".join(render.document_line(document) for document in documents))
    elif not config.quiet:
        render.say("The archive is empty. Run `docpager ingest PATH`.")
    return 0


@command()
@click.argument("documents", metavar="DOCUMENT...", nargs=-1, required=True)
def rm(config: Config, documents: tuple[str, ...]) -> int:
    """Remove documents from the archive; the files themselves stay.

    \b
    Example:
      docpager rm corpus/old.pdf
    """
    from docpager import render
    from docpager.archive import Archive

    gone = Archive(config=config).remove(documents)
    if config.json:
        names = [*gone.documents]
        render.write_json({"schema": render.SCHEMA, "removed": [*names], "passages": gone.passages})
    elif not config.quiet:
        render.say(f"Removed {len(gone.documents)} documents with {gone.passages} passages.")
    return 0

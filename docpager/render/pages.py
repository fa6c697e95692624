"""Pages of results, and pages of documents."""

from __future__ import annotations

from collections.abc import Sequence

from docpager.agent.locations import passage_place
from docpager.batch.answers import SCHEMA
from docpager.render.terminal import printable, wrap
from docpager.types import (
    Document,
    JSONValue,
    PageText,
    ResultPage,
)

PAGE_BREAK = "\f"
"""What `read` puts between two pages."""


def result_page_record(page: ResultPage) -> dict[str, JSONValue]:
    """A result page as `search --json` prints it."""
    return {
        "schema": SCHEMA,
        "query": page.query,
        "mode": page.mode,
        "page": page.page,
        "page_size": page.page_size,
        "page_count": page.page_count,
        "total": page.total,
        "hits": [
            {
                "rank": hit.rank,
                "passage_id": hit.passage.passage_id,
                "document": hit.passage.document,
                "first_page": hit.passage.first_page if hit.passage.paged else None,
                "last_page": hit.passage.last_page if hit.passage.paged else None,
                "score": hit.score,
                "text": hit.passage.text,
                "section": None if hit.passage.paged else hit.passage.heading or None,
                "line": None if hit.passage.paged else hit.passage.line,
            }
            for hit in page.hits
        ],
    }


def result_page_text(page: ResultPage) -> str:
    """What a person reads of a result page: the counts, then each passage under its place."""
    counts = f"Showing {len(page.hits)} of {page.total} results"
    blocks = [f"{counts} (page {page.page}/{page.page_count - 1})"]
    for hit in page.hits:
        place = f"[{hit.passage.passage_id}] {passage_place(hit.passage)}"
        blocks.append(f"{printable(place)}\n{wrap(printable(hit.passage.text), '  ')}")
    return "\n\n".join(blocks)


def page_record(document: Document, page: PageText) -> dict[str, JSONValue]:
    """One stored page as `read --page N --json` prints it."""
    return {
        "schema": SCHEMA,
        "document": document.name,
        "page": page.page_number,
        "page_label": page.page_label,
        "pages": document.pages,
        "engine": page.engine,
        "flags": list(page.flags),
        "text": page.text,
        "quality": page.quality,
        "furniture": [page.text[start:end] for start, end in page.furniture],
    }


def pages_record(document: Document, pages: Sequence[PageText]) -> dict[str, JSONValue]:
    """A whole document as `read --json` prints it: `page` is null, the text has page breaks."""
    return {
        "schema": SCHEMA,
        "document": document.name,
        "page": None,
        "page_label": None,
        "pages": document.pages,
        "engine": "+".join(sorted({page.engine for page in pages})),
        "flags": [*sorted({flag for page in pages for flag in page.flags})],
        "text": PAGE_BREAK.join(page.text for page in pages),
        "quality": min((page.quality for page in pages), default=1.0),
        "furniture": [
            *dict.fromkeys(page.text[start:end] for page in pages for start, end in page.furniture)
        ],
    }

"""Results as text for people and as JSON for scripts; progress for whoever watches.

Standard output gets answers and JSON, and nothing else does. No result is computed here. rich is
imported only where a terminal is watching.
"""

from docpager.batch.answers import SCHEMA, answer_record, citation_record
from docpager.render.answers import answer_text, citation_place, citation_text
from docpager.render.archive import (
    document_line,
    document_record,
    failed_text,
    failures_text,
    status_record,
    status_text,
)
from docpager.render.batch import (
    BatchProgress,
    comparison_text,
    estimate_text,
    summary_line,
    summary_text,
)
from docpager.render.ingest import (
    bench_record,
    bench_text,
    profile_text,
    report_failures,
    report_record,
    report_text,
    warnings_text,
)
from docpager.render.models import check_line, check_record, inventory_record, inventory_text
from docpager.render.pages import (
    PAGE_BREAK,
    page_record,
    pages_record,
    result_page_record,
    result_page_text,
)
from docpager.render.progress import BytesProgress, IngestProgress
from docpager.render.runs import StepLines, event_text, run_line, run_record
from docpager.render.terminal import printable, say, wrap, write, write_json

__all__ = [
    "PAGE_BREAK",
    "SCHEMA",
    "BatchProgress",
    "BytesProgress",
    "IngestProgress",
    "StepLines",
    "answer_record",
    "answer_text",
    "bench_record",
    "bench_text",
    "check_line",
    "check_record",
    "citation_place",
    "citation_record",
    "citation_text",
    "comparison_text",
    "document_line",
    "document_record",
    "estimate_text",
    "event_text",
    "failed_text",
    "failures_text",
    "inventory_record",
    "inventory_text",
    "page_record",
    "pages_record",
    "printable",
    "profile_text",
    "report_failures",
    "report_record",
    "report_text",
    "result_page_record",
    "result_page_text",
    "run_line",
    "run_record",
    "say",
    "status_record",
    "status_text",
    "summary_line",
    "summary_text",
    "warnings_text",
    "wrap",
    "write",
    "write_json",
]

"""What an ingest did, and how fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from docpager.batch.answers import SCHEMA
from docpager.render.archive import failures_text
from docpager.render.terminal import plural
from docpager.types import (
    IngestReport,
    JSONValue,
    LeftOut,
    LeftOutKind,
)

if TYPE_CHECKING:
    from docpager.bench.ingest import Measured

_COUNTS = (
    "added",
    "updated",
    "unchanged",
    "moved",
    "removed",
    "duplicate",
    "failed",
    "gone",
    "ignored",
)
_LEFT_OUT: dict[LeftOutKind, str] = {
    "hidden": "hidden or temporary",
    "link": "symbolic links",
    "rule": "left out by a pattern",
    "format": "of no known format",
    "no_file": "no regular files",
    "unreadable": "could not be looked at",
}


def report_record(
    report: IngestReport, *, profile: bool = False, full: bool = False
) -> dict[str, JSONValue]:
    """An ingest report as `ingest --json` prints it; `full` lists what was ignored too."""
    record: dict[str, JSONValue] = {
        "schema": SCHEMA,
        **{name: getattr(report, name) for name in _COUNTS if name != "gone"},
        "passages": report.passages,
        "pages": report.pages,
        "elapsed_s": round(report.elapsed_s, 3),
        "files": [
            {
                "path": file.path,
                "status": file.status,
                "reason": file.reason,
                "message": file.message,
                "tried": file.tried,
                "warnings": [*file.warnings],
            }
            for file in report.files
        ],
        "gone": report.gone,
        "sections": report.sections,
    }
    if full:
        record["ignored_files"] = [
            {"path": entry.path, "kind": entry.kind, "message": entry.message or None}
            for entry in report.left_out
        ]
    if profile:
        record["profile"] = {
            "seconds": {stage: round(spent, 3) for stage, spent in _stages(report)},
            **{f"{unit}_per_s": round(rate, 1) for unit, rate in _rates(report).items()},
        }
    return record


def report_text(report: IngestReport, *, full: bool = False) -> str:
    """What was done, without the kinds of which there were none; `full` lists what was ignored."""
    counts = [f"{getattr(report, name)} {name}" for name in _COUNTS if getattr(report, name)]
    sizes = ", ".join(
        f"{count} {plural(count, name)}"
        for count, name in (
            (report.pages - report.sections, "page"),
            (report.sections, "section"),
            (report.passages, "passage"),
        )
        if count
    )
    lines = [
        f"{', '.join(counts) or 'nothing to do'}: {sizes or 'nothing new'} "
        f"in {report.elapsed_s:.1f} s"
    ]
    if report.gone:
        lines.append("gone: the file is there no more; --prune forgets the document")
        lines += [f"  {file.path}" for file in report.files if file.status == "gone"]
    kinds = Counter(entry.kind for entry in report.left_out)
    for kind, count in kinds.most_common():
        if full or kind == "unreadable":
            lines.append(f"ignored, {_LEFT_OUT[kind]} ({count})")
            lines += [f"  {_entry(item)}" for item in report.left_out if item.kind == kind]
    return "\n".join(lines)


def _entry(entry: LeftOut) -> str:
    return f"{entry.path}: {entry.message}" if entry.message else entry.path


def report_failures(report: IngestReport) -> str:
    """The failed files by reason, then how many of them were not tried again; empty for none."""
    failed = [file for file in report.files if file.status == "failed"]
    if not failed:
        return ""
    lines = [failures_text((file.reason or "", file.path, file.message or "") for file in failed)]
    before = sum(not file.tried for file in failed)
    if before:
        lines.append(
            f"{before} of {len(failed)} failed before and have not changed: "
            "--retry-failed tries them again"
        )
    return "\n".join(lines)


def profile_text(report: IngestReport) -> str:
    """Seconds by stage, then how much went through in a second."""
    lines = [f"{'seconds':14} {report.elapsed_s:8.2f}"]
    lines += [f"  {stage:12} {spent:8.2f}" for stage, spent in _stages(report)]
    lines += [f"{f'{unit}/s':14} {rate:8.1f}" for unit, rate in _rates(report).items()]
    return "\n".join(lines)


def _stages(report: IngestReport) -> list[tuple[str, float]]:
    """In the order in which a file goes through them."""
    seconds = report.profile.seconds
    order = ("walk", "hash", "read", "wait to read", "embed", "write", "wait to write")
    return [(stage, seconds[stage]) for stage in order if stage in seconds]


def _rates(report: IngestReport) -> dict[str, float]:
    elapsed = max(report.elapsed_s, 1e-9)
    return {
        "pages": report.pages / elapsed,
        "passages": report.passages / elapsed,
        "MB": report.profile.bytes / 1e6 / elapsed,
    }


_WARNINGS_SHOWN = 20


def warnings_text(report: IngestReport, verbose: bool) -> str:
    """One line for each warning; only the first ones unless `verbose`. Empty if there are none."""
    lines = [f"{file.path}: {warning}" for file in report.files for warning in file.warnings]
    shown = lines if verbose else lines[:_WARNINGS_SHOWN]
    more = [f"and {len(lines) - len(shown)} more (-v shows all)"] if len(lines) > len(shown) else []
    return "\n".join(
        [f"warnings ({len(lines)})", *(f"  {line}" for line in shown + more)] if lines else []
    )


def bench_record(measured: Sequence[Measured]) -> dict[str, JSONValue]:
    """What `bench ingest --json` prints."""
    return {
        "schema": SCHEMA,
        "kinds": [
            {
                "kind": item.kind,
                "pages": item.pages,
                "passages": item.passages,
                "processes": item.processes,
                "bare_pages_per_s": round(item.bare_pages_per_s, 1),
                "pages_per_s": round(item.pages_per_s, 1),
                "passages_per_s": round(item.passages_per_s, 1),
                "share": round(item.share, 3),
                "passed": item.passed,
            }
            for item in measured
        ],
    }


def bench_text(measured: Sequence[Measured]) -> str:
    """A table: bare reading, the ingest, its share, and whether that is enough."""
    lines = [f"{'':8}{'pages':>7}{'bare/s':>9}{'pages/s':>9}{'share':>8}{'passages/s':>12}"]
    for item in measured:
        lines.append(
            f"{item.kind:8}{item.pages:7}{item.bare_pages_per_s:9.0f}{item.pages_per_s:9.0f}"
            f"{item.share:8.0%}{item.passages_per_s:12.0f}  {'ok' if item.passed else 'too slow'}"
        )
    return "\n".join(lines)

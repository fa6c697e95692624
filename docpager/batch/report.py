"""The report of a batch for people: one HTML file that opens from disk and fetches nothing."""

from __future__ import annotations

import importlib.resources
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docpager.agent.locations import section_place
from docpager.agent.runs import Event, events_of
from docpager.batch.finished import FinishedBatch
from docpager.batch.metrics import METRICS
from docpager.batch.questions import Question
from docpager.batch.result import Result
from docpager.batch.result_line import scores_record
from docpager.batch.summary import BatchSummary
from docpager.errors import UserError
from docpager.files import write_output
from docpager.types import Answer, Citation, JSONValue
from docpager.unicode import legal_xml, shortened

_BINS = 12
_DETAIL = 240
"""Characters of an event that are shown."""
_NOTES = ("core_memory_append", "core_memory_replace", "archival_memory_insert")
_KINDS = {
    "archival_memory_search": "search",
    "conversation_search": "search",
    "read_document": "read",
    "send_message": "answer",
    "evict_messages": "flush",
    **dict.fromkeys(_NOTES, "note"),
}
_USER_KINDS = ("pressure", "nudge", "failure", "upload", "summary")


def write_report(path: Path, batch: FinishedBatch) -> None:
    """Write the report of all selected questions in order, also of those without a result.

    Raises:
        UserError: the file cannot be written.
    """
    report = _Report(batch)
    rows = [report.row(question) for question in batch.questions]
    template = importlib.resources.files("docpager.batch").joinpath("report.html")
    page = template.read_text(encoding="utf-8")
    page = page.replace("<!--charts-->", "\n".join(_charts(batch.summary, report.ran)))
    # Within a script element only `</script` and `<!--` would end or hide it.
    embedded = json.dumps(report.data(rows), ensure_ascii=False).replace("<", "\\u003c")
    page = page.replace("<!--data-->", embedded)
    try:
        write_output(path, page.encode("utf-8", "replace"))
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror}). Name another with --report."
        ) from error


@dataclass(slots=True)
class _Report:
    """The data that the page shows, collected question by question."""

    batch: FinishedBatch
    pages: dict[str, str] = field(default_factory=dict)
    """The texts that citations point into, by `DOCUMENT#PAGE`."""
    ran: list[Answer] = field(default_factory=list)
    """The answers of questions that were asked."""
    model: str = ""

    def row(self, question: Question) -> dict[str, JSONValue]:
        """The row of a question."""
        result, why = self.batch.result_of(question.id), self.batch.failed.get(question.id)
        why = self.batch.not_asked.get(question.id, why)
        row = _row_without_result(question) if result is None else self._row(question, result)
        row = row if why is None else {**row, "outcome": "error", "error": why}
        if result is not None and row["outcome"] != "left out":
            self.ran.append(result.answer)
        return row

    def data(self, rows: Sequence[Mapping[str, JSONValue]]) -> dict[str, JSONValue]:
        """Everything that the page's script reads."""
        summary = self.batch.summary
        return {
            "summary": _heading(summary, self.model),
            "metrics": [name for name in METRICS if summary.groups["all"].scores[name].n],
            "tags": [
                {
                    "name": tag,
                    "questions": group.questions,
                    "passed": group.passed,
                    "scores": {
                        name: {"mean": score.mean, "n": score.n}
                        for name, score in group.scores.items()
                    },
                }
                for tag, group in summary.groups.items()
            ],
            "questions": [{**row} for row in rows],
            "pages": {**self.pages},
        }

    def _row(self, question: Question, result: Result) -> dict[str, JSONValue]:
        answer = result.answer
        self.model = answer.model
        events = events_of(self.batch.runs, answer.run_id) if answer.run_id else ()
        return {
            **_asked(question),
            "outcome": _outcome(result),
            "status": answer.status,
            "answer": answer.answer,
            "error": answer.error,
            "scores": scores_record(result.scores),
            "value": result.value(self.batch.summary.metric),
            "tokens": answer.usage.total_tokens,
            "cost": answer.usage.cost_usd,
            "seconds": answer.elapsed_s,
            "citations": [self._citation(citation) for citation in answer.citations],
            "timeline": [*timeline(events)],
            "run": answer.run_id,
        }

    def _citation(self, citation: Citation) -> dict[str, JSONValue]:
        # A file without pages is shown by the passage that was cited.
        place = citation.page if citation.page is not None else citation.passage_id
        key = f"{citation.document}#{place}"
        if key not in self.pages:
            text = self.batch.cited_text(citation)
            if text is not None:
                self.pages[key] = text
        span = quote_span(citation.quote, self.pages.get(key, ""))
        return {
            "place": _location(citation),
            "quote": citation.quote,
            "verified": citation.verified,
            "problem": citation.problem,
            "page": key if key in self.pages else None,
            "span": None if span is None else [*span],
        }


def _heading(summary: BatchSummary, model: str) -> dict[str, JSONValue]:
    everything = summary.groups["all"]
    faults = summary.errors or summary.skipped or summary.missing
    if summary.below_threshold:
        verdict = f"below the threshold of {summary.fail_under:g}"
    elif faults:
        verdict = "not all questions were answered"
    else:
        verdict = "above the threshold" if summary.fail_under is not None else "all were asked"
    mean = summary.mean.mean
    totals: list[JSONValue] = [
        ["questions", f"{summary.questions}", ""],
        ["passed", f"{everything.passed}", "good"],
        ["failed", f"{everything.failed}", "bad" if everything.failed else ""],
        [f"mean {summary.metric} (n {summary.mean.n})", "–" if mean is None else f"{mean:.3f}", ""],
        ["tokens", f"{summary.prompt_tokens + summary.completion_tokens:,}", ""],
        ["USD", "unknown" if summary.cost_usd is None else f"{summary.cost_usd:.4f}", ""],
        ["calls made", f"{summary.calls:,}", ""],
    ]
    if faults:
        totals.append(["errors", f"{summary.errors}", "bad" if summary.errors else ""])
        totals.append(["not asked", f"{summary.skipped + summary.missing}", "warn"])
    return {
        "verdict": verdict,
        "verdict_good": not (summary.below_threshold or faults),
        "model": model,
        "metric": summary.metric,
        "pass_at": summary.pass_at,
        "totals": totals,
    }


def _row_without_result(question: Question) -> dict[str, JSONValue]:
    return {
        **_asked(question),
        "outcome": "left out",
        "status": "no result",
        "answer": "",
        "error": "not asked: the batch was stopped before",
        "scores": {},
        "value": None,
        "tokens": None,
        "cost": None,
        "seconds": None,
        "citations": [],
        "timeline": [],
        "run": None,
    }


def _asked(question: Question) -> dict[str, JSONValue]:
    expected = [*question.expected] or [question.expected_status or ""]
    return {
        "id": question.id,
        "question": question.text,
        "tags": [*question.tags],
        "expected": [text for text in expected if text],
    }


def _outcome(result: Result) -> str:
    if not result.is_judged:
        return "error" if result.answer.status == "model_error" else "left out"
    passed = result.scores.passed
    return "unscored" if passed is None else "passed" if passed else "failed"


def _location(citation: Citation) -> str:
    if citation.page is not None:
        return f"{citation.document} p. {citation.page}"
    return section_place(citation.document, citation.section, citation.line)


def quote_span(quote: str, text: str) -> tuple[int, int] | None:
    """Start and end of the quote in the text, in UTF-16 units as JavaScript counts.

    Line breaks, hyphens at line ends and the kind of quotation marks may differ. None if the quote
    is not found.
    """
    words = quote.split()
    if not words:
        return None
    patterns = [re.sub("[\"'“”‘’„«»]", "[\"'“”‘’„«»]", re.escape(word)) for word in words]
    found = re.search(r"\s+".join(patterns), text)
    if found is None:
        letters = [re.escape(sign) for sign in "".join(words) if sign.isalnum()]
        found = re.search(r"[^\w]*".join(letters[:400]), text) if letters else None
    if found is None:
        return None
    return _units(text[: found.start()]), _units(text[: found.end()])


def _units(text: str) -> int:
    return len(text) + sum(sign > "\uffff" for sign in text)


# -- the run --------------------------------------------------------------------------------------


def timeline(events: Sequence[Event]) -> list[JSONValue]:
    """The searches, pages read, notes, warnings and flushes of a run, in order."""
    shown: list[dict[str, JSONValue]] = []
    calls: list[dict[str, JSONValue]] = []
    for event in events:
        role, kind = event.get("role"), event.get("kind")
        if event.get("event") == "message" and role == "assistant":
            given = event.get("calls")
            calls = [call for call in given if isinstance(call, dict)] if given else []  # type: ignore[union-attr]
        elif event.get("event") == "message" and role == "tool":
            call = calls.pop(0) if calls else {}
            shown.append(_call_entry(event, call))
        elif event.get("event") == "message" and role == "user" and kind in _USER_KINDS:
            shown.append(_entry(str(kind), str(kind), str(event.get("text", ""))))
        elif event.get("event") == "flush":
            counts = f"{event.get('evicted_messages')} messages, {event.get('before')} -> "
            counts += f"{event.get('after')} tokens"
            shown.append(_entry("flush", "flush", f"{counts}: {event.get('summary')}"))
        elif event.get("event") == "forced":
            shown.append(_entry("nudge", "answer demanded", str(event.get("stopped_by") or "")))
    return [*shown]


def _call_entry(event: Event, call: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    name = str(event.get("name"))
    try:
        arguments = json.loads(str(call.get("arguments") or "{}"))
    except ValueError:
        arguments = {}
    given = arguments if isinstance(arguments, dict) else {}
    what = [
        str(given[key])
        for key in ("query", "document", "content", "new_content", "message")
        if given.get(key)
    ]
    page = f" (page {given['page']})" if given.get("page") is not None else ""
    first = str(event.get("text", "")).partition("\n")[0]
    entry = _entry(_KINDS.get(name, "call"), f"{name}{page}", f"{' '.join(what)} — {first}")
    return {**entry, "failed": bool(event.get("failed"))}


def _entry(kind: str, label: str, detail: str) -> dict[str, JSONValue]:
    line = " ".join(detail.split())
    return {
        "kind": kind,
        "label": label,
        "detail": shortened(line, _DETAIL),
        "failed": False,
    }


# -- charts ---------------------------------------------------------------------------------------


def _charts(summary: BatchSummary, ran: Sequence[Answer]) -> list[str]:
    scored = {
        tag: group.scores[summary.metric].mean
        for tag, group in summary.groups.items()
        if group.scores[summary.metric].mean is not None
    }
    seconds = [float(answer.elapsed_s) for answer in ran]
    costs = [float(cost) for answer in ran if (cost := answer.usage.cost_usd) is not None]
    tokens = [float(answer.usage.total_tokens) for answer in ran]
    charts = [_bars(f"Mean {summary.metric} by tag", scored)] if scored else []
    if seconds:
        charts.append(_histogram("Seconds for a question", seconds))
        charts.append(
            _histogram("USD for a question", costs)
            if costs and max(costs) > 0
            else _histogram("Tokens for a question", tokens)
        )
    return [f'<div class="panel"><h2>{title}</h2>{svg}</div>' for title, svg in charts]


def _bars(title: str, values: Mapping[str, float | None]) -> tuple[str, str]:
    names = map(legal_xml, values)
    labels = [shortened(name, 16) for name in names]
    return title, _svg(labels, [*values.values()], most=1.0)


def _histogram(title: str, values: Sequence[float]) -> tuple[str, str]:
    low, high = min(values), max(values)
    width = (high - low) / _BINS or 1.0
    counts = [0] * (_BINS if high > low else 1)
    for value in values:
        counts[min(int((value - low) / width), len(counts) - 1)] += 1
    labels = [f"{low + width * at:.3g}" for at in range(len(counts))]
    return title, _svg(labels, [float(count) for count in counts])


def _svg(labels: Sequence[str], values: Sequence[float | None], most: float | None = None) -> str:
    """A bar chart as inline SVG, in the colours of the page, light or dark."""
    pygal = _pygal()
    from pygal.style import Style

    style = Style(
        background="transparent",
        plot_background="transparent",
        foreground="var(--ink)",
        foreground_strong="var(--ink)",
        foreground_subtle="var(--line)",
        colors=("var(--accent)",),
        opacity=".85",
        font_family="inherit",
        label_font_size=13,
        major_label_font_size=13,
        guide_stroke_color="var(--line)",
        major_guide_stroke_color="var(--line)",
    )
    chart = pygal.Bar(
        style=style,
        js=(),
        width=480,
        height=260,
        show_legend=False,
        disable_xml_declaration=True,
        range=(0, most) if most is not None else None,
        include_x_axis=True,
        x_label_rotation=30 if len(labels) > 6 else 0,
        margin=8,
        explicit_size=False,
    )
    chart.x_labels = list(labels)
    chart.add("", list(values))
    # The library's comments about itself contain URLs; the report must not.
    return re.sub(r"<!--.*?-->", "", str(chart.render(is_unicode=True)), flags=re.S)


def _pygal() -> Any:
    """Import pygal, without the hook for map plugins that it adds to every later import."""
    import pygal

    hook = pygal.PluginImportFixer
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, hook)]
    return pygal

"""JUnit XML of a batch, as CI servers read it: one test case for each question."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from docpager.batch.questions import Question
from docpager.batch.results import Record
from docpager.batch.summary import BatchSummary
from docpager.errors import UserError
from docpager.types import JSONValue
from docpager.unicode import legal_xml

_LONGEST_MESSAGE = 300


def write_junit(
    path: Path,
    questions: Sequence[Question],
    record_of: Callable[[str], Record | None],
    summary: BatchSummary,
    traces: Path,
    failed: Mapping[str, str] | None = None,
    left: Mapping[str, str] | None = None,
) -> None:
    """Write one test case for each of `questions`, in their order.

    `record_of` gives a question's result by its id; `traces` is the folder of the runs; `failed`
    says by id why a question that was asked has no new result, `left` why one was not asked anew.

    A wrong answer is a failure, a fault of the model or its endpoint an error, as is what failed;
    what was not asked is skipped. Questions of which nothing is expected pass.

    Raises:
        UserError: the file cannot be written.
    """
    suite = ET.Element("testsuite", name="docpager batch", hostname="docpager")
    _properties(suite, summary)
    counts = dict.fromkeys(("failure", "error", "skipped"), 0)
    seconds = 0.0
    for question in questions:
        record = record_of(question.id)
        why = (failed or {}).get(question.id)
        unasked = (left or {}).get(question.id)
        if unasked is None:
            case, kind = _case(question, record, summary, traces, why)
        else:
            case, kind = _empty_case(question, record), "skipped"
            message = legal_xml(f"not asked again: {unasked}")
            ET.SubElement(case, "skipped", message=message)
        suite.append(case)
        if kind is not None:
            counts[kind] += 1
        seconds += float(case.get("time") or 0)
    totals: dict[str, str] = {
        "tests": str(len(questions)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": f"{seconds:.3f}",
    }
    suite.attrib.update(totals)
    suites = ET.Element("testsuites", {"name": "docpager", **totals})
    suites.append(suite)
    ET.indent(suites)
    try:
        ET.ElementTree(suites).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({error.strerror}). Name another with --junit-xml."
        ) from error


def _properties(suite: ET.Element, summary: BatchSummary) -> None:
    properties = ET.SubElement(suite, "properties")
    values = {
        "metric": summary.metric,
        "pass_at": summary.pass_at,
        "mean": summary.mean.mean,
        "fail_under": summary.fail_under,
    }
    for name, value in values.items():
        if value is not None:
            ET.SubElement(properties, "property", name=name, value=str(value))


def _empty_case(question: Question, record: Record | None) -> ET.Element:
    # Servers know a test by class and name: both stay as they are when the answer changes.
    kind = legal_xml(question.tags[0] if question.tags else "questions").replace(".", "_")
    case = ET.Element("testcase", classname=f"docpager.{kind}", name=legal_xml(question.id))
    case.set("time", f"{float(cast(float, record['elapsed_s'])) if record else 0.0:.3f}")
    return case


def _case(
    question: Question,
    record: Record | None,
    summary: BatchSummary,
    traces: Path,
    failed: str | None,
) -> tuple[ET.Element, str | None]:
    """The test case of a question, and what it is if it did not pass."""
    case = _empty_case(question, record)
    if failed is not None:
        error = ET.SubElement(case, "error", message=_short(failed), type="not_answered")
        error.text = legal_xml(f"Question: {question.text}\n{failed}")
        return case, "error"
    if record is None:
        ET.SubElement(case, "skipped", message="not asked: the batch was stopped before")
        return case, "skipped"
    if record["skipped"] is not None:
        why = f"not asked: the {record['skipped']} allowed for the batch were used up"
        ET.SubElement(case, "skipped", message=legal_xml(why))
        return case, "skipped"
    body = _body(question, record, traces)
    if record["status"] == "model_error":
        message = _short(str(record["error"] or "the model gave no answer"))
        ET.SubElement(case, "error", message=message, type="model_error").text = body
        return case, "error"
    scores = cast("dict[str, JSONValue]", record["scores"])
    if scores["passed"] is False:
        message = _short(_why(question, record, summary))
        failure = ET.SubElement(case, "failure", message=message, type=str(record["status"]))
        failure.text = body
        return case, "failure"
    ET.SubElement(case, "system-out").text = body
    return case, None


def _why(question: Question, record: Record, summary: BatchSummary) -> str:
    scores = cast("dict[str, float | None]", record["scores"])
    value = scores[summary.metric]
    if question.expected_status is not None and value is None:
        return f"{record['status']}, expected {question.expected_status}: {record['answer']}"
    score = "no score" if value is None else f"{value:.2f}"
    expected = " / ".join(question.expected)
    return (
        f"{summary.metric} {score} is below {summary.pass_at:g}: said "
        f"{record['answer']!r} ({record['status']}), expected {expected!r}"
    )


def _body(question: Question, record: Record, traces: Path) -> str:
    citations = cast("list[Record]", record["citations"])
    lines = [
        f"Question: {question.text}",
        f"Answer ({record['status']}): {record['answer']}",
        f"Expected: {' / '.join(question.expected) or question.expected_status or 'nothing'}",
        *(f"Scores: {_scores(record)}" for _ in [0] if _scores(record)),
        *(_citation(number, one) for number, one in enumerate(citations, 1)),
        f"Trace: {traces / str(record['run_id'])}.jsonl",
    ]
    return legal_xml("\n".join(lines))


def _scores(record: Mapping[str, JSONValue]) -> str:
    scores = cast("dict[str, JSONValue]", record["scores"])
    return ", ".join(
        f"{name} {value:.2f}"
        for name, value in scores.items()
        if isinstance(value, float) and name != "passed"
    )


def _citation(number: int, citation: Record) -> str:
    page = f" p. {citation['page']}" if citation["page"] is not None else ""
    mark = "" if citation["verified"] else f" (not verified: {citation['problem']})"
    return f'[{number}] {citation["document"]}{page} "{citation["quote"]}"{mark}'


def _short(text: str) -> str:
    line = " ".join(legal_xml(text).split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}…"

"""JUnit XML of a batch, as CI servers read it: one test case for each question."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from docpager.batch.finished import FinishedBatch
from docpager.batch.metrics import METRICS
from docpager.batch.questions import Question
from docpager.batch.result import Result
from docpager.batch.summary import BatchSummary
from docpager.errors import UserError
from docpager.files import write_output
from docpager.types import Citation
from docpager.unicode import legal_xml, shortened

_LONGEST_MESSAGE = 300


def write_junit(path: Path, batch: FinishedBatch) -> None:
    """Write one test case for each question, in their order.

    A wrong answer is a failure; a model error is an error, and so is a question that was asked but
    has no new result; a question that was not asked is skipped. One without expectations passes.

    Raises:
        UserError: the file cannot be written.
    """
    suite = ET.Element("testsuite", name="docpager batch", hostname="docpager")
    _properties(suite, batch.summary)
    cases = [_case(question, batch) for question in batch.questions]
    suite.extend(cases)
    seconds = sum(float(case.get("time") or 0) for case in cases)
    totals = {"tests": str(len(cases))}
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        totals[name] = str(sum(case.find(tag) is not None for case in cases))
    totals["time"] = f"{seconds:.3f}"
    suite.attrib.update(totals)
    suites = ET.Element("testsuites", {"name": "docpager", **totals})
    suites.append(suite)
    ET.indent(suites)
    try:
        write_output(path, ET.tostring(suites, encoding="utf-8", xml_declaration=True))
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


def _case(question: Question, batch: FinishedBatch) -> ET.Element:
    """The test case of a question; unless it passed, a child element says why not."""
    result = batch.result_of(question.id)
    # Servers know a test by class and name: both stay as they are when the answer changes.
    kind = legal_xml(question.tags[0] if question.tags else "questions").replace(".", "_")
    case = ET.Element("testcase", classname=f"docpager.{kind}", name=legal_xml(question.id))
    case.set("time", f"{result.answer.elapsed_s if result else 0.0:.3f}")
    if question.id in batch.not_asked:
        _skip(case, f"not asked again: {batch.not_asked[question.id]}")
    elif question.id in batch.failed:
        why = batch.failed[question.id]
        error = ET.SubElement(case, "error", message=_short(why), type="not_answered")
        error.text = legal_xml(f"Question: {question.text}\n{why}")
    elif result is None:
        _skip(case, "not asked: the batch was stopped before")
    elif result.skipped is not None:
        _skip(case, f"not asked: the {result.skipped} allowed for the batch were used up")
    else:
        _add_outcome(case, question, result, batch)
    return case


def _skip(case: ET.Element, why: str) -> None:
    ET.SubElement(case, "skipped", message=legal_xml(why))


def _add_outcome(
    case: ET.Element, question: Question, result: Result, batch: FinishedBatch
) -> None:
    answer, body = result.answer, _body(question, result, batch.runs)
    if answer.status == "model_error":
        message = _short(answer.error or "the model gave no answer")
        ET.SubElement(case, "error", message=message, type="model_error").text = body
    elif result.scores.passed is False:
        message = _short(_why(question, result, batch.summary))
        ET.SubElement(case, "failure", message=message, type=answer.status).text = body
    else:
        ET.SubElement(case, "system-out").text = body


def _why(question: Question, result: Result, summary: BatchSummary) -> str:
    answer, value = result.answer, result.scores.by(summary.metric)
    if question.expected_status is not None and value is None:
        return f"{answer.status}, expected {question.expected_status}: {answer.answer}"
    score = "no score" if value is None else f"{value:.2f}"
    expected = " / ".join(question.expected)
    return (
        f"{summary.metric} {score} is below {summary.pass_at:g}: said "
        f"{answer.answer!r} ({answer.status}), expected {expected!r}"
    )


def _body(question: Question, result: Result, traces: Path) -> str:
    answer, scores = result.answer, _scores(result)
    lines = [
        f"Question: {question.text}",
        f"Answer ({answer.status}): {answer.answer}",
        f"Expected: {' / '.join(question.expected) or question.expected_status or 'nothing'}",
        *([f"Scores: {scores}"] if scores else []),
        *(_citation(number, one) for number, one in enumerate(answer.citations, 1)),
        f"Trace: {traces / answer.run_id}.jsonl",
    ]
    return legal_xml("\n".join(lines))


def _scores(result: Result) -> str:
    values = ((metric, result.scores.by(metric)) for metric in METRICS)
    return ", ".join(f"{metric} {value:.2f}" for metric, value in values if value is not None)


def _citation(number: int, citation: Citation) -> str:
    page = f" p. {citation.page}" if citation.page is not None else ""
    mark = "" if citation.verified else f" (not verified: {citation.problem})"
    return f'[{number}] {citation.document}{page} "{citation.quote}"{mark}'


def _short(text: str) -> str:
    return shortened(" ".join(legal_xml(text).split()), _LONGEST_MESSAGE)

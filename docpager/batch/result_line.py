"""A result as one line of JSON, written and read back here and nowhere else.

Files are edited by hand, merged, or come from other programs: every line is checked here, so that
no user of a `Result` has to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WrapValidator

from docpager.batch.answers import answer_record
from docpager.batch.jsonlines import decoded_object, first_problem
from docpager.batch.metrics import METRICS
from docpager.batch.questions import RESULT_KEYS
from docpager.batch.result import GivenQuestion, Result, Scores
from docpager.errors import Limit
from docpager.types import Answer, AnswerStatus, Citation, JSONValue, PageRef, ToolMode, Usage

# -- writing --------------------------------------------------------------------------------------


def result_line(result: Result) -> bytes:
    """The line of a result, with its line break."""
    return _encoded(result_record(result))


def unasked_line(line: bytes) -> bytes:
    """The line of a result, marked as that of a question that was removed from its file.

    It is not graded again, and keeps also keys that a `Result` has no field for.
    """
    return _encoded({**decoded_object(line), "unasked": True})


def _encoded(record: dict[str, JSONValue]) -> bytes:
    text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace") + b"\n"


def result_record(result: Result) -> dict[str, JSONValue]:
    """A result as JSON: the answer, what it depends on, the question as given, the scores."""
    record: dict[str, JSONValue] = {
        **answer_record(result.answer),
        "pages_shown": [
            {"document": shown.document, "page": shown.page} for shown in result.answer.pages_shown
        ],
        "skipped": result.skipped,
        "stopped_at": result.stopped_at,
        "fingerprint": result.fingerprint,
        "id": result.given.id,
        "tags": [*result.given.tags],
        **result.given.fields,
        "scores": scores_record(result.scores),
    }
    return {**record, "unasked": True} if result.unasked else record


def scores_record(scores: Scores) -> dict[str, JSONValue]:
    """Scores as JSON, in the order of `METRICS`."""
    values: dict[str, JSONValue] = {metric: scores.by(metric) for metric in METRICS}
    return {**values, "passed": scores.passed}


# -- reading --------------------------------------------------------------------------------------


def _as_given(value: Any, check: Callable[[Any], float]) -> Any:
    """Check a number and keep it as given: an integer is written as an integer again."""
    check(value)
    return value


_Count = Annotated[int, Field(ge=0, le=2**53)]
_Page = Annotated[int, Field(ge=0, le=2**31 - 1)]
_Amount = Annotated[float, Field(ge=0, le=1e12), WrapValidator(_as_given)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)


class _Citation(_Part):
    passage_id: str
    document: str
    page: _Page | None
    page_label: str | None
    quote: str
    verified: bool
    section: str | None
    line: _Count | None
    problem: str | None


class _Usage(_Part):
    prompt_tokens: _Count
    cached_tokens: _Count
    completion_tokens: _Count
    cost_usd: _Amount | None


class _PageShown(_Part):
    document: str
    page: _Page


class _Line(_Part):
    id: str
    run_id: Annotated[str, Field(pattern=r"^[\w-]*$", max_length=100)]
    question: str
    status: AnswerStatus
    answer: str
    citations: list[_Citation]
    steps: _Count
    searches: _Count
    pages_read: _Count
    usage: _Usage
    model: str
    tool_mode: ToolMode
    stopped_by: Limit | None
    elapsed_s: _Amount
    error: str | None
    pages_shown: list[_PageShown]
    skipped: Limit | None
    fingerprint: str
    tags: list[str]
    expected_status: AnswerStatus | None = None
    scores: dict[str, bool | float | None]
    stopped_at: _Amount | None = None
    unasked: Literal[True] | None = None


_NOT_FIELDS = RESULT_KEYS | {"question", "id", "tags"}
"""The keys of a line that do not belong to `GivenQuestion.fields`."""


def read_result(line: bytes) -> Result:
    """The result on a line.

    Raises:
        ValueError: the line holds no result; the text says why.
    """
    record = decoded_object(line)
    try:
        read = _Line.model_validate(record)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None
    return Result(
        given=GivenQuestion(
            read.id,
            tuple(read.tags),
            read.expected_status,
            {name: value for name, value in record.items() if name not in _NOT_FIELDS},
        ),
        answer=_answer(read),
        fingerprint=read.fingerprint,
        scores=_scores(read.scores),
        skipped=read.skipped,
        stopped_at=read.stopped_at,
        unasked=read.unasked is True,
    )


def _answer(read: _Line) -> Answer:
    usage = read.usage
    return Answer(
        run_id=read.run_id,
        question=read.question,
        status=read.status,
        answer=read.answer,
        citations=tuple(
            Citation(
                passage_id=cited.passage_id,
                document=cited.document,
                page=cited.page,
                page_label=cited.page_label,
                quote=cited.quote,
                verified=cited.verified,
                section=cited.section,
                line=cited.line,
                problem=cited.problem,
            )
            for cited in read.citations
        ),
        steps=read.steps,
        searches=read.searches,
        pages_read=read.pages_read,
        usage=Usage(
            usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.cost_usd
        ),
        model=read.model,
        tool_mode=read.tool_mode,
        stopped_by=read.stopped_by,
        elapsed_s=read.elapsed_s,
        error=read.error,
        pages_shown=tuple(PageRef(shown.document, shown.page) for shown in read.pages_shown),
    )


def _scores(given: dict[str, bool | float | None]) -> Scores:
    """The scores on a line; a metric that is missing is None."""
    passed = given.get("passed")
    return Scores(
        exact_match=given.get("exact_match"),
        f1=given.get("f1"),
        contains=given.get("contains"),
        document_recall=given.get("document_recall"),
        page_recall=given.get("page_recall"),
        read_recall=given.get("read_recall"),
        citation_precision=given.get("citation_precision"),
        passed=passed if isinstance(passed, bool) else None,
    )

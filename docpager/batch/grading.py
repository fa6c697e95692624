"""Grades an answer against what the questions file expects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from docpager.batch.metrics import (
    METRICS,
    Metric,
    best,
    contains,
    document_recall,
    exact_match,
    f1,
    recall,
)
from docpager.batch.questions import Question
from docpager.batch.result import GivenQuestion, Result, Scores
from docpager.errors import UserError
from docpager.types import Answer, PageRef

_WITH_TEXT = ("answered", "unsupported")
"""Statuses whose text is an answer; that of the others says why there is none."""
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Grading:
    """When a question passes, and when the batch does."""

    metric: Metric = "f1"
    pass_at: float = 0.6
    """The lowest score by `metric` with which a question passes."""
    fail_under: float | None = None
    """The lowest mean with which the batch passes."""

    def __post_init__(self) -> None:
        """Refuse what no question could be graded by.

        Raises:
            UserError: the metric is unknown, or a threshold is no number from 0 to 1.
        """
        if self.metric not in METRICS:
            raise UserError(
                f"metric must be one of {', '.join(METRICS)}, not {self.metric!r}. Correct it."
            )
        _require_share("pass_at", self.pass_at)
        if self.fail_under is not None:
            _require_share("fail_under", self.fail_under)


def _require_share(name: str, value: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise UserError(f"{name} must be a number from 0 to 1, not {value!r}. Correct it.")


def graded(result: Result, question: Question, grading: Grading) -> Result:
    """`result` scored against what `question` expects now, in place of what it expected before."""
    given = GivenQuestion.of(question)
    current = replace(result, given=given, scores=Scores(), unasked=False)
    if not current.is_judged:
        return current
    scores = score(current.answer, question)
    passed = _passed(current, scores, grading)
    return replace(current, scores=replace(scores, passed=passed))


def score(answer: Answer, question: Question) -> Scores:
    """The scores of an answer by each metric; None where nothing is expected."""
    said = answer.answer if answer.status in _WITH_TEXT else ""
    citations, pages = answer.citations, question.expected_pages
    documents = question.expected_documents
    cited = [PageRef(one.document, one.page) for one in citations if one.page is not None]
    verified = sum(one.verified for one in citations)

    def text(compare: Callable[[str, str], float]) -> float | None:
        if not question.expected:
            return None
        return round(best(compare, said, question.expected), _DIGITS) if said else 0.0

    return Scores(
        exact_match=text(exact_match),
        f1=text(f1),
        contains=text(contains),
        document_recall=round(
            document_recall((one.document for one in citations), documents), _DIGITS
        )
        if documents
        else None,
        page_recall=round(recall(cited, pages), _DIGITS) if pages else None,
        read_recall=round(recall(answer.pages_shown, pages), _DIGITS) if pages else None,
        citation_precision=round(verified / len(citations), _DIGITS) if citations else None,
    )


def _passed(result: Result, scores: Scores, grading: Grading) -> bool | None:
    if result.met_expected_status:
        return True
    value = scores.by(grading.metric)
    if value is None:
        return None if result.given.expected_status is None else False
    return value >= grading.pass_at

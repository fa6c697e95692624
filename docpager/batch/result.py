"""The result of one question of a batch: what was asked, its answer, and its scores.

Values only. Their JSON is in `result_line`, their file in `results`, their scores are computed in
`grading`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from docpager.batch.metrics import Metric
from docpager.errors import Limit
from docpager.types import Answer, AnswerStatus, JSONValue

if TYPE_CHECKING:
    from docpager.batch.questions import Question


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of an answer by each metric, in the order of `METRICS`, in [0, 1].

    None where nothing was expected, or where there was no answer to judge.
    """

    exact_match: float | None = None
    f1: float | None = None
    contains: float | None = None
    document_recall: float | None = None
    page_recall: float | None = None
    read_recall: float | None = None
    citation_precision: float | None = None
    passed: bool | None = None
    """None where the question is not scored."""

    def by(self, metric: Metric) -> float | None:
        """The score by one metric."""
        value: float | None = getattr(self, metric)
        return value


@dataclass(frozen=True, slots=True)
class GivenQuestion:
    """The line of a question in its file, as its result repeats it."""

    id: str
    tags: tuple[str, ...] = ()
    expected_status: AnswerStatus | None = None
    fields: Mapping[str, JSONValue] = field(default_factory=dict)
    """All other keys of its line, `expected` first, unknown ones too, in order and unchanged."""

    @classmethod
    def of(cls, question: Question) -> GivenQuestion:
        """The part of `question` that its result repeats."""
        fields = {"expected": question.given.get("expected"), **question.given}
        fields.pop("tags", None)
        return cls(question.id, question.tags, question.expected_status, fields)

    @property
    def expected(self) -> JSONValue:
        """The accepted answer or answers, as given."""
        return self.fields.get("expected")


@dataclass(frozen=True, slots=True)
class Result:
    """One question of a batch with its answer and scores; the question's text is the answer's."""

    given: GivenQuestion
    answer: Answer
    fingerprint: str
    """Identifies what the answer depends on; see `batch.fingerprint`."""
    scores: Scores = Scores()
    skipped: Limit | None = None
    """The limit of the batch for which the question was not asked, or was cut short."""
    stopped_at: float | None = None
    """The value of the question's own limit that stopped it."""
    unasked: bool = False
    """Whether the question has been removed from its file."""

    @property
    def id(self) -> str:
        """The question's id."""
        return self.given.id

    @property
    def is_judged(self) -> bool:
        """Whether there is an answer to score: no model error, and not skipped."""
        return self.answer.status != "model_error" and self.skipped is None

    @property
    def met_expected_status(self) -> bool:
        """Whether a status was expected, and is that of the answer."""
        expected = self.given.expected_status
        return expected is not None and self.answer.status == expected

    def value(self, metric: Metric) -> float | None:
        """The value of the question in the mean of `metric`; None where it is not scored.

        A question of which only a status is expected counts 1 with that status, else 0.
        """
        if not self.is_judged:
            return None
        if self.met_expected_status:
            return 1.0
        value = self.scores.by(metric)
        return 0.0 if value is None and self.given.expected_status is not None else value

    @classmethod
    def of(
        cls,
        question: Question,
        answer: Answer,
        fingerprint: str,
        skipped: Limit | None = None,
        stopped_at: float | None = None,
    ) -> Result:
        """The result of `question`, not scored yet; seconds are rounded as in the file."""
        rounded = replace(answer, elapsed_s=round(answer.elapsed_s, 3))
        return cls(
            GivenQuestion.of(question),
            rounded,
            fingerprint,
            skipped=skipped,
            stopped_at=stopped_at,
        )

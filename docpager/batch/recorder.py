"""Turns the outcome of each question into a graded result in the file."""

from __future__ import annotations

from dataclasses import replace

from docpager.batch.answerer import Answerer, RunOutcome
from docpager.batch.fingerprint import fingerprint, question_limit
from docpager.batch.grading import Grading, graded
from docpager.batch.questions import Question
from docpager.batch.result import Result
from docpager.batch.results import ResultsFile
from docpager.errors import Limit
from docpager.messages import ModelInfo
from docpager.types import Answer, Usage


class Recorder:
    """Writes results into their file; a new model error does not replace an old answer."""

    def __init__(self, results: ResultsFile, answerer: Answerer, grading: Grading) -> None:
        self._results = results
        self._settings = answerer.settings
        self._content_hash = answerer.content_hash
        self._model = answerer.info
        self._grading = grading
        self.not_redone: dict[str, str] = {}
        """Why the old answer of a question still counts, by its id."""

    def keep(self, question: Question, outcome: RunOutcome) -> Result:
        """Write the outcome of a question; returns its result."""
        answer = outcome.answer
        # An answer that the budget of the batch broke off is asked again with a larger one.
        skipped = outcome.refused_by if answer.status == "budget" else None
        result = self._result(question, answer, skipped, self._stopped_at(outcome))
        if not self._results.append(result):
            reason = answer.error or f"stopped by its {answer.stopped_by}"
            self.not_redone[question.id] = reason
        return result

    def skip(self, question: Question, limit: Limit) -> str | None:
        """Record that a question was not asked; returns why if its old answer is kept instead."""
        entry = self._results.entries.get(question.id)
        if entry is None:
            nothing = no_answer(question, self._model, "")
            left = replace(nothing, status="budget", stopped_by=limit, error=None)
            self._results.append(self._result(question, left, limit, None))
        elif entry.rank > 1:
            return f"left for the {limit} of the batch"
        return None

    def _result(
        self, question: Question, answer: Answer, skipped: Limit | None, stopped_at: float | None
    ) -> Result:
        depends_on = fingerprint(question.text, self._settings, self._content_hash)
        result = Result.of(question, answer, depends_on, skipped, stopped_at)
        return graded(result, question, self._grading)

    def _stopped_at(self, outcome: RunOutcome) -> float | None:
        """The value of the question's own limit that stopped it; None if none of its own did."""
        limit = outcome.answer.stopped_by
        if limit is None or limit == outcome.refused_by:
            return None
        return question_limit(limit, self._settings)


def no_answer(question: Question, model: ModelInfo, error: str) -> Answer:
    """An answer of status `model_error`, for a question that no run answered."""
    return Answer(
        run_id="",
        question=question.text,
        status="model_error",
        answer="",
        citations=(),
        steps=0,
        searches=0,
        pages_read=0,
        usage=Usage(),
        model=model.model,
        tool_mode=model.tool_mode,
        stopped_by=None,
        elapsed_s=0.0,
        error=error,
    )

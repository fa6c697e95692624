"""The verb `batch`: many questions at once, each kept as it finishes, within a budget.

    questions - results that are there -> [ ask while the budget lasts -> keep ]* -> end

One thread schedules and writes; the others ask. An error at one question is its own result; an
error that would meet all of them (archive, quota, disk) stops the batch; finished results are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from docpager.batch.allowance import Allowance
from docpager.batch.answerer import RunOutcome
from docpager.batch.questions import Question
from docpager.batch.recorder import Recorder
from docpager.batch.result import Result
from docpager.batch.selection import some_ids
from docpager.batch.workers import Finished, Workers
from docpager.errors import BudgetReached, DocpagerError, Limit, ModelError
from docpager.models.cache import NotRecorded
from docpager.models.throttle import WaitInterrupted

MOST_ERRORS_IN_A_ROW = 10
"""Consecutive questions that fail before the batch stops and blames the endpoint."""

OnResult = Callable[[int, int, Result], None]
"""Called with each result: how many are finished, of how many, and the result."""


class Interrupt:
    """Counts requests to stop: after one, running questions finish; after two, nothing does."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_: object) -> None:
        """Request a stop; usable as a signal handler."""
        self.count += 1


@dataclass(frozen=True, slots=True)
class Hooks:
    """How the outside interacts with a running batch."""

    interrupt: Interrupt
    refused: Callable[[], str | None]
    """Returns why the endpoint will refuse all further calls; None if it will not."""
    on_result: OnResult


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """How a batch ended."""

    asked: int = 0
    interrupted: bool = False
    stopped: DocpagerError | None = None
    """The error that ended it early."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """By id, why a question that was asked has no new result."""
    not_asked: Mapping[str, str] = field(default_factory=dict)
    """By id, why a question was not asked again and keeps its old answer."""


class Scheduler:
    """Asks questions in order, `jobs` at a time, and keeps each result as it finishes."""

    def __init__(
        self,
        questions: Sequence[Question],
        workers: Workers,
        recorder: Recorder,
        allowance: Allowance,
        hooks: Hooks,
        jobs: int,
    ) -> None:
        self._waiting = deque(questions)
        self._total = len(questions)
        self._workers = workers
        self._recorder = recorder
        self._allowance = allowance
        self._hooks = hooks
        self._jobs = jobs
        self._asked = 0
        self._errors = 0
        """Model errors since the last answer."""
        self._limit: Limit | None = None
        self._stopped: DocpagerError | None = None
        self._failed: dict[int, tuple[str, DocpagerError]] = {}
        """By line: the id of a question and the error that ended the batch at it."""

    def run(self) -> BatchEnd:
        """Ask all questions, unless a limit, an error or an interrupt ends the batch early."""
        interrupt = self._hooks.interrupt
        try:
            while interrupt.count < 2:
                self._start_questions()
                if self._workers.running == 0:
                    break
                done = self._workers.finished()
                if done is not None:
                    self._take(done)
        finally:
            self._workers.stop(at_once=interrupt.count >= 2)
        return self._end()

    def _start_questions(self) -> None:
        """Start as many questions as fit; remember the limit that the next one would exceed.

        While questions run, the decision waits for what they really take.
        """
        if self._hooks.interrupt.count or self._stopped or self._limit:
            return
        while self._waiting and self._workers.running < self._jobs:
            limit = self._allowance.limit_of_next(self._workers.running)
            if limit is not None:
                self._limit = limit if self._workers.running == 0 else None
                return
            self._workers.ask(self._waiting.popleft())

    def _take(self, done: Finished) -> None:
        outcome = done.outcome
        if isinstance(outcome, WaitInterrupted):
            return  # it counts as not asked
        if isinstance(outcome, DocpagerError):
            self._stopped = self._stopping_error(done.question, outcome)
            return
        self._keep(done, outcome)
        if outcome.answer.status == "budget":
            self._limit = self._limit or outcome.refused_by
        self._stopped = self._stopped or self._endpoint_failure()

    def _keep(self, done: Finished, outcome: RunOutcome) -> None:
        result = self._recorder.keep(done.question, outcome)
        self._asked += 1
        self._allowance.take(done.seconds)
        failed = outcome.answer.status == "model_error"
        self._errors = self._errors + 1 if failed else 0
        self._hooks.on_result(self._asked, self._total, result)

    def _stopping_error(self, question: Question, error: DocpagerError) -> DocpagerError:
        """The error that stops the batch; of several, that of the first question in the file."""
        if isinstance(error, NotRecorded):
            error = NotRecorded(f"{question.id}: {error}")
        self._failed[question.line] = (question.id, error)
        return self._failed[min(self._failed)][1]

    def _endpoint_failure(self) -> DocpagerError | None:
        refused = self._hooks.refused()
        if refused is not None:
            return ModelError(f"{refused} The batch was stopped; run it again when that is mended.")
        if self._errors >= MOST_ERRORS_IN_A_ROW:
            return ModelError(
                f"{self._errors} questions in a row failed at the model. The batch was stopped: "
                "see their errors, mend the endpoint and run it again with --retry-errors."
            )
        return None

    def _end(self) -> BatchEnd:
        not_redone = self._recorder.not_redone
        failed = {name: str(error) for name, error in self._failed.values()} | not_redone
        not_asked: dict[str, str] = {}
        interrupted = self._hooks.interrupt.count > 0
        if self._limit is not None and self._stopped is None and not interrupted:
            for question in self._waiting:
                why = self._recorder.skip(question, self._limit)
                if why is not None:
                    not_asked[question.id] = why
        stopped = self._stopped or _not_redone_error(not_redone | not_asked, self._limit)
        return BatchEnd(self._asked, interrupted, stopped, failed, not_asked)


def _not_redone_error(not_redone: Mapping[str, str], limit: Limit | None) -> DocpagerError | None:
    """The error that names the questions that were not redone and keep their old results."""
    if not not_redone:
        return None
    first, why = next(iter(not_redone.items()))
    text = (
        f"{len(not_redone)} questions were not redone and keep their old results "
        f"({some_ids([*not_redone])}). Of {first}: {why.rstrip('.')}. Mend that, and run "
        "the same command again."
    )
    return ModelError(text) if limit is None else BudgetReached(limit, text)

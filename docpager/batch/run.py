"""The verb `batch`: many questions at once, each kept as it finishes, within a budget.

    questions - results that are there -> [ launch while the budget lasts -> keep ]* -> in order

One thread launches and writes; the others ask. A question's failure is its own result; what stands
in the way of all of them (archive, quota, disk) stops the batch, and what is finished is kept.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

from docpager.batch.metrics import Metric
from docpager.batch.questions import Question
from docpager.batch.results import (
    Entry,
    Record,
    ResultsFile,
    bound_value,
    changed_parts,
    fingerprint,
    result_record,
    scored,
)
from docpager.errors import BudgetReached, DocpagerError, Limit, ModelError, UserError
from docpager.models.cache import NotRecorded
from docpager.models.throttle import WaitInterrupted
from docpager.protocols import Clock
from docpager.types import Answer, ToolMode, Usage

MOST_FAULTS_IN_A_ROW = 10
"""Questions that fail one after the other, none succeeding, before the endpoint is given up."""
_POLL_S = 0.1
_LONG_QUESTION = 1000
"""Characters below which no question is too long for any window."""


class Outcome(Protocol):
    """What came of a question."""

    @property
    def answer(self) -> Answer:
        """Its answer, also one that says that there is none."""

    @property
    def refused_by(self) -> Limit | None:
        """Which bound of the batch refused it a call."""


class Answerer(Protocol):
    """Where questions are answered, by several threads at once."""

    @property
    def settings(self) -> dict[str, object]:
        """What makes one run differ from another over the same archive."""

    @property
    def content_hash(self) -> str:
        """Of the archive."""

    def check(self, question: str) -> None:
        """Refuse a question that is too long, by a UserError."""

    def answer(self, question: str) -> Outcome:
        """Answer one question; a DocpagerError stands in the way of all of them."""


class SpendingLimit(Protocol):
    """What the batch has spent."""

    @property
    def spent(self) -> Usage:
        """By calls that were made; replayed ones cost nothing."""

    def limit_reached(self, tokens: float, cost: float) -> Limit | None:
        """Which bound leaves no room for so much more."""


class Interrupt:
    """How often someone has asked the batch to stop: once = finish what runs, twice = at once."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_: object) -> None:
        """Ask once more: a signal handler, and no more than that."""
        self.count += 1


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of the questions are asked: those without a result, and those that are named here."""

    tags: tuple[str, ...] = ()
    """Only questions that have one of these."""
    retry_errors: bool = False
    redo: bool = False


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What the whole batch may take; None is no bound."""

    max_tokens: int | None = None
    max_cost: float | None = None
    """USD."""
    seconds: float | None = None
    """When no question is launched any more."""
    question_tokens: float = 0.0
    """What a question is thought to take while none is finished."""
    question_cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Grading:
    """How a question passes, and when the batch does."""

    metric: Metric = "f1"
    pass_at: float = 0.6
    fail_under: float | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How the asking ended."""

    asked: int = 0
    left_for: Limit | None = None
    interrupted: bool = False
    stopped: DocpagerError | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    """Of questions that were asked without a new result: why, by their ids."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Of questions that were to be redone and were left for the budget: why, by their ids."""


OnResult = Callable[[int, int, Record], None]
"""Told of each result: how many are finished, of how many, and the result."""


def select(
    questions: Sequence[Question], results: ResultsFile, selection: Selection, answerer: Answerer
) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
    """The questions selected, and those of them that are to be asked; no result is touched.

    Raises:
        UserError: the results belong to other questions, or depend on what has changed since, or
            a question is too long for the model.
    """
    chosen = [question for question in questions if _has_tag(question, selection.tags)]
    _check_same_questions(questions, results)
    otherwise = _made_otherwise(chosen, results, answerer)
    if otherwise and not selection.redo:
        raise _otherwise_error(otherwise, results)
    if otherwise:
        # A redo that ended early goes on: what it redid is not paid for again.
        selection = replace(selection, redo=False, retry_errors=True)
    asked = tuple(
        question
        for question in chosen
        if question.id in otherwise
        or is_open(results.entries.get(question.id), selection, answerer.settings)
    )
    for question in asked:
        if len(question.text) > _LONG_QUESTION:
            try:
                answerer.check(question.text)
            except UserError as error:
                raise UserError(f"{question.place}: {error}") from error
    return tuple(chosen), asked


def open_questions(
    questions: Iterable[Question],
    results: ResultsFile,
    selection: Selection,
    settings: Mapping[str, object],
) -> tuple[Question, ...]:
    """Those that are to be asked: selected, and without a result that stands; `settings` say what
    one question may take."""
    return tuple(
        question
        for question in questions
        if _has_tag(question, selection.tags)
        and is_open(results.entries.get(question.id), selection, settings)
    )


def run(
    questions: Sequence[Question],
    results: ResultsFile,
    answerer: Answerer,
    *,
    budget: SpendingLimit,
    bounds: BatchLimits,
    grading: Grading,
    jobs: int,
    clock: Clock,
    interrupt: Interrupt,
    refused: Callable[[], str | None],
    on_result: OnResult,
) -> Ended:
    """Ask `questions`, `jobs` at a time in their order, and keep each result as it comes.

    `refused` says why the endpoint will refuse all further calls, if it will.
    """
    launch = _Launch(questions, results, answerer, budget, bounds, jobs, clock)
    return launch.run(grading, interrupt, refused, on_result)


class _Launch:
    """The state of one asking: what waits, what runs, what it has taken so far."""

    def __init__(
        self,
        questions: Sequence[Question],
        results: ResultsFile,
        answerer: Answerer,
        budget: SpendingLimit,
        bounds: BatchLimits,
        jobs: int,
        clock: Clock,
    ) -> None:
        self._waiting = deque(questions)
        self._total = len(questions)
        self._results = results
        self._answerer = answerer
        self._settings = answerer.settings
        self._budget = budget
        self._bounds = bounds
        self._jobs = jobs
        self._clock = clock
        self._began = clock.monotonic()
        self._running = 0
        self._finished = 0
        self._seconds = 0.0
        self._faults = 0
        self._failed: dict[int, tuple[str, DocpagerError]] = {}
        """By its line, the question and what stood in its way."""
        self._unredone: dict[str, str] = {}
        """Why the old answer of a question still counts, by its id."""
        self._inbox: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[tuple[Question, Outcome | DocpagerError, float]]
        self._outbox = queue.SimpleQueue()
        self._workers: list[threading.Thread] = []

    def run(
        self,
        grading: Grading,
        interrupt: Interrupt,
        refused: Callable[[], str | None],
        on_result: OnResult,
    ) -> Ended:
        stopped: DocpagerError | None = None
        left_for: Limit | None = None
        try:
            while interrupt.count < 2:
                if interrupt.count == 0 and stopped is None and left_for is None:
                    left_for = self._fill()
                if self._running == 0:
                    break
                try:
                    question, outcome, seconds = self._outbox.get(timeout=_POLL_S)
                except queue.Empty:
                    continue
                self._running -= 1
                if isinstance(outcome, WaitInterrupted):
                    continue  # as if it had never been asked
                if isinstance(outcome, DocpagerError):
                    stopped = self._stopped_at(question, outcome)
                    continue
                self._keep(question, outcome, seconds, grading, on_result)
                if outcome.answer.status == "budget":
                    left_for = left_for or outcome.refused_by
                stopped = stopped or self._hopeless(refused())
        finally:
            self._stop_workers(at_once=interrupt.count >= 2)
        failed = {name: str(error) for name, error in self._failed.values()} | self._unredone
        left: dict[str, str] = {}
        if left_for is not None and stopped is None and interrupt.count == 0:
            left = self._leave(left_for, grading)
        stopped = stopped or self._kept_old(self._unredone | left, left_for)
        return Ended(self._finished, left_for, interrupt.count > 0, stopped, failed, left)

    def _stopped_at(self, question: Question, error: DocpagerError) -> DocpagerError:
        """What stops the batch: of several, the same whichever question was quicker."""
        if isinstance(error, NotRecorded):
            error = NotRecorded(f"{question.id}: {error}")
        self._failed[question.line] = (question.id, error)
        return self._failed[min(self._failed)][1]

    def _fill(self) -> Limit | None:
        """Launch what has room; the bound that leaves none for the next, if there is a next.

        While something runs the verdict waits: what it takes is known when it is finished.
        """
        while self._waiting and self._running < self._jobs:
            bound = self._bound()
            if bound is not None:
                return bound if self._running == 0 else None
            if len(self._workers) <= self._running:
                self._start_worker()
            self._running += 1
            self._inbox.put(self._waiting.popleft())
        return None

    def _bound(self) -> Limit | None:
        """Which bound one more question would probably go beyond, judged by those finished.

        The first is always asked: its own calls are held to the bounds one by one.
        """
        if self._bounds.seconds is not None:
            spent = self._clock.monotonic() - self._began
            if spent + (self._seconds / self._finished if self._finished else 0.0) >= (
                self._bounds.seconds
            ):
                return "time"
        if not self._finished and not self._running:
            return self._budget.limit_reached(0.0, 0.0)
        tokens, cost = self._bounds.question_tokens, self._bounds.question_cost
        if self._finished:
            spent_so_far = self._budget.spent
            tokens = spent_so_far.total_tokens / self._finished
            cost = (spent_so_far.cost_usd or 0.0) / self._finished
        likely = self._running + 1
        return self._budget.limit_reached(likely * tokens, likely * cost)

    def _keep(
        self,
        question: Question,
        outcome: Outcome,
        seconds: float,
        grading: Grading,
        on_result: OnResult,
    ) -> None:
        answer = outcome.answer
        # An answer that the batch's budget broke off is one to be asked again with more.
        left_for = outcome.refused_by if answer.status == "budget" else None
        record = result_record(
            question,
            answer,
            self._fingerprint(question),
            left_for,
            self._own_bound(answer.stopped_by, outcome.refused_by),
        )
        record = scored(record, question, grading.metric, grading.pass_at)
        if not self._results.append(record):
            self._unredone[question.id] = answer.error or f"stopped by its {answer.stopped_by}"
        self._finished += 1
        self._seconds += seconds
        self._faults = self._faults + 1 if answer.status == "model_error" else 0
        on_result(self._finished, self._total, record)

    def _hopeless(self, refused: str | None) -> DocpagerError | None:
        if refused is not None:
            return ModelError(f"{refused} The batch was stopped; run it again when that is mended.")
        if self._faults >= MOST_FAULTS_IN_A_ROW:
            return ModelError(
                f"{self._faults} questions in a row failed at the model. The batch was stopped: "
                "see their errors, mend the endpoint and run it again with --retry-errors."
            )
        return None

    def _leave(self, bound: Limit, grading: Grading) -> dict[str, str]:
        """Say of each question that was not asked that it was left for the budget.

        A result that is there stays; returns the ids of these with why.
        """
        kept: dict[str, str] = {}
        for question in self._waiting:
            entry = self._results.entries.get(question.id)
            if entry is None:
                nothing = _no_answer(question, "", self._settings)
                left = replace(nothing, status="budget", stopped_by=bound, error=None)
                record = result_record(question, left, self._fingerprint(question), bound)
                self._results.append(scored(record, question, grading.metric, grading.pass_at))
            elif entry.rank > 1:
                kept[question.id] = f"left for the {bound} of the batch"
        return kept

    @staticmethod
    def _kept_old(unredone: Mapping[str, str], left_for: Limit | None) -> DocpagerError | None:
        """What is to be said where old answers stand for questions that were to be redone."""
        if not unredone:
            return None
        first, why = next(iter(unredone.items()))
        text = (
            f"{len(unredone)} questions were not redone and keep their old results "
            f"({_some([*unredone])}). Of {first}: {why.rstrip('.')}. Mend that, and run "
            "the same command again."
        )
        return ModelError(text) if left_for is None else BudgetReached(left_for, text)

    def _own_bound(self, stopped_by: Limit | None, refused_by: Limit | None) -> float | None:
        """The question's own bound that stopped it, if not one of the batch did."""
        if stopped_by is None or stopped_by == refused_by:
            return None
        return bound_value(stopped_by, self._settings)

    def _fingerprint(self, question: Question) -> str:
        return fingerprint(question.text, self._settings, self._answerer.content_hash)

    def _start_worker(self) -> None:
        worker = threading.Thread(target=self._work, daemon=True, name="docpager-batch")
        self._workers.append(worker)
        worker.start()

    def _work(self) -> None:
        while (question := self._inbox.get()) is not None:
            began = self._clock.monotonic()
            outcome: Outcome | DocpagerError
            try:
                outcome = self._answerer.answer(question.text)
            except DocpagerError as error:
                outcome = error
            except OSError as error:
                # A disk that is full, too many open files: every question would meet it.
                outcome = UserError(
                    f"{error.filename or 'A file'} cannot be read or written ({error.strerror}). "
                    "Mend it; what is finished is kept, and the same command goes on from there."
                )
            except Exception as error:  # noqa: BLE001  # told where it is answered for
                kind = type(error).__name__
                text = f"An internal fault, {kind}: {error}. Please report it."
                outcome = _Fault(_no_answer(question, text, self._settings))
            self._outbox.put((question, outcome, self._clock.monotonic() - began))

    def _stop_workers(self, *, at_once: bool) -> None:
        for _ in self._workers:
            self._inbox.put(None)
        if not at_once:
            for worker in self._workers:
                worker.join(timeout=_POLL_S if self._running else None)


@dataclass(frozen=True, slots=True)
class _Fault:
    """The outcome of a question at which docpager itself failed."""

    answer: Answer
    refused_by: Limit | None = None


def _no_answer(question: Question, error: str, settings: Mapping[str, object]) -> Answer:
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
        model=str(settings["model"]),
        tool_mode=cast(ToolMode, settings["tool_mode"]),
        stopped_by=None,
        elapsed_s=0.0,
        error=error,
    )


def _has_tag(question: Question, tags: Iterable[str]) -> bool:
    wanted = frozenset(tags)
    return not wanted or not wanted.isdisjoint(question.tags)


def is_open(entry: Entry | None, selection: Selection, settings: Mapping[str, object]) -> bool:
    """Whether a question with that result is asked, where it is selected."""
    if selection.redo or entry is None or entry.skipped is not None:
        return True
    if entry.has_more_room(settings):
        return True
    return entry.status == "model_error" and selection.retry_errors


def _check_same_questions(questions: Sequence[Question], results: ResultsFile) -> None:
    others = results.besides(question.id for question in questions)
    if others and len(others) == len(results.entries):
        raise UserError(
            f"{results.path} holds results of other questions ({_some(others)}), and of none that "
            "is asked. Name another file with -o, or delete it."
        )


def kept_besides(questions: Sequence[Question], results: ResultsFile) -> str | None:
    """What to tell of results whose questions are not asked any more, if there are any."""
    others = results.besides(question.id for question in questions)
    if not others:
        return None
    return (
        f"{results.path} holds {len(others)} results of questions that {questions[0].file} does "
        f"not hold any more ({_some(others)}). They stay at its end and do not count."
    )


def _made_otherwise(
    questions: Sequence[Question], results: ResultsFile, answerer: Answerer
) -> dict[str, tuple[str, ...]]:
    """By id, the answers that were made with another question, model, settings or archive: which
    of these."""
    settings = answerer.settings
    found: dict[str, tuple[str, ...]] = {}
    for question in questions:
        entry = results.entries.get(question.id)
        if entry is None or entry.rank < 2:
            continue
        now = fingerprint(question.text, settings, answerer.content_hash)
        if entry.fingerprint != now:
            found[question.id] = changed_parts(entry.fingerprint, now)
    return found


def _otherwise_error(otherwise: Mapping[str, tuple[str, ...]], results: ResultsFile) -> UserError:
    parts = sorted({part for changed in otherwise.values() for part in changed})
    return UserError(
        f"{results.path} holds {len(otherwise)} results made with another "
        f"{' and another '.join(parts)} ({_some([*otherwise])}). Ask these again with --redo, "
        "or name another file with -o."
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")

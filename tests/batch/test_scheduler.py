"""A batch without an endpoint: who is asked when, what is kept, and what ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from docpager.batch.allowance import Allowance, BatchLimits
from docpager.batch.answerer import RunOutcome
from docpager.batch.grading import Grading
from docpager.batch.questions import Question
from docpager.batch.recorder import Recorder, no_answer
from docpager.batch.result import Result
from docpager.batch.results import ResultsFile
from docpager.batch.run import MOST_FAULTS_IN_A_ROW, BatchEnd, Hooks, Interrupt, Scheduler
from docpager.batch.workers import Finished, Workers
from docpager.errors import ArchiveError, DocpagerError, Limit, ModelError, UserError
from docpager.messages import ModelInfo
from docpager.models.budget import SharedBudget
from docpager.models.cache import NotRecorded
from docpager.models.throttle import WaitInterrupted
from docpager.testing import FrozenClock
from docpager.types import Usage
from tests.batch.test_reports import answer, question

INFO = ModelInfo("loopback", "http://127.0.0.1/v1", "tools", 8192)


def outcome(text: str = "Graz", refused_by: Limit | None = None) -> RunOutcome:
    return RunOutcome(answer(text), refused_by)


def fault() -> RunOutcome:
    return RunOutcome(answer("", "model_error", error="down"))


BROKEN_OFF = RunOutcome(answer("", "budget", stopped_by="tokens"), refused_by="tokens")
"""A run that the budget of the batch refused a call."""


class Answerer:
    """Answers by what it was given for the text of a question, else with "Graz"."""

    info = INFO
    content_hash = "c"

    def __init__(self, outcomes: Mapping[str, RunOutcome | Exception] | None = None) -> None:
        self._outcomes = outcomes or {}
        self._lock = threading.Lock()
        self._running = 0
        self.settings: dict[str, object] = {"model": "loopback", "max_steps": 9}
        self.most_at_once = 0
        self.asked: list[str] = []

    def check(self, question: str) -> None:
        raise AssertionError("the scheduler asks what was checked before")

    def answer(self, question: str) -> RunOutcome:
        with self._lock:
            self.asked.append(question)
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        try:
            given = self._outcomes.get(question, outcome())
            if isinstance(given, Exception):
                raise given
            return given
        finally:
            with self._lock:
                self._running -= 1


class Spending:
    """Has spent what it is told, and allows so many tokens."""

    def __init__(self, most: float = 1e9, spent: int = 0) -> None:
        self._most = most
        self.spent = Usage(spent, 0, 0)
        self.likely: list[float] = []

    def limit_reached(self, tokens: float, cost: float) -> Limit | None:
        self.likely.append(tokens)
        return "tokens" if self.spent.total_tokens + tokens > self._most else None


def asked_in(names: str) -> list[Question]:
    return [replace(question(name, expected="Graz"), line=n) for n, name in enumerate(names, 1)]


def text_of(name: str) -> str:
    return question(name).text


def ended(
    results: ResultsFile,
    answerer: Answerer,
    questions: Sequence[Question],
    *,
    spending: Spending | None = None,
    limits: BatchLimits | None = None,
    interrupt: Interrupt | None = None,
    refused: Callable[[], str | None] = lambda: None,
    on_result: Callable[[int, int, Result], None] = lambda done, total, result: None,
    jobs: int = 1,
) -> BatchEnd:
    """How a batch over `questions` ends."""
    clock = FrozenClock()
    scheduler = Scheduler(
        questions,
        Workers(answerer, clock),
        Recorder(results, answerer, Grading()),
        Allowance(limits or BatchLimits(), spending or Spending(), clock),
        Hooks(interrupt or Interrupt(), refused, on_result),
        jobs,
    )
    return scheduler.run()


@pytest.fixture
def results(tmp_path: Path) -> Iterator[ResultsFile]:
    with ResultsFile(tmp_path / "r.jsonl") as file:
        yield file


# -- the scheduler --------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 3])
def test_all_are_asked_in_order_and_kept_as_they_come(results: ResultsFile, jobs: int) -> None:
    told: list[tuple[int, int, str]] = []
    answerer, questions = Answerer(), asked_in("abcdefgh")
    end = ended(
        results,
        answerer,
        questions,
        jobs=jobs,
        on_result=lambda done, total, result: told.append((done, total, result.id)),
    )
    assert end == BatchEnd(asked=8)
    assert sorted(answerer.asked) == [one.text for one in questions]
    assert answerer.most_at_once <= jobs
    assert [(done, total) for done, total, _ in told] == [(n, 8) for n in range(1, 9)]
    assert sorted(name for _, _, name in told) == [*"abcdefgh"]
    assert all(results.read(name).scores.passed for name in "abcdefgh")
    if jobs == 1:
        assert [name for _, _, name in told] == [*"abcdefgh"]


def test_nothing_to_ask_ends_at_once(results: ResultsFile) -> None:
    assert ended(results, Answerer(), []) == BatchEnd()


def test_what_concerns_all_questions_stops_the_batch(results: ResultsFile) -> None:
    answerer = Answerer({text_of("b"): ArchiveError("the archive is gone")})
    end = ended(results, answerer, asked_in("abc"))
    assert (end.asked, str(end.stopped)) == (1, "the archive is gone")
    assert end.failed == {"b": "the archive is gone"}
    assert [*results.entries] == ["a"]


def test_of_several_errors_that_of_the_first_question_is_named(results: ResultsFile) -> None:
    answerer = Answerer({text_of("a"): ArchiveError("one"), text_of("b"): ArchiveError("two")})
    end = ended(results, answerer, asked_in("abc"), jobs=2)
    assert (str(end.stopped), end.failed) == ("one", {"a": "one", "b": "two"})


def test_a_missing_recording_names_its_question(results: ResultsFile) -> None:
    answerer = Answerer({text_of("a"): NotRecorded("no recording")})
    assert str(ended(results, answerer, asked_in("ab")).stopped) == "a: no recording"


def test_a_wait_that_was_interrupted_leaves_no_result(results: ResultsFile) -> None:
    interrupt = Interrupt()
    answerer = Answerer({text_of("b"): WaitInterrupted()})
    end = ended(
        results,
        answerer,
        asked_in("ab"),
        interrupt=interrupt,
        jobs=2,
        on_result=lambda done, total, result: interrupt(),
    )
    assert (end.asked, end.interrupted, end.stopped, end.failed) == (1, True, None, {})
    assert [*results.entries] == ["a"]


def test_an_interrupt_lets_what_runs_finish_and_asks_nothing_more(results: ResultsFile) -> None:
    interrupt, answerer = Interrupt(), Answerer()
    end = ended(
        results,
        answerer,
        asked_in("abc"),
        interrupt=interrupt,
        on_result=lambda done, total, result: interrupt(),
    )
    assert (end.asked, end.interrupted, answerer.asked) == (1, True, [text_of("a")])


def test_faults_in_a_row_give_the_endpoint_up(results: ResultsFile) -> None:
    names = "abcdefghijkl"
    end = ended(results, Answerer({text_of(name): fault() for name in names}), asked_in(names))
    assert end.asked == MOST_FAULTS_IN_A_ROW
    assert isinstance(end.stopped, ModelError) and "--retry-errors" in str(end.stopped)


def test_an_answer_between_faults_keeps_the_endpoint(results: ResultsFile) -> None:
    names = "abcdefghijkl"
    faults = {text_of(name): fault() for name in names if name != "e"}
    end = ended(results, Answerer(faults), asked_in(names))
    assert (end.asked, end.stopped) == (12, None)


def test_an_endpoint_that_refuses_all_further_calls_stops_the_batch(results: ResultsFile) -> None:
    end = ended(results, Answerer(), asked_in("ab"), refused=lambda: "The key is revoked.")
    assert (end.asked, isinstance(end.stopped, ModelError)) == (1, True)
    assert str(end.stopped).startswith("The key is revoked.")


def test_what_does_not_fit_the_budget_is_skipped(results: ResultsFile) -> None:
    end = ended(results, Answerer(), asked_in("abc"), spending=Spending(most=90, spent=100))
    assert end == BatchEnd()  # already beyond it: not even the first is asked
    assert [results.read(name).skipped for name in "abc"] == ["tokens"] * 3
    assert {results.read(name).answer.status for name in "abc"} == {"budget"}


def test_a_run_that_the_budget_broke_off_is_the_last(results: ResultsFile) -> None:
    end = ended(results, Answerer({text_of("b"): BROKEN_OFF}), asked_in("abcd"))
    assert end.asked == 2
    assert [results.read(name).skipped for name in "abcd"] == [None, "tokens", "tokens", "tokens"]


def test_an_old_answer_stays_where_its_question_is_not_asked_again(results: ResultsFile) -> None:
    questions = asked_in("ab")
    ended(results, Answerer(), questions)
    end = ended(results, Answerer({text_of("a"): BROKEN_OFF}), questions)
    assert end.not_asked == {"b": "left for the tokens of the batch"}
    assert end.failed == {"a": "stopped by its tokens"}
    assert end.stopped is not None and end.stopped.exit_code == 5
    assert "2 questions were not redone" in str(end.stopped)
    assert [results.read(name).answer.answer for name in "ab"] == ["Graz", "Graz"]


# -- the workers ----------------------------------------------------------------------------------


def worked(error: Exception) -> RunOutcome | DocpagerError:
    """What becomes of a question at which `error` is raised."""
    workers = Workers(Answerer({text_of("a"): error}), FrozenClock())
    workers.ask(question("a"))
    done: Finished | None = None
    while done is None:
        done = workers.finished()
    assert (done.question.id, workers.running) == ("a", 0)
    workers.stop(at_once=False)
    return done.outcome


def test_a_full_disk_concerns_all_questions() -> None:
    found = worked(OSError(28, "No space left on device", "/tmp/x"))
    assert isinstance(found, UserError) and "/tmp/x cannot be read or written" in str(found)


def test_an_internal_fault_is_the_result_of_its_question() -> None:
    found = worked(ZeroDivisionError("by zero"))
    assert isinstance(found, RunOutcome)
    assert (found.answer.status, found.answer.model) == ("model_error", "loopback")
    assert found.answer.error == (
        "An internal fault, ZeroDivisionError: by zero. Please report it."
    )


# -- the recorder ---------------------------------------------------------------------------------


def test_the_value_of_the_limit_that_stopped_a_run_is_kept(results: ResultsFile) -> None:
    recorder = Recorder(results, Answerer(), Grading())
    said = answer("", "step_limit", stopped_by="steps")
    assert recorder.keep(question("a"), RunOutcome(said)).stopped_at == 9
    assert recorder.keep(question("b"), RunOutcome(said, "steps")).stopped_at is None


def test_a_model_error_does_not_replace_an_answer(results: ResultsFile) -> None:
    recorder = Recorder(results, Answerer(), Grading())
    recorder.keep(question("a"), outcome())
    recorder.keep(question("a"), fault())
    assert recorder.not_redone == {"a": "down"}
    assert results.read("a").answer.answer == "Graz"


def test_no_answer_is_a_model_error_of_the_model_that_was_asked() -> None:
    made = no_answer(question("a"), INFO, "why")
    assert (made.status, made.model, made.tool_mode, made.error) == (
        "model_error",
        "loopback",
        "tools",
        "why",
    )


# -- the allowance --------------------------------------------------------------------------------


def test_a_question_is_estimated_until_one_is_finished_and_measured_then() -> None:
    spending = Spending(spent=300)
    allowance = Allowance(BatchLimits(question_tokens=50.0), spending, FrozenClock())
    allowance.limit_of_next(running=0)
    allowance.limit_of_next(running=1)
    allowance.take(1.0)
    allowance.limit_of_next(running=0)
    allowance.take(1.0)
    allowance.limit_of_next(running=2)
    assert spending.likely == [0.0, 100.0, 300.0, 450.0]


def test_no_question_is_started_that_would_probably_end_too_late() -> None:
    clock = FrozenClock()
    allowance = Allowance(BatchLimits(seconds=10.0), SharedBudget(), clock)
    assert allowance.limit_of_next(running=0) is None
    clock.sleep(6.0)
    allowance.take(6.0)
    assert allowance.limit_of_next(running=0) == "time"

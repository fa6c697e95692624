"""The threads that ask: questions go in, outcomes come out as they finish."""

from __future__ import annotations

import queue
import threading
from typing import NamedTuple

from docpager.batch.answerer import Answerer, RunOutcome
from docpager.batch.questions import Question
from docpager.batch.recorder import no_answer
from docpager.errors import DocpagerError, UserError
from docpager.protocols import Clock

POLL_S = 0.1
"""How long `finished` waits, so that its caller can look at the interrupt in between."""


class Finished(NamedTuple):
    """A finished question."""

    question: Question
    outcome: RunOutcome | DocpagerError
    """An error would meet all other questions too."""
    seconds: float


class Workers:
    """A pool of threads that grows on demand; `running` counts the questions in it."""

    def __init__(self, answerer: Answerer, clock: Clock) -> None:
        self._answerer = answerer
        self._clock = clock
        self._inbox: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[Finished] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self.running = 0

    def ask(self, question: Question) -> None:
        """Hand the question to a thread."""
        if len(self._threads) <= self.running:
            thread = threading.Thread(target=self._work, daemon=True, name="docpager-batch")
            self._threads.append(thread)
            thread.start()
        self.running += 1
        self._inbox.put(question)

    def finished(self) -> Finished | None:
        """The next question to finish; None if none did within `POLL_S` seconds."""
        try:
            done = self._outbox.get(timeout=POLL_S)
        except queue.Empty:
            return None
        self.running -= 1
        return done

    def stop(self, *, at_once: bool) -> None:
        """End the threads; waits briefly for running questions, and with `at_once` not at all."""
        for _ in self._threads:
            self._inbox.put(None)
        if not at_once:
            for thread in self._threads:
                thread.join(timeout=POLL_S if self.running else None)

    def _work(self) -> None:
        while (question := self._inbox.get()) is not None:
            began = self._clock.monotonic()
            outcome = self._outcome(question)
            self._outbox.put(Finished(question, outcome, self._clock.monotonic() - began))

    def _outcome(self, question: Question) -> RunOutcome | DocpagerError:
        try:
            return self._answerer.answer(question.text)
        except DocpagerError as error:
            return error
        except OSError as error:
            # A disk that is full, too many open files: every question would meet it.
            return UserError(
                f"{error.filename or 'A file'} cannot be read or written ({error.strerror}). "
                "Mend it; what is finished is kept, and the same command goes on from there."
            )
        except Exception as error:  # noqa: BLE001  # it becomes the question's result
            kind = type(error).__name__
            text = f"An internal fault, {kind}: {error}. Please report it."
            return RunOutcome(no_answer(question, self._answerer.info, text))

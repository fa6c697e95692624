"""Answers questions over one store with one model; what is shared and what each question has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from docpager.batch.answerer import RunOutcome
from docpager.clocks import SystemClock, WorkClock
from docpager.config import Config
from docpager.errors import UserError
from docpager.messages import ModelInfo
from docpager.types import Citation
from docpager.wiring.chats import OpenModel
from docpager.wiring.run_models import RunModels
from docpager.wiring.stores import lock_wait, side_folder
from docpager.wiring.traces import opened_trace

if TYPE_CHECKING:
    from docpager.agent.trace import Trace
    from docpager.memory.session import Session
    from docpager.models.budget import SharedBudget
    from docpager.models.cache import CallCache
    from docpager.models.throttle import Throttle
    from docpager.protocols import Clock, Embedder
    from docpager.stores.duckdb.reader import DuckDBReader


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """What the questions of a batch share besides the archive and the model."""

    throttle: Throttle
    budget: SharedBudget


class QuestionRunner:
    """One archive and one model for many questions; several threads may ask at once.

    Each question has its own connection to the archive, its own session, token estimate and
    clock; weights, connections, cache and budget are shared, and safe for it. The archive is held
    until the end, so that all questions are answered over the same content.
    """

    def __init__(
        self,
        config: Config,
        model: OpenModel,
        embedder: Embedder,
        archive: DuckDBReader,
        cache: CallCache | None,
        shared: SharedLimits | None,
    ) -> None:
        self._config = config
        self._model = model
        self._embedder = embedder
        self._cache = cache
        self._shared = shared
        self._archive = archive
        self._opening = threading.Lock()
        self.content_hash = archive.content_hash()
        self.runs = side_folder(config) / "runs"

    @property
    def introduction(self) -> str:
        """Which model answers, in a line for people."""
        return _introduction(self._model)

    @property
    def info(self) -> ModelInfo:
        """Which model answers."""
        return self._model.info

    @property
    def settings(self) -> dict[str, object]:
        """What makes one run differ from another over the same archive."""
        return _run_settings(self._config, self._model.info, self._embedder)

    def check(self, question: str) -> None:
        """Refuse a question that is too long for the model's window; nothing is asked.

        Raises:
            UserError: it is; the message has both numbers.
        """
        from docpager.agent.ask import check_question
        from docpager.agent.trace import MemoryTrace

        clock = SystemClock()
        models = self._run_models(clock).traced(MemoryTrace())
        check_question(question, models=models, store=self._archive, clock=clock)

    def answer(
        self,
        question: str,
        watchers: Sequence[Trace] = (),
        functions: Sequence[Callable[..., str]] = (),
    ) -> RunOutcome:
        """Answer one question; `watchers` are told every event of the run.

        Raises:
            DocpagerError: whatever stands in the way before the model is asked.
        """
        from docpager.agent.ask import RunStore, ask
        from docpager.memory.session import Memory
        from docpager.models.cache import CallClock

        config = self._config
        clock = WorkClock() if self._cache is None else CallClock(self._cache.began)
        run_models = self._run_models(clock)
        with (
            self._store_for_thread() as archive,
            open_session(config, clock) as session,
            opened_trace(config.trace) as copies,
        ):
            answer = ask(
                question,
                models_for=run_models.traced,
                memory=Memory(archive, session),
                content_hash=self.content_hash,
                settings=self._settings_with(functions),
                max_steps=config.max_steps,
                clock=clock,
                runs=RunStore(
                    self.runs,
                    # A batch lets old runs go once, at its end.
                    None if self._shared else config.keep_runs,
                    (*watchers, *copies),
                ),
                functions=functions,
            )
        return RunOutcome(answer, run_models.refused_by)

    def _settings_with(self, functions: Sequence[Callable[..., str]]) -> dict[str, object]:
        """Functions of the caller's own make another run of the same question."""
        if not functions:
            return self.settings
        if self.info.tool_mode == "guided":
            raise UserError(
                "Mode guided takes fixed steps and calls no further functions. "
                "Use the tool mode tools, json or text."
            )
        return {
            **self.settings,
            "functions": [getattr(function, "__name__", "") for function in functions],
        }

    def _store_for_thread(self) -> DuckDBReader:
        with self._opening:
            return self._archive.for_thread()

    def cited_text(self, citation: Citation) -> str | None:
        """The stored page that a citation points into; of a file without pages, the passage."""
        if citation.page is not None:
            try:
                return self._archive.page(citation.document, citation.page).text
            except UserError:
                return None
        found = self._archive.passages([citation.passage_id])
        return found[0].text if found else None

    def _run_models(self, clock: Clock) -> RunModels:
        budget = self._shared.budget if self._shared else None
        return RunModels(self._config, self._model, self._embedder, clock, self._cache, budget)


@contextmanager
def open_session(config: Config, clock: Clock) -> Iterator[Session]:
    """The session that was named, held until the end; else one that ends with the run."""
    from docpager.memory.session import Session, session_path

    if config.session is None:
        yield Session(clock)
        return
    path = session_path(side_folder(config) / "sessions", config.session)
    with Session.open(path, SystemClock(), lock_wait(config)) as session:
        yield session


def _introduction(model: OpenModel) -> str:
    info = model.info
    assumed = "" if model.window_known else " (assumed; say --context-window)"
    return (
        f"Model {info.model} at {info.endpoint}, mode {info.tool_mode}, "
        f"window {info.context_window} tokens{assumed}"
    )


def _run_settings(config: Config, info: ModelInfo, embedder: Embedder) -> dict[str, object]:
    """What makes one run differ from another over the same archive."""
    return {
        "version": version("docpager"),
        "model": info.model,
        "endpoint": info.endpoint,
        "tool_mode": info.tool_mode,
        "context_window": info.context_window,
        **question_limits(config),
        "seed": config.seed,
        "session": config.session,
        "embedder": embedder.identity.name,
    }


def question_limits(config: Config) -> dict[str, object]:
    """The settings that say what one question may take."""
    return {
        "max_steps": config.max_steps,
        "max_tokens": config.max_tokens,
        "max_cost": config.max_cost,
        "timeout": config.timeout,
    }

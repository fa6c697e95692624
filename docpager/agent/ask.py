"""The verb `ask`: one question, one Answer, one trace."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docpager.agent.agent import Agent
from docpager.agent.functions import own_functions
from docpager.agent.trace import ForkedTrace, MemoryTrace, Trace, TraceFile
from docpager.errors import NothingToDo, UserError
from docpager.memory.session import Memory, Session
from docpager.protocols import ArchivalStore, Clock, Models
from docpager.types import Answer


@dataclass(frozen=True, slots=True)
class RunStore:
    """Where traces go: `folder` is shared by all processes that ask this archive."""

    folder: Path
    keep_runs: int | None
    """How many traces stay; None = all."""
    also: tuple[Trace, ...] = ()
    """Other traces that record every event."""


def ask(
    question: str,
    *,
    models_for: Callable[[Trace], Models],
    memory: Memory,
    content_hash: str,
    settings: Mapping[str, object],
    max_steps: int,
    clock: Clock,
    runs: RunStore,
    functions: Sequence[Callable[..., str]] = (),
) -> Answer:
    """Answer one question from `memory`, and leave the trace in the run store whatever happens.

    `models_for` is given the trace, which receives each model call. `settings` is what
    makes one run differ from another on the same archive; it is hashed into `run_id`.

    Raises:
        UserError: the question is empty, or too long for the window, or a function of the
            caller's own has no schema.
        NothingToDo: the archive has no passages.
    """
    question = question.strip()
    if not question:
        raise UserError("The question is empty. Say what you want to know.")
    if memory.store.passage_count == 0:
        raise NothingToDo("The archive is empty. Run `docpager ingest PATH` first.")
    own = own_functions(functions)
    run_id = run_identity(question, content_hash, settings, len(memory.session.entries))
    with TraceFile(runs.folder, run_id, runs.keep_runs) as file:
        trace = ForkedTrace(file, *runs.also)
        agent = Agent(models_for(trace), memory, max_steps, clock, trace, run_id, own)
        return agent.run(question)


def check_question(question: str, *, models: Models, store: ArchivalStore, clock: Clock) -> None:
    """Refuse a question that `ask` would refuse for its length; no model is asked.

    Raises:
        UserError: it takes more than a quarter of the usable window.
    """
    memory = Memory(store, Session(clock))
    Agent(models, memory, 1, clock, MemoryTrace(), "").check_size(question)


def run_identity(
    question: str, content_hash: str, settings: Mapping[str, object], recalled: int
) -> str:
    """A run's id: a hash of all that decides it, so that equal inputs have equal ids (I8)."""
    inputs = json.dumps([question, content_hash, dict(settings), recalled], sort_keys=True)
    return hashlib.sha256(inputs.encode("utf-8", "replace")).hexdigest()[:16]

"""Around the questions of a batch: what is loaded before, and which traces stay after."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from docpager.config import Config
from docpager.wiring.endpoints import make_counter
from docpager.wiring.given import GivenModels
from docpager.wiring.runner import QuestionRunner

Say = Callable[[str], None]
"""Told a message for whoever is watching."""


def silent(_message: str) -> None:
    """Says nothing."""


def load_ahead(config: Config, given: GivenModels) -> None:
    """Begin to load, in the background, what the first call needs a second to load."""
    from docpager.models.endpoint import load_sdk

    def load() -> None:
        # What fails here fails again, and is told, where it is needed.
        with suppress(Exception):
            if not config.replay and given.chat is None:
                load_sdk()
            make_counter(config, given.model_name(config)).count("loaded")

    # No daemon: one that is in the middle of native code at the end would take the program down.
    threading.Thread(target=load, name="docpager-loader").start()


def drop_runs(config: Config, runner: QuestionRunner, asked: int) -> None:
    """Let old traces go, but none of a batch of so many questions."""
    from docpager.agent.trace import drop_old_runs

    drop_old_runs(runner.runs, max(config.keep_runs, asked))

"""What a question needs: archive, model, embedder and cache, opened once for many."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from docpager.clocks import SystemClock
from docpager.config import Config
from docpager.errors import NothingToDo
from docpager.wiring.chats import given_model, given_name, model_name, open_model
from docpager.wiring.embedders import GivenModels
from docpager.wiring.endpoints import make_counter, required_price
from docpager.wiring.runner import QuestionRunner, SharedLimits
from docpager.wiring.stores import EMPTY, open_store

if TYPE_CHECKING:
    from docpager.models.cache import CallCache
    from docpager.stores.duckdb.reader import DuckDBReader

Say = Callable[[str], None]
"""Told a message for whoever is watching."""


def silent(_message: str) -> None:
    """Says nothing."""


@contextmanager
def open_runner(
    config: Config,
    shared: SharedLimits | None = None,
    store: DuckDBReader | None = None,
    given: GivenModels | None = None,
) -> Iterator[QuestionRunner]:
    """Store, model, embedder and cache, opened once for many questions.

    Args:
        shared: What the questions of a batch share.
        store: The store, where it is open already; it stays open.
        given: Models of the caller's own, in place of those of the settings.

    Raises:
        DocpagerError: whatever stands in the way of asking.
    """
    given = given or GivenModels()
    if config.max_cost is not None:
        option = "--question-max-cost" if shared else "--max-cost"
        name = given_name(config, given.chat) if given.chat else model_name(config)
        required_price(config, name, option)
    throttle = shared.throttle if shared else None
    with ExitStack() as opened:
        store = store or opened.enter_context(open_store(config))
        if store.passage_count == 0:
            raise NothingToDo(EMPTY)
        embedder = given.matching(config, store.embedder_identity(), throttle)
        cache = opened.enter_context(open_cache(config))
        if given.chat is None:
            model = opened.enter_context(open_model(config, cache, throttle))
        else:
            model = given_model(config, given.chat)
        yield QuestionRunner(config, model, embedder, store, cache, shared)


def load_ahead(config: Config) -> None:
    """Begin to load what the first call needs a second to load, beside the work until then."""
    from docpager.models.endpoint import load_sdk

    def load() -> None:
        # What fails here fails again, and is told, where it is needed.
        with suppress(Exception):
            if not config.replay:
                load_sdk()
            make_counter(config, model_name(config)).count("loaded")

    # No daemon: one that is in the middle of native code at the end would take the program down.
    threading.Thread(target=load, name="docpager-loader").start()


def drop_runs(config: Config, runner: QuestionRunner, asked: int) -> None:
    """Let old traces go, but none of a batch of so many questions."""
    from docpager.agent.trace import drop_old_runs

    drop_old_runs(runner.runs, max(config.keep_runs, asked))


@contextmanager
def open_cache(config: Config) -> Iterator[CallCache | None]:
    """The cache of the settings, if there is one."""
    if config.cache is None:
        yield None
        return
    from docpager.models.cache import CallCache

    with CallCache(config.cache, SystemClock(), replay=config.replay) as cache:
        yield cache

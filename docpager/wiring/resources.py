"""What the calls on one archive share: store, model, embedder and cache, each opened once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from docpager.clocks import SystemClock
from docpager.config import Config
from docpager.errors import ArchiveLocked, NothingToDo
from docpager.wiring.chats import OpenModel
from docpager.wiring.embedders import calls_endpoint
from docpager.wiring.endpoints import is_embedded, required_price
from docpager.wiring.given import GivenModels
from docpager.wiring.runner import QuestionRunner, SharedLimits
from docpager.wiring.stores import EMPTY, LOCK_WAIT_S, open_store

if TYPE_CHECKING:
    from docpager.models.cache import CallCache
    from docpager.models.throttle import Throttle
    from docpager.protocols import Embedder
    from docpager.stores.duckdb.reader import DuckDBReader


class Resources:
    """Opens each resource at first use and keeps it until `close`; safe for several threads.

    Calls take turns (`turn`), as a connection to the store is for one thread at a time. Questions
    do not: each has a connection of its own.
    """

    def __init__(self, config: Config, given: GivenModels) -> None:
        self.config = config
        self.given = given
        self._lock = threading.RLock()
        self._opened = ExitStack()
        self._store: DuckDBReader | None = None
        self._identity: tuple[int, int] | None = None
        self._embedder: Embedder | None = None
        self._cache: CallCache | None = None
        self._model: OpenModel | None = None
        self._runner: QuestionRunner | None = None
        self._answering = 0
        self._changing = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Within it no other thread uses the resources.

        Raises:
            ArchiveLocked: the archive is being changed, and a lock is not waited for so long.
        """
        # A callback of the change would wait for ever: it is waited for in turn.
        if not self._lock.acquire(timeout=LOCK_WAIT_S if self._changing else -1):
            raise self._locked("being changed", "`ingest` or `remove` has returned")
        try:
            if self._changing:
                raise self._locked("being changed", "`ingest` or `remove` has returned")
            yield
        finally:
            self._lock.release()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Within it everything is released, so that the archive can be written.

        Raises:
            ArchiveLocked: a question is being answered, or the archive is being changed already.
        """
        with self.turn():
            self.close()
            self._changing = True
            try:
                yield
            finally:
                self._changing = False

    @contextmanager
    def reading(self) -> Iterator[DuckDBReader]:
        """The store, for the calling thread alone."""
        with self.turn():
            yield self._open_store()

    def embedder(self, throttle: Throttle | None = None) -> Embedder:
        """The embedder that made the archive's vectors; one at an endpoint obeys `throttle`."""
        with self.reading() as store:
            kept = store.embedder_identity()
            own = self.given.embedder is not None
            if throttle is not None and not own and calls_endpoint(self.config, kept):
                return self.given.matching_embedder(self.config, kept, throttle)
            if self._embedder is None:
                self._embedder = self.given.matching_embedder(self.config, kept)
            return self._embedder

    @contextmanager
    def answering(self) -> Iterator[QuestionRunner]:
        """What answers single questions; nothing is released until the end.

        Raises:
            DocpagerError: the archive or the model cannot be used.
        """
        with self._in_use(self._kept_runner) as runner:
            yield runner

    @contextmanager
    def answering_batch(self, config: Config, shared: SharedLimits) -> Iterator[QuestionRunner]:
        """What answers the questions of a batch; nothing is released until the end.

        Raises:
            DocpagerError: the archive or the model cannot be used.
        """
        with (
            ExitStack() as opened,
            self._in_use(lambda: self._open_runner(opened, config, shared)) as runner,
        ):
            yield runner

    def close(self) -> None:
        """Release everything; the next call opens it again.

        Raises:
            ArchiveLocked: a question is being answered, or the archive is being changed.
        """
        with self.turn():
            if self._answering:
                raise self._locked("answering a question", "`ask` or `batch` has returned")
            self._store = self._embedder = self._cache = self._model = self._runner = None
            self._opened.close()

    @contextmanager
    def _in_use(self, open_runner: Callable[[], QuestionRunner]) -> Iterator[QuestionRunner]:
        with self.turn():
            runner = open_runner()
            self._answering += 1
        try:
            yield runner
        finally:
            with self._lock:
                self._answering -= 1

    def _locked(self, state: str, until: str) -> ArchiveLocked:
        return ArchiveLocked(
            f"The archive {self.config.archive} is {state} in this process. Wait until {until}.",
            os.getpid(),
        )

    def _kept_runner(self) -> QuestionRunner:
        self._open_store()  # where the file was replaced, the runner is of the old one
        if self._runner is None:
            self._runner = self._open_runner(self._opened, self.config, None)
        return self._runner

    def _open_store(self) -> DuckDBReader:
        """The store; opened anew where its file was replaced and nobody uses the old one."""
        found = self._file_identity()
        if self._store is not None and found != self._identity and not self._answering:
            self.close()
        if self._store is None:
            self._store = self._opened.enter_context(open_store(self.config))
            self._identity = found
        return self._store

    def _file_identity(self) -> tuple[int, int] | None:
        try:
            found = self.config.archive.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _open_runner(
        self, opened: ExitStack, config: Config, shared: SharedLimits | None
    ) -> QuestionRunner:
        if config.max_cost is not None:
            option = "--question-max-cost" if shared else "--max-cost"
            required_price(config, self.given.model_name(config), option)
        store = self._open_store()
        if store.passage_count == 0:
            raise NothingToDo(EMPTY)
        throttle = shared.throttle if shared else None
        embedder = self.embedder(throttle)
        cache = self._open_cache()
        model = self._open_model(opened, throttle)
        # Searches of this thread and questions of others would share a connection otherwise.
        own = opened.enter_context(store.for_thread())
        return QuestionRunner(config, model, embedder, own, cache, shared)

    def _open_cache(self) -> CallCache | None:
        if self.config.cache is not None and self._cache is None:
            from docpager.models.cache import CallCache

            cache = CallCache(self.config.cache, SystemClock(), replay=self.config.replay)
            self._cache = self._opened.enter_context(cache)
        return self._cache

    def _open_model(self, opened: ExitStack, throttle: Throttle | None) -> OpenModel:
        """The model; one at an endpoint is opened for each batch, as it obeys its throttle."""
        config, given = self.config, self.given
        if throttle is not None and not self._keeps_model():
            return opened.enter_context(given.open_model(config, self._cache, throttle))
        if self._model is None:
            opening = given.open_model(config, self._cache, None)
            self._model = self._opened.enter_context(opening)
        return self._model

    def _keeps_model(self) -> bool:
        return self.given.chat is not None or is_embedded(self.given.model_name(self.config))

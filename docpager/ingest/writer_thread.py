"""Between reading and writing: what comes together, and the thread that writes it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from docpager.ingest.committing import Committer, Embedding, FlushAt, Pending
from docpager.protocols import Clock

_LEAVE_S = 5.0
"""How long an ingest that was interrupted waits for the commit or the call it is in."""
_LOOK_EVERY_S = 0.1


class Batch:
    """Steps that come together until it is time to commit them."""

    def __init__(self, clock: Clock, flush_at: FlushAt) -> None:
        self._clock = clock
        self._flush_at = flush_at
        self._began = clock.monotonic()
        self._items: list[Pending] = []
        self._passages = 0
        self._characters = 0

    def add(self, item: Pending) -> None:
        """Add a step."""
        self._items.append(item)
        self._passages += len(item.chunks)
        self._characters += sum(len(chunk.text) for chunk in item.chunks)

    @property
    def is_due(self) -> bool:
        """Whether it is worth a commit."""
        waited = self._clock.monotonic() - self._began
        return self._passages >= self._flush_at.passages or waited >= self._flush_at.seconds

    @property
    def is_full(self) -> bool:
        """Whether nothing more may come before it is handed over."""
        return (
            self._passages >= self._flush_at.most_passages
            or self._characters >= self._flush_at.characters
        )

    def take(self) -> list[Pending]:
        """What has come together, and begin anew."""
        items, self._items = self._items, []
        self._passages = self._characters = 0
        self._began = self._clock.monotonic()
        return items


class WriterThread:
    """The thread that writes: a batch is committed while the next is embedded, and one waits."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._batches: queue.Queue[list[Pending] | None] = queue.Queue(maxsize=1)
        self._error: BaseException | None = None
        self._ended = threading.Event()
        # A daemon: a call to a dead endpoint must not keep an interrupted program alive.
        self._thread = threading.Thread(target=self._run, name="docpager-writer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._committer.stop()
        # Not `join`: in Python 3.11 an interrupt in it marks a thread that runs as ended.
        self._ended.wait(_LEAVE_S)

    @property
    def is_free(self) -> bool:
        """Whether a batch would not have to wait before it is taken."""
        return not self._batches.full()

    def put(self, batch: list[Pending] | None) -> None:
        """Hand a batch over, as soon as the one before it is in work.

        Raises:
            DocpagerError: what ended the thread.
        """
        while True:
            self._raise()
            try:
                return self._batches.put(batch, timeout=_LOOK_EVERY_S)
            except queue.Full:
                continue

    def finish(self) -> None:
        """Wait until all that was handed over is committed.

        Raises:
            DocpagerError: what ended the thread.
        """
        self.put(None)
        while not self._ended.wait(_LOOK_EVERY_S):
            pass
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            embedding: Embedding | None = None
            batch: Sequence[Pending] | None = ()
            while batch is not None and not self._committer.stopped:
                try:
                    batch = self._batches.get(timeout=_LOOK_EVERY_S)
                except queue.Empty:
                    batch = ()
                if batch or embedding is not None:
                    embedding = self._committer.advance(embedding, batch or ())
            if embedding is not None:  # stopped: what is whole of it is kept
                self._committer.advance(embedding, ())
        except BaseException as error:  # noqa: BLE001 - it is raised where the ingest is waited for
            self._error = error
        finally:
            self._ended.set()

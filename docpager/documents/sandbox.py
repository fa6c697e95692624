"""Untrusted files are read in worker processes, each killed and replaced at its deadline.

The workers are fresh interpreters that speak pickles over their pipes, not forks and not
`multiprocessing` children: they do not run the caller's main module again, and share nothing.
A file that kills its worker is one failed file; the others go on.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Generic, TypeVar, cast

from docpager.documents import progress
from docpager.errors import DocumentError, UserError
from docpager.files import megabytes

Item = TypeVar("Item")
Value = TypeVar("Value")

_NEVER = float("inf")

_LENGTH = struct.Struct(">Q")
_LOOK_AHEAD = 2
"""Items in work or finished, for each worker, before the caller takes the first of them."""
_LIGHT_LOOK_AHEAD = 32
"""The same for items that are light, so that a slow one does not make the other workers idle."""
LIGHT = 8 << 20
"""So much weight may be ahead of the caller, beyond the first items of each worker."""
_WATCH_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file may cost."""

    seconds: float = 300.0
    page_seconds: float = 60.0
    """For one page, where the reader tells of them (`pacing`)."""
    memory_bytes: int = 4 << 30
    """Of address space, the interpreter's own included; held on Linux only."""


class Sandbox(Generic[Item, Value]):
    """Runs a picklable function over items in worker processes; results keep the items' order."""

    def __init__(
        self,
        work: Callable[[Item], Value],
        workers: int,
        limits: Limits | None = None,
        on_recognition: Callable[[Item, int, int], None] | None = None,
    ) -> None:
        """`on_recognition` is told, from other threads, which page of how many of an item is about
        to be recognised."""
        self._setup = _Setup(work, limits or Limits())
        self._workers = max(1, workers)
        self._on_recognition = on_recognition or _silent

    def map(
        self, items: Iterable[Item], weight: Callable[[Item], int] | None = None
    ) -> Generator[Value | DocumentError, None, None]:
        """For each item what `work` returns, or the DocumentError that it ends in.

        Items are asked for a little ahead of the results that are taken, so memory stays flat.
        Closing the iterator kills what still runs.

        Args:
            weight: About how many bytes the result of an item takes; of light items more are
                worked on ahead. None where nothing is known of them.

        Raises:
            UserError: no worker process can be started.
        """
        pool: _Pool[Item, Value] = _Pool(self._setup, self._workers, self._on_recognition)
        try:
            yield from pool.run(items, weight or _unknown_weight)
        finally:
            pool.close()


def _silent(_item: object, _page: int, _pages: int) -> None:
    """Tell nobody."""


def _unknown_weight(_item: object) -> int:
    return LIGHT


@dataclass(frozen=True, slots=True)
class _Setup:
    work: Callable[..., object]
    limits: Limits


class _Pool(Generic[Item, Value]):
    """Threads that each drive one worker process; a worker is started when a thread needs it."""

    def __init__(
        self, setup: _Setup, workers: int, on_recognition: Callable[[Item, int, int], None]
    ) -> None:
        self._setup = setup
        self._on_recognition = on_recognition
        self._size = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="docpager-sandbox")
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._alive: set[_Worker] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._watchman = threading.Thread(
            target=self._watch, name="docpager-sandbox-watch", daemon=True
        )
        self._watchman.start()

    def run(
        self, items: Iterable[Item], weight: Callable[[Item], int]
    ) -> Iterator[Value | DocumentError]:
        waiting: deque[tuple[int, Future[Value | DocumentError]]] = deque()
        ahead = 0
        for item in items:
            waiting.append((weight(item), self._threads.submit(self._one, item)))
            ahead += waiting[-1][0]
            while len(waiting) >= self._size * (
                _LIGHT_LOOK_AHEAD if ahead < LIGHT else _LOOK_AHEAD
            ):
                light, future = waiting.popleft()
                ahead -= light
                yield future.result()
        for _, future in waiting:
            yield future.result()

    def close(self) -> None:
        with self._lock:
            self._closing.set()
            alive = list(self._alive)
        for worker in alive:
            worker.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._watchman.join()

    def _watch(self) -> None:
        """End the workers whose time is over, until the pool is closed."""
        while not self._closing.wait(_WATCH_EVERY_S):
            with self._lock:
                alive = list(self._alive)
            for worker in alive:
                worker.end_if_late(time.monotonic())

    def _one(self, item: Item) -> Value | DocumentError:
        worker = self._take()
        worker.start()
        reply = worker.run(item)
        if reply.reusable:
            self._idle.put(worker)
        else:
            worker.kill()
            with self._lock:
                self._alive.discard(worker)
        return cast("Value | DocumentError", reply.outcome)

    def _take(self) -> _Worker:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            worker = _Worker(self._setup, cast("Callable[..., None]", self._on_recognition))
        with self._lock:
            self._alive.add(worker)
        if self._closing.is_set():
            worker.kill()
        return worker


@dataclass(frozen=True, slots=True)
class _Reply:
    outcome: object
    """What the work returned, or a DocumentError."""
    reusable: bool
    """Whether the worker can take another item."""


@dataclass(frozen=True, slots=True)
class _OnPage:
    """What a worker says before its reply, as often as it likes (`progress.Listener`)."""

    number: int | None
    recognised_of: int = 0
    """How many pages the file has, where the page is about to be recognised."""


class _Worker:
    """One worker process, from this side of its pipes."""

    def __init__(self, setup: _Setup, on_recognition: Callable[..., None]) -> None:
        self._on_recognition = on_recognition
        boot = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            "from docpager.documents.sandbox import serve; serve()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", boot],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._to = cast("IO[bytes]", self._process.stdin)
        self._from = cast("IO[bytes]", self._process.stdout)
        self._limits = setup.limits
        self._setup = pickle.dumps(setup)
        self._ready = False
        self._late: DocumentError | None = None
        self._deadlines = threading.Lock()
        """Held while they are set and looked at, so that no item is killed for the one before."""
        self._file_until = self._page_until = _NEVER
        self._page = 0

    def start(self) -> None:
        """Wait until the process takes items, which no item's deadline has to pay for.

        Raises:
            UserError: it does not come up.
        """
        if self._ready:
            return
        try:
            _send(self._to, self._setup)
            _receive(self._from)
        except (OSError, EOFError) as error:
            raise UserError(
                "A worker process cannot be started to read documents in. "
                "Check that memory is free and that processes may be started."
            ) from error
        self._ready = True

    def run(self, item: object) -> _Reply:
        """Have one item worked on, for as long as the limits allow."""
        self._allow(time.monotonic() + self._limits.seconds, _NEVER)
        try:
            outcome = self._exchange(item)
        except (OSError, EOFError):
            self._process.kill()
            status = self._process.wait()
            return _Reply(self._late or _died(status, self._limits), reusable=False)
        self._allow(_NEVER, _NEVER)
        # It may have been late by the blink of an eye, after it had answered.
        return outcome if self._late is None else _Reply(outcome.outcome, reusable=False)

    def _allow(self, file_until: float, page_until: float) -> None:
        with self._deadlines:
            self._file_until, self._page_until = file_until, page_until

    def end_if_late(self, now: float) -> None:
        """Kill the process if the item it works on has had its time by now."""
        with self._deadlines:
            if now >= self._file_until:
                self._late = _timed_out("the file", self._limits.seconds)
            elif now >= self._page_until:
                self._late = _timed_out(f"page {self._page}", self._limits.page_seconds)
            else:
                return
            self._process.kill()

    def kill(self) -> None:
        """End the process and take its remains away; doing it twice does no harm."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._to, self._from):
            with contextlib.suppress(OSError):  # what a dead worker did not read is not missed
                pipe.close()

    def _exchange(self, item: object) -> _Reply:
        _send(self._to, pickle.dumps(item))
        while True:
            reply = pickle.loads(_receive(self._from))
            if isinstance(reply, _Reply):
                return reply
            if not isinstance(reply, _OnPage):
                raise EOFError("a worker answered nonsense")
            self._page = reply.number or 0
            left = _NEVER if reply.number is None else self._limits.page_seconds
            more = self._limits.page_seconds if reply.recognised_of else 0.0
            self._allow(self._file_until + more, time.monotonic() + left)
            if reply.recognised_of:
                self._on_recognition(item, self._page, reply.recognised_of)


def _timed_out(what: str, seconds: float) -> DocumentError:
    return DocumentError(
        "timed_out",
        f"Reading {what} took more than {seconds:g} s and was given up. Allow more with "
        "--file-timeout and --page-timeout, or save it anew in another program.",
    )


def _out_of_memory(limits: Limits) -> DocumentError:
    return DocumentError(
        "out_of_memory",
        f"Reading the file needs more than {megabytes(limits.memory_bytes)} of memory. "
        "Allow more with --worker-memory, split it, or save it anew in another program.",
    )


def _died(status: int, limits: Limits) -> DocumentError:
    # Native code answers a refused allocation with abort, the kernel's last resort is a kill.
    if -status in {signal.SIGABRT, getattr(signal, "SIGKILL", signal.SIGABRT)}:
        return _out_of_memory(limits)
    return DocumentError(
        "damaged",
        f"The file crashed its reader (status {status}). "
        "Get it anew, or save it anew in another program.",
    )


def serve() -> None:
    """Be a worker: take a setup, then items, from standard input, and answer on standard output.

    It ends with its parent: the pipe closes, even when the parent was killed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What a library prints must not get between the answers.
    with open(os.devnull, "r+b") as nowhere:  # noqa: PTH123 - a descriptor is what is needed
        os.dup2(nowhere.fileno(), 0)
        os.dup2(nowhere.fileno(), 1)
    frames: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(source, frames), daemon=True).start()
    setup: _Setup = pickle.loads(frames.get())
    _limit_memory(setup.limits.memory_bytes)
    progress.listen(lambda number, pages: _send(sink, pickle.dumps(_OnPage(number, pages))))
    _send(sink, b"ready")
    while True:
        item = pickle.loads(frames.get())
        reply = _work(setup, item)
        _send(sink, pickle.dumps(reply))


def _listen(source: IO[bytes], frames: queue.SimpleQueue[bytes]) -> None:
    """Pass frames on; leave the process at once when there will be no more."""
    try:
        while True:
            frames.put(_receive(source))
    except (OSError, EOFError):
        os._exit(0)


def _work(setup: _Setup, item: object) -> _Reply:
    try:
        return _Reply(setup.work(item), reusable=True)
    except DocumentError as error:
        return _Reply(error, reusable=True)
    except MemoryError:
        return _Reply(_out_of_memory(setup.limits), reusable=False)
    except Exception as error:  # noqa: BLE001 - one file's surprise must not cost the others
        return _Reply(not_understood(error), reusable=True)


def not_understood(error: Exception) -> DocumentError:
    """A file on which its reader failed in a way that nobody foresaw."""
    return DocumentError(
        "damaged",
        f"The file could not be understood ({type(error).__name__}: {error}). "
        "Get it anew, or save it anew in another program.",
    )


def _limit_memory(memory_bytes: int) -> None:
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _send(pipe: IO[bytes], frame: bytes) -> None:
    pipe.write(_LENGTH.pack(len(frame)))
    pipe.write(frame)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    """The next frame.

    Raises:
        EOFError: the other side is gone.
    """
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    frame = pipe.read(length)
    if len(frame) < length:
        raise EOFError
    return frame

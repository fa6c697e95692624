"""The cache of model calls: one JSON object a line, appended, safe for several writers.

The first line says what the file is and when it began; each other one holds a call's key, a hash
of the model and all that was sent, and what came back. Prompts and keys of endpoints are never in
it. A line torn by a kill is passed over, and the call is made again.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import numpy as np

from docpager.errors import UserError
from docpager.messages import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    Message,
    ToolCall,
    ToolResult,
    UserMessage,
)
from docpager.protocols import Chat, Clock, Embedder, Vectors
from docpager.types import EmbedderIdentity, JSONValue, ToolMode, Usage
from docpager.unicode import shortened

try:
    import fcntl
except ImportError:  # Windows has no advisory locks: there one writer at a time is safe
    fcntl = None  # type: ignore[assignment]

Record = dict[str, JSONValue]
_FORMAT = 1
_LINE = re.compile(rb'\{"key": "([0-9a-f]{64})".*\}\r?\Z')
_EXCERPT = 120


class NotRecorded(UserError):
    """A call is to be replayed that the cache does not hold."""


class CallCache:
    """A file of calls, shared by all threads of this process and by other processes.

    Args:
        path: Made if it is not there.
        clock: Says when a new file begins.
        replay: Read only: what is missing is an error.
    """

    def __init__(self, path: Path, clock: Clock, *, replay: bool = False) -> None:
        self.replay = replay
        self._path = path
        self._lock = threading.Lock()
        self._places: dict[str, tuple[int, int]] = {}
        self._read_to = 0
        flags = os.O_RDONLY if replay else os.O_RDWR | os.O_CREAT | os.O_APPEND
        try:
            self._file = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)
        except OSError as error:
            raise UserError(
                f"The cache {path} cannot be opened ({error.strerror}). Name another with --cache."
            ) from error
        try:
            self.began = self._begin(clock)
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> CallCache:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def __len__(self) -> int:
        with self._lock:
            return len(self._places)

    def get(self, key: str) -> Record | None:
        """What came back of the call, also where another process has made it meanwhile."""
        with self._lock:
            place = self._places.get(key)
            if place is None:
                self._catch_up()
                place = self._places.get(key)
        if place is None:
            return None
        try:
            record: Record = json.loads(os.pread(self._file, place[1], place[0]))
        except ValueError:
            # Torn where a bracket happens to stand: the call is made anew, and its line counts.
            with self._lock:
                self._places.pop(key, None)
            return None
        return record

    def put(self, key: str, record: Record) -> None:
        """Keep what came back; the line is handed to the system before this returns.

        Raises:
            UserError: the disk is full, or the file cannot be written any more.
        """
        line = json.dumps({"key": key, **record}, ensure_ascii=True) + "\n"
        with self._lock, self._exclusively():
            self._catch_up()
            if key not in self._places:
                self._append(line.encode("ascii"))
                self._catch_up()

    def missing(self, what: str) -> NotRecorded:
        """The error of a replay that asks for `what`, which is not there."""
        return NotRecorded(
            f"{self._path.name} holds no {what}. Documents, prompts or settings have changed "
            "since it was recorded; record it anew without --replay."
        )

    def _begin(self, clock: Clock) -> datetime:
        """Write the first line of a new file, or read that of an old one."""
        with self._exclusively():
            if os.fstat(self._file).st_size == 0 and not self.replay:
                at = clock.now().astimezone(UTC).isoformat(timespec="seconds")
                self._append(json.dumps({"docpager_cache": _FORMAT, "began": at}).encode() + b"\n")
        first = os.pread(self._file, 200, 0).partition(b"\n")[0]
        try:
            header = json.loads(first)
            if header["docpager_cache"] != _FORMAT:
                raise UserError(
                    f"{self._path} is a cache of another docpager. Name another with --cache."
                )
            began = datetime.fromisoformat(header["began"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{self._path} is no cache of model calls. Name another file with --cache."
            ) from error
        self._read_to = len(first) + 1
        return began

    def _catch_up(self) -> None:
        """Note the places of the whole lines that were appended since."""
        size = os.fstat(self._file).st_size
        while self._read_to < size:
            block = os.pread(self._file, min(size - self._read_to, 1 << 24), self._read_to)
            whole = block.rfind(b"\n") + 1
            if not whole:
                if len(block) < size - self._read_to:
                    raise UserError(f"{self._path} holds a line of 16 MB. It is no cache of calls.")
                return
            at = self._read_to
            for line in block[:whole].split(b"\n")[:-1]:
                found = _LINE.match(line)
                if found is not None:
                    # The last counts: one before it may be torn.
                    self._places[found[1].decode()] = (at, len(line))
                at += len(line) + 1
            self._read_to += whole

    def _append(self, line: bytes) -> None:
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            line = b"\n" + line  # what a kill tore stays a line of its own, which nobody reads
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            raise UserError(
                f"The cache {self._path} cannot be written ({error.strerror}). Make room, and run "
                "the same command again."
            ) from error

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        if fcntl is None or self.replay:
            yield
            return
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


class CallClock:
    """The time of a run whose calls are cached: it moves by what they took when they were made.

    So a replayed run has the times, and meets the bounds, of the one that was recorded.
    """

    def __init__(self, began: datetime) -> None:
        self._began = began
        self._elapsed = 0.0

    def now(self) -> datetime:
        """When the cache began, and so much later as the calls took."""
        return self._began + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Seconds that the calls took."""
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        """Be that much later at once."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """A call took so long."""
        self._elapsed = round(self._elapsed + seconds, 3)


class CachedChat:
    """A `Chat` around the one on the wire, which is called only for what the cache does not hold.

    Args:
        model: Part of each key, as is `seed`.
        clock: Moved by each call, made or replayed.
        stopwatch: Measures a call, in seconds without those that were waited.
        on_replay: Told of a call that was not made.
    """

    def __init__(
        self,
        inner: Chat,
        cache: CallCache,
        *,
        model: str,
        seed: int | None,
        clock: CallClock,
        stopwatch: Callable[[], float],
        on_replay: Callable[[ChatRequest, Usage], None],
    ) -> None:
        self._inner = inner
        self._cache = cache
        self._model = model
        self._seed = seed
        self._clock = clock
        self._stopwatch = stopwatch
        self._on_replay = on_replay
        self._calls = 0

    @property
    def tool_mode(self) -> ToolMode:
        """That of the chat inside."""
        return self._inner.tool_mode

    def prompt_tokens(self, request: ChatRequest) -> int:
        """As the chat inside counts."""
        return self._inner.prompt_tokens(request)

    def complete(self, request: ChatRequest) -> ChatReply:
        """The reply that is kept, else that of the chat inside, which is kept.

        Raises:
            NotRecorded: it is not kept, and only replaying is allowed.
            ModelError: as the chat inside; failures are not kept.
        """
        self._calls += 1
        key = chat_key(request, self._model, self._seed)
        record = self._cache.get(key)
        if record is not None:
            reply, seconds = _reply_of(record)
            self._on_replay(request, reply.usage)
        elif self._cache.replay:
            raise self._cache.missing(f"reply to call {self._calls} of {_description_of(request)}")
        else:
            began = self._stopwatch()
            reply = self._inner.complete(request)
            seconds = round(max(0.0, self._stopwatch() - began), 3)
            record = _record_of(reply, seconds)
            self._cache.put(key, record)
            # What JSON cannot hold must not make the first run differ from the next.
            reply, _ = _reply_of(json.loads(json.dumps(record)))
        self._clock.advance(seconds)
        return reply


class CachedEmbedder:
    """An `Embedder` around a remote one, which is called only for texts that are not kept."""

    def __init__(self, inner: Embedder, cache: CallCache) -> None:
        self._inner = inner
        self._cache = cache

    @property
    def identity(self) -> EmbedderIdentity:
        """That of the embedder inside."""
        return self._inner.identity

    @property
    def batch_size(self) -> int:
        """That of the embedder inside."""
        return self._inner.batch_size

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors in order, shape (len(texts), dimension).

        Raises:
            NotRecorded: one is not kept, and only replaying is allowed.
        """
        identity = self._inner.identity
        keys = [_hash(["embedding", identity.name, text]) for text in texts]
        records = {key: self._cache.get(key) for key in dict.fromkeys(keys)}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if not records[key]}
        if missing and self._cache.replay:
            raise self._cache.missing(f"vector of {_excerpt(next(iter(missing.values())))!r}")
        made = self._inner.embed(list(missing.values())) if missing else ()
        for key, vector in zip(missing, made, strict=True):
            packed = base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()
            record: Record = {"kind": "embedding", "vector": packed}
            self._cache.put(key, record)
            records[key] = record
        rows = np.zeros((len(texts), identity.dimension), dtype=np.float32)
        for row, key in zip(rows, keys, strict=True):
            kept = records[key] or {}
            row[:] = np.frombuffer(base64.b64decode(str(kept["vector"])), dtype="<f4")
        return rows


def cached_mode(
    cache: CallCache, model: str, settle: Callable[[], Literal["tools", "json", "text"]]
) -> ToolMode:
    """The tool mode that was settled for `model`; else what `settle` finds, which is kept.

    Raises:
        NotRecorded: it is not kept, and only replaying is allowed.
    """
    key = _hash(["mode", model])
    record = cache.get(key)
    if record is None:
        if cache.replay:
            raise cache.missing(f"reply that settles the tool mode of {model}")
        record = {"kind": "mode", "tool_mode": settle()}
        cache.put(key, record)
    match record.get("tool_mode"):
        case "tools" | "json" | "text" as mode:
            return mode
        case _:
            raise _unreadable("tool mode")


def chat_key(request: ChatRequest, model: str, seed: int | None) -> str:
    """The hash of the model and of all that decides its reply."""
    messages = [_keyed(message) for message in request.messages]
    functions = [asdict(spec) for spec in request.functions]
    settings = [model, seed, request.max_tokens, list(request.stop)]
    return _hash(["chat", settings, messages, functions, request.response_schema])


def _keyed(message: Message) -> dict[str, object]:
    """What a key depends on of a message, in the form that caches have had from the first."""
    if isinstance(message, ToolResult):
        # Of a result, its text alone: what the model sees.
        fields = {name: getattr(message, name) for name in ("call_id", "name", "text", "role")}
        return fields | {"failed": message.failed}
    fields = asdict(message)
    # Why a message was sent is nothing that the model sees.
    fields.pop("kind", None)
    return fields


def _description_of(request: ChatRequest) -> str:
    """What the call is about: its question, and the result that came last.

    What the system adds at the end of every call (the working context, a warning) is left out.
    """
    said = request.messages[-1].text
    result = ""
    for message in request.messages:
        if isinstance(message, UserMessage) and message.kind == "question":
            said, result = message.text, ""
        elif isinstance(message, ToolResult):
            result = f", after {message.name} gave {_excerpt(message.text)!r}"
    return f"{_excerpt(said)!r}{result}"


def _excerpt(text: str) -> str:
    return shortened(" ".join(text.split()), _EXCERPT)


def _hash(value: object) -> str:
    # subtle: escaped to ASCII, so that a lone surrogate has a hash too.
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()


def _record_of(reply: ChatReply, seconds: float) -> Record:
    usage = reply.usage
    record: Record = {
        "kind": "chat",
        "elapsed_s": seconds,
        "text": reply.message.text,
        "calls": [[call.call_id, call.name, call.arguments] for call in reply.message.calls],
        "usage": [usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens],
        "finish_reason": reply.finish_reason,
        "problem": reply.problem,
    }
    # Most calls have none of these: the file is kept small.
    return {name: value for name, value in record.items() if value not in ([], None)}


def _reply_of(record: Record) -> tuple[ChatReply, float]:
    match record:
        case {
            "text": str(text),
            "usage": [int(prompt), int(cached), int(completion)],
            "finish_reason": "stop" | "length" | "calls" as finish_reason,
            "elapsed_s": int() | float() as seconds,
        }:
            problem = record.get("problem")
            reply = ChatReply(
                AssistantMessage(text, _calls_of(record.get("calls", []))),
                Usage(prompt, cached, completion),
                finish_reason,
                problem if isinstance(problem, str) else None,
            )
            return reply, seconds
        case _:
            raise _unreadable("reply")


def _calls_of(written: JSONValue) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    for item in written if isinstance(written, list) else [written]:
        match item:
            case [str(call_id), str(name), str(arguments)]:
                calls.append(ToolCall(call_id, name, arguments))
            case _:
                raise _unreadable("call")
    return tuple(calls)


def _unreadable(what: str) -> UserError:
    return UserError(
        f"The cache holds a {what} that this docpager cannot read. Name another with --cache."
    )

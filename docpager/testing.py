"""Doubles for tests of docpager, and of programs that use it: no network, no model, no real time.

Script a model by its replies and look at what it was sent:

    chat = ScriptedChat([call("archival_memory_search", query="Gauss", page=0), say("Done.")])

or put the same replies behind HTTP, to test the real client in any tool mode:

    with LoopbackServer([wire_reply(call("send_message", message="42", citations=[]))] * 2) as it:
        ...  # it.base_url is an OpenAI-compatible endpoint on 127.0.0.1

An answer without a verified citation is sent back once, hence two replies. docs/testing.md has a
whole test.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, TypeAlias

import numpy as np

from docpager.messages import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    Message,
    ToolCall,
)
from docpager.protocols import TokenCounter, Vectors
from docpager.stores.in_memory import InMemoryStore
from docpager.types import PROBE_TEXT, EmbedderIdentity, JSONValue, ToolMode, Usage

__all__ = [
    "CharacterCounter",
    "FrozenClock",
    "HashEmbedder",
    "InMemoryStore",
    "LoopbackReply",
    "LoopbackRequest",
    "LoopbackServer",
    "ScriptedChat",
    "call",
    "hash_embeddings",
    "say",
    "several",
    "wire_reply",
]


# ---- replies ---------------------------------------------------------------------------------


def call(function: str, /, *, thought: str = "", **arguments: JSONValue) -> AssistantMessage:
    """A reply that calls one function: `call("archival_memory_search", query="x", page=0)`."""
    return AssistantMessage(
        thought, (ToolCall("call", function, json.dumps(arguments, ensure_ascii=False)),)
    )


def several(*replies: AssistantMessage) -> AssistantMessage:
    """One reply with the calls of all of `replies`, in order."""
    calls = [item for reply in replies for item in reply.calls]
    text = "\n".join(reply.text for reply in replies if reply.text)
    return AssistantMessage(
        text, tuple(replace(item, call_id=f"call_{at}") for at, item in enumerate(calls))
    )


def say(text: str) -> AssistantMessage:
    """A reply of plain text, without a call."""
    return AssistantMessage(text)


# ---- small deterministic parts ---------------------------------------------------------------


class FrozenClock:
    """A clock that moves only when told to, or when someone sleeps; `slept` lists the sleeps."""

    def __init__(self, start: datetime = datetime(2024, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        """The frozen time, in UTC."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        """Note the sleep and be that much later at once."""
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._elapsed += seconds


@dataclass(frozen=True, slots=True)
class CharacterCounter:
    """A `TokenCounter` in which every `characters` characters are a token."""

    characters: int = 4

    def count(self, text: str) -> int:
        """Tokens in `text`, a started one included."""
        return math.ceil(len(text) / self.characters)

    def cut(self, text: str, limit: int) -> str:
        """The longest prefix of at most `limit` tokens."""
        return text[: max(limit, 0) * self.characters]


class HashEmbedder:
    """An embedder in which texts are near each other as far as they share words.

    Each word has a direction that is drawn from its hash; a text is their normalised sum.
    """

    batch_size = 64

    def __init__(self, dimension: int = 32, name: str = "hash") -> None:
        self._dimension = dimension
        self._name = name

    @property
    def identity(self) -> EmbedderIdentity:
        """Name, dimension and probe."""
        probe = self.embed([PROBE_TEXT])[0]
        return EmbedderIdentity(
            self._name, self._dimension, normalised=True, probe=tuple(map(float, probe))
        )

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dimension)."""
        rows = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()) or [""]:
                row += _direction(word, self._dimension)
            row /= np.linalg.norm(row)
        return rows


@lru_cache(maxsize=4096)
def _direction(word: str, dimension: int) -> Vectors:
    seed = hashlib.sha256(word.encode("utf-8", errors="replace")).digest()
    drawn = np.random.default_rng(list(seed)).standard_normal(dimension)
    return drawn.astype(np.float32)


# ---- a model by protocol ---------------------------------------------------------------------

Scripted: TypeAlias = AssistantMessage | ChatReply | Exception
"""What one model call comes back with; an exception is raised."""
Step: TypeAlias = Scripted | Callable[[ChatRequest], Scripted]


class ScriptedChat:
    """A `Chat` that gives the replies it was handed, in order, and records every request.

    Call ids are given by it (`call_0_0`, the first call of the first reply), so a reply may be
    used twice. Without replies left it fails the test with an `AssertionError`.
    """

    def __init__(
        self,
        replies: Iterable[Step] | Callable[[ChatRequest], Scripted],
        *,
        tool_mode: ToolMode = "tools",
        counter: TokenCounter | None = None,
    ) -> None:
        """Take `replies` in order, or ask one callable for the reply to each request."""
        self._replies: Iterator[Step] = (
            iter(lambda: replies, None) if callable(replies) else iter(replies)
        )
        self._tool_mode = tool_mode
        self._counter = counter or CharacterCounter()
        self.requests: list[ChatRequest] = []

    @property
    def tool_mode(self) -> ToolMode:
        """As given."""
        return self._tool_mode

    def prompt_tokens(self, request: ChatRequest) -> int:
        """Tokens of all texts, calls and schemas, and four a message."""
        schemas: list[object] = [
            [spec.name, spec.description, spec.parameters] for spec in request.functions
        ]
        if request.response_schema is not None:
            schemas.append(request.response_schema)
        texts = [_text_of(message) for message in request.messages]
        return sum(self._counter.count(text) + 4 for text in texts) + sum(
            self._counter.count(json.dumps(schema)) for schema in schemas
        )

    def complete(self, request: ChatRequest) -> ChatReply:
        """The next scripted reply."""
        number = len(self.requests)
        self.requests.append(request)
        step = next(self._replies, None)
        if step is None:
            raise AssertionError(f"ScriptedChat has no reply left for request {number + 1}.")
        scripted = step(request) if callable(step) else step
        if isinstance(scripted, Exception):
            raise scripted
        if isinstance(scripted, ChatReply):
            return replace(scripted, message=_numbered(scripted.message, number))
        return self._reply(_numbered(scripted, number), request)

    def _reply(self, message: AssistantMessage, request: ChatRequest) -> ChatReply:
        usage = Usage(
            prompt_tokens=self.prompt_tokens(request),
            completion_tokens=self._counter.count(_text_of(message)),
        )
        return ChatReply(message, usage, "calls" if message.calls else "stop")


def _numbered(message: AssistantMessage, number: int) -> AssistantMessage:
    calls = [
        replace(item, call_id=f"call_{number}_{index}") for index, item in enumerate(message.calls)
    ]
    return replace(message, calls=tuple(calls))


def _text_of(message: Message) -> str:
    if isinstance(message, AssistantMessage):
        return message.text + "".join(item.name + item.arguments for item in message.calls)
    return message.text


# ---- a model behind HTTP ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoopbackRequest:
    """One request as it came over the wire."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LoopbackReply:
    """What the server answers: JSON (or raw text), a status, and how it misbehaves."""

    body: JSONValue
    """Sent as JSON; a `str` is sent as it is, so that it may be no JSON at all."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    """Real seconds from the arrival of the request to the answer."""
    cut: bool = False
    """Send half of the body, then close the connection."""


Answerer: TypeAlias = (
    Iterable[LoopbackReply | Callable[[LoopbackRequest], LoopbackReply]]
    | Callable[[LoopbackRequest], LoopbackReply]
)


class LoopbackServer:
    """An OpenAI-compatible server on 127.0.0.1 that answers from a script, and records.

    It knows `/v1/chat/completions`, `/v1/embeddings` and `/v1/models`. A script is one callable
    for all requests, or replies in order; without any left it answers 400 and says so, which no
    client tries again.
    """

    def __init__(
        self,
        chat: Answerer = (),
        *,
        embeddings: Answerer | None = None,
        models: Sequence[str] = ("loopback",),
    ) -> None:
        """Answer chats by `chat`, embeddings by `embeddings` (default: a `HashEmbedder`)."""
        self._models = tuple(models)
        self._scripts = {
            "/v1/chat/completions": _script(chat),
            "/v1/embeddings": _script(embeddings if embeddings is not None else hash_embeddings),
            "/v1/models": _script(self._list_models),
        }
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.requests: list[LoopbackRequest] = []

    @property
    def base_url(self) -> str:
        """Where it listens, such as `http://127.0.0.1:40123/v1`."""
        if self._server is None:
            raise RuntimeError("The loopback server does not run. Enter it with `with` first.")
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> LoopbackServer:
        self._closing.clear()
        self._server = _Listener(("127.0.0.1", 0), _handler_for(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closing.set()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def bodies(self, path: str = "/v1/chat/completions") -> list[dict[str, Any]]:
        """The JSON bodies of the requests to `path`, in order of arrival."""
        return [request.body for request in self.requests if request.path == path]

    def answer(self, request: LoopbackRequest) -> LoopbackReply:
        """Record `request` and take the script's reply to it."""
        with self._lock:
            self.requests.append(request)
            script = self._scripts.get(request.path)
            if script is None:
                return _error_reply(404, f"No such path: {request.path}")
            step = next(script, None)
        if step is None:
            return _error_reply(400, "The script has no reply left.")
        return step(request) if callable(step) else step

    def wait(self, seconds: float) -> None:
        """Wait that long, or until the server is left."""
        self._closing.wait(max(0.0, seconds))

    def _list_models(self, _request: LoopbackRequest) -> LoopbackReply:
        listed: list[JSONValue] = [{"id": name, "object": "model"} for name in self._models]
        return LoopbackReply({"object": "list", "data": listed})


def hash_embeddings(request: LoopbackRequest) -> LoopbackReply:
    """Answers `/v1/embeddings` with the vectors of a `HashEmbedder`."""
    given = request.body.get("input", [])
    texts: list[str] = [given] if isinstance(given, str) else list(given)
    rows = HashEmbedder().embed(texts)
    data: list[JSONValue] = [
        {"object": "embedding", "index": index, "embedding": [float(value) for value in row]}
        for index, row in enumerate(rows)
    ]
    tokens = sum(len(text.split()) for text in texts)
    return LoopbackReply(
        {
            "object": "list",
            "model": str(request.body.get("model")),
            "data": data,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


def wire_reply(
    message: AssistantMessage,
    mode: Literal["tools", "json", "text"] = "tools",
    *,
    usage: Usage | None = None,
    finish_reason: str | None = None,
) -> LoopbackReply:
    """A chat completion that says `message` the way a model in `mode` does.

    In `json` and `text` mode a call is one JSON object in the text, in `text` mode with some
    prose and a fence around it. Without `usage` no counts are sent, as some servers do.
    """
    native = mode == "tools"
    wired: dict[str, JSONValue] = {"role": "assistant", "content": message.text or None}
    if message.calls and native:
        wired["tool_calls"] = [
            {
                "id": item.call_id,
                "type": "function",
                "function": {"name": item.name, "arguments": item.arguments},
            }
            for item in message.calls
        ]
    elif message.calls:
        written = _written_call(message)
        wired["content"] = written if mode == "json" else f"Next:\n```json\n{written}\n```\n"
    reason = finish_reason or ("tool_calls" if message.calls and native else "stop")
    body: dict[str, JSONValue] = {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 0,
        "model": "loopback",
        "choices": [{"index": 0, "message": wired, "finish_reason": reason}],
    }
    if usage is not None:
        body["usage"] = {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        }
    return LoopbackReply(body)


def _written_call(message: AssistantMessage) -> str:
    first = message.calls[0]
    return json.dumps(
        {
            "thought": message.text,
            "function": first.name,
            "arguments": json.loads(first.arguments),
        },
        ensure_ascii=False,
    )


def _script(
    answerer: Answerer,
) -> Iterator[LoopbackReply | Callable[[LoopbackRequest], LoopbackReply]]:
    return iter(lambda: answerer, None) if callable(answerer) else iter(answerer)


def _error_reply(status: int, message: str) -> LoopbackReply:
    return LoopbackReply({"error": {"message": message, "type": "invalid_request_error"}}, status)


class _Listener(ThreadingHTTPServer):
    # With the default of 5, some of many clients that connect at once wait for a second.
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that are killed are no error of the server's."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler_for(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # As the servers it stands for: connections are kept, and nothing waits to be sent.
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            content = self.rfile.read(length)
            if len(content) < length:
                self.close_connection = True  # its client was killed: nobody asks
            else:
                self._answer(content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing is logged: what was asked is in `requests`."""

        def _answer(self, content: bytes) -> None:
            arrived = time.monotonic()
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = json.loads(content) if content else {}
            reply = server.answer(LoopbackRequest(self.path, headers, body))
            if reply.delay_s:
                server.wait(reply.delay_s - (time.monotonic() - arrived))
            try:
                self._send(reply)
            except ConnectionError:
                # The client did not wait: what it was sent is recorded all the same.
                self.close_connection = True

        def _send(self, reply: LoopbackReply) -> None:
            text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
            content = text.encode("utf-8")
            self.send_response(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if reply.cut else content)
            self.close_connection = self.close_connection or reply.cut

    return Handler

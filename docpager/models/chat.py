"""`OpenAIChat`: the only place that knows how a conversation looks on the wire."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, assert_never

from docpager.messages import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    FunctionSpec,
    Message,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from docpager.models.endpoint import Endpoint, OnWait, TimeLeft
from docpager.models.failures import RefusedRequest
from docpager.models.replies import UnusableReply, field
from docpager.protocols import TokenCounter
from docpager.types import JSONValue, ToolMode, Usage
from docpager.unicode import repaired

_MESSAGE_OVERHEAD = 4
"""Tokens of a message's role and delimiters."""
_CALL_OVERHEAD = 8
_PROMPT_OVERHEAD = 4
_TOOLS_OVERHEAD = 16

_SMALL_PROMPT = 512
"""Below this many tokens a shortfall is mostly what the endpoint wraps around any prompt."""
_FACTOR_MARGIN = 1.03
_WRAPPING_MARGIN = 8

_OPTIONAL = frozenset({"temperature", "seed", "stop", "tool_choice", "parallel_tool_calls"})
"""Request fields that can be left out where a model refuses them."""


class _Correction:
    """Makes an estimate of prompt tokens safe: learnt upward from the endpoint's own counts.

    Small prompts teach what is wrapped around every prompt, large ones the factor by which the
    endpoint's tokenizer is finer; a factor learnt from a small prompt would be far too large.
    """

    def __init__(self) -> None:
        self._factor = 1.0
        self._wrapping = 0

    def apply(self, counted: int) -> int:
        return math.ceil(counted * self._factor) + self._wrapping

    def learn(self, counted: int, actual: int) -> None:
        if counted <= 0 or actual <= self.apply(counted):
            return
        if counted < _SMALL_PROMPT:
            self._wrapping += actual - self.apply(counted) + _WRAPPING_MARGIN
        else:
            self._factor = (actual - self._wrapping) / counted * _FACTOR_MARGIN
            self._wrapping += _WRAPPING_MARGIN


class OpenAIChat:
    """A model behind an OpenAI-compatible endpoint, in mode `tools`, temperature 0.

    Without functions the reply is plain text, constrained by `response_schema` where one is given.

    Args:
        model: As the endpoint calls it.
        endpoint: Where it answers; may be shared.
        counter: Of the model's vocabulary, or an estimate that errs upward.
        seed: Sent along, for endpoints that heed it.
        extra_body: Further fields of every request (llama.cpp's `cache_prompt`, say).
    """

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        counter: TokenCounter,
        *,
        seed: int | None = None,
        extra_body: Mapping[str, JSONValue] | None = None,
    ) -> None:
        self._model = model
        self._endpoint = endpoint
        # A prompt differs from the one before by its last messages only.
        self._count: Callable[[str], int] = lru_cache(maxsize=2048)(counter.count)
        self._seed = seed
        self._extra_body = dict(extra_body or {})
        self._correction = _Correction()
        self._last_functions: tuple[tuple[FunctionSpec, ...], int] = ((), 0)
        self._refused: set[str] = set()

    def __repr__(self) -> str:
        return f"OpenAIChat({self._model!r}, {self._endpoint!r})"

    @property
    def tool_mode(self) -> ToolMode:
        """Always `tools`; other modes are chats around this one."""
        return "tools"

    def for_run(self, on_wait: OnWait, time_left: TimeLeft | None = None) -> OpenAIChat:
        """The same model for one run alone, whose waits `on_wait` is told of, and no request of
        which takes more than `time_left`.

        What is learnt of its token counts stays within the run, so that equal runs count alike
        whatever else goes on; which fields it refuses is shared.
        """
        other = copy.copy(self)
        other._endpoint = self._endpoint.for_run(on_wait, time_left)
        other._correction = _Correction()
        return other

    def learn(self, request: ChatRequest, usage: Usage) -> None:
        """Correct the estimate as if `request` had been made now and had come back with `usage`."""
        self._correction.learn(self._counted(request), usage.prompt_tokens)

    def prompt_tokens(self, request: ChatRequest) -> int:
        """Tokens of the request as it is sent, corrected upward by what was learnt."""
        return self._correction.apply(self._counted(request))

    def complete(self, request: ChatRequest) -> ChatReply:
        """One reply; a field that the model refuses by name is left out from then on.

        Raises:
            ModelError: the endpoint cannot be reached, refuses, or answers nonsense.
        """
        while True:
            try:
                return self._endpoint.post(
                    "/chat/completions",
                    self._body(request),
                    lambda reply: self._read(reply, request),
                )
            except RefusedRequest as error:
                if not self._adapt(error.parameter, request):
                    raise

    @property
    def _length_field(self) -> str:
        newer = self._endpoint.is_openai or "max_tokens" in self._refused
        return "max_completion_tokens" if newer else "max_tokens"

    # ---- to the wire -------------------------------------------------------------------------

    def _body(self, request: ChatRequest) -> dict[str, object]:
        body: dict[str, object] = {
            "model": self._model,
            "messages": wire_messages(request.messages),
            "temperature": 0,
            self._length_field: request.max_tokens,
        }
        if self._seed is not None:
            body["seed"] = self._seed
        if request.stop:
            body["stop"] = list(request.stop)
        if request.functions:
            body["tools"] = _wire_functions(request.functions)
            if len(request.functions) == 1:
                # A single function is offered where an answer must be given: no other choice.
                body["tool_choice"] = "required"
        elif request.response_schema is not None:
            body["response_format"] = _response_format(request.response_schema)
        kept = {name: value for name, value in body.items() if name not in self._refused}
        return {**kept, **self._extra_body}

    def _adapt(self, parameter: str | None, request: ChatRequest) -> bool:
        """Whether the request can be sent otherwise, now that `parameter` was refused."""
        if parameter == "max_tokens" and self._length_field == "max_tokens":
            self._refused.add("max_tokens")
            return True
        sent = self._body(request).keys() - self._extra_body.keys()
        if parameter in _OPTIONAL and parameter in sent:
            self._refused.add(parameter)
            return True
        return False

    def _counted(self, request: ChatRequest) -> int:
        tokens = _PROMPT_OVERHEAD
        for message in request.messages:
            tokens += _MESSAGE_OVERHEAD + self._count(message.text)
            if isinstance(message, AssistantMessage):
                for item in message.calls:
                    tokens += _CALL_OVERHEAD + self._count(item.name) + self._count(item.arguments)
        if request.functions:
            tokens += self._counted_functions(request.functions)
        elif request.response_schema is not None and self._endpoint.is_openai:
            # OpenAI shows the schema to the model; elsewhere it only constrains the sampling.
            tokens += self._count(_dump(request.response_schema))
        return tokens

    def _counted_functions(self, functions: tuple[FunctionSpec, ...]) -> int:
        counted, tokens = self._last_functions
        if counted is not functions:  # they are the same all through a run
            # Compact, as the SDK sends it: spaces between its signs would be a fifth more.
            wired = json.dumps(
                _wire_functions(functions), ensure_ascii=False, separators=(",", ":")
            )
            tokens = _TOOLS_OVERHEAD + self._count(wired)
            self._last_functions = functions, tokens
        return tokens

    # ---- from the wire -----------------------------------------------------------------------

    def _read(self, reply: object, request: ChatRequest) -> ChatReply:
        said = field(reply, "choices", 0, "message")
        if not isinstance(said, dict):
            raise self._unusable(reply)
        text = _text(said.get("content"))
        reason = field(reply, "choices", 0, "finish_reason")
        cut = reason == "length"
        calls, broken = _calls(said, f"call_{len(request.messages)}", cut=cut)
        message = AssistantMessage(text, calls)
        problem = None
        if not calls:
            problem = _problem(said, text, reason, broken=broken, offered=bool(request.functions))
        finish: Literal["stop", "length", "calls"] = "calls" if calls else "stop"
        return ChatReply(
            message,
            self._usage(reply, request, message),
            "length" if cut else finish,
            problem,
        )

    def _unusable(self, reply: object) -> UnusableReply:
        error = field(reply, "error")
        said = error if isinstance(error, str) else field(error, "message")
        why = f"an error: {said}" if said else f"what is no completion, {_shape(reply)}"
        return UnusableReply(
            f"{self._model} at {self._endpoint.url} answers with {why}. "
            "Try again, or check that it is an OpenAI-compatible chat API."
        )

    def _usage(self, reply: object, request: ChatRequest, message: AssistantMessage) -> Usage:
        counted = self._counted(request)
        prompt = _whole(field(reply, "usage", "prompt_tokens"))
        completion = _whole(field(reply, "usage", "completion_tokens"))
        if prompt:
            self._correction.learn(counted, prompt)
        if completion is None:
            written = "".join(item.name + item.arguments for item in message.calls)
            completion = self._count(message.text + written)
        cached = _whole(field(reply, "usage", "prompt_tokens_details", "cached_tokens"))
        return Usage(
            prompt_tokens=prompt or self._correction.apply(counted),
            cached_tokens=cached or 0,
            completion_tokens=completion,
        )


def _shape(reply: object) -> str:
    """What came, in words that hold nothing which may be secret."""
    if not isinstance(reply, dict):
        return f"a bare {type(reply).__name__}"
    keys = [repr(name) for name in reply]
    return f"an object with {', '.join(keys[:5]) or 'nothing in it'}"


def wire_messages(messages: Sequence[Message]) -> list[dict[str, object]]:
    """The messages as endpoints take them; neighbouring user messages become one.

    Chat templates of many open models refuse two user messages in a row.
    """
    wired: list[dict[str, object]] = []
    for message in map(_wire_message, messages):
        before = wired[-1] if wired else {}
        if message["role"] == before.get("role") == "user":
            before["content"] = f"{before['content']}\n\n{message['content']}"
        else:
            wired.append(message)
    return wired


def _wire_message(message: Message) -> dict[str, object]:
    match message:
        case SystemMessage() | UserMessage():
            return {"role": message.role, "content": _sendable(message.text)}
        case AssistantMessage():
            wired: dict[str, object] = {"role": "assistant", "content": _sendable(message.text)}
            if message.calls:
                wired["tool_calls"] = [_wire_call(item) for item in message.calls]
            return wired
        case ToolResult():
            return {
                "role": "tool",
                "tool_call_id": message.call_id,
                "content": _sendable(message.text),
            }
        case _:
            assert_never(message)


def _wire_call(item: ToolCall) -> dict[str, object]:
    arguments = item.arguments
    if not _is_json_object(arguments):
        # Servers that parse the arguments of past calls answer 500 to broken ones.
        arguments = _dump({"unreadable": arguments})
    return {
        "id": item.call_id,
        "type": "function",
        "function": {"name": item.name, "arguments": _sendable(arguments)},
    }


def _wire_functions(functions: Sequence[FunctionSpec]) -> list[dict[str, object]]:
    return [
        {
            "type": "function",
            "function": {
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
            },
        }
        for spec in functions
    ]


def _response_format(schema: Mapping[str, JSONValue]) -> dict[str, object]:
    return {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": schema},
    }


def _calls(
    said: Mapping[str, Any], prefix: str, *, cut: bool
) -> tuple[tuple[ToolCall, ...], str | None]:
    """The calls of a reply, and the name of one that was cut off, which is left out."""
    calls: list[ToolCall] = []
    taken: set[str] = set()
    broken = None
    for index, (call_id, name, arguments) in enumerate(_written_calls(said)):
        if cut and not _is_json_object(arguments):
            broken = name
            continue
        unique = call_id if call_id and call_id not in taken else f"{prefix}_{index}"
        taken.add(unique)
        calls.append(ToolCall(unique, name, arguments))
    return tuple(calls), broken


def _written_calls(said: Mapping[str, Any]) -> Iterator[tuple[str | None, str, str]]:
    """Id, name and raw arguments, also from servers that leave out or decode something."""
    listed = said.get("tool_calls")
    written = list(listed) if isinstance(listed, list) else []
    if not written and isinstance(said.get("function_call"), dict):
        written = [{"function": said["function_call"]}]
    for item in written:
        name = field(item, "function", "name")
        if not isinstance(name, str) or not name:
            continue
        arguments = field(item, "function", "arguments")
        if not isinstance(arguments, str):
            arguments = _dump(arguments if arguments is not None else {})
        call_id = field(item, "id")
        yield call_id if isinstance(call_id, str) else None, name, arguments or "{}"


def _problem(
    said: Mapping[str, Any], text: str, reason: object, *, broken: str | None, offered: bool
) -> str | None:
    if broken is not None:
        return f"The call of {broken} was cut off at the length limit. Make it shorter."
    if reason == "content_filter":
        return "The reply was withheld by the endpoint's content filter. Put it another way."
    if isinstance(said.get("refusal"), str) and said["refusal"]:
        return f"The reply was a refusal: {said['refusal']}"
    if reason == "length" and (offered or not text):
        return "The reply was cut off at the length limit before any call. Be brief."
    if not text:
        return "The reply was empty. Call a function."
    return None


def _text(content: object) -> str:
    if isinstance(content, list):
        parts = [field(part, "text") for part in content]
        content = "".join(part for part in parts if isinstance(part, str))
    return _sendable(content) if isinstance(content, str) else ""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _sendable(text: str) -> str:
    return repaired(text)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)

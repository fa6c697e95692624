"""Modes `json` and `text`: function calls written as one JSON object in a plain reply.

Both are chats around another chat. Functions are described in the system message, past calls are
shown as the objects that the model is to write, and results come back as user messages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from docpager.errors import BudgetReached
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
    without_reasoning,
)
from docpager.models.failures import RefusedRequest
from docpager.models.tolerant_json import LONGEST, json_objects
from docpager.protocols import Chat
from docpager.types import JSONValue, ToolMode
from docpager.unicode import repaired

REPAIR_RESERVE = 240
"""Tokens that a repair request may add to the prompt: `TextChat.prompt_tokens` counts them in."""

_FORM = '{"thought": "why, in a few words", "function": "NAME", "arguments": {...}}'
_EXCERPT = 40
"""Characters of an unreadable reply that the model is shown again."""


class JsonChat:
    """Mode `json`: the endpoint constrains the reply to a schema, the union of the functions.

    The schema is an `anyOf` of one object a function, so that name and arguments always belong
    together. An endpoint that refuses this (OpenAI's strict schemas want an object at the root,
    and every property required) is sent the stricter form from then on.
    """

    def __init__(self, inner: Chat) -> None:
        self._inner = inner
        self._strict = False

    @property
    def tool_mode(self) -> ToolMode:
        """Always `json`."""
        return "json"

    def prompt_tokens(self, request: ChatRequest) -> int:
        """Tokens of the translated request."""
        return self._inner.prompt_tokens(self._translated(request))

    def complete(self, request: ChatRequest) -> ChatReply:
        """One reply, its call read out of the JSON."""
        try:
            reply = self._inner.complete(self._translated(request))
        except RefusedRequest:
            if self._strict or not request.functions:
                raise
            self._strict = True
            reply = self._inner.complete(self._translated(request))
        return _with_call(reply, request) if request.functions else reply

    def _translated(self, request: ChatRequest) -> ChatRequest:
        translated = _as_text(request)
        if not request.functions:
            return translated
        schema = strict_schema if self._strict else union_schema
        return replace(translated, response_schema=schema(request.functions))


class TextChat:
    """Mode `text`: no constraint, a tolerant parser, and one repair request before giving up."""

    def __init__(self, inner: Chat) -> None:
        self._inner = inner

    @property
    def tool_mode(self) -> ToolMode:
        """Always `text`."""
        return "text"

    def prompt_tokens(self, request: ChatRequest) -> int:
        """Tokens of the translated request, and room for what a repair adds to it."""
        tokens = self._inner.prompt_tokens(_as_text(request))
        return tokens + REPAIR_RESERVE if request.functions else tokens

    def complete(self, request: ChatRequest) -> ChatReply:
        """One reply; `usage` covers the repair request where there was one."""
        translated = _as_text(request)
        first = self._inner.complete(translated)
        if not request.functions:
            return first
        reply = _with_call(first, request)
        if reply.problem is None:
            return reply
        again = UserMessage(_repair(reply), kind="failure")
        try:
            second = self._inner.complete(
                replace(translated, messages=(*translated.messages, again))
            )
        except BudgetReached:
            # The reply is paid for and its problem is known: the next call meets the bound.
            return reply
        repaired = _with_call(second, request)
        return replace(repaired, usage=first.usage + second.usage)


# ---- what the model is shown -----------------------------------------------------------------


def describe(functions: Sequence[FunctionSpec]) -> str:
    """The functions and how to call them, as the system message ends with them."""
    lines = [f"Reply with one JSON object and nothing else: {_FORM}", "Functions:"]
    lines += [f"- {_signature(spec)}: {spec.description}" for spec in functions]
    return "\n".join(lines)


def _signature(spec: FunctionSpec) -> str:
    properties = _object(spec.parameters.get("properties"))
    required = spec.parameters.get("required")
    needed = required if isinstance(required, list) else []
    parts = [
        f"{name}{'' if name in needed else '?'}: {_type(_object(schema))}"
        for name, schema in properties.items()
    ]
    return f"{spec.name}({', '.join(parts)})"


def _type(schema: dict[str, JSONValue]) -> str:
    """A schema in a few words: `integer`, `[{passage_id: string, quote: string}]`, with its
    description."""
    choices = schema.get("enum")
    kind = schema.get("type")
    if isinstance(choices, list):
        shown = "|".join(str(choice) for choice in choices)
    elif kind == "array":
        shown = f"[{_type(_object(schema.get('items')))}]"
    elif kind == "object" and schema.get("properties"):
        fields = _object(schema["properties"])
        shown = ", ".join(f"{name}: {_type(_object(item))}" for name, item in fields.items())
        shown = f"{{{shown}}}"
    elif isinstance(kind, str):
        shown = kind
    else:
        shown = "any"
    description = schema.get("description")
    return f"{shown} ({description})" if isinstance(description, str) else shown


def _as_text(request: ChatRequest) -> ChatRequest:
    messages = [_message_as_text(message) for message in request.messages]
    if request.functions:
        described = describe(request.functions)
        match messages:
            case [SystemMessage(text=text), *rest]:
                messages = [SystemMessage(f"{text}\n\n{described}"), *rest]
            case _:
                messages.insert(0, SystemMessage(described))
    return replace(request, messages=tuple(messages), functions=())


def _message_as_text(message: Message) -> Message:
    match message:
        case AssistantMessage(calls=(_, *_)):
            return AssistantMessage("\n".join(_written(message.text, c) for c in message.calls))
        case ToolResult():
            return UserMessage(f"Result of {message.name}: {message.text}", kind="heartbeat")
        case _:
            return message


def _written(thought: str, item: ToolCall) -> str:
    try:
        arguments = json.loads(item.arguments)
    except (ValueError, RecursionError):
        arguments = item.arguments
    written = {"thought": thought, "function": item.name, "arguments": arguments}
    return json.dumps(written, ensure_ascii=False)


def _repair(reply: ChatReply) -> str:
    excerpt = " ".join(reply.message.text[:_EXCERPT].split())
    return (
        f"{reply.problem} Your reply began: {excerpt} … "
        f"Reply again, with only this JSON object: {_FORM}"
    )


# ---- schemas ---------------------------------------------------------------------------------


def union_schema(functions: Sequence[FunctionSpec]) -> dict[str, JSONValue]:
    """One object a function, under `anyOf`; with one function just its object."""
    objects: list[JSONValue] = [
        _object_schema(
            {
                "thought": {"type": "string", "maxLength": 400},
                "function": {"type": "string", "enum": [spec.name]},
                "arguments": {**spec.parameters, "additionalProperties": False},
            }
        )
        for spec in functions
    ]
    return {"anyOf": objects} if len(objects) > 1 else _object(objects[0])


def strict_schema(functions: Sequence[FunctionSpec]) -> dict[str, JSONValue]:
    """The form for endpoints that want an object at the root and every property required.

    Optional arguments become nullable; a null is taken out of the call again.
    """
    names: list[JSONValue] = [spec.name for spec in functions]
    arguments: list[JSONValue] = [_strict(spec.parameters) for spec in functions]
    return _object_schema(
        {
            "thought": {"type": "string"},
            "function": {"type": "string", "enum": names},
            "arguments": {"anyOf": arguments} if len(arguments) > 1 else arguments[0],
        }
    )


def _object_schema(properties: dict[str, JSONValue]) -> dict[str, JSONValue]:
    required: list[JSONValue] = list(properties)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_STRICT_KEYS = ("type", "enum", "description")


def _strict(schema: dict[str, JSONValue]) -> dict[str, JSONValue]:
    kept: dict[str, JSONValue] = {key: schema[key] for key in _STRICT_KEYS if key in schema}
    if schema.get("type") == "array":
        kept["items"] = _strict(_object(schema.get("items")))
    if schema.get("type") != "object":
        return kept
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    properties: dict[str, JSONValue] = {
        name: strict if name in needed else {"anyOf": [strict, {"type": "null"}]}
        for name, item in _object(schema.get("properties")).items()
        for strict in [_strict(_object(item))]
    }
    return kept | _object_schema(properties)


def _object(value: JSONValue) -> dict[str, JSONValue]:
    return value if isinstance(value, dict) else {}


# ---- what the model wrote --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as it was read out of a text."""

    thought: str
    function: str
    arguments: dict[str, Any]


def read_call(text: str, functions: Sequence[str], *, complete: bool = True) -> WrittenCall | str:
    """The first call of a known function in `text`, else what is wrong, in words for the model.

    Prose and fences around it, single quotes, trailing commas, Python's literals, line ends in
    strings, and other names for the same keys are put up with. It never raises.

    Args:
        complete: Whether the reply ended by itself, so that brackets missing at its end were only
            forgotten; in a reply that was cut off, more than brackets may be missing.
    """
    unknown: str | None = None
    found_any = False
    for value in json_objects(without_reasoning(text[:LONGEST]), complete):
        found_any = True
        written = _as_call(value)
        if written is None:
            continue
        if written.function in functions:
            return written
        unknown = unknown or written.function
    if unknown is not None:
        return f"There is no function {unknown[:60]!r}. Use one of: {', '.join(functions)}."
    if found_any:
        return 'The JSON object has no "function" and "arguments".'
    return "The reply holds no complete JSON object."


def _with_call(reply: ChatReply, request: ChatRequest) -> ChatReply:
    """The reply with its call read out of the text, or with the problem said."""
    functions = {spec.name: spec for spec in request.functions}
    cut = reply.finish_reason == "length"
    written = read_call(reply.message.text, tuple(functions), complete=not cut)
    if isinstance(written, str):
        if cut:
            written = "The reply was cut off at the length limit. Be brief."
        return replace(reply, problem=written, is_prose=not cut and _is_prose(reply.message.text))
    arguments = _without_nulls(written.arguments, functions[written.function])
    item = ToolCall(
        f"call_{len(request.messages)}",
        written.function,
        # An escape in the text may have stood for half a character.
        repaired(json.dumps(arguments, ensure_ascii=False)),
    )
    message = AssistantMessage(written.thought, (item,))
    return replace(reply, message=message, finish_reason="calls", problem=None)


def _is_prose(text: str) -> bool:
    reply = without_reasoning(text)
    return bool(reply) and "{" not in reply


def _without_nulls(arguments: dict[str, Any], spec: FunctionSpec) -> dict[str, Any]:
    required = spec.parameters.get("required")
    needed = required if isinstance(required, list) else []
    return {name: value for name, value in arguments.items() if value is not None or name in needed}


def _as_call(value: dict[str, Any]) -> WrittenCall | None:
    """Also the shapes that models were trained on: `name` and `parameters`, or one in the other."""
    named = next((value[key] for key in ("function", "name", "tool") if key in value), None)
    if isinstance(named, dict):
        return _as_call({**named, "thought": value.get("thought")})
    if not isinstance(named, str):
        return None
    given = next(
        (value[key] for key in ("arguments", "parameters", "args", "input") if key in value), None
    )
    if isinstance(given, str):
        given = next(json_objects(given, complete=True), None)
    if given is None:
        given = {key: item for key, item in value.items() if key not in _CALL_KEYS}
    if not isinstance(given, dict):
        return None
    thought = value.get("thought")
    return WrittenCall(thought if isinstance(thought, str) else "", named.strip(), given)


_CALL_KEYS = frozenset({"thought", "function", "name", "tool", "arguments", "type", "id"})

"""Modes `json` and `text`: function calls written as one JSON object in a plain reply.

Both are chats around another chat. Functions are described in the system message, past calls are
shown as the objects that the model is to write, and results come back as user messages.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
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
    spoken,
)
from docpager.models.endpoint import RefusedRequest
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
    for value in _objects(spoken(text[:_LONGEST]), complete):
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
    said = spoken(text)
    return bool(said) and "{" not in said


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
        given = next(_objects(given, complete=True), None)
    if given is None:
        given = {key: item for key, item in value.items() if key not in _CALL_KEYS}
    if not isinstance(given, dict):
        return None
    thought = value.get("thought")
    return WrittenCall(thought if isinstance(thought, str) else "", named.strip(), given)


_CALL_KEYS = frozenset({"thought", "function", "name", "tool", "arguments", "type", "id"})


def _objects(text: str, complete: bool) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, in order, inner ones only where the outer could not be read."""
    at = text.find("{")
    attempts = 0
    while at != -1 and attempts < _MOST_ATTEMPTS:
        attempts += 1
        found = _object_at(text, at, complete)
        if found is None:
            at = text.find("{", at + 1)
            continue
        value, end = found
        yield value
        at = text.find("{", end)


_MOST_ATTEMPTS = 64
"""Places in a reply where an object is looked for: a text of braces must not take for ever."""
_LONGEST = 50_000
"""Characters of a reply that are looked at; several times what any reply reserve allows."""


def _object_at(text: str, at: int, complete: bool) -> tuple[dict[str, Any], int] | None:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        try:
            value, end = _TolerantReader(text, at, complete).value()
        except ValueError:
            return None
    return (value, end) if isinstance(value, dict) else None


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
_BARE = re.compile(r"[+-]?\w[\w.+-]*")
_WORDS = {"true": True, "false": False, "null": None, "none": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_DEEPEST = 24


class _TolerantReader:
    """Reads a JSON value as a careless writer writes it; raises ValueError where it cannot."""

    def __init__(self, text: str, at: int, complete: bool) -> None:
        self._text = text
        self._at = at
        self._complete = complete

    def value(self, depth: int = 0) -> tuple[Any, int]:
        """The value that begins here, and where it ends."""
        return self._value(depth), self._at

    def _value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        match self._peek():
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"' | "'":
                return self._string()
            case _:
                return self._bare()

    def _object(self, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        self._at += 1
        while not self._ends("}"):
            key = self._string() if self._peek() in "\"'" else str(self._word())
            if self._peek() != ":":
                raise ValueError("no colon after a key")
            self._at += 1
            items[key] = self._value(depth + 1)
            self._skip_comma("}")
        return items

    def _array(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self._at += 1
        while not self._ends("]"):
            items.append(self._value(depth + 1))
            self._skip_comma("]")
        return items

    def _ends(self, closing: str) -> bool:
        """Whether the object or list ends here, by its bracket or by the end of the text."""
        self._skip_blanks()
        if self._at >= len(self._text) and self._complete:
            return True
        if self._peek() != closing:
            return False
        self._at += 1
        return True

    def _skip_comma(self, closing: str) -> None:
        self._skip_blanks()
        following = self._text[self._at : self._at + 1]
        if following == ",":
            self._at += 1
        elif following not in ("", closing):
            raise ValueError("no comma between items")

    def _string(self) -> str:
        quote = self._text[self._at]
        self._at += 1
        characters: list[str] = []
        while True:
            character = self._next()
            if character == "\\":
                characters.append(self._escape())
            elif character == quote and self._closes():
                return "".join(characters)
            else:
                characters.append(character)

    def _closes(self) -> bool:
        """Whether the quote just read ends the string: an apostrophe or a quoted word does not."""
        following = self._text[self._at : self._at + 64].lstrip()
        return not following or following[0] in ",:}]"

    def _escape(self) -> str:
        character = self._next()
        if character != "u":
            return _ESCAPES.get(character, character)
        digits = self._text[self._at : self._at + 4]
        if not re.fullmatch("[0-9a-fA-F]{4}", digits):
            return "u"
        self._at += 4
        return chr(int(digits, 16))

    def _bare(self) -> Any:
        word = self._word()
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        number = float(word)
        if not math.isfinite(number):
            raise ValueError("no finite number")
        return int(number) if re.fullmatch(r"[+-]?\d{1,15}", word) else number

    def _word(self) -> str:
        found = _BARE.match(self._text, self._at)
        if found is None:
            raise ValueError("no value")
        self._at = found.end()
        return found.group()

    def _peek(self) -> str:
        """The next character that is not blank, which is not taken."""
        self._skip_blanks()
        if self._at >= len(self._text):
            raise ValueError("unfinished")
        return self._text[self._at]

    def _skip_blanks(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise ValueError("unfinished")
        self._at += 1
        return self._text[self._at - 1]

"""Messages of a conversation with a model, and the Turns that the FIFO queue is made of.

No wire format is known here: `models/chat.py` maps these to an endpoint's JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from docpager.function_results import Failure, FunctionResult, rendered
from docpager.types import JSONValue, ToolMode, Usage

EventKind = Literal[
    "question", "heartbeat", "failure", "pressure", "summary", "nudge", "upload", "context"
]
"""Why a user message is in the prompt: the question itself, or an event of the system."""


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """The system instructions: constant for a run, always first, never in the queue."""

    text: str
    role: Literal["system"] = "system"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """The question, or what the system has to tell the model.

    Events travel as user messages because many chat templates refuse a second system message.
    """

    text: str
    kind: EventKind = "question"
    role: Literal["user"] = "user"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function call as the model wrote it; `arguments` is raw JSON text, not yet checked."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """A reply: free text (the thought) and zero or more calls, in order."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    role: Literal["assistant"] = "assistant"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one call came back with; exactly one for each call (I6)."""

    call_id: str
    name: str
    result: FunctionResult
    text: str = field(init=False, compare=False)
    """What the model is shown: the result rendered, once."""
    role: Literal["tool"] = "tool"

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", rendered(self.result))

    @property
    def failed(self) -> bool:
        """Whether the call did nothing; the text says why."""
        return isinstance(self.result, Failure)


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResult


@dataclass(frozen=True, slots=True)
class Turn:
    """The smallest group of messages that may not be split: a user message, or a reply with all
    of its results."""

    messages: tuple[Message, ...]

    @property
    def is_question(self) -> bool:
        """Whether it is the question being answered, which is never evicted."""
        first = self.messages[0]
        return isinstance(first, UserMessage) and first.kind == "question"


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A function the agent offers: name, one-line description, JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, JSONValue]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One model call; `response_schema` constrains a reply without functions to a JSON schema."""

    messages: tuple[Message, ...]
    functions: tuple[FunctionSpec, ...] = ()
    response_schema: dict[str, JSONValue] | None = None
    max_tokens: int = 1024
    """Reply reserve, in tokens."""
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What a model call came back with. `usage` covers every endpoint call it took."""

    message: AssistantMessage
    usage: Usage = field(default_factory=Usage)
    finish_reason: Literal["stop", "length", "calls"] = "stop"
    problem: str | None = None
    """Why no call could be read out of the reply, in words for the model; None if it is sound."""
    is_prose: bool = False
    """Whether the problem is only that no call was tried: the text is words for a reader."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Which model answers, where, and how functions are offered; stored with each run."""

    model: str
    endpoint: str
    """Base URL without credentials, or `embedded`."""
    tool_mode: ToolMode
    context_window: int
    """Tokens of prompt and reply together."""


_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


def without_reasoning(text: str) -> str:
    """A reply without the visible reasoning that some models put into `<think>` tags.

    >>> without_reasoning("<think>A dam or a mill?</think> The mill.")
    'The mill.'
    """
    return _THINKING.sub("", text).strip()

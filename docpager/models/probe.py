"""Which tool mode an endpoint and its model can do: tried once with tiny calls, then remembered."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from docpager.files import write_whole
from docpager.messages import ChatRequest, FunctionSpec, SystemMessage, UserMessage
from docpager.models.failures import FailingServer, RefusedRequest
from docpager.models.tool_modes import JsonChat
from docpager.protocols import Chat
from docpager.types import Usage

SettledMode = Literal["tools", "json", "text"]

# Two functions, so that the call is the model's own choice and not a forced one.
_FUNCTIONS = (
    FunctionSpec(
        "look_up",
        "Look a word up.",
        {
            "type": "object",
            "properties": {"query": {"type": "string"}, "page": {"type": "integer"}},
            "required": ["query", "page"],
        },
    ),
    FunctionSpec(
        "finish",
        "End without a look-up.",
        {
            "type": "object",
            "properties": {"message": {"type": "string"}},
            "required": ["message"],
        },
    ),
)
_REQUEST = ChatRequest(
    (
        SystemMessage("You act only by calling functions."),
        UserMessage('Look up the word "archive", page 0.'),
    ),
    _FUNCTIONS,
    max_tokens=200,
)


@dataclass(frozen=True, slots=True)
class Probe:
    """The mode that works, what was seen on the way to it, and what the calls cost."""

    tool_mode: SettledMode
    seen: tuple[str, ...]
    """One sentence for each mode that was tried, best mode first."""
    remembered: bool = False
    usage: Usage = field(default_factory=Usage)


def probe(chat: Chat) -> Probe:
    """Try native calls by `chat`, then JSON by schema; what fails both is left to write text.

    Raises:
        ModelError: the endpoint cannot be reached at all, or refuses the key.
    """
    try:
        native, seen_native, usage = _tries(chat)
    except FailingServer as error:
        # Some servers answer 500 to tools they cannot do; one that is down fails again below.
        native, seen_native, usage = False, str(error), Usage()
    if native:
        return Probe("tools", (f"tools: {seen_native}",), usage=usage)
    constrained, seen_json, more = _tries(JsonChat(chat))
    seen = (f"tools: {seen_native}", f"json: {seen_json}")
    return Probe("json" if constrained else "text", seen, usage=usage + more)


def settle_tool_mode(chat: Chat, *, endpoint: str, model: str, remembered: Path) -> Probe:
    """The mode of `model` at `endpoint`: from the file `remembered`, else probed and kept there.

    A damaged file is as good as none, and one that cannot be written only costs the next probe.
    """
    key = f"{endpoint} {model}"
    settled = _read(remembered).get(key)
    match settled:
        case "tools" | "json" | "text":
            return Probe(settled, (f"{settled}: settled before",), remembered=True)
    found = probe(chat)
    _remember(remembered, key, found.tool_mode)
    return found


def _tries(chat: Chat) -> tuple[bool, str, Usage]:
    """Whether a proper call came back, and what was seen."""
    try:
        reply = chat.complete(_REQUEST)
    except RefusedRequest as error:
        return False, f"refused: {error}", Usage()
    if reply.problem is not None:
        return False, reply.problem, reply.usage
    if not reply.message.calls:
        return False, "the model answered in prose", reply.usage
    first = reply.message.calls[0]
    if first.name != "look_up":
        return False, f"the model called {first.name!r} instead", reply.usage
    if not _sound(first.arguments):
        return False, f"the arguments were {first.arguments[:80]!r}", reply.usage
    return True, "the model called the function properly", reply.usage


def _sound(arguments: str) -> bool:
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return isinstance(given, dict) and isinstance(given.get("query"), str)


def _read(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    modes = content.get("tool_modes") if isinstance(content, dict) else None
    return modes if isinstance(modes, dict) else {}


def _remember(path: Path, key: str, mode: SettledMode) -> None:
    modes = {**_read(path), key: mode}
    content = json.dumps({"tool_modes": modes}, ensure_ascii=False, indent=1, sort_keys=True)
    # Of several processes one wins. A folder that cannot be written to is no reason to fail: the
    # mode is settled for this time.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content.encode())

"""The function executor: every call gets exactly one result (I6), and no result is too big."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from docpager.agent.functions import Function, FunctionResult, ProposedAnswer
from docpager.errors import FunctionError
from docpager.memory.queue_manager import QueueManager
from docpager.messages import AssistantMessage, Message, ToolCall, ToolResult, Turn
from docpager.unicode import repaired_json

NO_ROOM = "Failed: no room for this result. Ask again."
_ENDED = "Failed: the answer was sent before this call. Nothing to do."
_LONGEST_FAILURE = 80


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one reply's calls came to."""

    turn: Turn
    answer: ProposedAnswer | None
    heartbeat: bool
    """Whether the model runs again at once: asked for, or forced by a search or a failure."""


class Executor:
    """Runs the calls of a reply in order within the space that is free.

    `judge` may refuse an answer, once for each cause, with a reason for the model; `on_shown` is
    called with every result that is delivered, `on_failed` with a call's name and its error.
    """

    def __init__(
        self,
        *,
        functions: Mapping[str, Function],
        queue_manager: QueueManager,
        cut: Callable[[str, int], str],
        judge: Callable[[ProposedAnswer], str | None],
        on_shown: Callable[[FunctionResult], None],
        on_failed: Callable[[str, FunctionError], None],
    ) -> None:
        self._functions = functions
        self._manager = queue_manager
        self._cut = cut
        self._judge = judge
        self._on_shown = on_shown
        self._on_failed = on_failed
        self._shown_calls: dict[str, tuple[str, FunctionResult]] = {}

    def run(self, reply: AssistantMessage) -> Outcome:
        """Execute each call; the Turn is the reply with one result for each."""
        messages: list[Message] = [reply]
        answer: ProposedAnswer | None = None
        heartbeat = False
        for position, call in enumerate(reply.calls):
            pending = self._manager.cost(messages) + self._reserve(len(reply.calls) - position - 1)
            if answer is not None:
                messages.append(ToolResult(call.call_id, call.name, _ENDED, "failure"))
                continue
            try:
                result, again = self._run_call(call, pending, first=position == 0)
            except FunctionError as error:
                self._on_failed(call.name, error)
                text = self._cut(f"Failed: {error}", _LONGEST_FAILURE)
                messages.append(ToolResult(call.call_id, call.name, text, "failure"))
                heartbeat = True
                continue
            messages.append(ToolResult(call.call_id, call.name, result.text, result.kind))
            answer = result.answer
            heartbeat = heartbeat or again
        return Outcome(Turn(tuple(messages)), answer, heartbeat)

    def _run_call(
        self, call: ToolCall, pending: int, *, first: bool
    ) -> tuple[FunctionResult, bool]:
        function = self._function(call.name)
        raw = parse_arguments(call.arguments)
        arguments = function.bind(raw)
        again = _wants_heartbeat(raw, function)
        key = json.dumps([call.name, arguments], default=str, sort_keys=True)
        if function.shows_memory:
            seen = self._already_shown(key)
            if seen is not None:
                return seen, again
            free = self._manager.make_room(pending, self._manager.result_budget)
        result = function.call(**arguments)
        if result.answer is not None:
            problem = self._judge(result.answer)
            if problem is not None:
                raise FunctionError(problem)
            return FunctionResult("Sent.", "sent", answer=result.answer), False
        if function.shows_memory:
            result = self._fitted(result, free, first=first)
            self._shown_calls[key] = (call.call_id, result)
        self._on_shown(result)
        return result, again

    def _function(self, name: str) -> Function:
        if name not in self._functions:
            raise FunctionError(
                f"there is no function {name[:40]!r}. Functions: {', '.join(self._functions)}."
            )
        return self._functions[name]

    def _already_shown(self, key: str) -> FunctionResult | None:
        """A reminder, as long as the earlier result can still be seen in the queue."""
        if key not in self._shown_calls:
            return None
        call_id, earlier = self._shown_calls[key]
        if not self._manager.queue.holds_result(call_id):
            return None
        seen = ", ".join(earlier.passage_ids) or "the result above"
        more = (
            f"next page is {earlier.next_page}"
            if earlier.next_page is not None
            else "there is no further page; use other words"
        )
        return FunctionResult(f"Already shown: see {seen}; {more}.", "already_shown")

    def _fitted(self, result: FunctionResult, free: int, *, first: bool) -> FunctionResult:
        cost = self._manager.text_cost(result.text)
        if cost <= free:
            return result
        if not first or free < self._manager.result_budget // 4:
            raise FunctionError(NO_ROOM.removeprefix("Failed: "))
        cut = self._cut(result.text, max(1, free * 3 // 4))
        kept = tuple(name for name in result.passage_ids if f"[{name}]" in cut)
        return replace(result, text=f"{cut}\n(cut: ask again)", passage_ids=kept)

    def _reserve(self, calls: int) -> int:
        """Room for the refusals of the calls that follow."""
        return calls * self._manager.cost((ToolResult("c", "f", NO_ROOM),))


def parse_arguments(raw: str) -> dict[str, Any]:
    """A call's arguments as a mapping; empty text means none, lone surrogates are repaired.

    Raises:
        FunctionError: they are no JSON object.
    """
    try:
        parsed = json.loads(raw or "{}")
    except ValueError as error:
        raise FunctionError(
            f"the arguments are not JSON ({error}). Send one JSON object."
        ) from error
    if not isinstance(parsed, dict):
        raise FunctionError("the arguments are no JSON object. Send one, such as {}.")
    mended: dict[str, Any] = repaired_json(parsed)
    return mended


def _wants_heartbeat(raw: Mapping[str, Any], function: Function) -> bool:
    """What the model asked for; after a search it goes on unless it said no."""
    if not function.has_heartbeat:
        return False
    asked = raw.get("request_heartbeat")
    if asked is None:
        return function.shows_memory
    return asked is True or str(asked).strip().lower() in ("true", "1", "yes")

"""The function executor: every call gets exactly one result (I6), and no result is too big."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from docpager.agent.functions import Function
from docpager.errors import FunctionError
from docpager.function_results import (
    AlreadyShown,
    Failure,
    FunctionResult,
    ProposedAnswer,
    next_page,
    passage_ids,
    rendered,
    shortened,
)
from docpager.memory.queue_manager import QueueManager
from docpager.messages import AssistantMessage, Message, ToolCall, ToolResult, Turn
from docpager.unicode import repaired_json

NO_ROOM = "no room for this result. Ask again."
_ENDED = "the answer was sent before this call. Nothing to do."
_LONGEST_FAILURE = 80
"""Tokens."""
_CUT_NOTE = "(cut: ask again)"


@dataclass(frozen=True, slots=True)
class Execution:
    """The results of one reply's calls."""

    turn: Turn
    answer: ProposedAnswer | None
    heartbeat: bool
    """Whether the model runs again at once: asked for, or forced by a search or a failure."""


class Executor:
    """Runs the calls of a reply in order within the space that is free.

    `refusal_of` may refuse an answer, with a reason for the model; `on_shown` is called with every
    result that is delivered, `on_failed` with a call's name and its error.
    """

    def __init__(
        self,
        *,
        functions: Mapping[str, Function],
        queue_manager: QueueManager,
        refusal_of: Callable[[ProposedAnswer], str | None],
        on_shown: Callable[[FunctionResult], None],
        on_failed: Callable[[str, FunctionError], None],
    ) -> None:
        self._functions = functions
        self._manager = queue_manager
        self._refusal_of = refusal_of
        self._on_shown = on_shown
        self._on_failed = on_failed
        self._shown_calls: dict[str, tuple[str, FunctionResult]] = {}

    def run(self, reply: AssistantMessage) -> Execution:
        """Execute each call; the Turn is the reply with one result for each."""
        messages: list[Message] = [reply]
        answer: ProposedAnswer | None = None
        heartbeat = False
        for position, call in enumerate(reply.calls):
            pending = self._manager.cost(messages) + self._reserve(len(reply.calls) - position - 1)
            if answer is not None:
                messages.append(ToolResult(call.call_id, call.name, Failure(_ENDED)))
                continue
            result, again = self._run_call(call, pending, first=position == 0)
            messages.append(ToolResult(call.call_id, call.name, result))
            answer = result if isinstance(result, ProposedAnswer) else None
            heartbeat = heartbeat or again
        return Execution(Turn(tuple(messages)), answer, heartbeat)

    def _run_call(
        self, call: ToolCall, pending: int, *, first: bool
    ) -> tuple[FunctionResult, bool]:
        """The result, and whether the model runs again: after a failure always."""
        try:
            return self._executed(call, pending, first=first)
        except FunctionError as error:
            self._on_failed(call.name, error)
            text = rendered(Failure(str(error)))
            cut = self._manager.budget.counter.cut(text, _LONGEST_FAILURE)
            return Failure(cut.removeprefix("Failed: ")), True

    def _executed(
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
            free = self._manager.make_room(pending, self._manager.budget.tokens)
        result = function.call(**arguments)
        if isinstance(result, ProposedAnswer):
            refusal = self._refusal_of(result)
            if refusal is not None:
                raise FunctionError(refusal)
            return result, False
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

    def _already_shown(self, key: str) -> AlreadyShown | None:
        """A reminder, as long as the earlier result can still be seen in the queue."""
        if key not in self._shown_calls:
            return None
        call_id, earlier = self._shown_calls[key]
        if not self._manager.queue.holds_result(call_id):
            return None
        return AlreadyShown(passage_ids(earlier), next_page(earlier))

    def _fitted(self, result: FunctionResult, free: int, *, first: bool) -> FunctionResult:
        budget = self._manager.budget
        text = rendered(result)
        if budget.cost(text) <= free:
            return result
        if not first or free < budget.tokens // 4:
            raise FunctionError(NO_ROOM)
        kept = budget.head(text, free - budget.cost(_CUT_NOTE))
        return shortened(result, len(kept), _CUT_NOTE)

    def _reserve(self, calls: int) -> int:
        """Room for the refusals of the calls that follow."""
        return calls * self._manager.cost((ToolResult("c", "f", Failure(NO_ROOM)),))


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

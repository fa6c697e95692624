"""The queue manager: what is in the prompt, when the model is warned, what is evicted.

The window is divided once, in tokens as the chat counts them:

    |<------------------------------- context_window ------------------------------->|
    | instructions + schemas |              usable               | notes | reply     |
                             | question | summary | ... | newest |

`usable` is what the FIFO queue may take. A warning goes out when the queue passes `WARN_AT` of
it, once a pressure period; past `FLUSH_AT`, or when the next result would not fit, whole Turns
leave from the front until `FLUSH_TO` is left, and a recursive summary of them takes their place
(paper, section 2.2, where the flush comes at 100%: then no room is left for the reply).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from docpager.errors import ModelError
from docpager.function_results import shortened
from docpager.memory.fifo import FifoQueue
from docpager.messages import (
    AssistantMessage,
    ChatRequest,
    FunctionSpec,
    Message,
    SystemMessage,
    ToolResult,
    Turn,
    UserMessage,
)
from docpager.prompts import MEMORY_PRESSURE, SUMMARY_PREFIX
from docpager.protocols import Chat, Summarizer, TokenCounter
from docpager.retrieval.token_budget import TokenBudget

WARN_AT = 0.7
FLUSH_AT = 0.9
FLUSH_TO = 0.5
RESULT_SHARE = 0.25
"""Of the usable window: the most that a question or one page of results may take."""
NOTES_SHARE = 0.10
"""Of the window: the most that working context and counts may take (they change every step)."""
_SMALLEST_REPLY = 64


class RecallLog(Protocol):
    """Where every message goes when it enters the queue."""

    def record(self, messages: Sequence[Message]) -> None:
        """Keep messages, in order."""


@dataclass(frozen=True, slots=True)
class Flush:
    """What one flush did, for the trace."""

    evicted_turns: int
    evicted_messages: int
    before: int
    """Tokens of the queue."""
    after: int
    summary: str


def reply_reserve(context_window: int) -> int:
    """Tokens kept free for a reply: a twelfth of the window, from 160 to 1,024."""
    return min(1024, max(160, context_window // 12))


@dataclass(frozen=True, slots=True)
class Frame:
    """What surrounds the queue in every prompt, and the window that all of it must fit."""

    instructions: str
    functions: tuple[FunctionSpec, ...]
    working_context: Callable[[], str]
    """Renders the notes and counts, which always come last."""
    context_window: int
    """Tokens."""


class QueueManager:
    """The only way into the queue, and the only place that decides what leaves it."""

    def __init__(
        self,
        *,
        chat: Chat,
        frame: Frame,
        queue: FifoQueue,
        recall: RecallLog,
        summarizer: Summarizer,
        counter: TokenCounter,
        on_flush: Callable[[Flush], None],
    ) -> None:
        self._chat = chat
        self._system = SystemMessage(frame.instructions)
        self._functions = frame.functions
        self.queue = queue
        self._recall = recall
        self._working_context = frame.working_context
        self._summarizer = summarizer
        self._counter = counter
        self.context_window = frame.context_window
        self.reply_reserve = reply_reserve(frame.context_window)
        self._on_flush = on_flush
        self._warned = False
        self.evicted_messages = 0
        self.budget = TokenBudget(int(self.usable * RESULT_SHARE), counter, self.text_cost)
        """What one page of results may use."""
        self.summary_limit = max(48, min(1000, self.usable // 10))

    @property
    def usable(self) -> int:
        """Tokens that the queue may take, by the chat's present estimate."""
        return self.context_window - self._fixed - self.reply_reserve - self.notes_limit

    @property
    def notes_limit(self) -> int:
        """Tokens for working context and counts, wrapping included."""
        return int(self.context_window * NOTES_SHARE)

    @property
    def used(self) -> int:
        """Tokens of the queue."""
        return self.cost(self.queue.messages())

    @property
    def pressure(self) -> float:
        """Share of the usable window that the queue takes."""
        return self.used / max(1, self.usable)

    def cost(self, messages: Sequence[Message]) -> int:
        """Tokens that `messages` add to a prompt, as the chat counts them."""
        alone = self._chat.prompt_tokens(ChatRequest((self._system,)))
        return self._chat.prompt_tokens(ChatRequest((self._system, *messages))) - alone

    def text_cost(self, text: str) -> int:
        """Tokens of a bare text by the chat's present estimate, message wrapping included."""
        return self.cost((UserMessage(text, "context"),))

    def append(self, turn: Turn) -> None:
        """Add a Turn to the queue and, in the same call, to recall storage (I2)."""
        self._recall.record(turn.messages)
        self.queue.append(self._limited(turn))

    def make_room(self, pending: int, wanted: int) -> int:
        """Tokens free for a result while `pending` tokens wait to enter the queue.

        Flushes first where less than `wanted` is free. The newest Turn may leave then, because
        what is pending is newer.
        """
        free = self._free(pending)
        if free < wanted:
            self.flush(keep_last=0, pending=pending + wanted)
            free = self._free(pending)
        return max(0, free)

    def relieve_pressure(self) -> Turn | None:
        """Flush if the queue is too full; the warning to append, if one is due."""
        if self.pressure >= FLUSH_AT:
            self.flush(keep_last=1)
        pressure = self.pressure
        if pressure < WARN_AT:
            self._warned = False
        if pressure < WARN_AT or self._warned:
            return None
        self._warned = True
        warning = MEMORY_PRESSURE.format(percent=round(100 * pressure))
        return Turn((UserMessage(warning, "pressure"),))

    def flush(self, keep_last: int, pending: int = 0, share: float = FLUSH_TO) -> int:
        """Evict from the front until `share` is left; returns the number of messages gone.

        `pending` tokens wait to enter the queue and must fit afterwards too.
        """
        before = self.used
        target = min(int(self.usable * share), self.usable - pending - self._warning_cost)
        evicted = self.queue.evict(
            before - target, lambda turn: self.cost(turn.messages), keep_last
        )
        if not evicted:
            return 0
        messages = [message for turn in evicted for message in turn.messages]
        self.evicted_messages += len(messages)
        room = self.usable - self.used + self._summary_cost - pending - self._warning_cost
        limit = min(self.summary_limit, max(0, room))
        self.queue.summary = self._limited_summary(
            self._summarizer.summarize(self.queue.summary, messages, limit), limit
        )
        self._warned = False
        self._on_flush(Flush(len(evicted), len(messages), before, self.used, self.queue.summary))
        return len(messages)

    def request(self, functions: tuple[FunctionSpec, ...] | None = None) -> ChatRequest:
        """The next prompt, which fits the window with its reply reserve (I4).

        Raises:
            ModelError: the window is too small even for the question and the newest Turn.
        """
        for attempt in (self._plain, self._flushed, self._without_summary, self._shrunk):
            request = attempt(functions)
            if self._fits(request):
                return request
        room = self.context_window - self._chat.prompt_tokens(request)
        if room >= _SMALLEST_REPLY:
            return replace(request, max_tokens=room)
        raise ModelError(
            f"The context window of {self.context_window} tokens has no room for the question "
            "and one result. Use a larger --context-window."
        )

    def _plain(self, functions: tuple[FunctionSpec, ...] | None) -> ChatRequest:
        context = UserMessage(self._working_context(), "context")
        return ChatRequest(
            (self._system, *self.queue.messages(), context),
            self._functions if functions is None else functions,
            max_tokens=self.reply_reserve,
        )

    def _flushed(self, functions: tuple[FunctionSpec, ...] | None) -> ChatRequest:
        self.flush(keep_last=1)
        return self._plain(functions)

    def _without_summary(self, functions: tuple[FunctionSpec, ...] | None) -> ChatRequest:
        self.queue.summary = self._limited_summary(self.queue.summary, self.summary_limit // 4)
        return self._plain(functions)

    def _shrunk(self, functions: tuple[FunctionSpec, ...] | None) -> ChatRequest:
        # An estimate that turned out too low (the endpoint's own count corrected it) can leave a
        # newest Turn that no longer fits. Recall storage has it whole.
        excess = self._chat.prompt_tokens(self._plain(functions)) + self.reply_reserve
        excess -= self.context_window
        if self.queue.turns:
            self.queue.replace_last(self._cut_results(self.queue.turns[-1], excess))
        return self._plain(functions)

    def _fits(self, request: ChatRequest) -> bool:
        return self._chat.prompt_tokens(request) + request.max_tokens <= self.context_window

    @property
    def _fixed(self) -> int:
        return self._chat.prompt_tokens(ChatRequest((self._system,), self._functions))

    @property
    def _warning_cost(self) -> int:
        """What the next warning will take: it must still fit after a large result."""
        return self.text_cost(MEMORY_PRESSURE.format(percent=100))

    @property
    def _summary_cost(self) -> int:
        if not self.queue.summary:
            return 0
        return self.cost((UserMessage(SUMMARY_PREFIX + self.queue.summary, "summary"),))

    def _free(self, pending: int) -> int:
        return self.usable - self.used - pending - self._warning_cost

    def _limited_summary(self, summary: str, limit: int) -> str:
        """The summary within `limit` tokens as the chat counts it, whoever made it."""
        text = summary.strip()
        allowed = limit
        while text and self.text_cost(SUMMARY_PREFIX + text) > limit:
            allowed = min(allowed - 1, self._counter.count(text)) * 3 // 4
            if allowed <= 0:
                return ""
            text = self._counter.cut(text, allowed).strip()
        return text

    def _limited(self, turn: Turn) -> Turn:
        """A Turn with no reply longer than the reserve, whatever the endpoint sent."""
        return Turn(tuple(self._limited_reply(message) for message in turn.messages))

    def _limited_reply(self, message: Message) -> Message:
        if not isinstance(message, AssistantMessage):
            return message
        allowed = self.reply_reserve + self._warning_cost
        if self.cost((message,)) <= allowed:
            return message
        calls = tuple(replace(call, arguments="{}") for call in message.calls)
        bare = replace(message, text="", calls=calls)
        room = max(0, self.reply_reserve - self.cost((bare,)))
        return replace(bare, text=self._counter.cut(message.text, room // 2))

    def _cut_results(self, turn: Turn, excess: int) -> Turn:
        messages: list[Message] = []
        for message in turn.messages:
            if isinstance(message, ToolResult) and excess > 0:
                size = self._counter.count(message.text)
                cut = self._counter.cut(message.text, max(16, size - excess - 16))
                excess -= size - self._counter.count(cut)
                result = shortened(message.result, len(cut), "(cut: the window is full)")
                message = replace(message, result=result)
            messages.append(message)
        return Turn(tuple(messages))

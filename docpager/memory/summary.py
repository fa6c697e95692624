"""The recursive summary: from the old summary and what is evicted (paper, section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from docpager.errors import BudgetReached, ModelError
from docpager.function_results import outline
from docpager.messages import (
    AssistantMessage,
    ChatRequest,
    Message,
    SystemMessage,
    ToolResult,
    UserMessage,
)
from docpager.prompts import SUMMARIZE
from docpager.protocols import Chat, Summarizer, TokenCounter

_LINE_CHARACTERS = 160
_WORDS_PER_TOKEN = 0.6
_MOST_PARTS = 4


class ExtractiveSummarizer:
    """Keeps the head of each evicted message, newest first to stay, without any model."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def summarize(self, previous: str, evicted: Sequence[Message], limit: int) -> str:
        """One line a message (calls, passage ids shown, words said); the oldest lines go first."""
        lines = [*previous.splitlines(), *filter(None, map(summary_line, evicted))]
        kept: list[str] = []
        room = limit
        for line in reversed(lines):
            cost = self._counter.count(line) + 1
            if cost > room:
                break
            kept.append(line)
            room -= cost
        if not kept and lines:
            return self._counter.cut(lines[-1], limit)
        return "\n".join(reversed(kept))


class ModelSummarizer:
    """Asks the model for the summary, in parts where one prompt would not fit.

    What the model returns is cut to the limit in code; if it is down, replies with nothing or
    may not be called any more, the extractive summary takes its place, so eviction always succeeds.
    """

    def __init__(
        self, chat: Chat, counter: TokenCounter, context_window: int, fallback: Summarizer
    ) -> None:
        self._chat = chat
        self._counter = counter
        self._window = context_window
        self._fallback = fallback

    def summarize(self, previous: str, evicted: Sequence[Message], limit: int) -> str:
        """Folds the evicted messages into the old summary, part by part."""
        texts = [text for text in map(_transcript, evicted) if text]
        summary = previous
        try:
            for part in self._parts(texts, summary, limit):
                summary = self._ask(summary, part, limit) or summary
        except (ModelError, BudgetReached):
            return self._fallback.summarize(previous, evicted, limit)
        if summary == previous:
            return self._fallback.summarize(previous, evicted, limit)
        return summary

    def _parts(self, texts: Sequence[str], summary: str, limit: int) -> list[str]:
        bare = self._request(summary, "", limit)
        room = self._window - self._chat.prompt_tokens(bare) - 2 * limit - 16
        if room < limit:
            raise ModelError("The window has no room to summarise in.")
        parts = [""]
        for text in texts:
            piece = self._counter.cut(text, room // 2)
            if parts[-1] and self._counter.count(parts[-1]) + self._counter.count(piece) > room:
                parts.append("")
            parts[-1] = f"{parts[-1]}\n\n{piece}".strip()
        # A summary of very much is not worth many calls: what is oldest is left to recall.
        return [part for part in parts if part][-_MOST_PARTS:]

    def _request(self, summary: str, part: str, limit: int) -> ChatRequest:
        instructions = SUMMARIZE.format(words=max(20, int(limit * _WORDS_PER_TOKEN)))
        text = f"<summary>\n{summary or '(none)'}\n</summary>\n<messages>\n{part}\n</messages>"
        return ChatRequest((SystemMessage(instructions), UserMessage(text)), max_tokens=limit)

    def _ask(self, summary: str, part: str, limit: int) -> str:
        request = self._request(summary, part, limit)
        if self._chat.prompt_tokens(request) + limit > self._window:
            raise ModelError("The summary's prompt does not fit into the window.")
        return self._counter.cut(self._chat.complete(request).message.text.strip(), limit)


def summary_line(message: Message) -> str:
    """What one message leaves in an extractive summary; empty where nothing is worth keeping.

    >>> from docpager.function_results import SearchPage
    >>> summary_line(ToolResult("c1", "archival_memory_search", SearchPage((), 0, 0, 0)))
    'archival_memory_search -> Showing 0 of 0 results (page 0/0)'
    """
    match message:
        case AssistantMessage(text=text, calls=calls):
            said = [f"{call.name}{call.arguments}" for call in calls] or [text]
            return _head("; ".join(said))
        case ToolResult(name=name, result=result):
            return _head(f"{name} -> {outline(result)}".strip(), 2 * _LINE_CHARACTERS)
        case UserMessage(text=text, kind=kind):
            return "" if kind in ("pressure", "context", "nudge") else _head(text)
        case _:
            return ""


def _head(text: str, limit: int = _LINE_CHARACTERS) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _transcript(message: Message) -> str:
    match message:
        case AssistantMessage(text=text, calls=calls):
            return "\n".join([text, *(f"{call.name}{call.arguments}" for call in calls)]).strip()
        case ToolResult(name=name, text=text):
            return f"{name} returned: {text}"
        case UserMessage(text=text, kind=kind):
            return "" if kind in ("pressure", "context", "nudge") else text
        case _:
            return ""

"""The FIFO queue: Turns in order, with the recursive summary at its head (paper, section 2.1)."""

from __future__ import annotations

from collections.abc import Callable

from docpager.messages import Message, ToolResult, Turn, UserMessage
from docpager.prompts import SUMMARY_PREFIX


class FifoQueue:
    """Turns that leave whole and from the front; the question and the newest Turn never leave."""

    def __init__(self, summary: str = "") -> None:
        self.summary = summary
        self._turns: list[Turn] = []

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Oldest first."""
        return tuple(self._turns)

    def append(self, turn: Turn) -> None:
        """Add the newest Turn."""
        self._turns.append(turn)

    def replace_last(self, turn: Turn) -> None:
        """Put a shorter form in the place of the newest Turn."""
        self._turns[-1] = turn

    def messages(self) -> tuple[Message, ...]:
        """The summary, if there is one, then every message in order."""
        head = [UserMessage(SUMMARY_PREFIX + self.summary, "summary")] if self.summary else []
        return (*head, *(message for turn in self._turns for message in turn.messages))

    def holds_result(self, call_id: str) -> bool:
        """Whether the result of that call can still be seen."""
        return any(
            isinstance(message, ToolResult) and message.call_id == call_id
            for turn in self._turns
            for message in turn.messages
        )

    def evict(self, excess: int, cost: Callable[[Turn], int], keep_last: int) -> tuple[Turn, ...]:
        """Take Turns from the front until `excess` tokens went; returns them in order.

        The question and the last `keep_last` Turns stay, so that less than `excess` may go.

            >>> queue = FifoQueue()
            >>> queue.append(Turn((UserMessage("why?"),)))
            >>> for n in range(3):
            ...     queue.append(Turn((UserMessage(f"event {n}", "heartbeat"),)))
            >>> [turn.messages[0].text for turn in queue.evict(2, lambda turn: 1, keep_last=1)]
            ['event 0', 'event 1']
            >>> [turn.messages[0].text for turn in queue.turns]
            ['why?', 'event 2']
        """
        evictable = self._turns[: max(0, len(self._turns) - keep_last)]
        evicted: list[Turn] = []
        for turn in evictable:
            if excess <= 0:
                break
            if turn.is_question:
                continue
            evicted.append(turn)
            excess -= cost(turn)
        gone = {id(turn) for turn in evicted}
        self._turns = [turn for turn in self._turns if id(turn) not in gone]
        return tuple(evicted)

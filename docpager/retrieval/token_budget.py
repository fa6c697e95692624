"""A budget of tokens for what one result may show, and the cutting of text to fit it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from docpager.protocols import TokenCounter


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """The most tokens that one result may use: constant for a run, so that pages stay the same."""

    tokens: int
    counter: TokenCounter
    cost: Callable[[str], int]
    """Tokens of a text in the prompt, message wrapping included, by the chat's estimate."""

    def head(self, text: str, tokens: int) -> str:
        """The beginning of `text` that costs at most `tokens`; at least one token of it."""
        size = self.counter.count(text)
        while self.cost(text) > tokens and size > 1:
            size = min(size - 1, max(1, size * max(tokens, 1) // self.cost(text)))
            text = self.counter.cut(text, size)
        return text

    def pieces(self, text: str, tokens: int) -> list[str]:
        """`text` cut into pieces of at most `tokens`, at line or sentence ends where it has them.

        The pieces joined are the text.
        """
        pieces = []
        while self.cost(text) > tokens:
            size = max(1, self.counter.count(text) * tokens // self.cost(text) - 1)
            head = self.counter.cut(text, size) or text[:1]
            while self.cost(head) > tokens and len(head) > 1:
                head = head[: len(head) * 3 // 4]
            at = max(head.rfind("\n"), head.rfind(". "), head.rfind("。"))
            head = head[: at + 1] if at > len(head) // 2 else head
            pieces.append(head)
            text = text[len(head) :]
        return [*pieces, text] if text else pieces

"""What a batch asks: who answers its questions, and what comes of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from docpager.errors import Limit
from docpager.messages import ModelInfo
from docpager.types import Answer


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What came of one question."""

    answer: Answer
    """Also one that says that there is none."""
    refused_by: Limit | None = None
    """The limit of the batch that refused the run a model call."""


class Answerer(Protocol):
    """Answers questions, for several threads at once."""

    @property
    def info(self) -> ModelInfo:
        """Which model answers."""

    @property
    def settings(self) -> dict[str, object]:
        """What makes one run differ from another over the same archive."""

    @property
    def content_hash(self) -> str:
        """Of the archive."""

    def check(self, question: str) -> None:
        """Refuse a question that is too long, by a UserError."""

    def answer(self, question: str) -> RunOutcome:
        """Answer one question; a DocpagerError means that none could be answered."""

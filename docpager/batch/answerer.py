"""The interface that a batch asks its questions through, and the outcome of one question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from docpager.errors import Limit
from docpager.messages import ModelInfo
from docpager.types import Answer


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of one question."""

    answer: Answer
    """Also where it only says why there is none."""
    refused_by: Limit | None = None
    """The limit of the batch that refused a model call of this run, if one did."""


class Answerer(Protocol):
    """Answers questions; several threads call it at once."""

    @property
    def info(self) -> ModelInfo:
        """Which model answers."""

    @property
    def settings(self) -> dict[str, object]:
        """The settings that can change an answer over the same archive."""

    @property
    def content_hash(self) -> str:
        """The hash of the content of the archive."""

    def check(self, question: str) -> None:
        """Raise UserError if the question is too long for the model."""

    def answer(self, question: str) -> RunOutcome:
        """Answer one question; a DocpagerError means that no question can be answered."""

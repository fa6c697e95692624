"""What the reports of a batch are made from, and what a report is: a subscriber to its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from docpager.batch.questions import Question
from docpager.batch.result import Result
from docpager.batch.summary import BatchSummary
from docpager.types import Citation


@dataclass(frozen=True, slots=True)
class FinishedBatch:
    """A batch that has ended."""

    questions: tuple[Question, ...]
    """Those that were selected, in the order of their file."""
    result_of: Callable[[str], Result | None]
    """The result of a question by its id; None if it has none."""
    summary: BatchSummary
    runs: Path
    """The folder of the traces."""
    cited_text: Callable[[Citation], str | None]
    """The stored text that a citation points into; None where it is gone."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """By id, why a question that was asked has no new result."""
    not_asked: Mapping[str, str] = field(default_factory=dict)
    """By id, why a question that was to be asked again was not, and keeps its old result."""


Subscriber = Callable[[FinishedBatch], None]
"""Called once with the finished batch; a report writes its file then."""

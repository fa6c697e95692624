"""The questions file of a batch: one JSON object a line, all checked before anything is spent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from docpager.batch.jsonlines import decoded_object, first_problem
from docpager.errors import NothingToDo, UserError
from docpager.types import AnswerStatus, JSONValue, PageRef

LONGEST_LINE = 1_000_000
"""Bytes; a question too long for the model is refused later, with the size of its window."""
_MOST_SHOWN = 5
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")

RESULT_KEYS = frozenset(
    {
        "schema",
        "run_id",
        "status",
        "answer",
        "citations",
        "steps",
        "searches",
        "pages_read",
        "pages_shown",
        "usage",
        "model",
        "tool_mode",
        "stopped_by",
        "elapsed_s",
        "error",
        "scores",
        "skipped",
        "stopped_at",
        "fingerprint",
        "unasked",
    }
)
"""The keys of a result's line that a question's line must not use."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and what is expected of its answer."""

    id: str
    """Unique in its file; the line's number where the line gives none."""
    text: str
    line: int
    """1-based."""
    expected: tuple[str, ...] = ()
    """Accepted answers; one of them is enough."""
    expected_documents: tuple[str, ...] = ()
    expected_pages: tuple[PageRef, ...] = ()
    expected_status: AnswerStatus | None = None
    tags: tuple[str, ...] = ()
    given: Mapping[str, JSONValue] = field(default_factory=dict)
    """The line as given, without question and id; it is passed through to the results."""
    file: str = ""
    """The name of its file."""

    @property
    def location(self) -> str:
        """Its line, as `FILE:LINE`."""
        return f"{self.file}:{self.line}"


class _Page(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    document: str
    page: int


class _Line(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    question: str
    id: str | int | None = None
    expected: str | list[str] | None = None
    expected_documents: list[str] | None = None
    expected_pages: list[_Page] | None = None
    expected_status: AnswerStatus | None = None
    tags: list[str] | None = None

    @field_validator("question")
    @classmethod
    def _not_empty(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("it is empty")
        return value.strip()

    @field_validator("id")
    @classmethod
    def _one_line(cls, value: str | int | None) -> str | int | None:
        if isinstance(value, str) and (not value.strip() or _CONTROL.search(value)):
            raise ValueError("it is empty, or holds a line break or another control character")
        return value


def read_questions(path: Path) -> tuple[Question, ...]:
    """Every question of the file, in order; a byte order mark and blank lines are skipped.

    Raises:
        UserError: a line is no question, or an id is used twice; each is `FILE:LINE: what`.
        NothingToDo: there is no question.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"The questions {path} cannot be read ({error.strerror}). Name another file."
        ) from error
    questions: list[Question] = []
    problems: list[str] = []
    seen: dict[str, int] = {}
    for number, line in _lines(content):
        try:
            question = _question(line, path.name, number)
        except ValueError as error:
            problems.append(f"{path.name}:{number}: {error}")
            continue
        if question.id in seen:
            before = seen[question.id]
            problems.append(
                f"{path.name}:{number}: the id {question.id!r} is that of line {before}"
            )
        seen.setdefault(question.id, number)
        questions.append(question)
    if problems:
        more = len(problems) - _MOST_SHOWN
        shown = "; ".join(problems[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        raise UserError(f"{shown}. Correct the file; nothing was asked.")
    if not questions:
        raise NothingToDo(f"{path.name} holds no question. Write one JSON object a line into it.")
    return tuple(questions)


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            yield number, line


def _question(line: bytes, file: str, number: int) -> Question:
    """The question on a line.

    Raises:
        ValueError: it is none; the text says why.
    """
    if len(line) > LONGEST_LINE:
        raise ValueError(f"the line is longer than {LONGEST_LINE:,} bytes")
    given = decoded_object(line)
    taken = sorted(RESULT_KEYS & given.keys())
    if taken:
        hint = "; what is expected is `expected`" if taken[0] == "answer" else ""
        raise ValueError(f"the key {taken[0]!r} is one of the results{hint}")
    try:
        read = _Line.model_validate(given)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None
    expected = (read.expected,) if isinstance(read.expected, str) else tuple(read.expected or ())
    passed = {name: value for name, value in given.items() if name not in ("question", "id")}
    return Question(
        id=str(number if read.id is None else read.id),
        text=read.question,
        line=number,
        expected=expected,
        expected_documents=tuple(read.expected_documents or ()),
        expected_pages=tuple(PageRef(at.document, at.page) for at in read.expected_pages or ()),
        expected_status=read.expected_status,
        tags=tuple(dict.fromkeys(read.tags or ())),
        given=passed,
        file=file,
    )

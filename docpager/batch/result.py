"""What a line of a file of results must hold for all that read it: resume, reports, comparisons.

Files are edited by hand, merged, or come from other programs: the shape is checked in this one
place, so that nobody behind it has to expect anything else.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from docpager.batch.jsonlines import decoded_object, first_problem
from docpager.errors import Limit
from docpager.types import AnswerStatus, JSONValue

_Count = Annotated[int, Field(ge=0, le=2**53)]
_Page = Annotated[int, Field(ge=0, le=2**31 - 1)]
_Amount = Annotated[float, Field(ge=0, le=1e12)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Citation(_Part):
    passage_id: str
    document: str
    page: _Page | None
    page_label: str | None
    quote: str
    verified: bool
    section: str | None
    line: _Count | None
    problem: str | None


class _Usage(_Part):
    prompt_tokens: _Count
    cached_tokens: _Count
    completion_tokens: _Count
    cost_usd: _Amount | None


class _PageShown(_Part):
    document: str
    page: _Page


class _Result(_Part):
    id: str
    run_id: Annotated[str, Field(pattern=r"^[\w-]*$", max_length=100)]
    question: str
    status: AnswerStatus
    answer: str
    citations: list[_Citation]
    steps: _Count
    searches: _Count
    pages_read: _Count
    usage: _Usage
    model: str
    tool_mode: str
    stopped_by: Limit | None
    elapsed_s: _Amount
    error: str | None
    pages_shown: list[_PageShown]
    skipped: Limit | None
    fingerprint: str
    tags: list[str]
    expected_status: AnswerStatus | None = None
    scores: dict[str, bool | float | None]
    stopped_at: _Amount | None = None
    unasked: Literal[True] | None = None


def read_result(line: bytes) -> dict[str, JSONValue]:
    """The result on a line.

    Raises:
        ValueError: it is none; the text says why.
    """
    given = decoded_object(line)
    try:
        _Result.model_validate(given)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None
    return given

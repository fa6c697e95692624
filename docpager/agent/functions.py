"""The functions that the model may call. Their schemas come from these signatures and docstrings.

Names and parameters are those of the paper's code; the command-line contract fixes them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated, Any, TypeAlias, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from docpager.agent.archival import ArchivalMemory, fenced
from docpager.errors import FunctionError, UserError
from docpager.function_results import (
    FunctionResult,
    PlainText,
    ProposedAnswer,
    ProposedCitation,
    RecallPage,
)
from docpager.memory.recall import parse_moment, search_recall
from docpager.memory.session import Session
from docpager.memory.working_context import WorkingContext
from docpager.messages import FunctionSpec
from docpager.retrieval.pages import page_slices
from docpager.retrieval.token_budget import TokenBudget
from docpager.types import JSONValue

PageNumber: TypeAlias = Annotated[int, Field(ge=0)]
DocumentPageNumber: TypeAlias = Annotated[int, Field(ge=1)]
_ARGUMENT = re.compile(r"^\s+(\w+): (.+)$", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""Of a function, as every endpoint accepts it."""
_FIRST_LINE_TOKENS = 24
"""Of a page of recall storage."""
_CUT = " (cut)"


class CitationArgument(BaseModel):
    """One citation as the model gives it."""

    passage_id: str
    quote: str


@dataclass(frozen=True, slots=True)
class Function:
    """A callable with its schema, and the model that checks its arguments."""

    spec: FunctionSpec
    call: Callable[..., FunctionResult]
    arguments: type[BaseModel]
    has_heartbeat: bool
    shows_memory: bool = False
    """Whether its result brings in text from external memory, so that paging rules apply."""

    def bind(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Checked arguments; unknown ones are left out, since small models invent some.

        Raises:
            FunctionError: one is missing or has the wrong type; the message names it.
        """
        try:
            checked = self.arguments.model_validate(raw)
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}"
                for problem in error.errors()[:3]
            )
            expected = ", ".join(self.arguments.model_fields)
            raise FunctionError(f"{problems}. Arguments are: {expected}.") from error
        return {name: getattr(checked, name) for name in type(checked).model_fields}


class CallerFunctionError(FunctionError):
    """A function of the caller's own raised something else; that is its `__cause__`."""


class MemoryFunctions:
    """The functions over one session's memory; each docstring's first line is its description."""

    def __init__(
        self,
        *,
        archival: ArchivalMemory,
        working_context: WorkingContext,
        session: Session,
        evict: Callable[[int], int],
        budget: TokenBudget,
    ) -> None:
        self._archival = archival
        self._working_context = working_context
        self._session = session
        self._evict = evict
        self._budget = budget

    def archival_memory_search(self, query: str, page: PageNumber = 0) -> FunctionResult:
        """Search the documents for names, rare words or a question; page 0 is the best.

        Args:
            query: names, numbers, rare words or a question
            page: 0 for the best results, 1 for the next
        """
        return self._archival.search(query, page)

    def archival_memory_insert(self, content: str) -> FunctionResult:
        """Keep a text of your own in archival memory.

        Args:
            content: the text
        """
        return PlainText(f"Inserted as [{self._archival.insert(content)}].")

    def conversation_search(
        self, query: str = "", start_date: str = "", end_date: str = "", page: PageNumber = 0
    ) -> FunctionResult:
        """Search earlier messages; empty query: all by time. Dates: YYYY-MM-DD or empty.

        Args:
            query: words that were said
            start_date: YYYY-MM-DD or empty
            end_date: YYYY-MM-DD or empty
            page: 0-based page of results
        """
        found = search_recall(
            self._session.entries,
            query,
            parse_moment(start_date, end=False),
            parse_moment(end_date, end=True),
        )
        most = self._budget.tokens - _FIRST_LINE_TOKENS
        lines = [self._cut_line(entry.line, most) for entry in found]
        slices = page_slices([self._budget.cost(line) for line in lines], most)
        last = len(slices) - 1
        if page > last:
            raise FunctionError(f"there is no page {page}. The last page is {last}.")
        return RecallPage(tuple(lines[slices[page]]), len(lines), page, last)

    def core_memory_append(self, section: str, content: str) -> FunctionResult:
        """Add a line to section persona, user or notes.

        Args:
            section: persona, user or notes
            content: a fact with its passage id
        """
        self._working_context.append(section, content)
        return PlainText("Added.")

    def core_memory_replace(
        self, section: str, old_content: str, new_content: str
    ) -> FunctionResult:
        """Replace text in a section; empty new_content deletes.

        Args:
            section: persona, user or notes
            old_content: text as it stands there
            new_content: what takes its place
        """
        self._working_context.replace(section, old_content, new_content)
        return PlainText("Replaced.")

    def evict_messages(self, keep_last: PageNumber) -> FunctionResult:
        """Move all but the newest messages to recall memory.

        Args:
            keep_last: how many of the newest to keep
        """
        return PlainText(f"Moved {self._evict(keep_last)} messages to recall memory.")

    def read_document(
        self, document: str, page: DocumentPageNumber, part: PageNumber = 0
    ) -> FunctionResult:
        """Read a whole page (from 1) of a document by name; part (from 0) of a long page.

        Args:
            document: its name, as in results
            page: 1-based page number
            part: 0-based part of a long page
        """
        return self._archival.read(document, page, part)

    def send_message(
        self,
        message: str,
        citations: list[CitationArgument] = [],  # noqa: B006 — pydantic copies it
        not_found: bool = False,
    ) -> FunctionResult:
        """Give the final answer and end; quotes are verbatim; not_found: the documents lack it.

        Args:
            message: the answer, short
            citations: passage_id and a verbatim quote for every claim
            not_found: true if the documents do not contain the answer
        """
        if not message.strip() and not not_found:
            raise FunctionError("message is empty. Give the answer, or set not_found.")
        proposed = tuple(ProposedCitation(given.passage_id, given.quote) for given in citations)
        return ProposedAnswer(message.strip(), proposed, not_found)

    def _cut_line(self, line: str, most: int) -> str:
        if self._budget.cost(line) <= most:
            return line
        return self._budget.head(line, most - self._budget.cost(_CUT)) + _CUT


FUNCTION_NAMES = (
    "archival_memory_search",
    "archival_memory_insert",
    "conversation_search",
    "core_memory_append",
    "core_memory_replace",
    "evict_messages",
    "read_document",
    "send_message",
)
_SIMPLE_TYPES: dict[Any, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    PageNumber: "integer",
    DocumentPageNumber: "integer",
}
_SHOWS_MEMORY = frozenset({"archival_memory_search", "conversation_search", "read_document"})


def functions_of(memory: MemoryFunctions) -> dict[str, Function]:
    """The functions by name, in the order in which they are offered."""
    return {name: replace(_function(name), call=getattr(memory, name)) for name in FUNCTION_NAMES}


def function_specs() -> tuple[FunctionSpec, ...]:
    """What is offered to the model, known without any memory."""
    return tuple(_function(name).spec for name in FUNCTION_NAMES)


def own_functions(calls: Sequence[Callable[..., str]]) -> tuple[Function, ...]:
    """Functions of a caller's own, offered to the model after the others.

    Each is a function with a docstring, whose first line is the description, and whose section
    `Args:` describes every parameter; parameters are str, int, float or bool. What it returns is
    shown to the model as data. A FunctionError that it raises goes back to the model.

    Raises:
        UserError: a name is taken or impossible, the docstring is missing, or a parameter is not
            described or of another type.
    """
    made: dict[str, Function] = {}
    for call in calls:
        if not _NAME.fullmatch(getattr(call, "__name__", "")) or not inspect.getdoc(call):
            raise UserError(f"{call!r} has no name or no docstring. Give it both.")
        if call.__name__ in FUNCTION_NAMES or call.__name__ in made:
            raise UserError(f"There is a function {call.__name__} already. Name yours otherwise.")
        try:
            function = _described(call.__name__, call)
        except TypeError as error:
            raise UserError(f"{error}. Describe it, or use str, int, float or bool.") from error
        made[call.__name__] = replace(function, call=partial(_shown_as_data, call))
    return tuple(made.values())


def _shown_as_data(call: Callable[..., str], **arguments: Any) -> FunctionResult:
    try:
        return PlainText(fenced(str(call(**arguments))))
    except FunctionError:
        raise
    except Exception as error:  # the caller's own code; the model can try otherwise
        kind = type(error).__name__
        raise CallerFunctionError(f"it ended in {kind}: {error}. Try other arguments.") from error


@cache
def _function(name: str) -> Function:
    """A function of `MemoryFunctions`, not yet bound to a memory."""
    function = _described(name, getattr(MemoryFunctions, name))
    return replace(function, shows_memory=name in _SHOWS_MEMORY)


def _described(name: str, call: Callable[..., Any]) -> Function:
    """A function with its schema out of signature and docstring.

    Raises:
        TypeError: a parameter is not described, or of a type that has no schema.
    """
    description, _, _ = inspect.cleandoc(call.__doc__ or "").partition("\n")
    described = dict(_ARGUMENT.findall(call.__doc__ or ""))
    hints = get_type_hints(call, include_extras=True)
    fields: dict[str, Any] = {}
    properties: dict[str, JSONValue] = {}
    required: list[JSONValue] = []
    for parameter in inspect.signature(call).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.name not in described:
            raise TypeError(f"{name}: parameter {parameter.name} is not described")
        hint = hints.get(parameter.name)
        optional = parameter.default is not inspect.Parameter.empty
        fields[parameter.name] = (hint, parameter.default if optional else ...)
        properties[parameter.name] = _json_type(f"{name}: parameter {parameter.name}", hint)
        if not optional:
            required.append(parameter.name)
    has_heartbeat = name != "send_message"
    if has_heartbeat:
        properties["request_heartbeat"] = {"type": "boolean"}
    parameters: dict[str, JSONValue] = {
        "type": "object",
        "properties": properties,
        "required": required,
    }
    arguments = create_model(f"{name}_arguments", __config__=ConfigDict(extra="ignore"), **fields)
    spec = FunctionSpec(name, description, parameters)
    return Function(spec, call, arguments, has_heartbeat, shows_memory=True)


def _json_type(parameter: str, hint: Any) -> dict[str, JSONValue]:
    """The bare type: descriptions would take a quarter of the tokens that schemas may take."""
    if hint in _SIMPLE_TYPES:
        return {"type": _SIMPLE_TYPES[hint]}
    if hint != list[CitationArgument]:
        raise TypeError(f"{parameter} has a type without a schema")
    text: dict[str, JSONValue] = {"type": "string"}
    item: dict[str, JSONValue] = {
        "type": "object",
        "properties": {"passage_id": text, "quote": text},
        "required": ["passage_id", "quote"],
    }
    return {"type": "array", "items": item}

"""What the functions of the agent return, as values, and the one place that renders them as text.

A closed union: the agent counts and pages by type, guided mode reads passages instead of parsing
text, and the model is shown `rendered(result)`. How a passage is searched for, cut to a budget or
read is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from docpager.types import PageRef


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage, or a piece of one, as a result shows it."""

    passage_id: str
    """`P17`, `N1`; empty for text of a page that belongs to no passage."""
    text: str
    """As shown: no line of it can be taken for a header (`agent.archival.fenced`)."""
    place: str = ""
    """File and page; empty on a page of a document, whose first line names the page."""
    shown_before: bool = False
    pages: tuple[PageRef, ...] = ()
    """The pages of a document that the passage stands on."""
    note: str = ""
    """A line below the text: how to read what was cut."""

    @property
    def header(self) -> str:
        """The line above the text, as the contract fixes it.

        >>> ShownPassage("P17", "…", "corpus/q3.pdf p. 14-15", shown_before=True).header
        '[P17] corpus/q3.pdf p. 14-15 · shown before'
        >>> ShownPassage("", "…").header
        ''
        """
        if not self.passage_id:
            return ""
        place = f" {self.place}" if self.place else ""
        return f"[{self.passage_id}]{place}" + (" · shown before" if self.shown_before else "")

    @property
    def lines(self) -> tuple[str, ...]:
        """Header, text and note, as far as they are there."""
        return (*filter(None, [self.header]), self.text, *filter(None, [self.note]))


@dataclass(frozen=True, slots=True)
class SearchPage:
    """A page of a ranking."""

    passages: tuple[ShownPassage, ...]
    total: int
    """Results of the whole ranking."""
    page: int
    """0-based."""
    last_page: int
    archive_changed: bool = False
    """The archive changed since the previous page was shown, so the ranking is a new one."""
    note: str = ""

    @property
    def pages(self) -> tuple[PageRef, ...]:
        """The pages of documents that it shows text of, without repetition, in order."""
        return tuple(dict.fromkeys(page for shown in self.passages for page in shown.pages))


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A page of a document, or one part of a long page."""

    passages: tuple[ShownPassage, ...]
    page: PageRef
    page_count: int
    part: int
    """0-based."""
    last_part: int
    paged: bool
    """False for formats that have sections in place of pages."""
    note: str = ""
    """A line below: on which page the last passage continues."""

    @property
    def pages(self) -> tuple[PageRef, ...]:
        """The one page."""
        return (self.page,)


@dataclass(frozen=True, slots=True)
class RecallPage:
    """A page of recall storage."""

    messages: tuple[str, ...]
    """One line a message: time, role, text."""
    total: int
    page: int
    """0-based."""
    last_page: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class PlainText:
    """Words alone: that something was done, or what a function of the caller's own returned."""

    text: str


@dataclass(frozen=True, slots=True)
class AlreadyShown:
    """A call made again while its first result is still in the queue."""

    passage_ids: tuple[str, ...]
    next_page: int | None
    """0-based; None after the last page."""


@dataclass(frozen=True, slots=True)
class ProposedCitation:
    """What the model says supports its answer."""

    passage_id: str
    quote: str


@dataclass(frozen=True, slots=True)
class ProposedAnswer:
    """The arguments of `send_message`: an answer that is not yet checked."""

    message: str
    citations: tuple[ProposedCitation, ...]
    not_found: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call did nothing, and what to do."""

    reason: str


FunctionResult: TypeAlias = (
    SearchPage | DocumentPage | RecallPage | PlainText | AlreadyShown | ProposedAnswer | Failure
)


def rendered(result: FunctionResult) -> str:
    """What the model is shown.

    >>> print(rendered(SearchPage((ShownPassage("P1", "The mill.", "a.pdf p. 1"),), 5, 0, 4)))
    Showing 1 of 5 results (page 0/4)
    [P1] a.pdf p. 1
    The mill.
    >>> rendered(Failure("there is no page 9."))
    'Failed: there is no page 9.'
    """
    match result:
        case SearchPage() | DocumentPage():
            texts = [line for shown in result.passages for line in shown.lines]
            return "\n".join([first_line(result), *texts, *filter(None, [result.note])])
        case RecallPage():
            lines = [first_line(result), *result.messages, *filter(None, [result.note])]
            return "\n".join(lines)
        case PlainText(text):
            return text
        case Failure(reason):
            return f"Failed: {reason}"
        case ProposedAnswer():
            return "Sent."
        case AlreadyShown(passage_ids, next_page):
            seen = ", ".join(passage_ids) or "the result above"
            more = (
                "there is no further page; use other words"
                if next_page is None
                else f"next page is {next_page}"
            )
            return f"Already shown: see {seen}; {more}."
        case _:
            assert_never(result)


def first_line(page: SearchPage | DocumentPage | RecallPage) -> str:
    """The line at the top of a page: how much of what it shows."""
    match page:
        case DocumentPage():
            unit = "Page" if page.paged else "Section"
            part = f"part {page.part}/{page.last_part}"
            return f"{unit} {page.page.page} of {page.page_count}, {part}"
        case SearchPage(passages=shown) | RecallPage(messages=shown):
            first = f"Showing {len(shown)} of {page.total} results "
            first += f"(page {page.page}/{page.last_page})"
            changed = isinstance(page, SearchPage) and page.archive_changed
            new = "; the archive changed since the last page, so this ranking is new"
            return first + (new if changed else "")
        case _:
            assert_never(page)


def outline(result: FunctionResult) -> str:
    """The first line of a result and the headers of its passages, in one line.

    >>> outline(SearchPage((ShownPassage("P1", "The mill.", "a.pdf p. 1"),), 5, 0, 4))
    'Showing 1 of 5 results (page 0/4) [P1] a.pdf p. 1'
    """
    match result:
        case SearchPage() | DocumentPage():
            headers = [shown.header for shown in result.passages]
            return " ".join([first_line(result), *filter(None, headers)])
        case _:
            return rendered(result).partition("\n")[0]


def passage_ids(result: FunctionResult) -> tuple[str, ...]:
    """The passages whose text a result shows, in order, without repetition."""
    match result:
        case SearchPage() | DocumentPage():
            ids = [shown.passage_id for shown in result.passages]
            return tuple(dict.fromkeys(filter(None, ids)))
        case _:
            return ()


def next_page(result: FunctionResult) -> int | None:
    """The 0-based page that follows; None after the last, and where there are no pages."""
    match result:
        case SearchPage() | RecallPage():
            return result.page + 1 if result.page < result.last_page else None
        case _:
            return None


def shortened(result: FunctionResult, characters: int, note: str) -> FunctionResult:
    """What is left of a result when only the first `characters` of its text are kept.

    What a page no longer shows is no longer in it, so that nothing counts as shown which the model
    did not see. `note` stands below.

    >>> page = SearchPage((ShownPassage("P1", "mill"), ShownPassage("P2", "lock")), 2, 0, 0)
    >>> print(rendered(shortened(page, 41, "(cut)")))
    Showing 1 of 2 results (page 0/0)
    [P1]
    mi
    (cut)
    """
    match result:
        case SearchPage() | DocumentPage():
            room = characters - len(first_line(result)) - 1
            kept = tuple(_kept(result.passages, room))
            return replace(result, passages=kept, note=note)
        case RecallPage():
            room = characters - len(first_line(result)) - 1
            return replace(result, messages=tuple(_kept_lines(result.messages, room)), note=note)
        case Failure(reason):
            return Failure(f"{reason[: max(0, characters - len('Failed: '))]}\n{note}")
        case _:
            return PlainText(f"{rendered(result)[:characters]}\n{note}")


def _kept(passages: Sequence[ShownPassage], room: int) -> Iterator[ShownPassage]:
    for shown in passages:
        whole = len("\n".join(shown.lines)) + 1
        if whole <= room:
            yield shown
            room -= whole
            continue
        room -= len(shown.header) + 1 if shown.header else 0
        if room > 0:
            yield replace(shown, text=shown.text[:room], note="")
        return


def _kept_lines(lines: Sequence[str], room: int) -> Iterator[str]:
    for line in lines:
        if room <= 0:
            return
        yield line[:room]
        room -= len(line) + 1

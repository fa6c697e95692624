"""Archival memory as the model sees it: ranked searches in true pages, documents page by page."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from docpager.agent.locations import passage_place
from docpager.errors import FunctionError, UserError
from docpager.memory.session import Session
from docpager.protocols import ArchivalStore, Embedder, TokenCounter, Vectors
from docpager.retrieval.pages import page_slices
from docpager.retrieval.search import search
from docpager.types import PageRef, PageText, Passage, Scored

_LOOKS_LIKE_HEADER = re.compile(r"^(?=\[[PN]\d+\])", re.MULTILINE)
_HEADER_TOKENS = 24
"""Of the line above a passage: its id, a document's name, a page."""
_LONGEST_FIRST_LINE = "Showing 400 of 400 results (page 100/100)"
"""Above the passages of a page, but for a rare remark."""
_CUT_MARGIN = 32
"""Tokens: what comes nearer than this to the room that is left is counted piece by piece."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece of text for the model, and which passages and pages it shows."""

    text: str
    passage_ids: tuple[str, ...] = ()
    pages: tuple[PageRef, ...] = ()
    next_page: int | None = None
    """0-based page of results that follows; None after the last."""


@dataclass(frozen=True, slots=True)
class _CachedRanking:
    ordered: tuple[Scored, ...]
    slices: tuple[slice, ...]
    generation: int
    inserts: int


class ArchivalMemory:
    """Searches documents and the model's inserts together, and reads documents page by page.

    `budget` is the most tokens that one result may take, constant for a run.
    """

    def __init__(
        self,
        *,
        store: ArchivalStore,
        embedder: Embedder,
        session: Session,
        counter: TokenCounter,
        budget: int,
        text_cost: Callable[[str], int],
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._session = session
        self._counter = counter
        self._budget = budget
        self._text_cost = text_cost
        self._rankings: dict[str, _CachedRanking] = {}
        self._counted: dict[str, int] = {}
        """What passages take as they are shown, for one search."""

    def search(self, query: str, page: int) -> Shown:
        """Page `page` (0-based) of the ranking for `query`.

        Raises:
            FunctionError: the query is empty, or the page is past the end (the last one is named).
        """
        query = " ".join(query.split())
        if not query:
            raise FunctionError("query is empty. Give words or a question to search for.")
        self._counted.clear()
        ranking, changed = self._ranking(query)
        last = len(ranking.slices) - 1
        if page > last:
            raise FunctionError(f"there is no page {page}. The last page is {last}.")
        part = ranking.ordered[ranking.slices[page]]
        passages = self._passages([scored.passage_id for scored in part])
        first = f"Showing {len(passages)} of {len(ranking.ordered)} results (page {page}/{last})"
        if changed:
            first += "; the archive changed since the last page, so this ranking is new"
        return self._render(first, passages, page + 1 if page < last else None)

    def read(self, document: str, page_number: int, part: int) -> Shown:
        """Part `part` (0-based) of page `page_number` (1-based) of a document.

        Raises:
            FunctionError: there is no such document, page or part; what there is gets named.
        """
        try:
            found = self._store.document(document)
            page = self._store.page(found.name, page_number)
        except UserError as error:
            raise FunctionError(str(error)) from error
        passages = self._store.page_passages(found.name, page_number)
        parts = self._parts(segments(page, passages))
        if part >= len(parts):
            raise FunctionError(
                f"page {page_number} has no part {part}. Its last part is {len(parts) - 1}."
            )
        pieces = parts[part]
        unit = "Page" if found.paged else "Section"
        first = f"{unit} {page_number} of {found.pages}, part {part}/{len(parts) - 1}"
        shown = dict.fromkeys(passage_id for passage_id, _ in pieces if passage_id)
        lines = [first, *(self._marked(*piece) for piece in pieces)]
        if part == len(parts) - 1 and passages and passages[-1].last_page > page_number:
            lines.append(f"([{passages[-1].passage_id}] goes on: page={page_number + 1} part=0)")
        return Shown(
            "\n".join(lines),
            tuple(shown),
            (PageRef(found.name, page_number),),
        )

    def insert(self, content: str) -> str:
        """Keep a note of the model's own; returns its id (`N1`, `N2`, …)."""
        if not content.strip():
            raise FunctionError("content is empty. Give the text to keep.")
        vector: Vectors = self._embedder.embed([content])[0]
        return self._session.insert(content.strip(), vector)

    def _ranking(self, query: str) -> tuple[_CachedRanking, bool]:
        cached = self._rankings.get(query)
        state = (self._store.generation, len(self._session.inserts))
        if cached is not None and (cached.generation, cached.inserts) == state:
            return cached, False
        ordered = search(self._store, self._embedder, query, inserts=self._session).ordered
        costs = self._costs(ordered)
        room = self._budget - self._text_cost(_LONGEST_FIRST_LINE) - _CUT_MARGIN
        ranking = _CachedRanking(ordered, page_slices(costs, room), *state)
        self._rankings[query] = ranking
        return ranking, cached is not None

    def _passages(self, passage_ids: Sequence[str]) -> tuple[Passage, ...]:
        inserts = {insert.passage_id: insert for insert in self._session.inserts}
        stored = self._store.passages([name for name in passage_ids if name not in inserts])
        by_id = inserts | {passage.passage_id: passage for passage in stored}
        return tuple(by_id[name] for name in passage_ids if name in by_id)

    def _costs(self, ordered: Sequence[Scored]) -> list[int]:
        """What each hit takes of a page.

        Those of the first page are counted; for the others, it is the token counts made at ingest,
        in the measure of those.
        """
        ids = [scored.passage_id for scored in ordered]
        inserts = {insert.passage_id: insert.tokens for insert in self._session.inserts}
        stored = zip(ids, self._store.passage_tokens(ids), strict=True)
        sizes = [inserts.get(name, tokens) + _HEADER_TOKENS for name, tokens in stored]
        first_page = page_slices(sizes, self._budget)[0]
        counted: list[int] = []
        for passage in self._passages(ids[first_page]):
            counted.append(self._cost(self._whole(passage)))
            if sum(counted) > self._budget:
                break
        scale = sum(counted) / max(1, sum(sizes[: len(counted)]))
        return [*counted, *(int(scale * size) + 1 for size in sizes[len(counted) :])]

    def _cost(self, whole: str) -> int:
        """Tokens of a passage as it is shown; counted once for the page's size and its text."""
        if whole not in self._counted:
            self._counted[whole] = self._text_cost(whole)
        return self._counted[whole]

    def _whole(self, passage: Passage) -> str:
        return f"{self._header(passage)}\n{fenced(passage.text)}"

    def _header(self, passage: Passage) -> str:
        return passage_header(passage, before=passage.passage_id in self._session.shown)

    def _render(self, first: str, passages: Sequence[Passage], next_page: int | None) -> Shown:
        lines = [first]
        room = self._budget - self._text_cost(first)
        pages: dict[PageRef, None] = {}
        for passage in passages:
            whole = self._whole(passage)
            cost = self._cost(whole)
            if cost > room - _CUT_MARGIN:
                header = self._header(passage)
                whole = f"{header}\n{self._cut(passage, room - self._text_cost(header))}"
                cost = self._text_cost(whole)
            lines.append(whole)
            room -= cost
            if not passage.is_insert:
                numbers = range(passage.first_page, passage.last_page + 1)
                pages.update((PageRef(passage.document, number), None) for number in numbers)
        return Shown(
            "\n".join(lines),
            tuple(passage.passage_id for passage in passages),
            tuple(pages),
            next_page,
        )

    def _cut(self, passage: Passage, room: int) -> str:
        """The passage's text within `room` tokens; where it is cut, how to read the rest."""
        text = fenced(passage.text)
        if self._text_cost(text) <= room:
            return text
        note = self._cut_note(passage)
        room -= self._text_cost(note)
        size = self._counter.count(text)
        while self._text_cost(text) > room and size > 1:
            size = min(size - 1, max(1, size * max(room, 1) // self._text_cost(text)))
            text = self._counter.cut(text, size)
        return f"{text}\n{note}"

    def _cut_note(self, passage: Passage) -> str:
        """The call that brings what did not fit: the page's first part with this passage in it."""
        if passage.is_insert:
            return "(cut)"
        document, number = passage.document, passage.first_page
        pieces = segments(
            self._store.page(document, number), self._store.page_passages(document, number)
        )
        holding = (
            at
            for at, part in enumerate(self._parts(pieces))
            if any(passage_id == passage.passage_id for passage_id, _ in part)
        )
        call = f'document="{document}" page={number} part={next(holding, 0)}'
        return f"(cut; for the rest: read_document {call})"

    def _marked(self, passage_id: str, text: str) -> str:
        if not passage_id:
            return fenced(text)
        before = " · shown before" if passage_id in self._session.shown else ""
        return f"[{passage_id}]{before}\n{fenced(text)}"

    def _parts(self, pieces: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
        """Pieces packed in order into parts of at most the budget; together they are the page."""
        parts: list[list[tuple[str, str]]] = [[]]
        limit = max(24, self._budget - 2 * _HEADER_TOKENS - 16)
        room = limit
        for passage_id, text in pieces:
            for piece in self._split(text, limit - _HEADER_TOKENS):
                cost = self._text_cost(piece) + _HEADER_TOKENS
                if cost > room and parts[-1]:
                    parts.append([])
                    room = limit
                parts[-1].append((passage_id, piece))
                room -= cost
        return parts

    def _split(self, text: str, limit: int) -> list[str]:
        pieces = []
        while self._text_cost(text) > limit:
            size = max(1, self._counter.count(text) * limit // self._text_cost(text) - 1)
            head = self._counter.cut(text, size) or text[:1]
            while self._text_cost(head) > limit and len(head) > 1:
                head = head[: len(head) * 3 // 4]
            at = max(head.rfind("\n"), head.rfind(". "), head.rfind("。"))
            head = head[: at + 1] if at > len(head) // 2 else head
            pieces.append(head)
            text = text[len(head) :]
        return [*pieces, text] if text else pieces


def passage_header(passage: Passage, *, before: bool) -> str:
    """The line above a passage in a result, as the contract fixes it.

    >>> passage_header(Passage("P17", "corpus/q3.pdf", "…", 14, 15), before=True)
    '[P17] corpus/q3.pdf p. 14-15 · shown before'
    """
    place = "inserted by you" if passage.is_insert else passage_place(passage)
    return f"[{passage.passage_id}] {place}" + (" · shown before" if before else "")


def fenced(text: str) -> str:
    """Document text in which no line can pass for the header of a passage."""
    return _LOOKS_LIKE_HEADER.sub(" ", text)


def segments(page: PageText, passages: Sequence[Passage]) -> list[tuple[str, str]]:
    """A page's text cut at the passages that stand on it: (passage id, text), in order.

    The texts joined are the page's text. What no passage holds has the id of the passage before
    it, or none at the top of the page.
    """
    starts: list[tuple[int, str]] = []
    cursor = 0
    for passage in passages:
        if passage.first_page < page.page_number:
            at = 0
        else:
            at = page.text.find(passage.text[:80].split("\n", 1)[0], cursor)
        if at >= 0:
            starts.append((at, passage.passage_id))
            cursor = at + 1
    if not starts or starts[0][0] > 0:
        starts.insert(0, (0, ""))
    ends = [at for at, _ in starts[1:]] + [len(page.text)]
    return [
        (passage_id, page.text[at:end])
        for (at, passage_id), end in zip(starts, ends, strict=True)
        if end > at
    ] or [("", page.text)]

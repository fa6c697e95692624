"""Archival memory as the model sees it: ranked searches in true pages, documents page by page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from docpager.agent.locations import passage_place
from docpager.errors import FunctionError, UserError
from docpager.function_results import DocumentPage, SearchPage, ShownPassage, first_line
from docpager.memory.session import Session
from docpager.protocols import ArchivalStore, Embedder, Vectors
from docpager.retrieval.pages import page_slices
from docpager.retrieval.search import search
from docpager.retrieval.token_budget import TokenBudget
from docpager.types import PageRef, PageText, Passage, Scored

_LOOKS_LIKE_HEADER = re.compile(r"^(?=\[[PN]\d+\])", re.MULTILINE)
_HEADER_TOKENS = 24
"""Of the line above a passage: its id, a document's name, a page."""
_LONGEST_FIRST_LINE = "Showing 400 of 400 results (page 100/100)"
"""Above the passages of a page, but for a rare remark."""
_CUT_MARGIN = 32
"""Tokens: what comes nearer than this to the room that is left is counted piece by piece."""


@dataclass(frozen=True, slots=True)
class _CachedRanking:
    ordered: tuple[Scored, ...]
    slices: tuple[slice, ...]
    generation: int
    inserts: int


class ArchivalMemory:
    """Searches documents and the model's inserts together, and reads documents page by page."""

    def __init__(
        self,
        store: ArchivalStore,
        embedder: Embedder,
        session: Session,
        budget: TokenBudget,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._session = session
        self._budget = budget
        self._rankings: dict[str, _CachedRanking] = {}
        self._counted: dict[str, int] = {}
        """What passages cost as they are shown, for one search."""

    def search(self, query: str, page: int) -> SearchPage:
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
        empty = SearchPage((), len(ranking.ordered), page, last, archive_changed=changed)
        return self._filled(empty, passages)

    def read(self, document: str, page_number: int, part: int) -> DocumentPage:
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
        ref = PageRef(found.name, page_number)
        shown = tuple(self._shown_piece(*piece, ref) for piece in parts[part])
        note = ""
        if part == len(parts) - 1 and passages and passages[-1].last_page > page_number:
            note = f"([{passages[-1].passage_id}] goes on: page={page_number + 1} part=0)"
        return DocumentPage(
            shown, ref, found.pages, part, len(parts) - 1, paged=found.paged, note=note
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
        room = self._budget.tokens - self._budget.cost(_LONGEST_FIRST_LINE) - _CUT_MARGIN
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
        first_page = page_slices(sizes, self._budget.tokens)[0]
        counted: list[int] = []
        for passage in self._passages(ids[first_page]):
            counted.append(self._cost(self._shown(passage)))
            if sum(counted) > self._budget.tokens:
                break
        scale = sum(counted) / max(1, sum(sizes[: len(counted)]))
        return [*counted, *(int(scale * size) + 1 for size in sizes[len(counted) :])]

    def _cost(self, shown: ShownPassage) -> int:
        """Tokens of a passage as it is shown; counted once for the page's size and its text."""
        whole = "\n".join(shown.lines)
        if whole not in self._counted:
            self._counted[whole] = self._budget.cost(whole)
        return self._counted[whole]

    def _shown(self, passage: Passage) -> ShownPassage:
        return shown_passage(passage, before=passage.passage_id in self._session.shown)

    def _filled(self, page: SearchPage, passages: Sequence[Passage]) -> SearchPage:
        """The page with its passages, the last of them cut where it does not fit."""
        page = replace(page, passages=tuple(self._shown(passage) for passage in passages))
        room = self._budget.tokens - self._budget.cost(first_line(page))
        kept: list[ShownPassage] = []
        for passage, shown in zip(passages, page.passages, strict=True):
            if self._cost(shown) > room - _CUT_MARGIN:
                shown = self._cut(passage, shown, room - self._budget.cost(shown.header))
            kept.append(shown)
            room -= self._cost(shown)
        return replace(page, passages=tuple(kept))

    def _cut(self, passage: Passage, shown: ShownPassage, room: int) -> ShownPassage:
        """The passage with its text within `room` tokens; where it is cut, how to read the rest."""
        if self._budget.cost(shown.text) <= room:
            return shown
        note = self._cut_note(passage)
        text = self._budget.head(shown.text, room - self._budget.cost(note))
        return replace(shown, text=text, note=note)

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

    def _shown_piece(self, passage_id: str, text: str, page: PageRef) -> ShownPassage:
        before = passage_id in self._session.shown
        return ShownPassage(passage_id, fenced(text), shown_before=before, pages=(page,))

    def _parts(self, pieces: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
        """Pieces packed in order into parts within the budget; together they are the page."""
        limit = max(24, self._budget.tokens - 2 * _HEADER_TOKENS - 16)
        small = [
            (passage_id, piece)
            for passage_id, text in pieces
            for piece in self._budget.pieces(text, limit - _HEADER_TOKENS)
        ]
        costs = [self._budget.cost(piece) + _HEADER_TOKENS for _, piece in small]
        return [small[part] for part in page_slices(costs, limit)]


def shown_passage(passage: Passage, *, before: bool) -> ShownPassage:
    """A whole passage or insert as a search result shows it.

    >>> shown_passage(Passage("P17", "corpus/q3.pdf", "…", 14, 15), before=False).header
    '[P17] corpus/q3.pdf p. 14-15'
    """
    numbers = range(passage.first_page, passage.last_page + 1)
    return ShownPassage(
        passage.passage_id,
        fenced(passage.text),
        "inserted by you" if passage.is_insert else passage_place(passage),
        shown_before=before,
        pages=tuple(PageRef(passage.document, page) for page in numbers if not passage.is_insert),
    )


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

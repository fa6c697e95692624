"""What the agent and the verbs ask of models and stores; each has a real use and a double."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from docpager.errors import Limit
from docpager.messages import ChatReply, ChatRequest, Message, ModelInfo
from docpager.types import (
    Chunk,
    Document,
    EmbedderIdentity,
    PageText,
    ParsedDocument,
    Passage,
    Scored,
    TermStatistics,
    ToolMode,
    Usage,
)

Vectors: TypeAlias = npt.NDArray[np.float32]
"""Shape (n, d), finite, each row of norm 1."""


class Clock(Protocol):
    """Time as an argument, so that a test can hold it still."""

    def now(self) -> datetime:
        """The current time, aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary beginning; never goes back."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class TokenCounter(Protocol):
    """Counts tokens of text as a model sees it; a conservative estimate where it is unknown."""

    def count(self, text: str) -> int:
        """Tokens in `text`; 0 for the empty string; never raises, whatever the text."""

    def cut(self, text: str, limit: int) -> str:
        """The longest prefix of `text` of at most `limit` tokens."""


class Chat(Protocol):
    """A model that replies to messages, by calling functions where they are offered."""

    @property
    def tool_mode(self) -> ToolMode:
        """How functions are offered to the model."""

    def prompt_tokens(self, request: ChatRequest) -> int:
        """Tokens of the request as it will be sent, schemas and wrapping included.

        Corrected upward from the endpoint's own counts; for a chat that makes several calls, of
        `request.messages` and `request.functions` as given.
        """

    def complete(self, request: ChatRequest) -> ChatReply:
        """Call the model.

        Raises:
            ModelError: the endpoint cannot be reached, refuses, or answers nonsense.
            BudgetReached: a bound leaves no room for the call.
        """


class Embedder(Protocol):
    """Turns texts into vectors of a fixed dimension."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Name and dimension; the probe is filled in where it costs no network call."""

    @property
    def batch_size(self) -> int:
        """How many texts `embed` likes at once."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of `texts`, in order, shape (len(texts), dimension), normalised.

        Raises:
            ModelError: the embedding endpoint cannot be reached, refuses, or answers nonsense.
        """


class ArchivalStore(Protocol):
    """The documents as an agent sees them: searched by halves, read by page, never written."""

    @property
    def generation(self) -> int:
        """Grows with every committed change."""

    @property
    def passage_count(self) -> int:
        """Passages in the archive."""

    def lexical_search(
        self, query: str, depth: int, document_glob: str | None = None
    ) -> tuple[Scored, ...]:
        """The best `depth` passages by BM25: by score descending, then passage number."""

    def vector_search(
        self, vector: Vectors, depth: int, document_glob: str | None = None
    ) -> tuple[Scored, ...]:
        """The best `depth` passages by cosine with `vector`, shape (d,); ties by number."""

    def term_statistics(self, terms: Sequence[str]) -> TermStatistics:
        """What BM25 knows of `terms` in this archive."""

    def passages(self, passage_ids: Sequence[str]) -> tuple[Passage, ...]:
        """These passages, in the order asked; ids that do not exist are left out."""

    def passage_tokens(self, passage_ids: Sequence[str]) -> tuple[int, ...]:
        """Tokens of each of these passages as counted at ingest, in the order asked; 0 if unknown.

        Cheap for a whole ranking, of which the texts are not needed to size its pages.
        """

    def document(self, name: str) -> Document:
        """The ready document of that name, or of which it is a unique end.

        Raises:
            UserError: there is none, or there are several; the message lists the nearest names.
        """

    def documents(self) -> tuple[Document, ...]:
        """All documents, failed ones too, by name."""

    def page(self, document: str, page_number: int) -> PageText:
        """One page (or section) of a ready document, by its exact name.

        Raises:
            UserError: there is no such page; the message names the last one.
        """

    def page_passages(self, document: str, page_number: int) -> tuple[Passage, ...]:
        """The passages of which some text stands on that page, in order."""


class ArchiveWriter(Protocol):
    """The archive opened for one short burst of commits; every method is one transaction."""

    def together(self) -> AbstractContextManager[None]:
        """Everything that is changed within it is one transaction: all of it is kept, or none.

        Vectors that lose their last passage go at its end, if none has come to use them again.
        """

    def documents(self) -> tuple[Document, ...]:
        """All documents, failed ones too, by name."""

    def missing_vectors(self, text_hashes: Sequence[str]) -> frozenset[str]:
        """Those of `text_hashes` for which the archive has no vector yet."""

    def put_vectors(self, text_hashes: Sequence[str], vectors: Vectors) -> None:
        """Keep vectors, whether or not their document is stored yet: they are paid for.

        Raises:
            ArchiveError: a vector is not finite, is zero, or has another dimension (I5).
        """

    def store(
        self, document: Document, parsed: ParsedDocument, chunks: Sequence[Chunk]
    ) -> Document:
        """Store a document whole (pages, passages, postings), in place of one of that name.

        Every chunk's vector must have been put before. Passage numbers follow the order of
        `chunks` and are never used again. Of the same bytes, duplicates stay duplicates.
        """

    def record(self, document: Document) -> None:
        """Keep a row without text: a failed file with its reason, a duplicate, a new mtime.

        Of a ready one, which keeps its text, the reader too if one is named.
        """

    def rename(self, old_name: str, document: Document) -> None:
        """Give a stored document another name and place, and keep its passages as they are."""

    def remove(self, names: Sequence[str]) -> int:
        """Forget documents; returns how many passages went. Unused vectors go with them.

        A duplicate of what is removed takes its passages over, and what is attached to it.
        """

    def compact(self) -> None:
        """Bring what many bursts left into the shape that searches are quickest with."""


class SpendingMeter(Protocol):
    """Sums what model calls cost, and says when a bound is near."""

    @property
    def usage(self) -> Usage:
        """Tokens and money of every endpoint call so far, summaries and guided steps included."""

    def limit_reached(self, prompt_tokens: int, reply_tokens: int) -> Limit | None:
        """Which bound leaves no room for a call of up to so many tokens and a forced answer after
        it; None while there is room."""

    def release_reserve(self) -> None:
        """From now on what was kept back for the forced answer may be spent."""


class Summarizer(Protocol):
    """Makes the recursive summary at the head of the FIFO queue."""

    def summarize(self, previous: str, evicted: Sequence[Message], limit: int) -> str:
        """A summary of the old summary and the evicted messages, at most `limit` tokens.

        Never raises: where the model is down, an extractive summary is made in code.
        """


@dataclass(frozen=True, slots=True)
class Models:
    """The model side of a run. `chat` calls the endpoint through `meter`."""

    chat: Chat
    info: ModelInfo
    meter: SpendingMeter
    counter: TokenCounter
    summarizer: Summarizer
    embedder: Embedder

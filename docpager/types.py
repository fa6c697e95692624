"""What docpager passes around: documents, passages, result pages, answers.

Frozen values; what a property derives, it derives from its own fields alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from docpager.errors import FailureReason, Limit

DocumentState = Literal["pending", "ready", "failed", "duplicate"]
SearchMode = Literal["hybrid", "lexical", "vector"]
ToolMode = Literal["tools", "json", "text", "guided"]
AnswerStatus = Literal[
    "answered", "unsupported", "not_found", "step_limit", "budget", "model_error"
]

PATH_JOINT = " > "
"""Between the headings of a path, the outermost first."""
PAGE_SEPARATOR = "\n"
"""What stands between two pages in a document's text, which offsets count."""


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of one page as it is stored, and as quotes are checked against it.

    A file without pages (plain text, Markdown) is cut into numbered sections, which take the
    place of pages; `heading` and `first_line` (1-based) then say where a section stands.
    """

    page_number: int
    """1-based, within the file."""
    text: str
    page_label: str | None = None
    """What is printed on the page ("iii"), if the file says so."""
    engine: str = "text"
    """Which reader made the text: `pdfium`, `pypdf`, `rapidocr`, or the format (`text`, `docx`,
    `html`, …)."""
    flags: tuple[str, ...] = ()
    """Doubts about the text: `garbled`, `low_text`, `no_text_layer`, `damaged`, `repaired`,
    `recognised` (from a picture), `xfa_placeholder`."""
    heading: str | None = None
    first_line: int | None = None
    quality: float = 1.0
    """0.0 to 1.0: how sure it is that the text is what is printed; `garbled` below 0.5."""
    furniture: tuple[tuple[int, int], ...] = ()
    """Spans of `text`, in order, that are running heads or page numbers: whole lines."""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A file's text, page by page, in order; `paged` is False where pages are numbered sections.

    The document's text is the pages' texts joined by `PAGE_SEPARATOR`.
    """

    pages: tuple[PageText, ...]
    paged: bool
    title: str | None = None
    author: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document's text before storage: `text == document_text[start:end]`."""

    text: str
    start: int
    """Offset in characters from the beginning of the document's text."""
    end: int
    first_page: int
    """1-based page (or section) that holds the first character."""
    last_page: int
    heading: str = ""
    """`title > heading > heading`, at most 64 tokens: indexed with the text, stored apart.

    A chunk that begins inside a table has the table's header row as its last heading, for which
    there are 64 tokens more.
    """
    line: int | None = None
    """1-based line of the first character, for files without pages."""
    tokens: int = 0
    """Tokens of `text`, as counted when it was cut; 0 where they were not."""
    furniture: tuple[tuple[int, int], ...] = ()
    """Spans of `text` that are running heads or page numbers: whole lines, never the first."""

    @property
    def indexed_text(self) -> str:
        """What is embedded and indexed: the heading path, then the text without furniture."""
        text = self.text
        for start, end in reversed(self.furniture):
            text = text[: start - 1] + text[end:]  # with the line break before it
        return f"{self.heading}\n{text}" if self.heading else text

    @property
    def text_hash(self) -> str:
        """The key of its vector: SHA-256 of the indexed text; equal texts share one."""
        return hashlib.sha256(self.indexed_text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class Document:
    """A file as the archive knows it. `name` is `folder/path`, with `/`, never absolute."""

    name: str
    state: DocumentState
    content_hash: str
    """SHA-256 of the file's bytes, hexadecimal."""
    size: int
    """Bytes."""
    root: str
    """The absolute folder that `name` begins in; never shown to a model."""
    mtime_ns: int = 0
    paged: bool = True
    pages: int = 0
    passages: int = 0
    title: str | None = None
    author: str | None = None
    reason: FailureReason | None = None
    """Why it failed, where `state` is `failed`."""
    message: str | None = None
    duplicate_of: str | None = None
    """Name of the document with the same bytes, where `state` is `duplicate`."""
    attempts: int = 0
    """How often these bytes were read, or tried to be."""
    reader: str = ""
    """What read them: the tools' versions and the limits they were held to."""


FileStatus = Literal[
    "added", "updated", "unchanged", "moved", "duplicate", "failed", "removed", "gone"
]


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one file of an ingest; `path` is the document's name."""

    path: str
    status: FileStatus
    reason: FailureReason | None = None
    """Why, where `status` is `failed`."""
    message: str | None = None
    tried: bool = True
    """False where it failed before and was not tried again."""
    warnings: tuple[str, ...] = ()
    """What has to be said beside a success: bytes that were no text, a name that misleads."""


@dataclass(frozen=True, slots=True)
class IngestCounts:
    """How far an ingest is."""

    files: int
    """Done with, of `total`."""
    total: int
    pages: int
    """Stored so far, as are `passages`."""
    passages: int
    failed: int


@dataclass(frozen=True, slots=True)
class IngestProfile:
    """Where the time of an ingest went. Reading, embedding and writing go on side by side."""

    seconds: dict[str, float]
    """By stage; those of `read` are the sum over all workers."""
    bytes: int
    """Of the files that were read."""


LeftOutKind = Literal["hidden", "link", "rule", "format", "no_file", "unreadable"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An entry of a folder that is not ingested: `path` is named as a document would be."""

    path: str
    kind: LeftOutKind
    """Hidden or temporary; a symbolic link; unwanted by a pattern; of no format that is read; no
    regular file; or not to be read at all."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The outcome of an ingest: what `docpager ingest --json` prints."""

    added: int
    updated: int
    unchanged: int
    moved: int
    removed: int
    duplicate: int
    failed: int
    """Files that failed now, and those that failed before and have not changed."""
    gone: int
    """Documents whose file is there no more, and which were kept."""
    ignored: int
    """Entries of the folders that are no documents, or were not wanted."""
    passages: int
    """Stored by this ingest, as are `pages`."""
    pages: int
    """With the sections of files without pages."""
    sections: int
    """Of `pages`."""
    elapsed_s: float
    files: tuple[FileOutcome, ...]
    """In walk order, then what was removed or is gone."""
    left_out: tuple[LeftOut, ...]
    """What `ignored` counts."""
    profile: IngestProfile


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as stored and citable. `passage_id` is `P` and a number, or `N` and a number for
    what the model inserted itself (then `document` is empty)."""

    passage_id: str
    document: str
    text: str
    first_page: int = 1
    last_page: int = 1
    paged: bool = True
    start: int = 0
    end: int = 0
    heading: str = ""
    line: int | None = None
    tokens: int = 0

    @property
    def is_insert(self) -> bool:
        """Whether the model wrote it (it can be cited and is never verified)."""
        return self.passage_id.startswith("N")


class Scored(NamedTuple):
    """A passage's score in one half of a search; higher is better, always finite.

    A tuple, because each search makes hundreds of them.
    """

    passage_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage with its 0-based rank and its score for a query."""

    rank: int
    score: float
    passage: Passage


@dataclass(frozen=True, slots=True)
class ResultPage:
    """A slice of a ranking: hits `page * page_size …`; the last page is `page_count - 1`."""

    query: str
    mode: SearchMode
    page: int
    """0-based."""
    page_size: int
    page_count: int
    """At least 1: an empty ranking has one empty page."""
    total: int
    """Hits in the whole ranking."""
    hits: tuple[Hit, ...]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


@dataclass(frozen=True, slots=True)
class ArchiveStatus:
    """The numbers that `docpager status` shows."""

    ready: int
    failed: tuple[Document, ...]
    """With `reason` and `message`."""
    pending: int
    """Found by an ingest that did not get to them."""
    duplicates: int
    passages: int
    pages: int
    """Sections of files without pages among them."""
    sections: int
    bytes: int
    """Of the file and its log."""
    generation: int
    embedder: EmbedderIdentity | None
    """None while nothing was ingested."""


@dataclass(frozen=True, slots=True)
class DocumentText:
    """What is stored of a document: its pages in order; iterating goes over them."""

    document: Document
    pages: tuple[PageText, ...]

    def __iter__(self) -> Iterator[PageText]:
        return iter(self.pages)

    def __len__(self) -> int:
        return len(self.pages)


@dataclass(frozen=True, slots=True)
class Removal:
    """What went from an archive."""

    documents: tuple[str, ...]
    """Whole names, with those of what was attached."""
    passages: int


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """What BM25 needs to know of a collection, for some terms."""

    passages: int
    average_length: float
    """Mean passage length in terms; 0.0 for an empty collection."""
    passage_frequency: dict[str, int]
    """How many passages hold the term; terms that none holds are absent."""


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Which embedder made an archive's vectors; vectors of two identities are never compared."""

    name: str
    dimension: int
    normalised: bool
    probe: tuple[float, ...] = ()
    """The vector of `PROBE_TEXT`, by which a silently changed model is noticed."""


PROBE_TEXT = "docpager checks its embedder with this sentence: 1914, Zürich, 数据."


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of model calls; addable. `cost_usd` is None where no price is known."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together: what `--max-tokens` bounds."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(costs) if costs else None,
        )


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in USD for a million tokens."""

    prompt: float
    completion: float
    cached: float | None = None
    """Of prompt tokens that the endpoint had in its cache; None = as `prompt`."""

    def cost(self, usage: Usage) -> float:
        """USD for `usage`; its cached tokens are among its prompt tokens."""
        cached = self.prompt if self.cached is None else self.cached
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens)
        spent = fresh * self.prompt + usage.cached_tokens * cached
        return (spent + usage.completion_tokens * self.completion) / 1e6


@dataclass(frozen=True, slots=True)
class Citation:
    """A claim's evidence; `verified` was decided in code against the stored page, never by a model.

    `page` is 1-based, None for files without pages, where `section` and `line` say where.
    """

    passage_id: str
    document: str
    page: int | None
    page_label: str | None
    quote: str
    verified: bool
    section: str | None = None
    line: int | None = None
    problem: str | None = None
    """Why it is not verified, in words; None when it is."""


@dataclass(frozen=True, slots=True)
class PageRef:
    """A document's page, as shown, expected or cited; sections count as pages here."""

    document: str
    page: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one question: what `docpager ask --json` prints."""

    run_id: str
    question: str
    status: AnswerStatus
    answer: str
    citations: tuple[Citation, ...]
    steps: int
    """Model calls that chose a function."""
    searches: int
    """Archival searches that ran."""
    pages_read: int
    """Distinct document pages shown."""
    usage: Usage
    model: str
    tool_mode: ToolMode
    stopped_by: Limit | None
    """Which bound forced the answer, else None."""
    elapsed_s: float
    error: str | None = None
    pages_shown: tuple[PageRef, ...] = field(default=())
    """Which pages were shown, in order of first sight (for `read_recall`; not in the JSON)."""


JSONValue: TypeAlias = "str | int | float | bool | list[JSONValue] | dict[str, JSONValue] | None"

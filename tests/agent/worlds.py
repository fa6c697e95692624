"""Small worlds to run an agent in: documents given as pages, a scripted model, no real time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from docpager.agent.agent import Agent
from docpager.agent.trace import MemoryTrace
from docpager.memory.session import Memory, Session
from docpager.memory.summary import ExtractiveSummarizer
from docpager.messages import AssistantMessage, ModelInfo
from docpager.protocols import Chat, Models, Summarizer, TokenCounter
from docpager.testing import (
    CharacterCounter,
    FrozenClock,
    HashEmbedder,
    InMemoryStore,
    ScriptedChat,
)
from docpager.types import (
    PAGE_SEPARATOR,
    Answer,
    Chunk,
    Document,
    PageText,
    ParsedDocument,
    Usage,
)

MILL = {
    "corpus/mills.pdf": [
        "The mill at Orrin Ford was designed by Tamsin Hale and opened in 1887.",
        "Its wheel was replaced in 1902 after the great flood of that spring.",
    ],
    "corpus/people.pdf": [
        "Tamsin Hale was born in the harbour town of Kestwick in 1851.",
        "Her brother Corin Hale kept the lighthouse at Pell Point.",
    ],
}


class FreeMeter:
    """A meter without bounds."""

    usage = Usage()

    def limit_reached(self, prompt_tokens: int, reply_tokens: int) -> None:
        return None

    def release_reserve(self) -> None:
        return None


def archive_of(documents: Mapping[str, Sequence[str]], counter: TokenCounter) -> InMemoryStore:
    """An archive in which every page is one passage."""
    embedder = HashEmbedder()
    archive = InMemoryStore(embedder.identity)
    for name, pages in documents.items():
        parsed = ParsedDocument(
            tuple(PageText(number, text) for number, text in enumerate(pages, 1)), paged=True
        )
        chunks, start = [], 0
        for number, text in enumerate(pages, 1):
            chunks.append(
                Chunk(text, start, start + len(text), number, number, tokens=counter.count(text))
            )
            start += len(text) + len(PAGE_SEPARATOR)
        archive.put_vectors(
            [chunk.text_hash for chunk in chunks],
            embedder.embed([chunk.indexed_text for chunk in chunks]),
        )
        digest = hashlib.sha256("\f".join(pages).encode()).hexdigest()
        row = Document(name, "ready", digest, 1, "/corpus", pages=len(pages), passages=len(chunks))
        archive.store(row, parsed, chunks)
    return archive


def spanning(pages: list[str]) -> InMemoryStore:
    """One passage over all pages."""
    archive = InMemoryStore(HashEmbedder().identity)
    text = "\n".join(pages)
    chunk = Chunk(text, 0, len(text), 1, len(pages))
    archive.put_vectors([chunk.text_hash], HashEmbedder().embed([chunk.indexed_text]))
    parsed = ParsedDocument(
        tuple(PageText(n, text, page_label=f"v{n}") for n, text in enumerate(pages, 1)), paged=True
    )
    archive.store(Document("c/a.pdf", "ready", "h", 1, "/c", pages=2, passages=1), parsed, [chunk])
    return archive


@dataclass
class World:
    """An agent with everything around it, to be asked once."""

    replies: Iterable[AssistantMessage | BaseException]
    documents: Mapping[str, Sequence[str]] = field(default_factory=lambda: MILL)
    window: int = 8192
    max_steps: int = 24
    counter: TokenCounter = field(default_factory=CharacterCounter)
    session: Session | None = None
    meter: object = field(default_factory=FreeMeter)
    chat: Chat | None = None
    summarizer: Summarizer | None = None

    def __post_init__(self) -> None:
        self.clock = FrozenClock(datetime(2026, 3, 4, 5, 6, tzinfo=UTC))
        self.trace = MemoryTrace()
        self.session = self.session or Session(self.clock)
        self.archive = archive_of(self.documents, self.counter)
        if self.chat is None:
            self.chat = ScriptedChat(self.replies, counter=self.counter)
        self.agent = Agent(
            Models(
                chat=self.chat,
                info=ModelInfo("scripted", "test", "tools", self.window),
                meter=self.meter,
                counter=self.counter,
                summarizer=self.summarizer or ExtractiveSummarizer(self.counter),
                embedder=HashEmbedder(),
            ),
            Memory(self.archive, self.session),
            max_steps=self.max_steps,
            clock=self.clock,
            trace=self.trace,
            run_id="run",
        )

    def ask(self, question: str = "Where was the designer of the mill born?") -> Answer:
        return self.agent.run(question)

    def results(self, name: str) -> list[dict[str, object]]:
        """The traced results of a function."""
        return [
            event
            for event in self.trace.events
            if event["event"] == "message" and event["role"] == "tool" and event["name"] == name
        ]

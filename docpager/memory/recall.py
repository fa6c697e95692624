"""Recall storage: every message ever queued, with its time; searched by text and date."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from docpager.errors import FunctionError
from docpager.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolResult,
    UserMessage,
)
from docpager.retrieval.terms import terms


@dataclass(frozen=True, slots=True)
class RecallEntry:
    """A message as it was said."""

    number: int
    """1-based, in order of time over the whole session."""
    run_id: str
    at: datetime
    """Aware, in UTC."""
    role: str
    kind: str
    """The kind of a user message, the function of a result; else empty."""
    text: str

    @property
    def line(self) -> str:
        """How a result of `conversation_search` shows it."""
        who = f"{self.role} {self.kind}".strip()
        return f"{self.at:%Y-%m-%d %H:%M} {who}: {self.text}"


def entry_of(message: Message, number: int, run_id: str, at: datetime) -> RecallEntry:
    """The entry that a message becomes; calls are kept as `name{arguments}`."""
    match message:
        case SystemMessage(text=text):
            return RecallEntry(number, run_id, at, "system", "", text)
        case UserMessage(text=text, kind=kind):
            return RecallEntry(number, run_id, at, "user", kind, text)
        case AssistantMessage(text=text, calls=calls):
            said = [text, *(f"{call.name}{call.arguments}" for call in calls)]
            return RecallEntry(number, run_id, at, "assistant", "", "\n".join(filter(None, said)))
        case ToolResult(name=name, text=text):
            return RecallEntry(number, run_id, at, "function", name, text)


def search_recall(
    entries: Sequence[RecallEntry], query: str, start: datetime | None, end: datetime | None
) -> tuple[RecallEntry, ...]:
    """The entries that hold a term of the query, best first; all in order of time without one.

    Best means: the whole query stands in it, then the number of its terms that do, then newer.
    `start` and `end` are both inclusive.
    """
    within = [
        entry
        for entry in entries
        if (start is None or entry.at >= start) and (end is None or entry.at <= end)
    ]
    if not query.strip():
        return tuple(within)
    wanted = set(terms(query))
    phrase = _folded(query)
    ranked = []
    for entry in within:
        whole = phrase in _folded(entry.text)
        found = len(wanted.intersection(terms(entry.text)))
        if whole or found:
            ranked.append((not whole, -found, -entry.number, entry))
    return tuple(entry for *_, entry in sorted(ranked, key=lambda rank: rank[:3]))


def parse_moment(text: str, *, end: bool) -> datetime | None:
    """A date or date-time (ISO 8601) as an instant in UTC; None for the empty string.

    A bare date means its whole day: with `end`, its last microsecond, so that the end day of a
    range is not lost.

    Raises:
        FunctionError: it is not ISO 8601.
    """
    text = text.strip()
    if not text:
        return None
    try:
        if len(text) <= 10:
            midnight = datetime.combine(date.fromisoformat(text), time.min, UTC)
            return midnight + timedelta(days=1, microseconds=-1) if end else midnight
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise FunctionError(f"{text!r} is not a date. Write it as YYYY-MM-DD.") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())

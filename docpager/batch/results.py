"""Results as JSON, and the file of a batch's results, a line for each.

Lines are appended whole as questions finish, and rewritten in the order of the questions at the
end. A last line torn by a kill is cut off when the file is opened again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from docpager.batch.answers import answer_record
from docpager.batch.jsonlines import decoded_object
from docpager.batch.metrics import (
    METRICS,
    Metric,
    best,
    contains,
    document_recall,
    exact_match,
    f1,
    recall,
)
from docpager.batch.questions import RESULT_KEYS, Question
from docpager.errors import Limit, UserError
from docpager.types import Answer, JSONValue, PageRef

try:
    import fcntl
except ImportError:  # Windows has no advisory locks
    fcntl = None  # type: ignore[assignment]

Record = dict[str, JSONValue]
_SAID = ("answered", "unsupported")
"""Statuses whose answer is one; the text of the others is an exclude."""


# -- a result -------------------------------------------------------------------------------------


def result_record(
    question: Question,
    answer: Answer,
    fingerprint: str,
    skipped: Limit | None = None,
    stopped_at: float | None = None,
) -> Record:
    """A line of results, not scored yet: the answer, then what was given, then what it depends on.

    `skipped` is the bound of the batch for which it was left, `stopped_at` the value of its own
    bound that stopped it.
    """
    pages: list[JSONValue] = [
        {"document": page.document, "page": page.page} for page in answer.pages_shown
    ]
    return {
        **answer_record(answer),
        "pages_shown": pages,
        "skipped": skipped,
        "stopped_at": stopped_at,
        "fingerprint": fingerprint,
        **given_record(question),
    }


def given_record(question: Question) -> Record:
    """What a line of results says of its question."""
    return {
        "id": question.id,
        "tags": [*question.tags],
        "expected": question.given.get("expected"),
        **{name: question.given[name] for name in question.given if name not in ("tags",)},
    }


def scored(record: Record, question: Question, metric: Metric, pass_at: float) -> Record:
    """The line with its scores, and with its question's expectations as they are now."""
    # What the question's line said before, and does not say any more, counts no longer.
    own = RESULT_KEYS - {"scores", "unasked"} | {"question"}
    bare = {name: value for name, value in record.items() if name in own}
    scores = score(record, question)
    passed = _passed(record, question, scores, metric, pass_at)
    return {**bare, **given_record(question), "scores": {**scores, "passed": passed}}


def score(record: Mapping[str, JSONValue], question: Question) -> dict[str, float | None]:
    """Each metric, None where nothing was expected, or where there was no run to judge."""
    if not was_judged(record):
        return dict.fromkeys(METRICS)
    answer = str(record["answer"]) if record["status"] in _SAID else ""
    citations = cast("list[Record]", record["citations"])
    cited = _page_refs(citation for citation in citations if citation["page"] is not None)
    documents = [str(citation["document"]) for citation in citations]
    shown = _page_refs(cast("list[Record]", record["pages_shown"]))

    def text(compare: Callable[[str, str], float]) -> float | None:
        if not question.expected:
            return None
        return round(best(compare, answer, question.expected), 6) if answer else 0.0

    pages = question.expected_pages
    verified = sum(citation["verified"] is True for citation in citations)
    return {
        "exact_match": text(exact_match),
        "f1": text(f1),
        "contains": text(contains),
        "document_recall": round(document_recall(documents, question.expected_documents), 6)
        if question.expected_documents
        else None,
        "page_recall": round(recall(cited, pages), 6) if pages else None,
        "read_recall": round(recall(shown, pages), 6) if pages else None,
        "citation_precision": round(verified / len(citations), 6) if citations else None,
    }


def was_judged(record: Mapping[str, JSONValue]) -> bool:
    """Whether the question was answered for better or worse: no fault, and not left for budget."""
    return record["status"] != "model_error" and record["skipped"] is None


def metric_value(record: Mapping[str, JSONValue], metric: Metric) -> float | None:
    """What the question counts for in the mean; None where it is not scored.

    A question of which only a status was expected counts 1 where that came and 0 where not.
    """
    if not was_judged(record):
        return None
    expected_status = record.get("expected_status")
    scores = cast("dict[str, float | None]", record["scores"])
    if expected_status is not None and record["status"] == expected_status:
        return 1.0
    value = scores.get(metric)
    return 0.0 if value is None and expected_status is not None else value


def _passed(
    record: Mapping[str, JSONValue],
    question: Question,
    scores: Mapping[str, float | None],
    metric: Metric,
    pass_at: float,
) -> bool | None:
    if not was_judged(record):
        return None
    if question.expected_status is not None and record["status"] == question.expected_status:
        return True
    value = scores[metric]
    if value is None:
        return None if question.expected_status is None else False
    return value >= pass_at


def _page_refs(places: Iterable[Mapping[str, JSONValue]]) -> list[PageRef]:
    return [PageRef(str(at["document"]), cast(int, at["page"])) for at in places]


# -- what a result depends on ---------------------------------------------------------------------

_PARTS = ("question", "settings", "model", "archive")
_OF_MODEL = ("model", "tool_mode", "context_window", "embedder")
_BOUNDS: dict[Limit, str] = {
    "steps": "max_steps",
    "tokens": "max_tokens",
    "money": "max_cost",
    "time": "timeout",
}
_OF_NOTHING = ("endpoint", *_BOUNDS.values())
"""Where a model is served does not make it another one, and a bound that stopped nothing changes
nothing; of one that did, the result says so itself."""


def fingerprint(question: str, settings: Mapping[str, object], content_hash: str) -> str:
    """Four hashes of eight digits: of the question, the settings, the model and the archive."""
    model = {name: settings.get(name) for name in _OF_MODEL}
    apart = (*_OF_MODEL, *_OF_NOTHING)
    others = {name: value for name, value in settings.items() if name not in apart}
    return "-".join(_short_hash(part) for part in (question, others, model, content_hash))


def bound_value(bound: str, settings: Mapping[str, object]) -> float | None:
    """What one question may take of steps, tokens, USD or seconds; None is no bound."""
    return cast("float | None", settings.get(_BOUNDS[cast(Limit, bound)]))


def changed_parts(before: str, now: str) -> tuple[str, ...]:
    """What two fingerprints differ in, in words."""
    pairs = zip(_PARTS, before.split("-"), now.split("-"), strict=False)
    return tuple(name for name, old, new in pairs if old != new) or _PARTS * (before != now)


def _short_hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()[:8]


# -- the file -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the file: what decides whether its question is asked again, and where it is."""

    status: str
    skipped: str | None
    stopped_by: str | None
    stopped_at: float | None
    fingerprint: str
    offset: int
    length: int

    @property
    def rank(self) -> int:
        """Of several lines of one question the highest counts: an answer, a fault, none."""
        return 0 if self.skipped else 1 if self.status == "model_error" else 2

    def has_more_room(self, settings: Mapping[str, object]) -> bool:
        """Whether its question's own bound stopped it, and is larger now."""
        if self.stopped_by is None or self.stopped_at is None:
            return False
        now = bound_value(self.stopped_by, settings)
        return now is None or now > self.stopped_at


class ResultsFile:
    """The results of a batch, open for one writer; nothing but an index is kept in memory.

    A symbolic link stays one: the file that it points to is written.

    Raises:
        UserError: it cannot be written, is no file of results, or another batch writes to it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}
        self._target = Path(os.path.realpath(path))
        _require_rewritable(path, self._target)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            self._hold()
            self._end = self._load()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def append(self, record: Record) -> bool:
        """Add one line; it is with the system when this returns, whole or not at all.

        Returns whether it counts: a fault takes no answer's place.

        Raises:
            UserError: the disk is full.
        """
        line = _line(record)
        try:
            _write_all(self._file, line, self._end)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise _unwritable(self.path, error) from error
        counts = self._note(record, self._end, len(line))
        self._end += len(line)
        return counts

    def besides(self, ids: Iterable[str]) -> tuple[str, ...]:
        """The ids of results of other questions than those, in the order of the file."""
        asked = frozenset(ids)
        return tuple(name for name in self.entries if name not in asked)

    def read(self, question_id: str) -> Record:
        """The line of a question that has one."""
        entry = self.entries[question_id]
        return decoded_object(os.pread(self._file, entry.length, entry.offset))

    def rewrite(
        self, ids: Sequence[str], revised: Callable[[Record], Record] = lambda record: record
    ) -> None:
        """Put the lines of `ids`, as far as there are any, in that order in place of all lines.

        Those of other questions were paid for too: they stay behind them, marked as not asked.
        The new file takes the old one's place in one step.
        """
        partial = self._target.with_name(f".{self._target.name}.{os.getpid()}")
        entries: dict[str, Entry] = {}
        asked = frozenset(ids)
        at = 0
        try:
            with partial.open("wb") as stream:
                for question_id in (*ids, *self.besides(ids)):
                    if question_id not in self.entries:
                        continue
                    record = self.read(question_id)
                    record = revised(record) if question_id in asked else _unasked(record)
                    line = _line(record)
                    stream.write(line)
                    entries[question_id] = entry_of(record, at, len(line))
                    at += len(line)
                stream.flush()
                os.fsync(stream.fileno())
            shutil.copymode(self._target, partial)
            file = os.open(partial, os.O_RDWR)
            partial.replace(self._target)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise _unwritable(self.path, error) from error
        os.close(self._file)
        self._file, self._end, self.entries = file, at, entries
        self._hold()

    def _hold(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(
                f"Another batch is writing {self.path}. Wait for it, or name another file with -o."
            ) from error

    def _load(self) -> int:
        """Index the lines, and cut off a torn last one; returns where the next one goes."""
        at = 0
        with os.fdopen(os.dup(self._file), "rb") as stream:
            stream.seek(0)
            for number, line in enumerate(stream, 1):
                record = _record(self.path, number, line)
                if record is not None:
                    self._note(record, at, len(_kept(line)))
                elif not line.endswith(b"\n"):
                    break
                at += len(_kept(line))
                if not line.endswith(b"\n"):
                    _write_all(self._file, b"\n", at)
                    at += 1
        os.ftruncate(self._file, at)
        return at

    def _note(self, record: Record, offset: int, length: int) -> bool:
        entry = entry_of(record, offset, length)
        question_id = str(record["id"])
        before = self.entries.get(question_id)
        counts = before is None or entry.rank >= before.rank
        if counts:
            self.entries[question_id] = entry
        return counts


def read_results(path: Path) -> dict[str, Record]:
    """The results in a file, by id; of several lines of one question the one that counts.

    Raises:
        UserError: it cannot be read, or is no file of results.
    """
    found: dict[str, tuple[int, Record]] = {}
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                record = _record(path, number, line)
                if record is None:
                    continue
                rank = entry_of(record).rank
                question_id = str(record["id"])
                if question_id not in found or rank >= found[question_id][0]:
                    found[question_id] = (rank, record)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}). Name another file.") from error
    return {question_id: record for question_id, (_, record) in found.items()}


def entry_of(record: Record, offset: int = 0, length: int = 0) -> Entry:
    """What decides whether the question of a result is asked again."""
    skipped = record["skipped"]
    return Entry(
        str(record["status"]),
        None if skipped is None else str(skipped),
        cast("str | None", record["stopped_by"]),
        cast("float | None", record.get("stopped_at")),
        str(record["fingerprint"]),
        offset,
        length,
    )


def _unasked(record: Record) -> Record:
    return {**record, "unasked": True}


def _record(path: Path, number: int, line: bytes) -> Record | None:
    """The result on a line of a file; None on a blank one, and on a last one that is torn.

    Raises:
        UserError: it is something else.
    """
    # Checking takes a library that a single question has no use for.
    from docpager.batch.result import read_result

    whole = line.endswith(b"\n")
    line = _kept(line)
    if not line.strip():
        return None
    try:
        return read_result(line)
    except ValueError as error:
        if not whole and _is_torn(line):
            return None
        raise UserError(
            f"{path}:{number}: {error}, so it is no result of `docpager batch`. Correct or delete "
            "the line, or name another file."
        ) from error


def _kept(line: bytes) -> bytes:
    """A line without the NUL bytes that a power cut leaves at the end of a file."""
    return line if line.endswith(b"\n") else line.rstrip(b"\0")


def _is_torn(line: bytes) -> bool:
    """Whether it begins as results do, and breaks off."""
    begin = b'{"schema": 1, "run_id": "'
    if not line.startswith(begin[: len(line)]):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False


def _line(record: Record) -> bytes:
    text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace") + b"\n"


def _write_all(file: int, content: bytes, offset: int) -> None:
    while content:
        written = os.pwrite(file, content, offset)
        content, offset = content[written:], offset + written


def _require_rewritable(path: Path, target: Path) -> None:
    """Results are put in order by a new file in the old one's place: that must be possible."""
    if target.exists() and not target.is_file():
        kind = "a folder" if target.is_dir() else "a device or a pipe"
        raise UserError(
            f"{path} cannot be written: it is {kind}, and results need a file. Name one with -o."
        )
    if target.parent.is_dir() and not os.access(target.parent, os.W_OK):
        raise UserError(
            f"{path} cannot be written: its folder {target.parent} is read-only. Name a file in "
            "another folder with -o."
        )


def _unwritable(path: Path, error: OSError) -> UserError:
    return UserError(
        f"{path} cannot be written ({error.strerror}). Make room or name another file; what is "
        "in it stays, and the same command goes on from there."
    )

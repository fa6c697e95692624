"""The file of a batch's results: one line for each question.

Lines are appended whole as questions finish, and rewritten in the order of the questions at the
end. A last line torn by a kill is cut off when the file is opened again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from docpager.batch.fingerprint import question_limit
from docpager.batch.result import Result
from docpager.batch.result_line import read_result, result_line, unasked_line
from docpager.errors import Limit, UserError
from docpager.types import AnswerStatus

try:
    import fcntl
except ImportError:  # Windows has no advisory locks
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Entry:
    """The part of a line that is kept in memory: whether its question is asked again depends on it.

    `offset` and `length`, in bytes, say where the line is.
    """

    status: AnswerStatus
    skipped: Limit | None
    stopped_by: Limit | None
    stopped_at: float | None
    fingerprint: str
    offset: int
    length: int

    @property
    def rank(self) -> int:
        """2 for an answer, 1 for a model error, 0 for a question that was skipped.

        Of several lines of one question the highest counts, and of equal ones the last.
        """
        return 0 if self.skipped else 1 if self.status == "model_error" else 2

    def has_larger_limit(self, settings: Mapping[str, object]) -> bool:
        """Whether its question's own limit stopped it, and is larger now."""
        if self.stopped_by is None or self.stopped_at is None:
            return False
        now = question_limit(self.stopped_by, settings)
        return now is None or now > self.stopped_at

    @classmethod
    def of(cls, result: Result, offset: int = 0, length: int = 0) -> Entry:
        """The entry of a result whose line is at `offset`, `length` bytes long."""
        answer = result.answer
        return cls(
            answer.status,
            result.skipped,
            answer.stopped_by,
            result.stopped_at,
            result.fingerprint,
            offset,
            length,
        )


class ResultsFile:
    """The results of a batch, open for one writer; nothing but an index is kept in memory.

    A symbolic link stays one: the file that it points to is written.

    Raises:
        UserError: the file cannot be written, holds something else, or is locked by another batch.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: dict[str, Entry] = {}
        self._target = Path(os.path.realpath(path))
        try:
            _require_rewritable(path, self._target)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            self._lock()
            self._end = self._load()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def append(self, result: Result) -> bool:
        """Add one line; the operating system has it when this returns, whole or not at all.

        Returns whether the result counts: a model error does not replace an answer.

        Raises:
            UserError: the file cannot be written, because the disk is full for example.
        """
        line = result_line(result)
        try:
            _write_all(self._file, line, self._end)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise _unwritable(self.path, error) from error
        counts = self._index(result, self._end, len(line))
        self._end += len(line)
        return counts

    def ids_except(self, ids: Iterable[str]) -> tuple[str, ...]:
        """The ids of all results but those of `ids`, in the order of the file."""
        excluded = frozenset(ids)
        return tuple(name for name in self.entries if name not in excluded)

    def get(self, question_id: str) -> Result | None:
        """The result of a question, if it has one; read from the file."""
        return self.read(question_id) if question_id in self.entries else None

    def read(self, question_id: str) -> Result:
        """The result of a question that has one.

        Raises:
            KeyError: the question has none.
        """
        return read_result(self._line(question_id))

    def _line(self, question_id: str) -> bytes:
        entry = self.entries[question_id]
        return os.pread(self._file, entry.length, entry.offset)

    def rewrite(
        self, ids: Sequence[str], revised: Callable[[Result], Result] = lambda result: result
    ) -> None:
        """Write the file anew: the results of `ids`, each `revised`, in that order.

        Results of removed questions were paid for too: they follow, marked `unasked`. The new file
        replaces the old one atomically.
        """
        partial = self._target.with_name(f".{self._target.name}.{os.getpid()}")
        entries: dict[str, Entry] = {}
        asked = frozenset(ids)
        at = 0
        try:
            with partial.open("wb") as stream:
                for question_id in (*ids, *self.ids_except(ids)):
                    if question_id not in self.entries:
                        continue
                    if question_id in asked:
                        result = revised(self.read(question_id))
                        entry, line = Entry.of(result), result_line(result)
                    else:
                        entry = self.entries[question_id]
                        line = unasked_line(self._line(question_id))
                    stream.write(line)
                    entries[question_id] = replace(entry, offset=at, length=len(line))
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
        self._lock()

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(
                f"Another batch is writing {self.path}. Wait for it, or name another file with -o."
            ) from error

    def _load(self) -> int:
        """Index the lines and cut off a torn last one; returns the offset of the next line."""
        at = 0
        with os.fdopen(os.dup(self._file), "rb") as stream:
            stream.seek(0)
            for number, line in enumerate(stream, 1):
                result = _result(self.path, number, line)
                if result is not None:
                    self._index(result, at, len(_without_nul(line)))
                elif not line.endswith(b"\n"):
                    break
                at += len(_without_nul(line))
                if not line.endswith(b"\n"):
                    _write_all(self._file, b"\n", at)
                    at += 1
        os.ftruncate(self._file, at)
        return at

    def _index(self, result: Result, offset: int, length: int) -> bool:
        entry = Entry.of(result, offset, length)
        before = self.entries.get(result.id)
        counts = before is None or entry.rank >= before.rank
        if counts:
            self.entries[result.id] = entry
        return counts


def read_results(path: Path) -> dict[str, Result]:
    """The results in a file, by id; of several lines of one question the one that counts.

    Raises:
        UserError: the file cannot be read, or is no file of results.
    """
    found: dict[str, tuple[int, Result]] = {}
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                result = _result(path, number, line)
                if result is None:
                    continue
                rank = Entry.of(result).rank
                if result.id not in found or rank >= found[result.id][0]:
                    found[result.id] = (rank, result)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}). Name another file.") from error
    return {question_id: result for question_id, (_, result) in found.items()}


def _result(path: Path, number: int, line: bytes) -> Result | None:
    """The result on a line of a file; None on a blank line, and on a torn last one.

    Raises:
        UserError: the line holds something else.
    """
    whole = line.endswith(b"\n")
    line = _without_nul(line)
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


def _without_nul(line: bytes) -> bytes:
    """A line without the NUL bytes that a power cut leaves at the end of a file."""
    return line if line.endswith(b"\n") else line.rstrip(b"\0")


def _is_torn(line: bytes) -> bool:
    """Whether the line begins like a result and breaks off."""
    begin = b'{"schema": 1, "run_id": "'
    if not line.startswith(begin[: len(line)]):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False


def _write_all(file: int, content: bytes, offset: int) -> None:
    while content:
        written = os.pwrite(file, content, offset)
        content, offset = content[written:], offset + written


def _require_rewritable(path: Path, target: Path) -> None:
    """Require that a new file can replace the old one, as `rewrite` does."""
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

"""Every failure that docpager knows, grouped by who must act.

    DocpagerError
    ├── UserError            exit 2   the person: an option, a file, a setting
    ├── DocumentError        exit 3   the person: a document cannot be read (has a `reason`)
    ├── ArchiveError         exit 3   the person: the archive is missing, damaged, too new
    │   └── ArchiveLocked    exit 3   wait, or stop the process that is named
    ├── ModelError           exit 4   the endpoint: unreachable, refused, quota, nonsense
    │   └── ModelAuthError   exit 4   the key or the quota: retrying cannot help
    ├── BudgetReached        exit 5   nobody: a bound that was asked for was reached
    └── NothingToDo          exit 6   the person: nothing matched where something was expected

    FunctionError            never reaches a person: it is the model's to mend

A message is one or two sentences: what happened, then what to do.
"""

from __future__ import annotations

from typing import ClassVar, Literal

FailureReason = Literal[
    "encrypted",
    "no_text_layer",
    "damaged",
    "empty",
    "not_a_document",
    "too_large",
    "timed_out",
    "out_of_memory",
    "unsupported_format",
    "unreadable",
    "embedding_failed",
]
"""Why a document failed to ingest: a closed set, fixed by the command-line contract."""

Limit = Literal["steps", "tokens", "money", "time"]
"""What can stop a run before the model chose to answer."""


class DocpagerError(Exception):
    """A failure that docpager understands; `exit_code` is the command line's."""

    exit_code: ClassVar[int] = 1


class UserError(DocpagerError):
    """Usage or configuration: the person changes an option, a file or a setting."""

    exit_code = 2


class DocumentError(DocpagerError):
    """One document cannot be read; `reason` says why, the message what to do."""

    exit_code = 3

    def __init__(self, reason: FailureReason, message: str) -> None:
        super().__init__(message)
        self.reason: FailureReason = reason

    def __reduce__(self) -> tuple[type[DocumentError], tuple[FailureReason, str]]:
        return type(self), (self.reason, str(self))


class ArchiveError(DocpagerError):
    """The archive is missing, damaged, too new, or cannot be written."""

    exit_code = 3


class ArchiveLocked(ArchiveError):
    """Another process holds the archive; `pid` is its process id where it is known."""

    def __init__(self, message: str, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class ModelError(DocpagerError):
    """A model endpoint cannot be reached, refuses, or answers nonsense."""

    exit_code = 4


class ModelAuthError(ModelError):
    """The endpoint refuses the key or the quota is used up: fatal at once, never retried."""


class BudgetReached(DocpagerError):
    """A bound that was asked for (`stopped_by`) leaves no room for another model call."""

    exit_code = 5

    def __init__(self, stopped_by: Limit, message: str) -> None:
        super().__init__(message)
        self.stopped_by: Limit = stopped_by


class NothingToDo(DocpagerError):
    """Nothing was found where something was expected: no files, an empty archive."""

    exit_code = 6


class FunctionError(DocpagerError):
    """A function call of the model failed; it is sent back as `Failed: what. What to do.`"""

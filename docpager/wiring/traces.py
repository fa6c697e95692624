"""A trace in a file of the person's choice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from docpager.errors import UserError

if TYPE_CHECKING:
    from docpager.agent.trace import Trace


@contextmanager
def opened_trace(path: Path | None) -> Iterator[tuple[Trace, ...]]:
    """A trace in a file of the person's choice, if there is one."""
    if path is None:
        yield ()
        return
    try:
        if path.exists() and not _is_trace(path):
            raise UserError(f"{path} is not a trace and is left alone. Choose another file.")
        stream = path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UserError(
            f"The trace cannot be written to {path} ({error.strerror}). Choose another file."
        ) from error
    with stream:
        yield (_StreamTrace(stream),)


def _is_trace(path: Path) -> bool:
    """Whether a file may be written over: it is empty, a device, or begins as a trace does."""
    if not path.is_file():
        return not path.is_dir()
    with path.open("rb") as file:
        head = file.read(len(_TRACE_BEGINS))
    return head in (b"", _TRACE_BEGINS)


_TRACE_BEGINS = b'{"event": "run"'


class _StreamTrace:
    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def event(self, name: str, /, **fields: object) -> None:
        from docpager.agent.trace import trace_line

        self._stream.write(trace_line({"event": name, **fields}))
        self._stream.flush()

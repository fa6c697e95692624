"""Where the time of an ingest goes: seconds by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from docpager.documents.loaders import ParsedFile
from docpager.errors import DocumentError
from docpager.ingest.plan import Step
from docpager.protocols import Clock

# -- what came of it ------------------------------------------------------------------------------


class Stopwatch:
    """Seconds by stage; each stage is of one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self.seconds: dict[str, float] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since it was made."""
        return self._clock.monotonic() - self._began

    def add(self, stage: str, seconds: float) -> None:
        """Add time that was measured elsewhere."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time within it to a stage."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self.add(name, self._clock.monotonic() - began)

    def timed(self, name: str, function: Callable[[str], str]) -> Callable[[str], str]:
        """`function` with its time counted to a stage."""

        def run(argument: str) -> str:
            with self.stage(name):
                return function(argument)

        return run

    def waits(
        self, results: Iterator[tuple[Step, ParsedFile | DocumentError | None]]
    ) -> Iterator[tuple[Step, ParsedFile | DocumentError | None]]:
        """`results`, with the time that each is waited for counted, but for what hashing took."""
        while True:
            began, hashed = self._clock.monotonic(), self.seconds.get("hash", 0.0)
            result = next(results, None)
            waited = self._clock.monotonic() - began
            self.add("wait to read", waited - (self.seconds.get("hash", 0.0) - hashed))
            if result is None:
                return
            yield result

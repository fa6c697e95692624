"""`Throttle`: limits the requests in flight to one endpoint, by additive increase and
multiplicative decrease (Chiu and Jain, 1989), as TCP does.

What is tried again, and when, is `endpoint`'s.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from docpager.errors import DocpagerError
from docpager.models.budget import BatchBound
from docpager.protocols import Clock

_POLL_S = 0.25
"""How soon a wait notices that it was interrupted, or has become too long."""


class LongPause(Exception):
    """The endpoint wants nothing for longer than the caller is ready to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class WaitInterrupted(DocpagerError):
    """Someone asked to stop while a call was only waiting to be made."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__(
            "Interrupted while waiting for the endpoint. Run the same command again to go on."
        )


@dataclass(frozen=True, slots=True)
class Slot:
    """Permission to send one request."""

    epoch: int
    """How often the limit had been halved when the slot was given."""
    waited: float
    """Seconds spent waiting for it."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What happened between a batch and its endpoint."""

    retries: int = 0
    """Requests that were sent again."""
    fewest_at_once: int = 0
    """The lowest that the limit on requests in flight has been."""


class Throttle:
    """Shared by all who call one endpoint; begins at `most` at once and never goes beyond.

    Multiplicative decrease: a refusal (429, 5xx) halves the limit, once for all requests that were
    in flight together, and nothing is sent before the time that the endpoint names. Additive
    increase: after as many good replies as the limit allows at once, the limit grows by one.

    Args:
        most: Calls at once.
        ends_at: When by `clock.monotonic()` nobody waits any more.
        interrupted: Whether someone asked to stop: from then on nobody waits.
    """

    def __init__(
        self,
        most: int,
        clock: Clock,
        *,
        ends_at: float = math.inf,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._most = most
        self._clock = clock
        self._ends_at = ends_at
        self._interrupted = interrupted
        self._changed = threading.Condition()
        self._allowed = most
        self._in_flight = 0
        self._good = 0
        self._epoch = 0
        self._paused_until = 0.0
        self._retries = 0
        self._fewest = most
        self.refusal: str | None = None
        """Why the endpoint will refuse whatever is sent: the key, or the quota."""

    @property
    def traffic(self) -> Traffic:
        """What happened so far."""
        with self._changed:
            return Traffic(self._retries, self._fewest)

    @property
    def allowed(self) -> int:
        """The current limit on requests in flight."""
        with self._changed:
            return self._allowed

    @contextmanager
    def slot(self, patience: float = math.inf) -> Iterator[Slot]:
        """Wait for permission to send one request, and count it as in flight until the end.

        Raises:
            LongPause: the endpoint's pauses would be waited for longer than `patience` seconds.
            BatchBound: it would have to wait beyond the end.
            WaitInterrupted: it would have to wait, and someone asked to stop.
        """
        began = self._clock.monotonic()
        paused = 0.0
        with self._changed:
            while True:
                now = self._clock.monotonic()
                pause = max(0.0, self._paused_until - now)
                if pause == 0 and self._in_flight < self._allowed:
                    break
                self._require_waiting(pause)
                if pause and paused + pause > patience:
                    raise LongPause(pause)
                self._changed.wait(min(pause, _POLL_S) or _POLL_S)
                if pause:
                    paused += self._clock.monotonic() - now
            self._in_flight += 1
            given = Slot(self._epoch, self._clock.monotonic() - began)
        try:
            yield given
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def rest(self, seconds: float) -> None:
        """Wait before a request is sent again.

        Raises:
            BatchBound: that is beyond the end.
            WaitInterrupted: someone asked to stop.
        """
        while seconds > 0:
            self._require_waiting(seconds)
            step = min(seconds, _POLL_S)
            self._clock.sleep(step)
            seconds -= step

    def _require_waiting(self, seconds: float) -> None:
        if self._interrupted():
            raise WaitInterrupted
        if self._clock.monotonic() + seconds > self._ends_at:
            raise BatchBound(
                "time",
                "The endpoint would have to be waited for beyond the time allowed in all. "
                "Raise --timeout, and run the same command again.",
            )

    def succeeded(self) -> None:
        """A request was answered well."""
        with self._changed:
            self._good += 1
            if self._good >= self._allowed and self._allowed < self._most:
                self._allowed += 1
                self._good = 0
                self._changed.notify_all()

    def rate_limited(self, slot: Slot, delay: float | None) -> None:
        """A request was refused; `delay` is after how many seconds the endpoint wants the next."""
        with self._changed:
            if slot.epoch == self._epoch:
                self._epoch += 1
                self._allowed = max(1, self._allowed // 2)
                self._fewest = min(self._fewest, self._allowed)
                self._good = 0
            if delay is not None:
                self._paused_until = max(self._paused_until, self._clock.monotonic() + delay)

    def retried(self) -> None:
        """A request is going to be sent again."""
        with self._changed:
            self._retries += 1

"""The real time, and the time that was worked."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """The real time."""

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class WorkClock(SystemClock):
    """The real time less what was waited: for a turn at the endpoint, or for its rate limit."""

    def __init__(self) -> None:
        self._waited = 0.0

    def monotonic(self) -> float:
        """Seconds of work."""
        return super().monotonic() - self._waited

    def exclude(self, seconds: float) -> None:
        """So many seconds do not count."""
        self._waited += seconds

"""How a reader says that it goes on, so that a page that hangs is told from a long document.

Outside of a worker process nobody listens, and saying so costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SAID_AFTER_S = 0.1
"""What follows sooner upon the last that was said is not said: pages may take a millisecond."""

Listener = Callable[[int | None, int], None]
"""Told the 1-based page that is begun, or None after the last; then, where the page is about to be
recognised, of how many, else 0."""

_listener: Listener | None = None
_said_at = 0.0


def listen(listener: Listener | None) -> None:
    """Have `listener` told from now on, in place of the one before."""
    global _listener, _said_at
    _listener, _said_at = listener, 0.0


def page_begun(page_number: int) -> None:
    """Say that a page (1-based) is begun: from now on it has the time that a page may take."""
    global _said_at
    if _listener is None:
        return
    now = time.monotonic()
    if now - _said_at >= SAID_AFTER_S:
        _said_at = now
        _listener(page_number, 0)


def page_recognised(page_number: int, pages: int) -> None:
    """Say that page N of so many is about to be recognised, which takes seconds.

    It has the time that a page may take, on top of what the file may take.
    """
    if _listener is not None:
        _listener(page_number, pages)


def pages_over() -> None:
    """Say that what follows is of no page, and has the time that the whole file may take."""
    if _listener is not None:
        _listener(None, 0)

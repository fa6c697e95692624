"""What holds for every test."""

from __future__ import annotations

import signal

# A shell starts what runs in its background with the interrupt ignored, and so would every program
# that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

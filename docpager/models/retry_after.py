"""When an endpoint wants to be asked again, by the headers of its reply."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from docpager.protocols import Clock

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")


def asked_delay(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Seconds after which the endpoint wants to be asked again; None where it does not say.

    `Retry-After` (seconds or a date) comes first; else the rate limits that are used up, by their
    `x-ratelimit-reset-*` durations such as `1m30s` or `6ms`.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    after = headers.get("retry-after")
    if after is not None:
        seconds = _number(after)
        return seconds if seconds is not None else _until(after, clock)
    resets = {
        kind: duration
        for kind in ("requests", "tokens")
        if (duration := parse_duration(headers.get(f"x-ratelimit-reset-{kind}", ""))) is not None
    }
    used_up = [
        duration
        for kind, duration in resets.items()
        if _number(headers.get(f"x-ratelimit-remaining-{kind}")) == 0
    ]
    return max(used_up or resets.values(), default=None)


def parse_duration(text: str) -> float | None:
    """Seconds in `1m30s`, `6ms`, `2h`, or a bare number; None for anything else."""
    number = _number(text)
    if number is not None:
        return number
    found = _DURATION.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds + milliseconds / 1000


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _until(date: str, clock: Clock) -> float | None:
    try:
        return max(0.0, (parsedate_to_datetime(date) - clock.now()).total_seconds())
    except (ValueError, TypeError):  # no date, or one without a time zone
        return None

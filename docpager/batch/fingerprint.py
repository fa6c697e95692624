"""The fingerprint of what a result depends on.

The limits of a question are left out: a result depends on one only if it stopped the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from docpager.errors import Limit

_PARTS = ("question", "settings", "model", "archive")
_OF_MODEL = ("model", "tool_mode", "context_window", "embedder")
_SETTING_OF: dict[Limit, str] = {
    "steps": "max_steps",
    "tokens": "max_tokens",
    "money": "max_cost",
    "time": "timeout",
}
_LEFT_OUT = ("endpoint", *_SETTING_OF.values())
"""The same model at another endpoint is the same model, and a limit matters only if it stopped the
run; the result says so then (`Result.stopped_at`)."""


def fingerprint(question: str, settings: Mapping[str, object], content_hash: str) -> str:
    """Four hashes of eight digits: of the question, the settings, the model and the archive."""
    model = {name: settings.get(name) for name in _OF_MODEL}
    apart = (*_OF_MODEL, *_LEFT_OUT)
    others = {name: value for name, value in settings.items() if name not in apart}
    return "-".join(_short_hash(part) for part in (question, others, model, content_hash))


def changed_parts(before: str, now: str) -> tuple[str, ...]:
    """The names of the parts in which two fingerprints differ."""
    pairs = zip(_PARTS, before.split("-"), now.split("-"), strict=False)
    return tuple(name for name, old, new in pairs if old != new) or _PARTS * (before != now)


def question_limit(limit: Limit, settings: Mapping[str, object]) -> float | None:
    """The value of a question's limit, in steps, tokens, USD or seconds; None is no limit."""
    value = settings.get(_SETTING_OF[limit])
    return value if isinstance(value, int | float) else None


def _short_hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()[:8]

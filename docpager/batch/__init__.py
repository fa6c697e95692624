"""Questions from a file: asked, graded, kept as results, summarised, compared, reported.

Its public names are imported on first use, so that listing the metrics costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docpager.batch.allowance import BatchLimits
    from docpager.batch.grading import Grading
    from docpager.batch.run import Interrupt, OnResult
    from docpager.batch.selection import Selection

__all__ = ["BatchLimits", "Grading", "Interrupt", "OnResult", "Selection"]

_HOMES = {
    "BatchLimits": "docpager.batch.allowance",
    "Grading": "docpager.batch.grading",
    "Interrupt": "docpager.batch.run",
    "OnResult": "docpager.batch.run",
    "Selection": "docpager.batch.selection",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'docpager.batch' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)

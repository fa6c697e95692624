"""The names of the scores of an answer; apart, so that the command line lists them at once."""

from __future__ import annotations

from typing import Literal, get_args

Metric = Literal[
    "exact_match",
    "f1",
    "contains",
    "document_recall",
    "page_recall",
    "read_recall",
    "citation_precision",
]
METRICS: tuple[Metric, ...] = get_args(Metric)

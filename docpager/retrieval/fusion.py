"""Two halves of a search fused into one total order: score descending, then passage id (I3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from docpager.types import Scored

Half: TypeAlias = tuple[Scored, ...]
"""One half of a search, or both fused: best first."""

DEPTH = 200
"""How many of each half of a search are ranked."""
FUSION_K = 10
"""The constant of reciprocal rank fusion: how little the first ranks differ.

With the usual 60, whatever is thirtieth in both halves passes an exact identifier that only the
lexical half finds, first. Recall@5 with 10 and with 60: MuSiQue 51.4 and 48.9, HotpotQA 76.5 and
74.4 (benchmarks/retrieval.py).
"""
DECIMALS = 6
"""To which scores are rounded before they are compared."""


def passage_order(passage_id: str) -> tuple[bool, int]:
    """What passages of one score are sorted by: stored ones by number, then inserted ones."""
    return passage_id.startswith("N"), int(passage_id[1:])


def fuse(
    lexical: Sequence[Scored], vector: Sequence[Scored], depth: int = DEPTH, k: int = FUSION_K
) -> Half:
    """Reciprocal rank fusion: a passage scores 1 / (k + rank) for each half it stands in.

    Ranks count from 1 in the best `depth` of each half, which comes best first. Equal scores come
    in the order of `passage_order`.
    """
    scores: dict[str, float] = {}
    for half in (lexical, vector):
        for rank, (name, _) in enumerate(half[:depth], start=1):
            scores[name] = scores.get(name, 0.0) + 1 / (k + rank)
    ordered = sorted(
        (-round(score, DECIMALS), passage_order(name), name) for name, score in scores.items()
    )
    return tuple([Scored(name, -negative) for negative, _, name in ordered])


def best(numbers: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], depth: int) -> Half:
    """The best `depth` of passages `P<numbers>`: rounded score descending, then number."""
    rounded = np.round(scores, DECIMALS)
    if len(rounded) > depth > 0:
        # Whatever ties with the last place is kept for the numbers to decide.
        keep = rounded >= np.partition(rounded, -depth)[-depth]
        numbers, rounded = numbers[keep], rounded[keep]
    order = np.lexsort((numbers, -rounded))[:depth]
    kept = zip(numbers[order].tolist(), rounded[order].tolist(), strict=True)
    return tuple(Scored(f"P{number}", score) for number, score in kept)

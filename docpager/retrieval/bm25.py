"""BM25: what a passage scores for the terms of a query.

The score of a passage for a query is the sum over the query's distinct terms of

    idf * n * (K1 + 1) / (n + K1 * (1 - B + B * length / average_length))
    idf = ln(1 + (N - df + 0.5) / (df + 0.5))

where n is how often the term stands in the passage, length the passage's number of terms, N the
number of passages, and df how many of them hold the term.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from docpager.retrieval.terms import distinct, terms
from docpager.types import TermStatistics

Floats: TypeAlias = npt.NDArray[np.float64]


K1 = 1.2
B = 0.75


def idf(passages: int, frequency: int) -> float:
    """How much a term weighs that `frequency` of `passages` passages hold; above 0."""
    return math.log1p((passages - frequency + 0.5) / (frequency + 0.5))


def saturation(counts: npt.ArrayLike, lengths: npt.ArrayLike, average_length: float) -> Floats:
    """What a term of weight 1 adds to the scores of passages that hold it `counts` times.

    Args:
        counts: How often the term stands in each passage.
        lengths: The passages' lengths in terms.
        average_length: Over the whole collection; above 0.
    """
    n = np.asarray(counts, np.float64)
    relative = np.asarray(lengths, np.float64) / average_length
    return n * (K1 + 1) / (n + K1 * (1 - B + B * relative))


def score_texts(query: str, texts: Sequence[str], statistics: TermStatistics) -> list[float]:
    """BM25 of texts that stand outside of the collection `statistics` is about, each >= 0.

    Where that collection is empty, a text's length is compared with the mean of `texts`.
    """
    counted = [Counter(terms(text)) for text in texts]
    lengths = [counts.total() for counts in counted]
    average = statistics.average_length or sum(lengths) / max(1, len(lengths)) or 1.0
    weights = {
        term: idf(statistics.passages, statistics.passage_frequency.get(term, 0))
        for term in distinct(query)
    }
    scores = np.zeros(len(texts))
    for term, weight in weights.items():
        scores += weight * saturation([counts[term] for counts in counted], lengths, average)
    return [float(score) for score in scores]

"""Prints how many passages a second the static embedder does: `python benchmarks/embed_speed.py`.

The passages are pseudo-random English words, about 400 Llama tokens each.
"""

from __future__ import annotations

import random
import time

from docpager.models.embedders import StaticEmbedder

WORDS = [
    "the",
    "of",
    "and",
    "in",
    "revenue",
    "quarter",
    "fiscal",
    "company",
    "agreement",
    "services",
    "products",
    "operating",
    "income",
    "management",
    "risk",
    "net",
    "cash",
    "material",
    "financial",
    "statements",
    "related",
    "tax",
    "interest",
    "rate",
    "which",
    "were",
    "customers",
    "growth",
    "compared",
    "increase",
    "decrease",
    "million",
    "percent",
    "liability",
    "assets",
    "segment",
    "market",
]


def main() -> None:
    """Embed 2,000 passages once, after one to warm up, and print the rate."""
    random_words = random.Random(7)
    passages = [" ".join(random_words.choices(WORDS, k=330)) for _ in range(2_000)]
    embedder = StaticEmbedder()
    embedder.embed(passages[:1])
    began = time.perf_counter()
    embedder.embed(passages)
    elapsed = time.perf_counter() - began
    print(f"static: {len(passages) / elapsed:,.0f} passages/s ({len(passages)} in {elapsed:.2f} s)")


if __name__ == "__main__":
    main()

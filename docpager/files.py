"""Files as such: written atomically (a temporary file in the same folder, then one rename), and
their sizes in words.

Not for a batch's results file, which stays open and locked: see `batch/results.py`.
"""

from __future__ import annotations

import errno
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_CANNOT_BE_REPLACED = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.ENAMETOOLONG}
)


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of `target` once the block ends without an error.

    Until then `target` stays as it was; after an error nothing is left behind. Each writer has a
    temporary file of its own (`.NAME.….partial`): of several at once the last one wins.

    Raises:
        OSError: the folder takes no new file, or `target` cannot be replaced.
    """
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}.partial")
    try:
        with partial.open("xb") as stream:
            yield stream
        with suppress(FileNotFoundError):
            shutil.copymode(target, partial)
        partial.replace(target)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def write_whole(target: Path, content: bytes) -> None:
    """Write a file of docpager's own, all or nothing.

    Raises:
        OSError: as `replacing`.
    """
    with replacing(target) as stream:
        stream.write(content)


def write_output(path: Path, content: bytes) -> None:
    """Write a file that a person named: all or nothing where that can be.

    A link is followed. What nothing can take the place of is written to as it stands: a pipe, a
    device, a file mounted by itself, one in a folder that takes no new files.

    Raises:
        OSError: it cannot be written to either.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    target = path.resolve()
    try:
        write_whole(target, content)
    except OSError as error:
        if error.errno not in _CANNOT_BE_REPLACED:
            raise
        target.write_bytes(content)


def megabytes(size: int, decimals: int = 3) -> str:
    """A number of bytes in MB of 2^20 bytes, as `--max-file-size` and its like count them.

    >>> megabytes(64 << 20), megabytes(1 << 30), megabytes(1 << 18)
    ('64 MB', '1,024 MB', '0.25 MB')
    """
    number = f"{size / (1 << 20):,.{decimals}f}"
    return f"{number.rstrip('0').rstrip('.') if decimals else number} MB"

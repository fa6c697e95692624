"""Pages that are pictures are read by character recognition, which runs on this machine alone."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pypdfium2

from docpager.documents.text.normalise import one_line

ENGINE = "rapidocr"
"""The package whose models read Chinese and English; they are part of it."""
MODULE = "rapidocr_onnxruntime"
MENDS = ("no_text_layer", "garbled", "low_text")
"""Flags of pages that it may find more on than was read."""

_DOTS_PER_POINT = 200 / 72
_MOST_DOTS = 2_600
"""Of a side of the picture that is recognised: posters are read in a coarser one."""
_LEAST_SCORE = 0.5
_SAME_LINE = 0.5
"""Boxes are on one line if they share this much of the lower one's height."""
_GUTTER = 0.8
"""White space between columns, in parts of a line's height."""
_OVER_ALL = 0.55
"""Of the width of all that is printed: a line of more runs over the columns."""


def is_installed() -> bool:
    """Whether the extra is there."""
    return importlib.util.find_spec(MODULE) is not None


@dataclass(frozen=True, slots=True)
class Box:
    """A recognised piece of a line; its edges count from the picture's upper left corner."""

    left: float
    top: float
    right: float
    bottom: float
    text: str

    @property
    def height(self) -> float:
        """How tall it is, at least 1."""
        return max(1.0, self.bottom - self.top)


class Recogniser:
    """Reads pictures of pages; the models are loaded at the first one."""

    def __init__(self) -> None:
        self._engine: Any = None

    def read(self, page: pypdfium2.PdfPage) -> str:
        """The text of a page, line by line and column by column; empty where there is none."""
        width, height = page.get_size()
        scale = min(_DOTS_PER_POINT, _MOST_DOTS / max(width, height, 1.0))
        picture = page.render(scale=scale, grayscale=False).to_numpy()
        found, _ = self._recognise(np.ascontiguousarray(picture[:, :, :3]))
        return "\n".join(reading_lines([_box(*item) for item in found or ()]))

    def _recognise(self, picture: np.ndarray[Any, Any]) -> Any:
        if self._engine is None:
            from rapidocr_onnxruntime import RapidOCR

            logging.getLogger("RapidOCR").setLevel(logging.CRITICAL)
            # Every worker process has a page of its own to read.
            self._engine = RapidOCR(
                intra_op_num_threads=1,
                inter_op_num_threads=1,
                text_score=_LEAST_SCORE,
                max_side_len=_MOST_DOTS,
                # Lines of a batch are all padded to its longest, which takes half of the time.
                rec_batch_num=1,
            )
        return self._engine(picture)


def _box(corners: Sequence[Sequence[float]], text: str, _score: float) -> Box:
    across = [corner[0] for corner in corners]
    down = [corner[1] for corner in corners]
    return Box(min(across), min(down), max(across), max(down), one_line(text))


def reading_lines(boxes: Sequence[Box]) -> list[str]:
    """The lines of text that boxes make, in reading order.

    Columns are read one after the other, from one line that runs over them to the next.
    """
    boxes = [box for box in boxes if box.text]
    if not boxes:
        return []
    width = max(box.right for box in boxes) - min(box.left for box in boxes)
    over_all = [box for box in boxes if box.right - box.left > width * _OVER_ALL]
    columns = _columns([box for box in boxes if box not in over_all])
    if len(columns) < 2:
        return _rows(boxes)
    lines: list[str] = []
    for row in _grouped(over_all):
        edge = min(box.top + box.bottom for box in row)
        for column in columns:
            lines += _rows([box for box in column if box.top + box.bottom < edge])
            column[:] = [box for box in column if box.top + box.bottom >= edge]
        lines += _rows(row)
    return lines + [line for column in columns for line in _rows(column)]


def _columns(boxes: Sequence[Box]) -> list[list[Box]]:
    """Boxes by columns, left to right; one list where they stand beside each other otherwise."""
    if not boxes:
        return []
    usual = sorted(box.height for box in boxes)[len(boxes) // 2]
    parts: list[list[Box]] = []
    reached = float("-inf")
    for box in sorted(boxes, key=lambda box: box.left):
        if not parts or box.left - reached > usual * _GUTTER:
            parts.append([])
        parts[-1].append(box)
        reached = max(reached, box.right)
    # A table's columns hold a word or two a line; its rows belong together.
    texts = [part for part in parts if len(_grouped(part)) >= 4 and _wordy(part, usual)]
    return parts if len(texts) == len(parts) else [list(boxes)]


def _wordy(part: Sequence[Box], usual: float) -> bool:
    return sum(box.right - box.left > 8 * usual for box in part) >= len(part) * 0.6


def _grouped(boxes: Sequence[Box]) -> list[list[Box]]:
    rows: list[list[Box]] = []
    for box in sorted(boxes, key=lambda box: (box.top + box.bottom, box.left)):
        last = rows[-1][-1] if rows else None
        if last is not None:
            shared = min(last.bottom, box.bottom) - max(last.top, box.top)
            if shared >= _SAME_LINE * min(last.height, box.height):
                rows[-1].append(box)
                continue
        rows.append([box])
    return rows


def _rows(boxes: Sequence[Box]) -> list[str]:
    return [
        " ".join(box.text for box in sorted(row, key=lambda box: box.left))
        for row in _grouped(boxes)
    ]

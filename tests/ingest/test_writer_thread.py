from __future__ import annotations

from typing import Any

import pytest

from docpager.errors import ArchiveError
from docpager.ingest.committing import FlushAt
from docpager.types import Document
from tests.ingest.benches import Bench


def test_an_error_while_writing_ends_the_ingest(bench: Bench) -> None:
    for number in range(50):
        bench.put(f"{number:02}.txt", f"Words of {number}.")
    real = bench.archive.store

    def store(document: Document, *rest: Any) -> Document:
        if document.name == "corpus/07.txt":
            raise ArchiveError("The disk is full.")
        return real(document, *rest)

    bench.archive.store = store  # type: ignore[method-assign]
    with pytest.raises(ArchiveError, match="disk is full"):
        bench.run(flush=FlushAt(passages=4, most_passages=4))
    assert bench.ready == [f"corpus/{number:02}.txt" for number in range(4)]

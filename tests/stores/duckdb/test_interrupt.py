"""Ctrl-C while DuckDB works is an interrupt, not a fault of the archive."""

from __future__ import annotations

import duckdb
import pytest

from docpager.errors import ArchiveError
from docpager.stores.duckdb.connection import mapped_errors


@pytest.mark.parametrize(
    "error", [duckdb.InterruptException("Interrupted!"), RuntimeError("Query interrupted")]
)
def test_an_interrupted_query_is_a_keyboard_interrupt(error: Exception) -> None:
    with pytest.raises(KeyboardInterrupt), mapped_errors(None):
        raise error


def test_other_faults_keep_their_kind() -> None:
    with pytest.raises(RuntimeError, match="else"), mapped_errors(None):
        raise RuntimeError("something else")
    with pytest.raises(ArchiveError, match="cannot be read"), mapped_errors(None):
        raise duckdb.IOException("disk")

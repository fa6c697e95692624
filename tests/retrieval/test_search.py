"""Search: what is refused before either half is asked."""

from __future__ import annotations

import pytest

from docpager.errors import UserError
from docpager.retrieval.search import search
from docpager.stores.in_memory import InMemoryStore
from docpager.testing import HashEmbedder


def test_an_empty_query_is_refused() -> None:
    embedder = HashEmbedder()
    with pytest.raises(UserError, match="query is empty"):
        search(InMemoryStore(embedder.identity), embedder, " \n")

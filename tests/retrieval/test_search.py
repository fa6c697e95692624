"""Search: what is refused, and what a session's inserts add."""

from __future__ import annotations

import pytest

from docpager.errors import UserError
from docpager.memory.session import Session
from docpager.retrieval.search import search
from docpager.stores.in_memory import InMemoryStore
from docpager.testing import CharacterCounter, FrozenClock, HashEmbedder
from docpager.types import SearchMode
from tests.agent.worlds import MILL, archive_of


def test_an_empty_query_is_refused() -> None:
    embedder = HashEmbedder()
    with pytest.raises(UserError, match="query is empty"):
        search(InMemoryStore(embedder.identity), embedder, " \n")


MODES: tuple[SearchMode, ...] = ("hybrid", "lexical", "vector")


@pytest.mark.parametrize("mode", MODES)
def test_a_session_without_inserts_changes_nothing(mode: SearchMode) -> None:
    store, embedder = archive_of(MILL, CharacterCounter()), HashEmbedder()
    alone = search(store, embedder, "who designed the mill", mode)
    assert search(store, embedder, "who designed the mill", mode, inserts=_session()) == alone
    assert alone.total


@pytest.mark.parametrize("mode", MODES)
def test_inserts_are_ranked_together_with_the_documents(mode: SearchMode) -> None:
    store, embedder, session = archive_of(MILL, CharacterCounter()), HashEmbedder(), _session()
    text = "who designed the mill: Tamsin Hale"
    session.insert(text, embedder.embed([text])[0])
    ranking = search(store, embedder, text, mode, inserts=session)
    assert ranking.ordered[0].passage_id == "N1"
    without = search(store, embedder, text, mode)
    documents = {scored.passage_id for scored in ranking.ordered[1:]}
    assert documents == {scored.passage_id for scored in without.ordered}


def _session() -> Session:
    return Session(FrozenClock())

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from docpager.errors import ModelError
from docpager.models.embedders import OpenAIEmbedder, StaticEmbedder, _installed_folder
from docpager.models.endpoint import Endpoint
from docpager.protocols import Embedder, Vectors
from docpager.testing import (
    CharacterCounter,
    FrozenClock,
    LoopbackReply,
    LoopbackRequest,
    LoopbackServer,
    hash_embeddings,
)
from docpager.types import PROBE_TEXT
from docpager.unicode import repaired

STATIC = StaticEmbedder()
PUBLISHED = Tokenizer.from_file(
    str(_installed_folder("wordllama") / "tokenizers" / "l2_supercat_tokenizer_config.json")
)
PUBLISHED.encode_special_tokens = True


def similarity(left: str, right: str) -> float:
    a, b = STATIC.embed([left, right])
    return float(a @ b)


# ---- static ----------------------------------------------------------------------------------


@given(st.lists(st.text(alphabet=st.characters(), max_size=60), max_size=5))
def test_static_vectors_are_finite_units_whatever_the_text(texts: list[str]) -> None:
    vectors = STATIC.embed(texts)
    assert vectors.shape == (len(texts), 256)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("text", ["", " ", "\ud800", "\x00", "\U0001f9ff" * 50, "½" * 3000])
def test_a_text_of_no_words_has_a_vector_too(text: str) -> None:
    assert np.isclose(np.linalg.norm(STATIC.embed([text])[0]), 1.0, atol=1e-5)


@given(st.text(st.sampled_from("ab \n▁é中🎉.1<s>") | st.characters(), max_size=80))
def test_static_vectors_are_means_over_the_tokens_of_the_published_tokenizer(text: str) -> None:
    weights = STATIC._parts.weights
    tokens = PUBLISHED.encode(repaired(text), add_special_tokens=False).ids
    total = weights[tokens].sum(axis=0)
    assume(np.linalg.norm(total) > 1e-3)
    assert np.allclose(STATIC.embed([text])[0], total / np.linalg.norm(total), atol=1e-6)


def test_a_vector_does_not_depend_on_its_company() -> None:
    texts = [f"passage number {number} on the history of mills" for number in range(300)]
    together = STATIC.embed(texts)
    alone = np.concatenate([STATIC.embed([text]) for text in texts])
    assert together.tobytes() == alone.tobytes()


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        (
            "The cat sat on the mat.",
            "A cat is sitting on a rug.",
            "Quarterly revenue rose by four per cent.",
        ),
        (
            "Who founded the shipyard?",
            "The yard that builds ships was established by Hale.",
            "Rain is expected in the afternoon.",
        ),
        ("公司营业收入增长", "公司收入上升了", "今天天气很好"),
        (
            "Der Vertrag endet im März.",
            "Im März läuft der Vertrag aus.",
            "Die Katze schläft auf dem Sofa.",
        ),
    ],
)
def test_related_sentences_are_nearer_than_unrelated_ones(text: str, near: str, far: str) -> None:
    assert similarity(text, near) > similarity(text, far) + 0.1


def test_the_static_identity_holds_its_probe() -> None:
    identity = STATIC.identity
    assert (identity.name, identity.dimension, identity.normalised) == ("static", 256, True)
    assert np.allclose(identity.probe, STATIC.embed([PROBE_TEXT])[0])


def test_the_static_embedder_travels_light() -> None:
    content = pickle.dumps(STATIC)
    assert len(content) < 200
    assert pickle.loads(content).embed(["mill"]).tobytes() == STATIC.embed(["mill"]).tobytes()


def test_the_static_embedder_loads_neither_its_publisher_nor_a_client() -> None:
    program = (
        "import sys; from docpager.models.embedders import StaticEmbedder;"
        "StaticEmbedder().embed(['x']);"
        "print([n for n in ('wordllama', 'requests', 'openai', 'torch') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# ---- remote ----------------------------------------------------------------------------------


def remote(server: LoopbackServer, **settings: int) -> OpenAIEmbedder:
    endpoint = Endpoint(server.base_url, "sk-private-key", clock=FrozenClock(), random=lambda: 0.5)
    return OpenAIEmbedder("small", endpoint, CharacterCounter(), **settings)


def inputs(server: LoopbackServer) -> list[list[str]]:
    return [body["input"] for body in server.bodies("/v1/embeddings")]


def test_the_dimension_is_learnt_from_the_first_reply() -> None:
    with LoopbackServer() as server:
        embedder: Embedder = remote(server)
        identity = embedder.identity
        assert embedder.identity == identity
        assert (identity.name, identity.dimension, identity.probe) == ("openai:small", 32, ())
        assert inputs(server) == [[PROBE_TEXT]]


def test_a_dimension_given_saves_the_call() -> None:
    with LoopbackServer() as server:
        assert remote(server, dimension=32).identity.dimension == 32
        assert inputs(server) == []


def test_texts_go_in_batches_of_bounded_count_and_size() -> None:
    texts = ["a" * 40, "b" * 40, "c" * 40, "d" * 400, "e" * 40]
    with LoopbackServer() as server:
        vectors = remote(server, batch_size=2, batch_tokens=100).embed(texts)
        assert vectors.shape == (5, 32)
        assert [[text[0] for text in batch] for batch in inputs(server)] == [
            ["a", "b"],
            ["c"],
            ["d"],
            ["e"],
        ]


def test_an_over_long_or_empty_text_is_made_sendable() -> None:
    with LoopbackServer() as server:
        remote(server, text_tokens=3).embed(["x" * 100, "", "\ud800"])
        assert inputs(server) == [["x" * 12, " ", "\ufffd"]]


def test_no_texts_need_no_request_for_vectors() -> None:
    with LoopbackServer() as server:
        assert remote(server, dimension=32).embed([]).shape == (0, 32)
        assert inputs(server) == []


def test_vectors_are_put_in_order_and_normalised() -> None:
    def shuffled(request: LoopbackRequest) -> LoopbackReply:
        return LoopbackReply(
            {
                "data": [
                    {"index": 1, "embedding": [0.0, 5.0]},
                    {"index": 0, "embedding": [3.0, 0.0]},
                ]
            }
        )

    with LoopbackServer(embeddings=shuffled) as server:
        assert remote(server).embed(["a", "b"]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def rows(*vectors: object) -> LoopbackReply:
    body = {"data": [{"index": place, "embedding": v} for place, v in enumerate(vectors)]}
    return LoopbackReply(json.dumps(body))


@pytest.mark.parametrize(
    "reply",
    [
        rows([1.0, 0.0]),
        rows([1.0, 0.0], [0.0, 0.0]),
        rows([1.0, 0.0], [float("nan"), 1.0]),
        rows([1.0, 0.0], [1e300, 1.0]),
        rows([1.0, 0.0], [1.0]),
        rows([1.0, 0.0], ["x", 1.0]),
        rows([1.0, 0.0], None),
        rows([], []),
        LoopbackReply(
            {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}
        ),
        LoopbackReply({"data": [1, 2]}),
        LoopbackReply({"data": "no"}),
        LoopbackReply([]),
        LoopbackReply("no JSON"),
    ],
)
def test_nonsense_is_never_a_vector(reply: LoopbackReply) -> None:
    with LoopbackServer(embeddings=lambda request: reply) as server:
        with pytest.raises(ModelError):
            remote(server).embed(["a", "b"])
        assert len(server.requests) > 1  # it was asked again before it was given up


def test_a_dimension_that_changes_is_refused() -> None:
    with (
        LoopbackServer(embeddings=[rows([1.0, 0.0]), rows([1.0, 0.0, 0.0])]) as server,
        pytest.raises(ModelError, match="3 numbers where 2"),
    ):
        embedder = remote(server)
        embedder.embed(["a"])
        embedder.embed(["a"])


def test_a_failing_endpoint_is_asked_again() -> None:
    busy = LoopbackReply({"error": {"message": "busy"}}, 429)
    with LoopbackServer(embeddings=[busy, hash_embeddings]) as server:
        vectors: Vectors = remote(server).embed(["a"])
        assert vectors.shape == (1, 32)
        assert len(server.requests) == 2

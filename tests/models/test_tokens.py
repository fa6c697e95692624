from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import tiktoken
from hypothesis import example, given
from hypothesis import strategies as st

from docpager.models import vocabularies
from docpager.models.tokens import VocabularyCounter, counter_for
from docpager.models.vocabularies import VocabularyName
from docpager.protocols import TokenCounter

FOLDER = Path(tempfile.gettempdir()) / "docpager-tests" / "vocabularies"
O200K = "fb374d419588a4632f3f557e76b4b70aebbca790"
PREPARED = f"o200k_base-{tiktoken.__version__}.prepared"

EXACT = counter_for("gpt-4o", FOLDER)
ESTIMATE = counter_for("qwen2.5-coder", FOLDER)
counters = st.sampled_from([EXACT, ESTIMATE])
texts = st.text(alphabet=st.characters(), max_size=400)


@given(counters, texts)
@example(EXACT, "\ud800 half a character")
@example(ESTIMATE, "\udc80")
def test_counting_never_raises_and_only_the_empty_text_is_free(
    counter: TokenCounter, text: str
) -> None:
    assert (counter.count(text) == 0) == (text == "")


@given(counters, texts, st.integers(-2, 60))
@example(ESTIMATE, "数据" * 30, 7)
@example(EXACT, "👩‍👩‍👧‍👦" * 9, 5)
@example(ESTIMATE, "2024-11-30 " * 30, 20)
def test_a_cut_is_a_prefix_within_the_limit(counter: TokenCounter, text: str, limit: int) -> None:
    cut = counter.cut(text, limit)
    assert text.startswith(cut)
    assert counter.count(cut) <= max(limit, 0)


@given(counters, texts)
def test_a_text_that_fits_is_not_cut(counter: TokenCounter, text: str) -> None:
    assert counter.cut(text, counter.count(text)) == text


@given(
    st.lists(
        st.sampled_from(["the", "mill", "was", "built", "in", "eighteen", "ninety"]), max_size=80
    )
)
def test_a_cut_of_plain_words_leaves_no_room(words: list[str]) -> None:
    text = " ".join(words)
    limit = EXACT.count(text) // 2
    assert EXACT.count(EXACT.cut(text, limit)) == limit


def test_known_counts() -> None:
    assert EXACT.count("hello world") == 2
    assert counter_for("gpt-4", FOLDER).count("hello world") == 2
    assert EXACT.cut("hello world, how are you?", 3) == "hello world,"


@pytest.mark.parametrize(
    ("model", "vocabulary", "exact"),
    [
        ("gpt-4o-mini", "o200k_base", True),
        ("openai/gpt-4o", "o200k_base", True),
        ("gpt-oss-20b", "o200k_base", True),
        ("gpt-3.5-turbo", "cl100k_base", True),
        ("openai:text-embedding-3-small", "cl100k_base", True),
        ("text-davinci-003", "o200k_base", False),
        ("llama3.2", "o200k_base", False),
        ("", "o200k_base", False),
    ],
)
def test_the_vocabulary_of_a_model(model: str, vocabulary: str, exact: bool) -> None:
    counter = counter_for(model, FOLDER)
    assert isinstance(counter, VocabularyCounter)
    assert (counter.vocabulary, counter.exact) == (vocabulary, exact)


@given(st.text(min_size=1, max_size=200))
def test_an_estimate_is_above_the_count_it_stands_on(text: str) -> None:
    assert ESTIMATE.count(text) > EXACT.count(text)


def test_every_further_digit_costs_in_an_estimate() -> None:
    assert ESTIMATE.count("7" * 90) >= 90


@pytest.mark.parametrize("blank", [" ", "\n", "é"])
def test_a_million_equal_characters_are_counted(blank: str) -> None:
    assert 0 < EXACT.count(blank * 1_000_000) <= 3_000_000


def test_special_tokens_are_text_like_any_other() -> None:
    assert EXACT.count("<|endoftext|>") > 1


def test_a_counter_travels_to_another_process() -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert pool.map(EXACT.count, ["hello world"]) == [2]
    assert pickle.loads(pickle.dumps(ESTIMATE)) == ESTIMATE


def fresh_count(folder: Path) -> subprocess.Popen[str]:
    program = (
        "import sys; from pathlib import Path; from docpager.models.tokens import counter_for;"
        "print(counter_for('gpt-4o', Path(sys.argv[1])).count('hello world'))"
    )
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HTTPS_PROXY": "http://127.0.0.1:9"},
    )


def outcomes(processes: list[subprocess.Popen[str]]) -> list[str]:
    return [process.communicate(timeout=60)[0].strip() for process in processes]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_several_processes_may_lay_out_the_vocabulary_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "vocabularies"
    assert outcomes([fresh_count(folder) for _ in range(2)]) == ["2", "2"]
    assert {path.name for path in folder.iterdir()} == {O200K, PREPARED}


def test_what_was_prepared_is_used_while_it_is_sound(tmp_path: Path) -> None:
    assert outcomes([fresh_count(tmp_path)]) == ["2"]
    (tmp_path / O200K).unlink()
    assert outcomes([fresh_count(tmp_path)]) == ["2"]
    assert not (tmp_path / O200K).exists()
    whole = (tmp_path / PREPARED).read_bytes()
    for damaged in (b"", b"{}", whole[:-1], whole.replace(b"hello", b"jello")):
        (tmp_path / PREPARED).write_bytes(damaged)
        assert outcomes([fresh_count(tmp_path)]) == ["2"]
        assert (tmp_path / PREPARED).read_bytes() == whole


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_what_was_prepared_is_what_tiktoken_reads(name: VocabularyName, tmp_path: Path) -> None:
    parts = vocabularies._parts(name, tmp_path)
    vocabularies._write_prepared(parts, tmp_path / "prepared")
    assert vocabularies._read_prepared(tmp_path / "prepared") == parts


def test_a_damaged_file_is_replaced_and_not_fetched(tmp_path: Path) -> None:
    (tmp_path / O200K).write_bytes(b"aGVsbG8= 0\n")
    assert outcomes([fresh_count(tmp_path)]) == ["2"]
    assert digest(tmp_path / O200K).startswith("446a9538")


def test_a_place_that_cannot_be_written_to_is_no_obstacle(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the folder's place", encoding="utf-8")
    assert outcomes([fresh_count(file / "vocabularies")]) == ["2"]


def test_the_environment_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "elsewhere")
    EXACT.count("something")
    assert os.environ["TIKTOKEN_CACHE_DIR"] == "elsewhere"

"""The sample corpus is what its generator makes, large enough, and its questions are fair."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pypdfium2
import pytest

from docpager.models.tokens import counter_for

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "sample_docs"
QUESTIONS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (FOLDER / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
ANSWERABLE = [question for question in QUESTIONS if "expected" in question]
KINDS = {
    "single": 6,
    "two-hop": 8,
    "three-hop": 4,
    "comparison": 2,
    "chinese": 2,
    "unanswerable": 2,
}
ABSENT = {
    "unanswerable-1": ("cormorant",),
    "unanswerable-2": ("anthem", "composer", "composed", "sang", "sung"),
}


def pdf_pages(path: Path) -> list[str]:
    document = pypdfium2.PdfDocument(path)
    try:
        return [page.get_textpage().get_text_range() for page in document]
    finally:
        document.close()


@pytest.fixture(scope="module")
def texts() -> dict[str, list[str]]:
    """Every document's pages; a file without pages is one page."""
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix == ".pdf":
            found[f"sample_docs/{path.relative_to(FOLDER).as_posix()}"] = pdf_pages(path)
        elif path.suffix in (".md", ".txt"):
            name = f"sample_docs/{path.relative_to(FOLDER).as_posix()}"
            found[name] = [path.read_text(encoding="utf-8")]
    return found


def flat(text: str) -> str:
    text = re.sub(r"\s+", " ", text)
    return re.sub(r"(?<=[\u3000-\u9fff]) (?=[\u3000-\u9fff])", "", text)


def is_chinese(text: str) -> bool:
    return re.search(r"[\u4e00-\u9fff]", text) is not None


def runs(text: str) -> set[str]:
    """What a copied wording would share: 5 words without names, or 8 Chinese characters."""
    if is_chinese(text):
        signs = re.sub(r"[^\u4e00-\u9fff]", "", text)
        return {signs[i : i + 8] for i in range(len(signs) - 7)}
    words = [word for word in re.findall(r"\w+", text) if not word[0].isupper()]
    return {" ".join(words[i : i + 5]) for i in range(len(words) - 4)}


def pages_of(question: dict[str, Any], texts: dict[str, list[str]]) -> list[str]:
    return [flat(texts[p["document"]][p["page"] - 1]) for p in question["expected_pages"]]


def ids(questions: list[dict[str, Any]]) -> list[str]:
    return [question["id"] for question in questions]


def test_the_generator_makes_these_bytes_and_notices_others(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(FOLDER, copy)
    (copy / "letters" / "carrow-letters.txt").write_text("Dear Nora,\n", encoding="utf-8")
    (copy / "stray.txt").write_text("", encoding="utf-8")
    script = str(ROOT / "tools" / "make_sample_docs.py")
    command = [sys.executable, script, "--check", "--folder", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines() == [
        "letters/carrow-letters.txt: differs",
        "stray.txt: not made by the generator",
    ]
    assert done.returncode == 1


def test_there_are_enough_files_pages_and_tokens(
    texts: dict[str, list[str]], tmp_path: Path
) -> None:
    counter = counter_for("gpt-4o", tmp_path)
    long_pdfs = [name for name, pages in texts.items() if len(pages) >= 8]
    tokens = sum(counter.count("\n".join(pages)) for pages in texts.values())
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())
    assert len(texts) >= 12
    assert len(long_pdfs) >= 5
    assert any(is_chinese(texts[name][0]) for name in long_pdfs)
    assert tokens >= 150_000
    assert size < 6_000_000


def test_pdfs_have_titles_outlines_roman_labels_and_running_heads(
    texts: dict[str, list[str]],
) -> None:
    for name in (name for name in texts if name.endswith(".pdf")):
        document = pypdfium2.PdfDocument(ROOT / name)
        title = document.get_metadata_value("Title")
        outline = [item.get_title() for item in document.get_toc()]
        labels = [document.get_page_label(index) for index in range(len(document))]
        document.close()
        assert title in flat(texts[name][0])
        assert len(outline) >= 8
        assert labels[0] == "i"
        assert labels[-1].isdigit()
        firsts = Counter(page.splitlines()[0] for page in texts[name][1:])
        assert firsts.most_common(1)[0][1] >= len(labels) / 3


def test_kinds_are_counted() -> None:
    assert Counter(tag for question in QUESTIONS for tag in question["tags"]) == KINDS
    assert len(set(ids(QUESTIONS))) == 24
    assert len({question["question"] for question in QUESTIONS}) == 24


def test_most_gold_is_on_pages() -> None:
    wanted = sum(len(question["expected_documents"]) for question in ANSWERABLE)
    paged = sum(
        len({page["document"] for page in question["expected_pages"]}) for question in ANSWERABLE
    )
    assert paged / wanted >= 0.8


@pytest.mark.parametrize("question", ANSWERABLE, ids=ids(ANSWERABLE))
def test_the_last_page_states_the_answer(
    question: dict[str, Any], texts: dict[str, list[str]]
) -> None:
    last = pages_of(question, texts)[-1]
    assert any(answer in last for answer in question["expected"])
    assert {p["document"] for p in question["expected_pages"]} <= set(
        question["expected_documents"]
    )


HOPPING = [q for q in ANSWERABLE if q["tags"][0] in ("two-hop", "three-hop", "comparison")]


@pytest.mark.parametrize("question", HOPPING, ids=ids(HOPPING))
def test_hops_lead_through_different_files(question: dict[str, Any]) -> None:
    files = 3 if question["tags"] == ["three-hop"] else 2
    assert len(set(question["expected_documents"])) == files


CHAINED = [q for q in ANSWERABLE if q["tags"][0] in ("two-hop", "three-hop")]


@pytest.mark.parametrize("question", CHAINED, ids=ids(CHAINED))
def test_the_answer_is_not_where_the_chain_begins(
    question: dict[str, Any], texts: dict[str, list[str]]
) -> None:
    first = question["expected_documents"][0]
    starts = [p for p in question["expected_pages"] if p["document"] == first]
    begin = texts[first][starts[0]["page"] - 1] if starts else " ".join(texts[first])
    assert not any(re.search(rf"\b{re.escape(a)}\b", flat(begin)) for a in question["expected"])


@pytest.mark.parametrize("question", ANSWERABLE, ids=ids(ANSWERABLE))
def test_questions_are_worded_unlike_their_pages(
    question: dict[str, Any], texts: dict[str, list[str]]
) -> None:
    asked = runs(question["question"])
    paged = {page["document"] for page in question["expected_pages"]}
    whole = [flat(texts[n][0]) for n in question["expected_documents"] if n not in paged]
    for text in [*pages_of(question, texts), *whole]:
        assert not asked & runs(text)


@pytest.mark.parametrize("question_id", sorted(ABSENT))
def test_what_is_not_in_the_corpus_is_not_in_it(
    question_id: str, texts: dict[str, list[str]]
) -> None:
    question = next(q for q in QUESTIONS if q["id"] == question_id)
    assert question["expected_status"] == "not_found"
    everything = flat(" ".join(" ".join(pages) for pages in texts.values())).lower()
    assert not [w for w in ABSENT[question_id] if re.search(rf"\b{w}\b", everything)]

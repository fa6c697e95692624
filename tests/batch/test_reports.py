"""What others read of a batch: JUnit XML, comparisons, the summary's means."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import junitparser
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from docpager.batch.comparison import compare_results, comparison_markdown
from docpager.batch.fingerprint import changed_parts, fingerprint
from docpager.batch.finished import FinishedBatch
from docpager.batch.grading import Grading, graded
from docpager.batch.junit import write_junit
from docpager.batch.questions import Question
from docpager.batch.result import Result
from docpager.batch.result_line import read_result, result_line, result_record
from docpager.batch.results import ResultsFile, read_results
from docpager.batch.summary import BatchSummary, summarise, write_summary
from docpager.cli import main
from docpager.errors import Limit, NothingToDo, UserError
from docpager.types import Answer, AnswerStatus, Citation, PageRef, Usage

NASTY = "a\x00b\x1b[31m ]]> <&\"' \ud800 \U0001f600 \ufffe 灯塔\r\n\t\x85"


def question(name: str, **given: Any) -> Question:
    fields = {"expected": given.get("expected"), **given}
    expected = (given["expected"],) if given.get("expected") else ()
    tags = tuple(given.get("tags", ()))
    return Question(
        name,
        f"What of {name}?",
        1,
        expected,
        expected_status=given.get("expected_status"),
        tags=tags,
        given={key: value for key, value in fields.items() if value is not None},
    )


def answer(text: str, status: AnswerStatus = "answered", **fields: Any) -> Answer:
    made = Answer(
        run_id="run1",
        question="What?",
        status=status,
        answer=text,
        citations=(Citation("P1", "a.pdf", 3, None, text, True),),
        steps=2,
        searches=1,
        pages_read=1,
        usage=Usage(100, 0, 10, 0.5),
        model="m",
        tool_mode="tools",
        stopped_by=None,
        elapsed_s=1.25,
        pages_shown=(PageRef("a.pdf", 3),),
    )
    return replace(made, **fields)


def row(asked: Question, said: Answer, left: Limit | None = None) -> Result:
    return graded(Result.of(asked, said, "1-2-3-4", left), asked, Grading())


ASKED = [
    question("right", expected="Graz", tags=["a"]),
    question("wrong/with a slash", expected=NASTY, tags=[NASTY]),
    question("unscored"),
    question("fault", expected="x"),
    question("left", expected="x"),
    question("never"),
]
ROWS = {
    "right": row(ASKED[0], answer("Graz")),
    "wrong/with a slash": row(ASKED[1], answer(f"Linz {NASTY[:9]}")),
    "unscored": row(ASKED[2], answer(NASTY)),
    "fault": row(ASKED[3], answer("", "model_error", error=f"down {NASTY}")),
    "left": row(ASKED[4], answer("", "budget"), "money"),
}


def summary(rows: dict[str, Result], count: int) -> BatchSummary:
    return summarise(rows.values(), questions=count, grading=Grading(fail_under=0.5))


def finished(asked: list[Question], rows: dict[str, Result], **fields: Any) -> FinishedBatch:
    made = FinishedBatch(
        tuple(asked), rows.get, summary(rows, len(asked)), Path("runs"), lambda citation: None
    )
    return replace(made, **fields)


def written(folder: Path, asked: list[Question], rows: dict[str, Result]) -> Path:
    path = folder / "junit.xml"
    write_junit(path, finished(asked, rows))
    return path


def test_each_question_is_one_case_of_its_kind(tmp_path: Path) -> None:
    path = written(tmp_path, ASKED, ROWS)
    suites = junitparser.JUnitXml.fromfile(str(path))
    [suite] = list(suites)
    kinds = {case.name: [type(result).__name__ for result in case.result] for case in suite}
    assert kinds == {
        "right": [],
        "wrong/with a slash": ["Failure"],
        "unscored": [],
        "fault": ["Error"],
        "left": ["Skipped"],
        "never": ["Skipped"],
    }
    for whole in (suites, suite):
        counts = (whole.tests, whole.failures, whole.errors, whole.skipped)
        assert counts == (6, 1, 1, 2)
    assert suite.time == 5 * 1.25


def test_the_rules_that_servers_share_are_kept(tmp_path: Path) -> None:
    """Of Jenkins, GitLab and GitHub's readers: what each of them wants."""
    root = ET.parse(written(tmp_path, ASKED, ROWS)).getroot()
    assert root.tag == "testsuites"
    [suite] = root
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.get("tests", "")) == len({case.get("name") for case in cases})
    for case in cases:
        assert case.get("classname", "").startswith("docpager.")
        assert case.get("classname", "").count(".") == 1
        assert float(case.get("time", "")) >= 0
        assert "\n" not in case.get("name", "")
        assert len([part for part in case if part.tag in ("failure", "error", "skipped")]) <= 1
    for part in ("failure", "error"):
        [found] = suite.iter(part)
        assert found.get("message") and found.get("type") and len(found.get("message", "")) < 400


def test_the_body_has_all_that_it_takes_to_judge(tmp_path: Path) -> None:
    root = ET.parse(written(tmp_path, ASKED, ROWS)).getroot()
    [body] = [
        case.findtext("system-out") for case in root.iter("testcase") if case.get("name") == "right"
    ]
    assert body is not None
    for part in ("What of right?", "Answer (answered): Graz", "Expected: Graz", "f1 1.00"):
        assert part in body
    assert '[1] a.pdf p. 3 "Graz"' in body
    assert "Trace: runs/run1.jsonl" in body


@given(st.text(alphabet=st.characters(), max_size=40), st.text(max_size=20))
def test_any_text_makes_valid_xml_and_keeps_what_is_legal(
    tmp_path_factory: pytest.TempPathFactory, text: str, tag: str
) -> None:
    asked = [question("q", expected="none of the words that are said", tags=[tag])]
    rows = {"q": row(asked[0], answer(f"{text} ]]> \ud800", error=text))}
    path = written(tmp_path_factory.mktemp("junit"), asked, rows)
    body = ET.parse(path).getroot().findtext(".//failure") or ""
    kept = "".join(c for c in text if c.isprintable() and not "\ud800" <= c <= "\udfff")
    kept = kept.replace("\ufffe", "").replace("\uffff", "")
    assert "]]>" in body
    assert [c for c in kept if c not in body] == []
    junitparser.JUnitXml.fromfile(str(path))


@pytest.mark.parametrize("code", [2, 3, 4, 5])
def test_what_stopped_a_batch_is_an_exit_code_also_where_no_result_tells_of_it(code: int) -> None:
    stopped = replace(summary({"right": ROWS["right"]}, 1), stop_code=code)
    assert stopped.exit_codes == {code}


# -- means ----------------------------------------------------------------------------------------


def test_what_is_not_scored_does_not_count() -> None:
    found = summary(ROWS, 6)
    assert (found.mean.n, found.errors, found.skipped, found.missing) == (2, 1, 1, 1)
    assert found.groups["all"].questions == 4
    assert found.groups["a"].scores["f1"].mean == 1.0
    assert found.exit_codes == {4, 5}


def test_no_scored_question_is_below_any_threshold() -> None:
    assert summary({"unscored": ROWS["unscored"]}, 1).below_threshold


def test_a_tag_may_be_named_like_the_total() -> None:
    rows = {
        name: replace(result, given=replace(result.given, tags=("all",)))
        for name, result in ROWS.items()
    }
    assert summary(rows, 0.5).groups == {"all": summary(ROWS, 0.5).groups["all"]}


# -- compare --------------------------------------------------------------------------------------


def results(path: Path, rows: dict[str, Result]) -> Path:
    with ResultsFile(path) as file:
        for result in rows.values():
            file.append(result)
    return path


def test_a_comparison_sorts_what_changed(tmp_path: Path) -> None:
    asked = [
        question(name, expected="Graz") for name in ("same", "worse", "better", "down", "gone")
    ]
    before = ["Graz", "Graz", "Linz", "Graz", "Graz"]
    one = {q.id: row(q, answer(said)) for q, said in zip(asked, before, strict=True)}
    other = {
        "same": one["same"],
        "worse": row(asked[1], answer("Linz | a\n*b*")),
        "better": row(asked[2], answer("Graz")),
        "down": row(asked[3], answer("", "model_error")),
        "new": row(question("new"), answer("x")),
    }
    a, b = results(tmp_path / "a.jsonl", one), results(tmp_path / "b.jsonl", other)
    found = compare_results(a, b)
    assert [change.id for change in found.new_failures] == ["worse"]
    assert [change.id for change in found.new_errors] == ["down"]
    assert [change.id for change in found.fixed] == ["better"]
    assert (found.changed, found.only_before, found.only_after) == ((), ("gone",), ("new",))
    assert [change.id for change in found.lost] == ["gone"]
    assert found.regressed
    assert found.mean.before == found.mean.after == pytest.approx(2 / 3)
    markdown = comparison_markdown(found)
    assert "❌" in markdown
    [line] = [line for line in markdown.splitlines() if line.startswith("| worse")]
    assert line.count(" | ") == 3 and "\\| a \\*b\\*" in line

    runner = CliRunner()
    empty = results(tmp_path / "empty.jsonl", {})
    assert runner.invoke(main, ["compare", str(a), str(empty)]).exit_code == 1
    assert runner.invoke(main, ["compare", str(empty), str(a)]).exit_code == 6
    done = runner.invoke(main, ["compare", str(a), str(b), "--json"])
    assert (done.exit_code, json.loads(done.stdout)["regressed"]) == (1, True)
    assert all(isinstance(count, int) for count in json.loads(done.stdout)["tokens"].values())
    done = runner.invoke(main, ["compare", str(a), str(b)])
    assert (done.exit_code, "New failures (1)" in done.stdout) == (1, True)
    assert runner.invoke(main, ["compare", str(a), str(a), "--markdown"]).exit_code == 0


@pytest.mark.parametrize("content", [b"", b'{"question": "a"}\n', b"\xff\n", b"[]\n"])
def test_only_results_are_compared(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    if content:
        with pytest.raises(UserError, match=r"a\.jsonl:1: .*it is no result"):
            compare_results(path, path)
    else:
        with pytest.raises(NothingToDo, match="holds no results"):
            compare_results(path, path)
    with pytest.raises(UserError, match="cannot be read"):
        compare_results(tmp_path / "none.jsonl", path)


# -- the file of results --------------------------------------------------------------------------


def test_a_fault_never_takes_the_place_of_an_answer(tmp_path: Path) -> None:
    q = question("q", expected="Graz")
    lines = [answer("", "model_error"), answer("Graz"), answer("", "model_error", error="later")]
    with ResultsFile(tmp_path / "r.jsonl") as file:
        for said in lines:
            file.append(row(q, said))
        assert file.read("q").answer.answer == "Graz"
        file.rewrite(["q", "unknown"])
        file.append(row(question("z"), answer("x")))
    assert len((tmp_path / "r.jsonl").read_bytes().splitlines()) == 2
    with ResultsFile(tmp_path / "r.jsonl") as file:
        assert (file.read("q").answer.answer, file.read("z").answer.answer) == ("Graz", "x")


def test_a_fingerprint_says_what_changed() -> None:
    settings: dict[str, object] = {"model": "m", "seed": 3, "endpoint": "http://a", "max_steps": 5}
    before = fingerprint("q", settings, "h")
    for other in ({"endpoint": "http://b"}, {"max_steps": 6}, {"timeout": 7.5}):
        assert changed_parts(before, fingerprint("q", {**settings, **other}, "h")) == ()
    for now, part in (
        (fingerprint("p", settings, "h"), "question"),
        (fingerprint("q", {**settings, "seed": 4}, "h"), "settings"),
        (fingerprint("q", {**settings, "model": "n"}, "h"), "model"),
        (fingerprint("q", settings, "i"), "archive"),
    ):
        assert changed_parts(before, now) == (part,)


def changed(record: dict[str, Any], place: str, value: object) -> dict[str, Any]:
    """`record` with another value at a dotted place; `...` leaves it out."""
    copy: Any = json.loads(json.dumps(record))
    at: Any = copy
    *path, last = [int(step) if step.isdigit() else step for step in place.split(".")]
    for step in path:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return dict(copy)


GOOD = json.loads(result_line(ROWS["right"]))
FOREIGN = [
    *((name, ...) for name in GOOD if name not in ("schema", "expected", "stopped_at")),
    *((f"usage.{name}", ...) for name in GOOD["usage"]),
    *((f"citations.0.{name}", ...) for name in GOOD["citations"][0]),
    *((f"pages_shown.0.{name}", ...) for name in GOOD["pages_shown"][0]),
    *((name, [{"x": 1}]) for name in GOOD if name not in ("schema", "expected")),
    ("id", 7),
    ("usage.prompt_tokens", "many"),
    ("usage.prompt_tokens", 10**400),
    ("usage.cost_usd", float("nan")),
    ("elapsed_s", float("inf")),
    ("elapsed_s", True),
    ("citations.0.page", 10**30),
    ("run_id", "../../\x00"),
    ("scores.f1", "0.5"),
    ("expected_status", "maybe"),
    ("status", "done"),
]


@pytest.mark.parametrize(("place", "value"), FOREIGN)
def test_a_line_of_another_shape_is_named_by_all_that_read_it(
    tmp_path: Path, place: str, value: object
) -> None:
    path = tmp_path / "r.jsonl"
    lines = [result_line(ROWS["fault"]).decode().rstrip(), json.dumps(changed(GOOD, place, value))]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    before = path.read_bytes()
    for read in (ResultsFile, lambda path: compare_results(path, path)):
        with pytest.raises(UserError, match=r"r\.jsonl:2: .*is no result"):
            read(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("torn", [b"", b'{"schema": 1, "run', b'{"schema": 1, "run_id": "\xc3'])
def test_nul_bytes_of_a_power_cut_are_a_torn_line(tmp_path: Path, torn: bytes) -> None:
    path = results(tmp_path / "r.jsonl", ROWS)
    whole = path.read_bytes()
    for kept in (whole, whole[:-1], b""):
        path.write_bytes(kept + torn * kept.endswith(b"\n") + b"\0" * 5000)
        assert len(read_results(path)) == (len(ROWS) if kept else 0)
        with ResultsFile(path) as file:
            assert len(file.entries) == (len(ROWS) if kept else 0)
        assert path.read_bytes() == (whole if kept else b"")


def test_a_score_that_a_file_does_not_have_is_none(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(changed(GOOD, "scores", {"passed": True})), encoding="utf-8")
    assert compare_results(path, path).mean.before is None


TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
ANSWERS = st.builds(
    Answer,
    run_id=st.text("abc123", max_size=8),
    question=TEXT.filter(str.strip),
    status=st.sampled_from(["answered", "unsupported", "not_found", "model_error", "budget"]),
    answer=TEXT,
    citations=st.lists(
        st.builds(
            Citation,
            TEXT,
            TEXT,
            st.none() | st.integers(1, 999),
            st.none() | TEXT,
            TEXT,
            st.booleans(),
            st.none() | TEXT,
            st.none() | st.integers(1, 999),
            st.none() | TEXT,
        ),
        max_size=2,
    ).map(tuple),
    steps=st.integers(0, 99),
    searches=st.integers(0, 99),
    pages_read=st.integers(0, 99),
    usage=st.builds(
        Usage, *[st.integers(0, 10**6)] * 3, st.none() | st.integers(0, 9) | st.floats(0, 1e6)
    ),
    model=TEXT,
    tool_mode=st.sampled_from(["tools", "json", "text", "guided"]),
    stopped_by=st.none() | st.sampled_from(["steps", "tokens", "money", "time"]),
    elapsed_s=st.floats(0, 1e6).map(lambda seconds: round(seconds, 3)),
    error=st.none() | TEXT,
    pages_shown=st.lists(st.builds(PageRef, TEXT, st.integers(0, 99)), max_size=2).map(tuple),
)


@given(
    ANSWERS,
    st.none() | st.sampled_from(["steps", "tokens", "money", "time"]),
    st.none() | st.integers(0, 99) | st.floats(0, 1e6),
    st.booleans(),
    st.dictionaries(st.sampled_from(["note", "owner"]), st.none() | TEXT | st.integers()),
    st.lists(TEXT, max_size=2, unique=True),
)
def test_a_result_is_what_its_line_says_and_its_line_is_written_again_byte_for_byte(
    said: Answer, skipped: Limit, stopped_at: float, unasked: bool, more: Any, tags: list[str]
) -> None:
    asked = question("q", expected="x", tags=tags, **more)
    result = graded(Result.of(asked, said, "1-2-3-4", skipped, stopped_at), asked, Grading())
    result = replace(result, unasked=unasked)
    line = result_line(result)
    assert line.count(b"\n") == 1
    assert read_result(line) == result
    assert result_line(read_result(line)) == line


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        ("elapsed_s", "1", "elapsed_s: input should be a valid number"),
        ("usage.cost_usd", [], "usage.cost_usd: input should be a valid number"),
        ("stopped_at", -1, "stopped_at: input should be greater than or equal to 0"),
        ("usage.cost_usd", 10**20, "usage.cost_usd: input should be less than or equal to 1"),
    ],
)
def test_a_number_that_is_none_is_named_by_its_place(
    place: str, value: object, problem: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        read_result(json.dumps(changed(GOOD, place, value)).encode())


def test_a_result_that_is_not_asked_any_more_keeps_its_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    foreign = {**changed(GOOD, "usage.reasoning_tokens", 7), "id": "gone", "reviewer": "me"}
    del foreign["stopped_at"]
    path.write_text(json.dumps(foreign) + "\n", encoding="utf-8")
    for _ in range(2):
        with ResultsFile(path) as file:
            file.rewrite([])
            assert file.read("gone").unasked
        assert path.read_text(encoding="utf-8") == json.dumps({**foreign, "unasked": True}) + "\n"


def test_a_line_of_an_older_version_is_read() -> None:
    record = result_record(ROWS["right"])
    for name in ("schema", "expected", "stopped_at"):
        del record[name]
    old = read_result(json.dumps(record).encode())
    assert (old.answer, old.scores, old.stopped_at) == (
        ROWS["right"].answer,
        ROWS["right"].scores,
        None,
    )


def test_the_summary_is_written_as_json_and_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    made = summary(ROWS, len(ASKED))
    write_summary(tmp_path / "s.json", made)
    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))["questions"] == len(ASKED)
    with pytest.raises(UserError, match="cannot be written"):
        write_summary(tmp_path, made)


def test_what_keeps_its_old_answer_is_skipped_or_an_error_in_junit(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    batch = finished(ASKED, ROWS, failed={"right": "no"}, not_asked={"unscored": "left for money"})
    write_junit(path, batch)
    cases = {case.get("name"): case for case in ET.parse(path).getroot().iter("testcase")}
    assert cases["right"].find("error") is not None
    skipped = cases["unscored"].find("skipped")
    assert skipped is not None and skipped.get("message") == "not asked again: left for money"

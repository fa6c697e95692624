"""`batch` as a pipeline meets it: results, scores, resume, budget, interruptions, exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import docpager
from docpager.batch import BatchLimits, Grading, Interrupt, Selection
from docpager.testing import LoopbackReply, LoopbackRequest, LoopbackServer, call, say, wire_reply
from docpager.types import Usage
from tests.batch.desks import Desk, make_desk, model, questions, right


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_desk(tmp_path_factory.mktemp("archive")).folder / "docpager.duckdb"


@pytest.fixture
def desk(tmp_path: Path, archive: Path) -> Desk:
    (tmp_path / "docpager.duckdb").write_bytes(archive.read_bytes())
    made = Desk(tmp_path)
    made.write("q.jsonl", questions())
    return made


def dear(request: LoopbackRequest) -> LoopbackReply:
    """As `right`, with a count of tokens as a real model has it."""
    body: Any = right(request).body
    return LoopbackReply({**body, "usage": {"prompt_tokens": 1200, "completion_tokens": 10}})


@pytest.fixture
def dear_server() -> Iterator[LoopbackServer]:
    with LoopbackServer(dear) as serving:
        yield serving


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(right) as serving:
        yield serving


def batch(desk: Desk, server: LoopbackServer, *arguments: str, code: int = 0) -> str:
    result = desk("batch", "q.jsonl", "-o", "r.jsonl", *model(server.base_url), *arguments)
    assert result.exit_code == code, (result.output, result.stderr, result.exception)
    return result.stderr


def refusing(*failing: int, status: int = 400) -> Any:
    """A model that fails at the questions about some pumps."""

    def answer(request: LoopbackRequest) -> LoopbackReply:
        found = re.search(r"Where was pump (\d+) made", json.dumps(request.body["messages"]))
        assert found is not None
        if int(found[1]) in failing:
            return LoopbackReply({"error": {"message": "broken", "code": "x"}}, status)
        return right(request)

    return answer


def asked(server: LoopbackServer) -> list[int]:
    """The numbers of the pumps that were asked about, in order of arrival."""
    texts = [json.dumps(body["messages"]) for body in server.bodies()]
    return [int(re.findall(r"Where was pump (\d+) made", text)[0]) for text in texts]


# -- results --------------------------------------------------------------------------------------


def test_every_question_has_a_line_in_the_order_of_the_file(
    desk: Desk, server: LoopbackServer
) -> None:
    rows = [*questions(), {"question": "Where was pump 3 made?", "note": {"deep": [1]}}]
    desk.write("q.jsonl", rows)
    batch(desk, server, "--jobs", "5")
    found = desk.rows("r.jsonl")
    assert [row["id"] for row in found] == [*(f"q{n}" for n in range(1, 9)), "9"]
    assert found[0]["scores"] == {
        "exact_match": 1.0,
        "f1": 1.0,
        "contains": 1.0,
        "document_recall": 1.0,
        "page_recall": None,
        "read_recall": None,
        "citation_precision": 1.0,
        "passed": True,
    }
    assert found[8]["note"] == {"deep": [1]}
    assert found[8]["scores"]["passed"] is None
    assert all(row["status"] == "answered" and row["skipped"] is None for row in found)


def test_two_threads_may_ask_the_same_question(desk: Desk, server: LoopbackServer) -> None:
    desk.write(
        "q.jsonl", [{"id": f"same{n}", "question": "Where was pump 1 made?"} for n in range(12)]
    )
    batch(desk, server, "--jobs", "12")
    found = desk.rows("r.jsonl")
    assert len({row["run_id"] for row in found}) == 1
    assert {row["answer"] for row in found} == {"Graz1"}


def test_a_second_run_with_the_cache_calls_nothing_and_writes_the_same_bytes(
    desk: Desk, server: LoopbackServer
) -> None:
    batch(desk, server, "--cache", "calls.jsonl", "--jobs", "4")
    first = (desk.folder / "r.jsonl").read_bytes()
    before = len(server.requests)
    for jobs in ("1", "8"):
        (desk.folder / "r.jsonl").unlink()
        batch(desk, server, "--cache", "calls.jsonl", "--jobs", jobs)
        assert (desk.folder / "r.jsonl").read_bytes() == first
    assert len(server.requests) == before


def test_a_replay_needs_no_server_and_no_key(desk: Desk) -> None:
    with LoopbackServer(right) as server:
        options = (*model(server.base_url)[:4],)  # the mode is settled by trying, and kept too
        arguments = ("batch", "q.jsonl", *options, "--cache", "calls.jsonl")
        assert desk(*arguments, "-o", "r.jsonl").exit_code == 0
    (desk.folder / "docpager.duckdb.d" / "tool_modes.json").unlink()
    replayed = desk(*arguments, "-o", "again.jsonl", "--replay")
    assert replayed.exit_code == 0, replayed.stderr
    assert (desk.folder / "again.jsonl").read_bytes() == (desk.folder / "r.jsonl").read_bytes()


def test_a_replay_stops_at_the_first_call_that_is_not_recorded(
    desk: Desk, server: LoopbackServer
) -> None:
    batch(desk, server, "--cache", "calls.jsonl")
    before = len(server.requests)
    desk.write("q.jsonl", [{"id": "new", "question": "Where was pump 4 made, now?"}, *questions()])
    (desk.folder / "r.jsonl").unlink()
    options = ("--cache", "calls.jsonl", "--replay", "--junit-xml", "j.xml")
    said = batch(desk, server, *options, "--jobs", "1", code=2)
    assert (
        "new: calls.jsonl holds no reply to call 1 of 'Where was pump 4 made, now?', after "
        "archival_memory_search gave" in said
    )
    assert "record it anew" in said
    assert len(server.requests) == before
    cases = ElementTree.parse(desk.folder / "j.xml").getroot().iter("testcase")
    kinds = {case.get("name"): [part.tag for part in case] for case in cases}
    assert kinds == {"new": ["error"], **{f"q{n}": ["skipped"] for n in range(1, 9)}}


def test_the_first_question_without_a_recording_is_named_however_many_run(
    desk: Desk, server: LoopbackServer
) -> None:
    batch(desk, server, "--cache", "calls.jsonl")
    desk.write("q.jsonl", [{"id": f"n{n}", "question": f"Pump {n}?"} for n in range(8)])
    (desk.folder / "r.jsonl").unlink()
    options = ("--cache", "calls.jsonl", "--replay", "--junit-xml", "j.xml", "--jobs", "4")
    said = batch(desk, server, *options, code=2)
    assert "n0: calls.jsonl holds no reply to call 1 of 'Pump 0?', after" in said
    report = (desk.folder / "j.xml").read_text(encoding="utf-8")
    assert report.count("<error") + report.count("<skipped") == 8
    assert 'message="n0: calls.jsonl' in report


def test_a_replay_without_a_cache_is_refused(desk: Desk, server: LoopbackServer) -> None:
    assert "--cache" in batch(desk, server, "--replay", code=2)


def test_ask_uses_the_same_cache(desk: Desk, server: LoopbackServer) -> None:
    batch(desk, server, "--cache", "calls.jsonl")
    before = len(server.requests)
    options = (*model(server.base_url), "--cache", "calls.jsonl", "--replay", "--json")
    answered = desk("ask", "Where was pump 2 made?", *options)
    assert answered.exit_code == 0, answered.stderr
    assert json.loads(answered.stdout)["answer"] == "Graz2"
    assert len(server.requests) == before


# -- scores and thresholds ------------------------------------------------------------------------


def test_a_mean_below_the_threshold_is_exit_1_and_is_told(
    desk: Desk, server: LoopbackServer
) -> None:
    rows = questions()
    rows[0]["expected"] = rows[1]["expected"] = "Linz"
    desk.write("q.jsonl", rows)
    assert "2 failed, mean f1 0.750 of 8" in batch(desk, server)
    said = batch(desk, server, "--fail-under", "0.8", "--summary", "out/s.json", code=1)
    assert "below 0.8" in said
    summary = json.loads((desk.folder / "out" / "s.json").read_text(encoding="utf-8"))
    assert (summary["mean"], summary["n"], summary["below_threshold"]) == (0.75, 8, True)
    assert [worst["id"] for worst in summary["worst"]] == ["q1", "q2"]
    assert summary["tags"]["odd"]["scores"]["f1"] == {"mean": 0.75, "n": 4}
    assert summary["asked"] == 0  # the expectations changed, not the questions


def test_an_expected_status_passes_and_counts(desk: Desk) -> None:
    rows = questions(2)
    rows[0] |= {"expected": None, "expected_status": "not_found"}
    rows[1] |= {"expected": None, "expected_status": "answered"}
    desk.write("q.jsonl", rows)
    with LoopbackServer(right) as server:
        batch(desk, server, "--fail-under", "0.5")
    found = desk.rows("r.jsonl")
    assert [row["scores"]["passed"] for row in found] == [False, True]
    assert found[0]["scores"]["f1"] is None


def test_only_questions_with_the_tag_are_asked(desk: Desk, server: LoopbackServer) -> None:
    batch(desk, server, "--filter", "odd")
    assert sorted(asked(server)) == [1, 3, 5, 7]
    batch(desk, server)
    assert sorted(asked(server)[4:]) == [2, 4, 6, 8]
    assert [row["id"] for row in desk.rows("r.jsonl")] == [f"q{n}" for n in range(1, 9)]


# -- resume ---------------------------------------------------------------------------------------


def test_what_is_done_is_not_asked_again(desk: Desk, server: LoopbackServer) -> None:
    batch(desk, server)
    first = (desk.folder / "r.jsonl").read_bytes()
    assert "0 asked with 0 calls" in batch(desk, server, "--resume")
    assert (desk.folder / "r.jsonl").read_bytes() == first
    assert len(asked(server)) == 8
    batch(desk, server, "--redo")
    assert len(asked(server)) == 16


def test_who_may_read_the_results_stays_as_it_was(desk: Desk, server: LoopbackServer) -> None:
    path = desk.folder / "r.jsonl"
    path.touch(mode=0o600)
    batch(desk, server)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_a_torn_last_line_is_asked_again(desk: Desk, server: LoopbackServer, cut: int) -> None:
    batch(desk, server, "--cache", "calls.jsonl")
    path = desk.folder / "r.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert f"{int(cut > 1)} asked with 0 calls" in batch(desk, server, "--cache", "calls.jsonl")
    assert path.read_bytes() == whole


def test_errors_stay_until_a_retry_succeeds(desk: Desk) -> None:
    with LoopbackServer(refusing(2, 5)) as server:
        batch(desk, server, code=4)
    with LoopbackServer(refusing(5)) as server:  # elsewhere, but the same model
        batch(desk, server, code=4)
        assert asked(server) == []
        batch(desk, server, "--retry-errors", code=4)
        assert sorted(asked(server)) == [2, 5]
    rows = {row["id"]: row for row in desk.rows("r.jsonl")}
    assert [name for name, row in rows.items() if row["status"] == "model_error"] == ["q5"]
    assert "broken" in rows["q5"]["error"]
    with LoopbackServer(right) as server:
        batch(desk, server, "--retry-errors")
        assert asked(server) == [5]


def test_changed_settings_are_named_and_redone_only_when_asked(
    desk: Desk, server: LoopbackServer
) -> None:
    batch(desk, server)
    said = batch(desk, server, "--seed", "7", code=2)
    assert "8 results made with another settings" in said and "--redo" in said
    batch(desk, server, "--seed", "7", "--redo")
    rows = questions()
    rows[2]["question"] = "Where was pump 3 made, please?"
    desk.write("q.jsonl", rows)
    assert "1 results made with another question (q3)" in batch(desk, server, "--seed", "7", code=2)


def answers(desk: Desk) -> list[str]:
    return [row["answer"] for row in desk.rows("r.jsonl")]


RIGHT = [f"Graz{n}" for n in range(1, 9)]


def test_a_redo_that_is_refused_before_it_asks_leaves_every_byte(
    desk: Desk, server: LoopbackServer
) -> None:
    batch(desk, server)
    before = (desk.folder / "r.jsonl").read_bytes()
    desk.write("q.jsonl", [*questions(), {"id": "long", "question": "why " * 25_000}])
    assert "q.jsonl:9: The question takes" in batch(desk, server, "--redo", code=2)
    assert (desk.folder / "r.jsonl").read_bytes() == before


@pytest.mark.parametrize("succeed", [0, 3])
def test_a_redo_that_a_refused_key_stops_keeps_what_was_not_redone(
    desk: Desk, server: LoopbackServer, succeed: int
) -> None:
    batch(desk, server)
    before = desk.rows("r.jsonl")

    def answer(request: LoopbackRequest) -> LoopbackReply:
        if len(refuser.requests) > succeed:
            return LoopbackReply({"error": {"message": "bad key"}}, 401)
        return right(request)

    with LoopbackServer(answer) as refuser:
        options = ("--redo", "--seed", "7", "--jobs", "1")
        assert "The batch was stopped" in batch(desk, refuser, *options, code=4)
    rows = desk.rows("r.jsonl")
    assert answers(desk) == RIGHT
    assert rows[succeed:] == before[succeed:]
    assert all(
        new["fingerprint"] != old["fingerprint"]
        for new, old in zip(rows[:succeed], before, strict=False)
    )


def test_an_answer_stays_until_its_redo_succeeds_and_until_then_the_exit_is_4(
    desk: Desk, server: LoopbackServer
) -> None:
    batch(desk, server)
    with LoopbackServer(refusing(2, 5)) as failing:
        options = ("--redo", "--jobs", "1", "--junit-xml", "j.xml")
        said = batch(desk, failing, *options, code=4)
    assert (desk.folder / "j.xml").read_text(encoding="utf-8").count("<error") == 2
    assert "2 questions were not redone and keep their old results (q2, q5). Of q2" in said
    assert "broken" in said
    assert answers(desk) == RIGHT
    assert "not redone" not in batch(desk, server, "--redo")


def test_what_a_budget_leaves_of_a_redo_keeps_its_answer_and_the_exit_is_5(
    desk: Desk, dear_server: LoopbackServer
) -> None:
    batch(desk, dear_server)
    done = len(asked(dear_server))
    said = batch(desk, dear_server, "--redo", "--max-tokens", "6000", "--jobs", "1", code=5)
    redone = len(asked(dear_server)) - done
    assert f"{8 - redone} questions were not redone" in said
    assert answers(desk) == RIGHT


def test_a_redo_that_a_budget_ended_goes_on_where_it_stopped(
    desk: Desk, dear_server: LoopbackServer
) -> None:
    batch(desk, dear_server)
    done = len(asked(dear_server))
    options = ("--redo", "--seed", "7", "--max-tokens", "6000", "--jobs", "1")
    junit = desk.folder / "j.xml"
    said = batch(desk, dear_server, *options, "--junit-xml", "j.xml", code=5)
    redone = len(asked(dear_server)) - done
    assert 0 < redone < 8
    assert junit.read_text(encoding="utf-8").count("<skipped") == 8 - redone
    assert f"{8 - redone} questions were not redone" in said
    batch(desk, dear_server, "--redo", "--seed", "7", "--jobs", "1")
    assert sorted(asked(dear_server)[done:]) == list(range(1, 9))


def test_a_redo_of_what_was_made_otherwise_asks_what_failed_too(desk: Desk) -> None:
    with LoopbackServer(refusing(2, 5)) as failing:
        batch(desk, failing, code=4)
    with LoopbackServer(right) as server:
        batch(desk, server, "--seed", "7", "--redo")
        assert sorted(asked(server)) == list(range(1, 9))


def test_one_changed_question_is_redone_alone(desk: Desk, server: LoopbackServer) -> None:
    batch(desk, server)
    rows = questions()
    rows[2]["question"] = "Where was pump 3 made, please?"
    desk.write("q.jsonl", rows)
    batch(desk, server, "--redo")
    assert asked(server)[8:] == [3]


def test_an_expectation_that_was_taken_out_counts_no_longer(
    desk: Desk, server: LoopbackServer
) -> None:
    rows = questions()
    desk.write("q.jsonl", [{**rows[0], "expected_status": "answered"}, *rows[1:]])
    batch(desk, server)
    desk.write("q.jsonl", [{**rows[0], "expected": "Nowhere"}, *rows[1:]])
    batch(desk, server, "--fail-under", "1", code=1)
    assert "expected_status" not in desk.rows("r.jsonl")[0]


def test_a_link_to_a_report_that_is_not_there_yet_stays_one(
    desk: Desk, server: LoopbackServer
) -> None:
    link = desk.folder / "j.xml"
    link.symlink_to("there.xml")
    batch(desk, server, "--junit-xml", "j.xml")
    assert link.is_symlink() and (desk.folder / "there.xml").stat().st_size > 0


def test_an_archive_changed_since_is_named(desk: Desk, server: LoopbackServer) -> None:
    batch(desk, server)
    assert desk("rm", "pump-8.md").exit_code == 0
    assert "another archive" in batch(desk, server, code=2)


def test_a_batch_answers_over_the_archive_that_it_began_with(desk: Desk) -> None:
    path = desk.folder / "docpager.duckdb"

    def answer(request: LoopbackRequest) -> LoopbackReply:
        if len(server.requests) == 3:
            path.rename(path.with_suffix(".moved"))
        return right(request)

    with LoopbackServer(answer) as server:
        batch(desk, server, "--jobs", "2")
        assert {row["answer"] for row in desk.rows("r.jsonl")} == {f"Graz{n}" for n in range(1, 9)}
        assert "docpager ingest" in batch(desk, server, code=3)


# -- budget ---------------------------------------------------------------------------------------


def test_tokens_of_the_whole_are_bounded_and_the_rest_is_left(
    desk: Desk, dear_server: LoopbackServer
) -> None:
    server = dear_server
    said = batch(desk, server, "--max-tokens", "6000", "--jobs", "1", code=5)
    rows = desk.rows("r.jsonl")
    left = [row for row in rows if row["skipped"] == "tokens"]
    assert 0 < len(left) < 8
    assert all(row["status"] == "budget" and row["stopped_by"] == "tokens" for row in left)
    assert f"{len(left)} left for budget" in said
    done = len(asked(server))
    assert "0 left" not in batch(desk, server, "--jobs", "2")
    assert sorted(asked(server)[done:]) == sorted(int(row["id"][1:]) for row in left)
    assert {row["status"] for row in desk.rows("r.jsonl")} == {"answered"}


@pytest.mark.parametrize("jobs", [1, 3, 8])
def test_a_budget_that_all_questions_fit_in_leaves_none_however_many_run(
    desk: Desk, jobs: int
) -> None:
    """What one is thought to take before any is finished is much more than it does."""
    desk.write(
        "q.jsonl",
        [{"id": f"n{n}", "question": f"Where was pump 1 made, {n}?"} for n in range(12)],
    )

    def costly(request: LoopbackRequest) -> LoopbackReply:
        body: Any = right(request).body
        usage: Any = {"prompt_tokens": 3000, "completion_tokens": 100}
        return LoopbackReply({**body, "usage": usage}, delay_s=0.05)

    with LoopbackServer(costly) as server:
        batch(desk, server, "--max-tokens", "100000", "--jobs", str(jobs))
        assert len(asked(server)) == 12


@pytest.mark.parametrize("jobs", [1, 3, 8])
@pytest.mark.parametrize("most", [4_000, 9_000])
def test_no_number_of_questions_at_once_goes_beyond_the_budget(
    desk: Desk, dear_server: LoopbackServer, most: int, jobs: int
) -> None:
    options = ("--max-tokens", str(most), "--jobs", str(jobs), "--summary", "s.json")
    batch(desk, dear_server, *options, code=5)
    assert 0 < 1210 * len(asked(dear_server)) <= most


def test_money_is_bounded_by_the_table_of_prices(desk: Desk, dear_server: LoopbackServer) -> None:
    server = dear_server
    for option in ("--max-cost", "--question-max-cost"):
        said = batch(desk, server, option, "1", code=2)
        assert f"docpager: {option} cannot be kept: no price of loopback is known" in said
    (desk.folder / "docpager.toml").write_text(
        '[prices."loop"]\nprompt = 1000\ncompletion = 2000\n', encoding="utf-8"
    )
    batch(desk, server, "--max-cost", "5", "--summary", "s.json", "--jobs", "1", code=5)
    summary = json.loads((desk.folder / "s.json").read_text(encoding="utf-8"))
    assert 0 < summary["usage"]["cost_usd"] <= 5
    rows = [row for row in desk.rows("r.jsonl") if row["skipped"] is None]
    assert {row["usage"]["cost_usd"] for row in rows} == {1.22}
    assert "price unknown" not in batch(desk, server)


def test_nothing_more_is_launched_after_the_time(desk: Desk) -> None:
    def slow(request: LoopbackRequest) -> LoopbackReply:
        return LoopbackReply(right(request).body, delay_s=0.4)

    with LoopbackServer(slow) as server:
        batch(desk, server, "--timeout", "0.9", "--jobs", "1", code=5)
    statuses = [row["status"] for row in desk.rows("r.jsonl")]
    assert statuses[0] == "answered" and statuses[-1] == "budget"


def test_a_dry_run_asks_nothing(desk: Desk, server: LoopbackServer) -> None:
    (desk.folder / "docpager.toml").write_text(
        "[prices.loopback]\nprompt = 1\ncompletion = 4\n", encoding="utf-8"
    )
    result = desk("batch", "q.jsonl", "--dry-run", "--json", "--model", "loopback")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["questions"], found["done"]) == (0, 8, 0)
    for part in ("calls", "tokens", "cost_usd"):
        assert 0 < found[part]["low"] <= found[part]["likely"] <= found[part]["high"]
    batch(desk, server)
    again = desk("batch", "q.jsonl", "-o", "r.jsonl", "--dry-run", "--model", "loopback")
    assert "0 questions to ask, 8 done" in again.stdout
    assert len(server.requests) == 8


# -- the endpoint ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, {"message": "bad key"}),
        (429, {"code": "insufficient_quota"}),
        (200, {"code": "insufficient_quota"}),
    ],
)
def test_a_refused_key_or_quota_stops_the_batch_at_once(
    desk: Desk, status: int, error: dict[str, str]
) -> None:
    def answer(request: LoopbackRequest) -> LoopbackReply:
        if len(server.requests) > 3:
            return LoopbackReply({"error": {"message": "no", **error}}, status)
        return right(request)

    with LoopbackServer(answer) as server:
        said = batch(desk, server, "--jobs", "1", code=4)
        assert len(server.requests) == 4
    assert "The batch was stopped" in said
    statuses = [row["status"] for row in desk.rows("r.jsonl")]
    assert statuses == ["answered", "answered", "answered", "model_error"]


def test_a_page_of_a_proxy_is_told_within_seconds(desk: Desk) -> None:
    desk.write("q.jsonl", questions(1))
    with LoopbackServer(lambda request: LoopbackReply("<html>Please log in</html>")) as server:
        began = time.monotonic()
        batch(desk, server, code=4)
        assert time.monotonic() - began < 15
    assert "<html>Please log in" in desk.rows("r.jsonl")[0]["error"]


def test_a_storm_of_refusals_loses_and_doubles_no_answer(desk: Desk) -> None:
    """One in three is refused with a time to come back, some fail, some are cut."""
    kinds = [429, 200, 200, 429, 500, 200, 0, 200, 429, 200]

    def answer(request: LoopbackRequest) -> LoopbackReply:
        kind = kinds[len(server.requests) % len(kinds)]
        if kind == 429:
            return LoopbackReply({"error": {"message": "slow"}}, 429, {"retry-after-ms": "5"})
        if kind == 500:
            return LoopbackReply({"error": {"message": "x"}}, 500, {"retry-after": "0.01"})
        reply = right(request)
        return LoopbackReply(reply.body, cut=kind == 0)

    with LoopbackServer(answer) as server:
        batch(desk, server, "--jobs", "8", "--summary", "s.json")
        sent = len(server.requests)
    rows = desk.rows("r.jsonl")
    assert [row["answer"] for row in rows] == [f"Graz{n}" for n in range(1, 9)]
    summary = json.loads((desk.folder / "s.json").read_text(encoding="utf-8"))
    assert summary["retries"] == sent - 8 > 0
    assert summary["fewest_at_once"] < 8


LONG_WAITS = [{"retry-after": "3600"}, {"x-ratelimit-reset-requests": "23h59m0s"}]


@pytest.mark.parametrize("headers", LONG_WAITS)
def test_an_endpoint_that_asks_for_hours_is_given_up(desk: Desk, headers: dict[str, str]) -> None:
    desk.write("q.jsonl", [{"question": f"Where was pump 1 made? {n}"} for n in range(40)])
    limited = LoopbackReply({"error": {"message": "slow"}}, 429, headers)
    with LoopbackServer(lambda request: limited) as server:
        said = batch(desk, server, code=4)
        assert len(server.requests) <= 4
    assert "questions in a row failed" in said
    errors = [row["error"] for row in desk.rows("r.jsonl")]
    assert 10 <= len(errors) <= 14
    assert all("asks to wait" in error and "asked again" not in error for error in errors)


def test_what_would_wait_beyond_the_time_of_the_batch_is_left(desk: Desk) -> None:
    limited = LoopbackReply({"error": {"message": "slow"}}, 429, {"retry-after": "500"})
    with LoopbackServer(lambda request: limited) as server:
        batch(desk, server, "--timeout", "60", code=5)
        assert len(server.requests) <= 4
    rows = desk.rows("r.jsonl")
    assert [(row["status"], row["stopped_by"]) for row in rows] == [("budget", "time")] * 8
    with LoopbackServer(right) as server:
        batch(desk, server)
    assert {row["status"] for row in desk.rows("r.jsonl")} == {"answered"}


@pytest.mark.parametrize("cached", [(), ("--cache", "c.jsonl")])
def test_a_question_ends_with_its_time_on_an_endpoint_that_does_not_answer(
    desk: Desk, cached: tuple[str, ...]
) -> None:
    desk.write("q.jsonl", questions(2))
    with LoopbackServer(lambda request: LoopbackReply({}, delay_s=30.0)) as server:
        batch(desk, server, "--question-timeout", "1", *cached, code=5)
        assert len(server.requests) == 2
    rows = desk.rows("r.jsonl")
    assert [(row["status"], row["stopped_by"]) for row in rows] == [("budget", "time")] * 2
    with LoopbackServer(right) as server:  # they had their own bound: nothing is left to ask
        for bound in ("1", "0.5"):
            batch(desk, server, "--question-timeout", bound, *cached, code=5)
        assert server.requests == []
        batch(desk, server, "--question-timeout", "60", *cached)
        assert sorted(asked(server)) == [1, 2]
        batch(desk, server, "--question-timeout", "70", "--max-steps", "3", *cached)
        assert len(asked(server)) == 2  # nothing stopped these answers


def test_an_endpoint_that_is_not_there_is_given_up(tmp_path: Path, desk: Desk) -> None:
    rows = [{"question": f"Where was pump 1 made, {n}?"} for n in range(40)]
    desk.write("q.jsonl", rows)
    with LoopbackServer(refusing(1)) as server:
        said = batch(desk, server, "--jobs", "2", code=4)
    assert "10 questions in a row failed" in said
    assert 10 <= len(desk.rows("r.jsonl")) <= 12


# -- interruptions --------------------------------------------------------------------------------


def slow(request: LoopbackRequest) -> LoopbackReply:
    return LoopbackReply(right(request).body, delay_s=1.0)


def interrupted(desk: Desk, server: LoopbackServer, signals: int) -> tuple[int, str]:
    arguments = ("batch", "q.jsonl", "-o", "r.jsonl", *model(server.base_url), "--jobs", "2")
    process = desk.start(*arguments, "--junit-xml", "j.xml")
    until = time.monotonic() + 60
    while len(server.requests) < 2:
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.02)
    for _ in range(signals):
        process.send_signal(signal.SIGINT)
        time.sleep(0.15)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def test_one_interrupt_finishes_what_runs_and_keeps_it(desk: Desk) -> None:
    with LoopbackServer(slow) as server:
        code, said = interrupted(desk, server, 1)
        assert len(server.requests) == 2
    assert code == 130, said
    assert [row["id"] for row in desk.rows("r.jsonl")] == ["q1", "q2"]
    assert (desk.folder / "j.xml").read_text(encoding="utf-8").count("<skipped") == 6


def test_two_interrupts_stop_at_once(desk: Desk) -> None:
    with LoopbackServer(lambda request: LoopbackReply(right(request).body, delay_s=30.0)) as server:
        began = time.monotonic()
        code, said = interrupted(desk, server, 2)
        assert time.monotonic() - began < 20  # and not until the endpoint has answered
        assert code == 130, said
    assert said.count("finishing what runs") == said.count("stopping now") == 1
    assert desk.rows("r.jsonl") == []  # as after one, there would be two


def test_one_interrupt_ends_what_only_waits_as_if_it_was_never_asked(desk: Desk) -> None:
    limited = LoopbackReply({"error": {"message": "slow"}}, 429, {"retry-after": "500"})

    def answer(request: LoopbackRequest) -> LoopbackReply:
        return limited if "pump 2 made" in json.dumps(request.body) else slow(request)

    with LoopbackServer(answer) as server:
        code, said = interrupted(desk, server, 1)
        assert len(server.requests) == 2
    assert code == 130, said
    assert [row["id"] for row in desk.rows("r.jsonl")] == ["q1"]


def test_another_batch_may_not_write_the_same_results(desk: Desk) -> None:
    with LoopbackServer(slow) as server:
        arguments = ("batch", "q.jsonl", "-o", "r.jsonl", *model(server.base_url))
        process = desk.start(*arguments)
        until = time.monotonic() + 60
        while not server.requests:
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.02)
        second = desk(*arguments)
        process.communicate(timeout=60)
    assert second.exit_code == 2
    assert "Another batch is writing" in second.stderr
    assert process.returncode == 0


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["[1, 2]"], "q.jsonl:1: the line is no JSON object"),
        (["id,question", "1,why"], "q.jsonl:1: the line is no JSON"),
        (['{"id": "a"}'], "q.jsonl:1: the key 'question' is missing"),
        (['{"question": "  "}'], "q.jsonl:1: question: it is empty"),
        (['{"question": 7}'], "q.jsonl:1: question: input should be a valid string"),
        (['{"question": "a", "id": "x\\ny"}'], "q.jsonl:1: id: it is empty, or holds a line break"),
        (['{"question": "a", "id": "1"}', '{"question": "b", "id": 1}'], "q.jsonl:2: the id '1'"),
        (['{"question": "a"}', "", '{"question": "b", "id": "1"}'], "q.jsonl:3: the id '1'"),
        (['{"question": "a", "expected_status": "no"}'], "q.jsonl:1: expected_status:"),
        (['{"question": "a", "answer": "b"}'], "what is expected is `expected`"),
        (['{"question": "a", "x": NaN}'], "q.jsonl:1: NaN is no JSON"),
        (["[" * 100_000], "q.jsonl:1: the line is nested too deeply"),
        (
            ['{"question": "a", "x": ' + "[" * 700 + "]" * 700 + "}"],
            "q.jsonl:1: the line is nested too deeply",
        ),
        (['{"question": "a", "x": 1e999}'], "q.jsonl:1: 1e999 is too large a number"),
        (['{"question": "a", "expected_pages": [{"page": 1}]}'], "expected_pages.0.document"),
    ],
)
def test_a_malformed_line_is_named_before_anything_is_asked(
    desk: Desk, server: LoopbackServer, lines: list[str], said: str
) -> None:
    desk.write("q.jsonl", lines)
    assert said in batch(desk, server, code=2)
    assert not server.requests
    assert not (desk.folder / "r.jsonl").exists()


def test_all_malformed_lines_are_named_at_once(desk: Desk, server: LoopbackServer) -> None:
    desk.write("q.jsonl", [*questions(2), *(["no"] * 9)])
    said = batch(desk, server, code=2)
    assert "q.jsonl:3:" in said and "q.jsonl:7:" in said and "and 4 more" in said


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf\n"])
def test_an_empty_file_is_nothing_to_do(desk: Desk, server: LoopbackServer, content: bytes) -> None:
    (desk.folder / "q.jsonl").write_bytes(content)
    batch(desk, server, code=6)


def test_no_question_with_the_tag_is_nothing_to_do(desk: Desk, server: LoopbackServer) -> None:
    assert "No question has the tag" in batch(desk, server, "--filter", "none", code=6)


def test_a_byte_order_mark_blank_lines_and_odd_ids_are_taken(
    desk: Desk, server: LoopbackServer
) -> None:
    row = {"id": "a/b ../ü\ud800", "question": "Where was pump 1 made?"}
    text = "\ufeff\r\n" + json.dumps(row) + "\r\n\n"
    (desk.folder / "q.jsonl").write_text(text, encoding="utf-8")
    batch(desk, server, "--junit-xml", "j.xml")
    assert desk.rows("r.jsonl")[0]["id"] == "a/b ../ü\ufffd"
    assert "0 asked" in batch(desk, server)


def test_a_question_too_long_for_the_window_is_refused_with_both_numbers(
    desk: Desk, server: LoopbackServer
) -> None:
    desk.write("q.jsonl", [*questions(1), {"id": "long", "question": "why " * 25_000}])
    said = batch(desk, server, code=2)
    assert re.search(r"q\.jsonl:2: The question takes \d+ tokens; a window of 8192 leaves", said)
    assert not server.requests


@pytest.mark.parametrize("name", ["/proc/none/r.jsonl", "q.jsonl/r.jsonl", "."])
def test_results_that_cannot_be_written_are_refused_at_once(
    desk: Desk, server: LoopbackServer, name: str
) -> None:
    result = desk("batch", "q.jsonl", "-o", name, *model(server.base_url))
    assert result.exit_code == 2, result.output
    assert "cannot be written" in result.stderr
    result = desk("batch", "q.jsonl", "-o", "r", "--junit-xml", name, *model(server.base_url))
    assert result.exit_code == 2, result.output
    assert not server.requests


def test_results_go_where_a_symbolic_link_points_and_the_link_stays(
    desk: Desk, server: LoopbackServer
) -> None:
    (desk.folder / "elsewhere").mkdir()
    (desk.folder / "r.jsonl").symlink_to(Path("elsewhere") / "real.jsonl")
    for expected in ("8 asked", "0 asked"):
        assert expected in batch(desk, server)
        assert (desk.folder / "r.jsonl").is_symlink()
        assert len(desk.rows("elsewhere/real.jsonl")) == 8
    assert [path.name for path in (desk.folder / "elsewhere").iterdir()] == ["real.jsonl"]


@pytest.mark.parametrize("name", ["/dev/null", "pipe", "folder", "loop"])
def test_results_need_a_file(desk: Desk, server: LoopbackServer, name: str) -> None:
    os.mkfifo(desk.folder / "pipe")
    (desk.folder / "folder").mkdir()
    (desk.folder / "loop").symlink_to("loop")
    result = desk("batch", "q.jsonl", "-o", name, *model(server.base_url))
    assert result.exit_code == 2, result.output
    assert f"{name} cannot be written" in result.stderr
    assert not server.requests


NAMES = ("q.jsonl", "-o", "--junit-xml", "--summary", "--report", "--cache", "-a")


@pytest.mark.parametrize(
    ("one", "other"),
    [pair for pair in combinations(NAMES, 2) if pair != ("q.jsonl", "-a")],
)
def test_no_file_is_named_twice(desk: Desk, server: LoopbackServer, one: str, other: str) -> None:
    """However it is spelled, and whether or not it is there yet."""
    paths = {name: f"file-{name.strip('-')}" for name in NAMES} | {
        "q.jsonl": "q.jsonl",
        "-a": "docpager.duckdb",
    }
    same = {"q.jsonl": "q.jsonl", "-a": "docpager.duckdb"}
    paths[one] = same.get(one, same.get(other, "same"))
    (desk.folder / "folder").mkdir()
    paths[other] = f"folder/../{paths[one]}"
    before = {path: path.read_bytes() for path in desk.folder.iterdir() if path.is_file()}
    options = [part for name in NAMES[1:] for part in (name, paths[name])]
    result = desk("batch", paths["q.jsonl"], *options, *model(server.base_url))
    assert result.exit_code == 2, result.output
    assert "name the same file" in result.stderr
    assert {path: path.read_bytes() for path in desk.folder.iterdir() if path.is_file()} == before
    assert not server.requests


def test_links_are_names_of_the_same_file_and_devices_of_none(
    desk: Desk, server: LoopbackServer
) -> None:
    batch(desk, server, "--summary", "/dev/null", "--junit-xml", "/dev/null")
    before = (desk.folder / "r.jsonl").read_bytes()
    (desk.folder / "soft").symlink_to("r.jsonl")
    (desk.folder / "hard").hardlink_to(desk.folder / "r.jsonl")
    for name in ("soft", "hard"):
        assert "name the same file" in batch(desk, server, "--summary", name, code=2)
    assert (desk.folder / "r.jsonl").read_bytes() == before


def test_a_file_of_something_else_is_never_written_over(desk: Desk, server: LoopbackServer) -> None:
    before = (desk.folder / "q.jsonl").read_bytes()
    desk.write("r.jsonl", questions())
    assert "r.jsonl:1: the key" in batch(desk, server, code=2)
    assert (desk.folder / "r.jsonl").read_bytes() == before
    for content in (b"notes without a line end", b"notes\n"):
        (desk.folder / "r.jsonl").write_bytes(content)
        assert "is no result" in batch(desk, server, code=2)
        assert (desk.folder / "r.jsonl").read_bytes() == content


def test_results_of_other_questions_are_refused(desk: Desk, server: LoopbackServer) -> None:
    batch(desk, server)
    before = (desk.folder / "r.jsonl").read_bytes()
    desk.write("q.jsonl", [{**row, "id": f"other-{row['id']}"} for row in questions()])
    for flags in ((), ("--redo",)):
        assert "results of other questions (q1, q2, q3, …)" in batch(desk, server, *flags, code=2)
    assert (desk.folder / "r.jsonl").read_bytes() == before


@pytest.mark.parametrize("flags", [(), ("--redo",), ("--filter", "odd")])
def test_results_of_questions_that_are_gone_stay_and_do_not_count(
    desk: Desk, server: LoopbackServer, flags: tuple[str, ...]
) -> None:
    batch(desk, server)
    before = (desk.folder / "r.jsonl").read_bytes()
    desk.write("q.jsonl", [row for row in questions() if row["id"] not in ("q2", "q7")])
    for _ in range(2):
        said = batch(desk, server, *flags, "--summary", "s.json", "--junit-xml", "j.xml")
        assert "2 results of questions that q.jsonl does not hold any more (q2, q7)" in said
    summary = json.loads((desk.folder / "s.json").read_text(encoding="utf-8"))
    assert summary["questions"] == (3 if "odd" in flags else 6)
    assert 'name="q2"' not in (desk.folder / "j.xml").read_text(encoding="utf-8")
    rows = desk.rows("r.jsonl")
    assert [row["id"] for row in rows] == ["q1", "q3", "q4", "q5", "q6", "q8", "q2", "q7"]
    assert [row["id"] for row in rows if row.get("unasked")] == ["q2", "q7"]
    (desk.folder / "before.jsonl").write_bytes(before)
    found = json.loads(desk("compare", "before.jsonl", "r.jsonl", "--json").stdout)
    assert found["only_before"] == ["q2", "q7"]
    # Where they are asked again, they were never away.
    desk.write("q.jsonl", questions())
    options = ("-o", "r.jsonl", "--dry-run", *model(server.base_url))
    assert "0 questions to ask, 8 done" in desk("batch", "q.jsonl", *options).stdout
    asked_before = len(asked(server))
    batch(desk, server)
    assert len(asked(server)) == asked_before
    if flags == ():
        assert (desk.folder / "r.jsonl").read_bytes() == before


@pytest.mark.parametrize("done", [True, False])
def test_nothing_heavy_is_loaded_where_nothing_is_left_to_ask(
    desk: Desk, server: LoopbackServer, done: bool
) -> None:
    if done:
        batch(desk, server)
    script = (
        "import sys; from docpager.cli import main; "
        "main(sys.argv[1:], standalone_mode=False); "
        "print('openai' in sys.modules)"
    )
    arguments = ("batch", "q.jsonl", "-o", "r.jsonl", "-q", *model(server.base_url))
    vocabularies = desk.folder / "another cache" / "vocabularies"
    places = {"DOCPAGER_CACHE_DIR": str(vocabularies.parent)}
    environment = {**os.environ, **desk.environment(places)}
    ended = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=desk.folder,
        env={name: value for name, value in environment.items() if value is not None},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.strip() == str(not done)
    assert vocabularies.exists() is not done


def test_a_full_disk_stops_the_batch_and_a_later_run_goes_on(
    desk: Desk, server: LoopbackServer
) -> None:
    """A limit on the size of files is a disk that is full in the middle of a line."""
    desk.write("q.jsonl", [{**row, "note": "n" * 4000} for row in questions()])
    arguments = ("batch", "q.jsonl", "-o", "r.jsonl", *model(server.base_url), "--jobs", "1")
    script = (
        "import resource, sys; from docpager.cli import main; from docpager import load, wiring; "
        "wiring.make_counter(load(), 'loopback').count('the vocabulary is laid out before'); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (24000, 24000)); main(sys.argv[1:])"
    )
    environment = {**os.environ, **desk.environment({})}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=desk.folder,
        env={name: value for name, value in environment.items() if value is not None},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "cannot be written" in done.stderr and "goes on from there" in done.stderr
    kept = len(desk.rows("r.jsonl"))
    assert 0 < kept < 8
    before = len(server.requests)
    batch(desk, server)
    assert len(server.requests) - before <= 8 - kept
    assert len(desk.rows("r.jsonl")) == 8


def test_a_missing_or_empty_archive_is_said_first(tmp_path: Path, server: LoopbackServer) -> None:
    desk = Desk(tmp_path)
    desk.write("q.jsonl", questions(1))
    assert "docpager ingest" in batch(desk, server, code=3)


def test_no_output_is_asked_for(desk: Desk, server: LoopbackServer) -> None:
    result = desk("batch", "q.jsonl", *model(server.base_url))
    assert (result.exit_code, "-o" in result.stderr) == (2, True)


# -- from Python ----------------------------------------------------------------------------------


def test_the_same_from_python(desk: Desk, server: LoopbackServer) -> None:
    heard: list[tuple[int, int]] = []
    summary = docpager.run_batch(
        desk.folder / "q.jsonl",
        desk.folder / "r.jsonl",
        archive=desk.folder / "docpager.duckdb",
        model="loopback",
        base_url=server.base_url,
        tool_mode="tools",
        grading=Grading("contains", 1.0, 0.9),
        selection=Selection(("odd",)),
        bounds=BatchLimits(max_tokens=10**6),
        on_result=lambda done, total, record: heard.append((done, total)),
        interrupt=Interrupt(),
    )
    assert summary.groups["all"].passed == 4
    assert summary.exit_codes == {0}
    assert heard == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_an_answer_given_in_prose_is_scored_as_unsupported(desk: Desk) -> None:
    desk.write("q.jsonl", questions(1))
    with LoopbackServer(lambda request: wire_reply(say("Graz1"), usage=Usage(5, 0, 5))) as server:
        batch(desk, server)
    row = desk.rows("r.jsonl")[0]
    assert (row["status"], row["scores"]["f1"]) == ("unsupported", 1.0)


def test_not_found_scores_nothing_for_its_words(desk: Desk) -> None:
    desk.write("q.jsonl", questions(1))
    reply = call("send_message", message="Graz1", citations=[], not_found=True)
    with LoopbackServer(lambda request: wire_reply(reply)) as server:
        batch(desk, server)
    row = desk.rows("r.jsonl")[0]
    assert (row["status"], row["scores"]["f1"], row["scores"]["passed"]) == (
        "not_found",
        0.0,
        False,
    )

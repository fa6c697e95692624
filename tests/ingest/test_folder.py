"""A whole ingest through the command line, over folders as they really are."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from docpager.cli import main
from docpager.testing import LoopbackReply, LoopbackRequest, LoopbackServer, hash_embeddings
from tests.documents.making import docx, examples, msg, paragraph, xls
from tests.ingest.folders import LIMITS, put_bad, put_good

PROJECT = Path(__file__).parents[2]


def run(folder: Path, *arguments: str) -> Result:
    before = Path.cwd()
    os.chdir(folder)
    cleared = [name for name in os.environ if name.startswith(("DOCPAGER_", "OPENAI_"))]
    environment = {**dict.fromkeys(cleared), "HOME": str(folder)}
    try:
        return CliRunner().invoke(main, arguments, env=environment)
    finally:
        os.chdir(before)


def start(folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DOCPAGER_", "OPENAI_"))
        and not any(word in name for word in TELEMETRY)
    }
    return subprocess.Popen(
        [sys.executable, "-m", "docpager", *arguments],
        cwd=folder,
        env={**kept, "HOME": str(folder), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def content(folder: Path) -> tuple[list[Any], list[Any]]:
    """Every passage with its id and place, and the state of every document."""
    from docpager.clocks import SystemClock
    from docpager.stores.duckdb.reader import DuckDBReader

    with DuckDBReader.open(folder / "docpager.duckdb", clock=SystemClock()) as archive:
        ids = [f"P{number}" for number in range(1, 4 * archive.passage_count + 1)]
        passages = [(p.passage_id, p.document, p.text) for p in archive.passages(ids)]
        return passages, [(d.name, d.state, d.reason, d.passages) for d in archive.documents()]


def record(result: Result) -> dict[str, Any]:
    (line,) = result.stdout.splitlines()
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


def check_mixed(folder: Path, good: int, each: int) -> None:
    """Of `good` files and `each` in ten ways bad, the first are ready and the others named."""
    put_good(folder / "corpus" / "good", good)
    reasons = put_bad(folder / "corpus" / "bad", each)
    result = run(folder, "ingest", "corpus", "--json", *LIMITS)
    assert result.exit_code == 3, result.output
    told = record(result)
    assert (told["added"], told["failed"], told["ignored"]) == (good, 10 * each, 0)
    failed = {f["path"]: f["reason"] for f in told["files"] if f["status"] == "failed"}
    assert failed == {f"corpus/bad/{name}": reason for name, reason in reasons.items()}
    assert all(f["message"] for f in told["files"] if f["status"] == "failed")
    named = run(folder, "status", "--failed").stdout
    assert all(name in named for name in failed) and "tried once with docpager" in named
    again = record(run(folder, "ingest", "corpus", "--json", *LIMITS))
    assert (again["unchanged"], again["failed"]) == (good, 10 * each)
    assert {f["tried"] for f in again["files"] if f["status"] == "failed"} == {False}


def test_of_a_mixed_folder_the_good_are_ready_and_the_bad_are_named(tmp_path: Path) -> None:
    check_mixed(tmp_path, good=20, each=1)


def test_a_path_that_is_not_there_leaves_no_archive(tmp_path: Path) -> None:
    for code, path in ((2, "typo"), (6, "nothing")):
        (tmp_path / "nothing").mkdir(exist_ok=True)
        assert run(tmp_path, "ingest", path).exit_code == code
        assert not (tmp_path / "docpager.duckdb").exists()


def test_what_was_ignored_is_counted_and_listed(tmp_path: Path) -> None:
    put_good(tmp_path / "corpus", 3)
    (tmp_path / "corpus" / ".hidden").touch()
    (tmp_path / "corpus" / "link.txt").symlink_to("x")
    (tmp_path / "corpus" / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(50))
    (tmp_path / "corpus" / ".docpagerignore").write_text("part 1/\n")
    short = run(tmp_path, "ingest", "corpus", "--exclude", "*2.txt")
    assert short.exit_code == 0, short.output
    assert "1 added, 5 ignored" in short.stderr and "picture" not in short.stderr
    long = run(tmp_path, "ingest", "corpus", "--exclude", "*2.txt", "-v", "--profile").stderr
    for line in (
        "hidden or temporary (1)",
        "symbolic links (1)",
        "left out by a pattern (2)",
        "of no known format (1)",
        "  corpus/part 1",
        "passages/s",
    ):
        assert line in long
    told = record(run(tmp_path, "ingest", "corpus", "--exclude", "*2.txt", "-v", "--json"))
    kinds = Counter(entry["kind"] for entry in told["ignored_files"])
    assert kinds == {"hidden": 1, "link": 1, "rule": 2, "format": 1}


def test_what_an_archive_unpacks_to_has_a_limit_that_can_be_raised(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "all.docx").write_bytes(docx(paragraph("A lamp."), media1=bytes(2 << 20)))
    (corpus / "part.docx").write_bytes(docx(paragraph("A lamp of oil. " * 10_000)))
    (corpus / "small.docx").write_bytes(docx(paragraph("A lamp of gas.")))
    told = record(run(tmp_path, "ingest", "corpus", "--json", "--max-unpacked-size", "1"))
    failed = {f["path"]: f for f in told["files"] if f["status"] == "failed"}
    assert failed.keys() == {"corpus/all.docx", "corpus/part.docx"}
    assert {f["reason"] for f in failed.values()} == {"too_large"}
    assert all("--max-unpacked-size" in f["message"] for f in failed.values())
    # Other limits are reason enough to try again.
    assert record(run(tmp_path, "ingest", "corpus", "--json"))["added"] == 2


def test_settings_of_an_ingest_may_stand_in_the_file(tmp_path: Path) -> None:
    put_good(tmp_path / "corpus", 12)
    (tmp_path / "docpager.toml").write_text('include = ["*.md", "*.pdf"]\nmax_file_size = 1\n')
    told = record(run(tmp_path, "ingest", "corpus", "--json", "--profile"))
    assert (told["added"], told["ignored"]) == (2, 10)
    assert told["profile"]["seconds"]["read"] > 0 and told["profile"]["pages_per_s"] > 0
    listed = json.loads(run(tmp_path, "ls", "--json").stdout)["documents"]
    assert {d["attempts"] for d in listed} == {1} and "pypdfium2" in listed[0]["reader"]


def test_prune_and_retry_failed_are_options(tmp_path: Path) -> None:
    put_good(tmp_path / "corpus", 2)
    reasons = put_bad(tmp_path / "corpus", 1)
    run(tmp_path, "ingest", "corpus", *LIMITS)
    (tmp_path / "corpus" / "part 1" / "00001.txt").unlink()
    told = record(run(tmp_path, "ingest", "corpus", "--json", "--retry-failed", *LIMITS))
    assert (told["gone"], told["removed"], told["failed"]) == (1, 0, len(reasons))
    assert all(f["tried"] for f in told["files"])
    pruned = record(run(tmp_path, "ingest", "corpus", "--json", "--prune", *LIMITS))
    assert (pruned["gone"], pruned["removed"]) == (0, 1)


WATCH = """
import os, socket

with open(os.environ["WATCHED"], "a") as log:
    log.write(f"{os.getpid()}\\n")

def refuse(*arguments, **more):
    with open(os.environ["TRIED"], "a") as log:
        log.write(f"{arguments}\\n")
    raise OSError("no network here")

socket.socket.connect = socket.socket.connect_ex = socket.socket.sendto = refuse
socket.getaddrinfo = socket.gethostbyname = socket.create_connection = refuse
"""
TELEMETRY = ("TRACK", "ANALYTICS", "TELEMETRY", "OFFLINE", "DISABLE")


def test_an_ingest_tries_no_network(tmp_path: Path) -> None:
    put_good(tmp_path / "corpus", 12)
    put_bad(tmp_path / "corpus", 1)
    for name, data in examples().items():
        (tmp_path / "corpus" / name).write_bytes(data)
    assert_no_network(tmp_path, exit_code=3)


@pytest.mark.extras
def test_what_the_extra_reads_tries_no_network(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.xls").write_bytes(xls([["Year", "Lamps"], [1887, 14]]))
    (tmp_path / "corpus" / "a.msg").write_bytes(msg())
    assert_no_network(tmp_path, exit_code=0)


def assert_no_network(tmp_path: Path, exit_code: int) -> None:
    """The ingest of `corpus` tries none, in the main process and in the workers."""
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    tried, watched = tmp_path / "tried.log", tmp_path / "watched.log"
    process = start(
        tmp_path,
        "ingest",
        "corpus",
        *LIMITS,
        PYTHONPATH=str(tmp_path / "watch"),
        TRIED=str(tried),
        WATCHED=str(watched),
    )
    _, err = process.communicate(timeout=240)
    assert process.returncode == exit_code, err
    assert not tried.exists(), tried.read_text()
    assert len(set(watched.read_text().split())) > 1, "the workers are watched too"


def check_kills(folder: Path, good: int, kills: int, seed: int) -> None:
    """Kill an ingest at so many random moments, and go on each time; begin anew when one is done.

    The archive must end as that of an undisturbed run, and no text may be embedded again beyond
    the one batch that a kill can lose.
    """
    asked: Counter[str] = Counter()

    def embed(request: LoopbackRequest) -> LoopbackReply:
        asked.update(request.body["input"])
        return hash_embeddings(request)

    put_good(folder / "corpus" / "good", good)
    put_bad(folder / "corpus" / "bad", 1)
    options = ("ingest", "corpus", "--embedder", "openai:m", *LIMITS)
    whole = folder / "whole"
    whole.mkdir()
    with LoopbackServer(embeddings=embed) as server:
        reach = {"OPENAI_BASE_URL": server.base_url}
        began = time.monotonic()
        finish(start(folder, *options, "-a", str(whole / "docpager.duckdb"), **reach))
        lasted = time.monotonic() - began
        expected, texts = content(whole), len(asked)
        draw = random.Random(seed)
        left, hit = kills, 0
        asked.clear()
        while left or hit:
            process = start(folder, *options, **reach)
            if left:
                time.sleep(draw.uniform(0.1, 0.8) * lasted)
                if process.poll() is None:
                    process.kill()
                    process.communicate()
                    left, hit = left - 1, hit + 1
                    continue
            finish(process)
            assert content(folder) == expected
            assert sum(asked.values()) - texts <= 64 * hit, "at most a batch for each kill"
            assert len(asked) == texts
            asked.clear()
            hit = 0
            (folder / "docpager.duckdb").unlink()


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for an ingest of files of which some are bad."""
    _, err = process.communicate(timeout=240)
    assert process.returncode == 3, err


def test_an_ingest_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    check_kills(tmp_path, good=12, kills=2, seed=3)


def test_ctrl_c_keeps_what_was_finished(tmp_path: Path) -> None:
    put_good(tmp_path / "corpus", 4)
    slow = LoopbackReply({}, delay_s=2.0)
    with LoopbackServer(embeddings=lambda request: slow) as server:
        process = start(
            tmp_path, "ingest", "corpus", "--embedder", "openai:m", OPENAI_BASE_URL=server.base_url
        )
        until = time.monotonic() + 200
        while not server.bodies("/v1/embeddings"):
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=240)
    assert process.returncode == 130 and "Traceback" not in err, err


def test_ctrl_c_while_a_call_does_not_come_back_ends_well(tmp_path: Path) -> None:
    put_good(tmp_path / "corpus", 4)
    calls: list[int] = []

    def embed(request: LoopbackRequest) -> LoopbackReply:
        calls.append(len(request.body["input"]))
        # The first is the probe; a later one outlasts the patience of the program's end.
        return replace(hash_embeddings(request), delay_s=60.0 if len(calls) > 1 else 0.0)

    with LoopbackServer(embeddings=embed) as server:
        process = start(
            tmp_path, "ingest", "corpus", "--embedder", "openai:m", OPENAI_BASE_URL=server.base_url
        )
        until = time.monotonic() + 200
        while len(calls) < 2:
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=50)
        assert (process.returncode, "interrupted" in err, "FATAL" in err) == (130, True, False), err


def test_the_bench_measures_both_and_says_which_is_fast_enough(tmp_path: Path) -> None:
    small = ("--files", "2", "--pages", "3", "--rounds", "1", "--workers", "1")
    told = record(run(tmp_path, "bench", "ingest", "--json", *small))
    assert [item["kind"] for item in told["kinds"]] == ["dense", "sparse", "book"]
    for item in told["kinds"]:
        assert (item["pages"], item["processes"]) == (6, 1)
        assert item["bare_pages_per_s"] > 0 and item["passages_per_s"] > 0
    assert list(tmp_path.glob("*.duckdb")) == []


# ---- the long ones: `make bars`


@pytest.mark.bars
def test_of_a_thousand_files_fifty_are_bad_in_ten_ways(tmp_path: Path) -> None:
    check_mixed(tmp_path, good=950, each=5)
    process = start(tmp_path, "ingest", "corpus", "--json", "--profile", *LIMITS)
    began = time.monotonic()
    out, _ = process.communicate(timeout=240)
    print(f"1,000 files, unchanged: {time.monotonic() - began:.2f} s")
    assert "embed" not in json.loads(out)["profile"]["seconds"]
    assert time.monotonic() - began < 2.0


@pytest.mark.bars
@pytest.mark.timeout(3600)
def test_an_ingest_killed_at_fifty_moments_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    check_kills(tmp_path, good=300, kills=50, seed=50)


@pytest.mark.bars
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_small_files_are_all_ready(tmp_path: Path) -> None:
    for number in range(100_000):
        folder = tmp_path / "corpus" / f"{number // 1000:03}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:06}.txt").write_text(f"File {number} says {number * 7}.")
    began = time.monotonic()
    process = start(tmp_path, "ingest", "corpus", "--json")
    out, err, peak = watched(process)
    assert process.returncode == 0, err
    told = json.loads(out)
    print(f"100,000 files: {time.monotonic() - began:.0f} s, main process {peak} MB")
    assert (told["added"], told["passages"]) == (100_000, 100_000)


@pytest.mark.bars
@pytest.mark.timeout(3600 * 2)
def test_a_gigabyte_of_text_is_ingested_in_half_of_one(tmp_path: Path) -> None:
    put_natural(tmp_path / "corpus", files=10_000, characters=100_000)
    began = time.monotonic()
    process = start(tmp_path, "ingest", "corpus", "--profile", "--workers", "2")
    _, err, peak = watched(process)
    print(f"1 GB in {time.monotonic() - began:.0f} s, main process {peak} MB\n{err}")
    assert process.returncode == 0
    assert peak < 500


def put_natural(folder: Path, files: int, characters: int) -> None:
    """Files of 200,000 words, of which number n comes 1 / n as often as the first, as in text."""
    draw = random.Random(1)
    paths = [*PROJECT.glob("docs/*.md"), *PROJECT.glob("sample_docs/**/*.md")]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    words = sorted({word for text in texts for word in re.findall(r"[a-z]{2,}", text)})
    draw.shuffle(words)
    words += [draw.choice(words) + draw.choice(words) for _ in range(200_000 - len(words))]
    often = [*itertools.accumulate(1 / rank for rank in range(1, len(words) + 1))]
    folder.mkdir()
    for number in range(files):
        with open(folder / f"{number:05}.txt", "w") as file:
            while file.tell() < characters:
                words_of_it = draw.choices(words, cum_weights=often, k=155)
                file.write(f"{' '.join(words_of_it).capitalize()} in {number}.\n\n")


def watched(process: subprocess.Popen[str]) -> tuple[str, str, int]:
    """Both outputs at the end, and the most memory that it had until then, in MB."""
    peaks: list[int] = []
    watching = threading.Thread(target=lambda: peaks.append(peak_memory(process.pid)))
    watching.start()
    out, err = process.communicate()
    watching.join()
    return out, err, peaks[0]


def peak_memory(pid: int) -> int:
    """The most memory that a process has had by its end, in MB, looked at until then."""
    peak = 0
    while True:
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            return peak
        found = [line.split()[1] for line in lines if line.startswith("VmHWM")]
        if not found:
            return peak
        peak = max(peak, int(found[0]) // 1024)
        time.sleep(0.2)

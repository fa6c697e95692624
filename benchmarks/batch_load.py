"""Load tests of `docpager batch`, against a loopback endpoint in a process of its own.

    python benchmarks/batch_load.py wall      # 200 questions of 4 calls, 500 ms each, 16 at once
    python benchmarks/batch_load.py storm     # 30% 429 with Retry-After, 5% 500, 2% cut
    python benchmarks/batch_load.py many      # 10,000 questions: memory, and when work begins
    python benchmarks/batch_load.py kills     # kill -9 at 30 moments, resumed each time

Prints what was measured beside what is aimed at, and exits 1 where something that must hold
(answers, bytes, calls) does not. Times depend on the machine and are only printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from docpager import ingest_paths
from docpager.messages import AssistantMessage
from docpager.testing import LoopbackReply, LoopbackRequest, LoopbackServer, call, wire_reply
from docpager.types import Usage

FACTS = 16
SEARCHES = 3
"""Before the answer, so that a question takes four calls."""


def main() -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["wall", "storm", "many", "kills"])
    parser.add_argument("--questions", type=int)
    parser.add_argument("--jobs", type=int, default=16)
    options = parser.parse_args()
    measure: dict[str, Callable[[Path, int | None, int], bool]] = {
        "wall": wall,
        "storm": storm,
        "many": many,
        "kills": kills,
    }
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        make_archive(place)
        sys.exit(0 if measure[options.what](place, options.questions, options.jobs) else 1)


# -- what is measured -----------------------------------------------------------------------------


def wall(folder: Path, count: int | None, jobs: int) -> bool:
    """The wall time, compared with the minimum that the latency allows."""
    count = count or 200
    write_questions(folder, count)
    with Endpoint(delay_s=0.5) as endpoint:
        began = time.monotonic()
        done = batch(folder, endpoint, "--jobs", str(jobs))
        taken = time.monotonic() - began
        calls = endpoint.count()
    evenly = count * (SEARCHES + 1) * 0.5 / jobs
    least = -(-count // jobs) * (SEARCHES + 1) * 0.5  # the last round has jobs without a question
    summary = read_summary(folder)
    print(
        f"{count} questions, {calls} calls of 0.5 s, {jobs} at once: {summary['elapsed_s']:.1f} s, "
        f"{taken:.1f} s with the start; least {least:.1f} s, aim {1.15 * evenly:.1f} s"
    )
    return done.returncode == 0 and all_right(folder, count)


def storm(folder: Path, count: int | None, jobs: int) -> bool:
    """Whether every question is answered once, whatever the endpoint does."""
    count = count or 200
    write_questions(folder, count)
    with Endpoint(stormy=True) as endpoint:
        done = batch(folder, endpoint, "--jobs", str(jobs))
        sent = endpoint.count()
    summary = read_summary(folder)
    print(
        f"storm: {count} questions, {sent} requests for {count * (SEARCHES + 1)} calls, "
        f"{summary['retries']} retries, down to {summary['fewest_at_once']} at once, "
        f"{summary['elapsed_s']:.1f} s, exit {done.returncode}"
    )
    return done.returncode == 0 and all_right(folder, count)


def many(folder: Path, count: int | None, jobs: int) -> bool:
    """Memory and time to the first call with a large file; stopped after some answers."""
    count = count or 10_000
    write_questions(folder, count)
    with Endpoint() as endpoint:
        began = time.monotonic()
        process = start(folder, endpoint, "--jobs", str(jobs))
        while endpoint.count() == 0:
            time.sleep(0.01)
        first = time.monotonic() - began
        most = 0
        until = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < until:
            most = max(most, resident_bytes(process.pid))
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.communicate()
        most_seen = most / 1e6
    kept = len((folder / "r.jsonl").read_bytes().splitlines())
    print(
        f"{count} questions: first call after {first:.2f} s (aim 2 s), {most_seen:.0f} MB resident "
        f"(aim 400 MB) with {kept} answered in a minute"
    )
    return kept > 0


def kills(folder: Path, count: int | None, jobs: int) -> bool:
    """Whether the results after thirty kills equal those of an undisturbed run, same cache."""
    count = count or 200
    jobs = min(jobs, 4)
    write_questions(folder, count)
    draw, killed = random.Random(30), 0
    # Four calls of 0.2 s are 40 s of work: more than is done before the last kill.
    with Endpoint(delay_s=0.2) as endpoint:
        arguments = ("--cache", "calls.jsonl", "--jobs", str(jobs))
        for _ in range(30):
            began = endpoint.count()
            process = start(folder, endpoint, *arguments)
            while endpoint.count() == began and process.poll() is None:
                time.sleep(0.01)
            time.sleep(draw.uniform(0.0, 2.0))
            killed += process.poll() is None
            process.kill()
            process.communicate()
        done = batch(folder, endpoint, *arguments)
        sent = endpoint.count()
        disturbed = (folder / "r.jsonl").read_bytes()
        (folder / "r.jsonl").unlink()
        batch(folder, endpoint, *arguments)
        again = endpoint.count() - sent
        undisturbed = (folder / "r.jsonl").read_bytes()
    distinct = count * (SEARCHES + 1)
    same = disturbed == undisturbed
    print(
        f"killed {killed} of 30 times: exit {done.returncode}, "
        f"{'the same bytes' if same else 'OTHER BYTES'}, {sent} calls for {distinct} that were "
        f"needed (each kill may lose {jobs} under way), {again} in the undisturbed run"
    )
    few = sent <= distinct + killed * jobs
    return killed == 30 and same and again == 0 and few and all_right(folder, count)


# -- its parts ------------------------------------------------------------------------------------


def make_archive(folder: Path) -> None:
    """A document for each fact."""
    corpus = folder / "corpus"
    corpus.mkdir()
    for n in range(FACTS):
        (corpus / f"pump-{n}.md").write_text(f"# About pump {n}\n\n{fact(n)}\n", encoding="utf-8")
    ingest_paths([corpus], archive=folder / "docpager.duckdb")


def fact(n: int) -> str:
    """The text of a document."""
    return f"Pump {n} was made in the town of Graz{n} in the year {1900 + n}."


def write_questions(folder: Path, count: int) -> None:
    """Different questions, each about one of the facts."""
    rows = [
        {
            "id": f"q{n}",
            "question": f"Case {n}: where was pump {n % FACTS} made?",
            "expected": f"Graz{n % FACTS}",
        }
        for n in range(count)
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "q.jsonl").write_text(text, encoding="utf-8")


def answering(delay_s: float, stormy: bool) -> Callable[[LoopbackRequest], LoopbackReply]:
    """Searches three times, then answers; in a storm it fails as often as it does not.

    The same request has the same reply: one whose client was killed before it came would else be
    taken for a step, and its question would need other calls than it does undisturbed.
    """
    draw, lock = random.Random(7), threading.Lock()
    taken: Counter[str] = Counter()
    steps: dict[str, int] = {}
    """Which call of its question each request is, by its messages."""

    def answer(request: LoopbackRequest) -> LoopbackReply:
        if stormy:
            with lock:
                chance = draw.random()
            if chance < 0.30:
                error: Any = {"error": {"message": "slow down"}}
                return LoopbackReply(error, 429, {"retry-after-ms": "20"})
            if chance < 0.35:
                return LoopbackReply({"error": {"message": "broken"}}, 500)
        messages = request.body["messages"]
        text = " ".join(str(message["content"]) for message in messages)
        asked = re.search(r"Case (\d+): where was pump (\d+) made", text)
        if asked is None:  # a summary of what left the queue
            said = wire_reply(AssistantMessage("Pumps were looked up."), usage=Usage(900, 0, 6))
            return LoopbackReply(said.body, delay_s=delay_s)
        n = int(asked[2])
        cut = stormy and chance > 0.98
        key = hashlib.sha256(json.dumps(messages).encode("ascii")).hexdigest()
        with lock:
            if key not in steps:
                steps[key] = taken[asked[1]]
                taken[asked[1]] += 1
            searched = steps[key]
        found = re.search(rf"\[(P\d+)\] corpus/pump-{n}\.md", text)
        if searched % (SEARCHES + 1) < SEARCHES:
            reply = call("archival_memory_search", query=f"pump {n} try {searched}", page=0)
        else:
            quote = {"passage_id": found[1] if found else "P1", "quote": fact(n)}
            reply = call("send_message", message=f"Graz{n}", citations=[quote], not_found=False)
        body = wire_reply(reply, usage=Usage(1500, 0, 30)).body
        return LoopbackReply(body, delay_s=delay_s, cut=cut)

    return answer


class Endpoint:
    """The loopback server in a process of its own, so that it takes no time of the batch's."""

    def __init__(self, delay_s: float = 0.0, *, stormy: bool = False) -> None:
        context = get_context("spawn")
        self._mine, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, delay_s, stormy), daemon=True)
        self.base_url = ""

    def __enter__(self) -> Endpoint:
        self._process.start()
        self.base_url = self._mine.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._mine.send(None)
        self._process.join()

    def count(self) -> int:
        """How many requests have arrived."""
        self._mine.send("count")
        return int(self._mine.recv())


def _serve(pipe: Connection, delay_s: float, stormy: bool) -> None:
    with LoopbackServer(answering(delay_s, stormy)) as server:
        pipe.send(server.base_url)
        while pipe.recv() is not None:
            pipe.send(len(server.requests))


def start(folder: Path, endpoint: Endpoint, *arguments: str) -> subprocess.Popen[str]:
    """A batch in a process of its own."""
    command = [sys.executable, "-m", "docpager", "batch", "q.jsonl", "-o", "r.jsonl"]
    options = ("--model", "loopback", "--base-url", endpoint.base_url, "--tool-mode", "tools")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DOCPAGER_", "OPENAI_"))
    }
    return subprocess.Popen(
        [*command, *options, "--summary", "s.json", *arguments],
        cwd=folder,
        env=kept,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def batch(folder: Path, endpoint: Endpoint, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a batch to its end; its message is printed if it fails."""
    process = start(folder, endpoint, *arguments)
    out, err = process.communicate()
    if process.returncode:
        print(err[-2000:], file=sys.stderr)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def all_right(folder: Path, count: int) -> bool:
    """Whether each question has one result, the right one, in order."""
    rows = [json.loads(line) for line in (folder / "r.jsonl").read_text("utf-8").splitlines()]
    return [(row["id"], row["answer"]) for row in rows] == [
        (f"q{n}", f"Graz{n % FACTS}") for n in range(count)
    ]


def read_summary(folder: Path) -> dict[str, Any]:
    """The summary that the batch wrote."""
    found = json.loads((folder / "s.json").read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def resident_bytes(pid: int) -> int:
    """The memory of a process that may have ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()

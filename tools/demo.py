"""Ask the sample documents two questions that need several of them: `make demo`.

Usage: demo.py DOCPAGER ARCHIVE
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

QUESTIONS = Path(__file__).parent.parent / "sample_docs" / "questions.jsonl"
IDS = ("two-hop-1", "two-hop-8")


def main(docpager: str, archive: str) -> int:
    """The worst exit code of the two."""
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    questions = {item["id"]: item for item in map(json.loads, lines)}
    worst = 0
    for name in IDS:
        question = questions[name]["question"]
        sys.stdout.write(f'\n$ docpager ask "{question}"\n')
        sys.stdout.flush()
        command = [docpager, "ask", question, "-a", archive, "--model", "local"]
        worst = max(worst, subprocess.run(command, check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

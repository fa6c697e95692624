"""Write sample_docs/ anew, or with --check compare it with what would be written.

python tools/make_sample_docs.py [--check] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from samplecorpus.build import FOLDER, build

ROOT = Path(__file__).resolve().parent.parent


def differences(folder: Path, files: dict[str, bytes]) -> list[str]:
    """What is missing, different or too much in the folder."""
    there = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    found = [f"{name}: not there" for name in files if name not in there]
    found += [f"{name}: not made by the generator" for name in there if name not in files]
    found += [
        f"{name}: differs"
        for name, data in files.items()
        if name in there and there[name].read_bytes() != data
    ]
    return sorted(found)


def main() -> int:
    """0 when written or equal, 1 when `--check` finds a difference."""
    parser = argparse.ArgumentParser(description="Make the sample corpus.")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    parser.add_argument("--folder", type=Path, default=ROOT / FOLDER)
    arguments = parser.parse_args()
    files = build()
    if arguments.check:
        found = differences(arguments.folder, files)
        sys.stderr.write("".join(f"{line}\n" for line in found))
        return 1 if found else 0
    for name, data in files.items():
        path = arguments.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    sys.stderr.write(f"{len(files)} files written to {arguments.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

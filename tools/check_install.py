"""Install docpager without extras in a fresh environment and hold it to its budget.

Prints how many packages and megabytes there are; exits 1 above 55 packages or 420 MB, or where
torch or pyarrow came along.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = 55
MEGABYTES = 420
UNWANTED = {"torch", "pyarrow", "pandas", "scipy"}
LIST_NAMES = """
import json
from importlib.metadata import distributions
print(json.dumps(sorted({item.name.lower() for item in distributions()})))
"""


def main() -> int:
    """0 within the budget, else 1."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        before = _size(Path(folder))
        subprocess.run([*pip, "install", str(ROOT)], check=True)
        listed = subprocess.run(
            [str(python), "-c", LIST_NAMES], check=True, capture_output=True, text=True
        )
        names = set(json.loads(listed.stdout)) - {"pip", "setuptools"}
        # Compiled byte code is left out: whether pip makes it is a matter of its options.
        megabytes = (_size(Path(folder)) - before) / 1e6
    found = sorted(names & UNWANTED)
    sys.stdout.write(
        f"base install: {len(names)} packages (at most {PACKAGES}), "
        f"{megabytes:.0f} MB (at most {MEGABYTES}), unwanted: {', '.join(found) or 'none'}\n"
    )
    return 1 if found or len(names) > PACKAGES or megabytes > MEGABYTES else 0


def _size(folder: Path) -> int:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files if path.suffix != ".pyc")


if __name__ == "__main__":
    sys.exit(main())

"""Exit 0 if the embedded model's weights are in the user's cache folder; standard library only.

With `--parts`: print the packages that carry them in parts, for `pip uninstall`.
"""

from __future__ import annotations

import sys

from docpager.config import load
from docpager.models.embedded.weights import EMBEDDED_MODEL, locate


def main() -> int:
    """What the Makefile and CI ask before they fetch 1.1 GB."""
    if "--parts" in sys.argv[1:]:
        names = (package.replace("_", "-") for package in EMBEDDED_MODEL.part_packages)
        sys.stdout.write("\n".join(names) + "\n")
        return 0
    return 0 if locate(load().cache_dir) is not None else 1


if __name__ == "__main__":
    sys.exit(main())

"""`python -m docpager` is the command line."""

from __future__ import annotations

from docpager.cli import main

if __name__ == "__main__":
    main(prog_name="docpager")

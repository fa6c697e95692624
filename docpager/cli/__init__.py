"""The command line: parse, call `Archive`, print. The only decision made here is the exit code.

Nothing heavy is imported at the top of any file, so that help and mistakes are answered at once.
"""

from docpager.cli import archive, batch, machine, questions
from docpager.cli.program import main

__all__ = ["archive", "batch", "machine", "main", "questions"]

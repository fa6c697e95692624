"""A folder to work in, and the command line in it, as a person or a script would use it."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from pathlib import Path

import click
from click.testing import CliRunner, Result

from docpager.cli import main


@dataclass(frozen=True)
class Desk:
    """A folder to work in; no setting of the person who runs the tests reaches it."""

    folder: Path

    def __call__(self, *arguments: str, input: str | None = None, **variables: str) -> Result:
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            return CliRunner().invoke(main, arguments, input=input, env=self.environment(variables))
        finally:
            os.chdir(before)

    def environment(self, variables: dict[str, str]) -> dict[str, str | None]:
        """What differs from this process's environment; None where a name must be absent."""
        cleared = [name for name in os.environ if name.startswith(("DOCPAGER_", "OPENAI_", "XDG_"))]
        return {
            **dict.fromkeys(cleared),
            "HOME": str(self.folder),
            "DOCPAGER_CACHE_DIR": str(self.folder / "cache"),
            **variables,
        }

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """A process of its own, its output piped."""
        return subprocess.Popen(
            [sys.executable, "-m", "docpager", *arguments],
            cwd=self.folder,
            env=self._whole_environment(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def on_terminal(self, *arguments: str, columns: int) -> str:
        """What a terminal of so many columns shows of standard output."""
        here, there = pty.openpty()
        fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = self._whole_environment({})
        environment.pop("COLUMNS", None)
        with subprocess.Popen(
            [sys.executable, "-m", "docpager", *arguments],
            cwd=self.folder,
            env=environment,
            stdin=there,
            stdout=there,
            stderr=subprocess.DEVNULL,
        ):
            os.close(there)
            shown = b"".join(iter(lambda: _read(here), b""))
        os.close(here)
        return shown.decode("utf-8").replace("\r\n", "\n")

    def _whole_environment(self, variables: dict[str, str]) -> dict[str, str]:
        found = {**os.environ, **self.environment(variables)}
        return {name: value for name, value in found.items() if value is not None}


def parse(name: str, *arguments: str) -> None:
    """Parses a command's arguments as the program does, and runs nothing.

    The program's own settings are needed: click keeps the help option of a command as its first
    context would have it, and without them that has no `-h`, in every later test too.
    """
    with click.Context(main, **main.context_settings) as parent:
        main.commands[name].make_context(name, list(arguments), parent=parent)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # how Linux tells that the other end was closed
        return b""

"""`docpager` and `python -m docpager`: the command line, which Ctrl-C ends at any moment.

Nothing is imported at the top: most of the first second goes into imports, and they are guarded.
"""

from __future__ import annotations

import os
import sys
from types import FrameType

_INTERRUPTED = 130
_MESSAGE = "docpager: interrupted. What was finished is kept.\n"


def run() -> None:
    """Run the command line of this process, and end it with the command's exit code."""
    code: object = _INTERRUPTED
    try:
        _guard_imports()
        from docpager.cli import main

        main(prog_name="docpager")
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        sys.stderr.write(_MESSAGE)
    finally:
        _end_quietly()
    raise SystemExit(code)


def _guard_imports() -> None:
    """Let Ctrl-C within an import end the process at once.

    Native code that is being imported may answer an exception by aborting, and import hooks may
    swallow it.
    """
    import signal

    # It may have been told to go on, as in the background of a shell.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _on_interrupt)


def _on_interrupt(_number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os.write(2, _MESSAGE.encode())
            os._exit(_INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def _end_quietly() -> None:
    """Take Python's end, which would show a traceback, as no place for an interrupt any more."""
    import signal

    if signal.getsignal(signal.SIGINT) is _on_interrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    run()

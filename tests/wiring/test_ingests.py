"""What an ingest needs of the process that it runs in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GROWTH = """
import ctypes, sys, threading
from pathlib import Path
import docpager

libc = ctypes.CDLL(None)
libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
libc.fopen.argtypes, libc.fopen.restype = [ctypes.c_char_p] * 2, ctypes.c_void_p
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
libc.fclose.argtypes = [ctypes.c_void_p]

def arenas():
    stream = libc.fopen(b"arenas.xml", b"w")
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    return Path("arenas.xml").read_text().count("<heap nr=")

def allocate():
    libc.malloc(1000)
    met.wait()
    met.wait()

if sys.argv[1] == "ingest":
    docpager.Archive("a.duckdb").ingest(["corpus"])
before, met = arenas(), threading.Barrier(9)
threads = [threading.Thread(target=allocate) for _ in range(8)]
for thread in threads:
    thread.start()
met.wait()
print(arenas() - before)
met.wait()
"""


def is_glibc() -> bool:
    import ctypes

    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "gnu_get_libc_version")


@pytest.mark.skipif(not is_glibc(), reason="arenas are glibc's")
@pytest.mark.parametrize(("ingest", "grows"), [("ingest", False), ("no ingest", True)])
def test_after_an_ingest_threads_get_no_arenas_of_their_own(
    tmp_path: Path, ingest: str, grows: bool
) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "mill.txt").write_text("The mill was built in 1887.", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, ingest],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (int(done.stdout) > 0) is grows

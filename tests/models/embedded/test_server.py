from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from docpager.errors import ModelError, UserError
from docpager.models.embedded.server import EmbeddedServer, usable_cores
from docpager.models.embedded.weights import choose
from docpager.testing import FrozenClock


def test_threads_are_no_more_than_the_processors_of_this_process() -> None:
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)


def test_a_missing_extra_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(UserError, match=r'pip install "docpager\[local\]"'):
        _ = EmbeddedServer(tmp_path / "any.gguf", FrozenClock()).base_url


def test_a_missing_file_says_how_to_obtain_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="docpager model"):
        _ = EmbeddedServer(tmp_path / "none.gguf", FrozenClock()).base_url


def test_a_file_that_cannot_be_loaded_is_a_model_error_and_says_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"\x00" * 100)
    with (
        EmbeddedServer(path, FrozenClock()) as server,
        pytest.raises(ModelError, match="cannot load"),
    ):
        server.wait_until_ready()
    assert capfd.readouterr() == ("", "")


def test_nothing_starts_before_it_is_used(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path / "none.gguf", FrozenClock()) as server:
        assert len(server.api_key) >= 24


def ask(base_url: str, key: str, content: str) -> tuple[int, dict[str, Any]]:
    address = urlsplit(base_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)
    body = {
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 4,
        "temperature": 0,
    }
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    connection.request("POST", f"{address.path}/chat/completions", json.dumps(body), headers)
    response = connection.getresponse()
    reply = json.loads(response.read())
    connection.close()
    return response.status, reply


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "docpager"
    with EmbeddedServer(choose("local", cache).path, FrozenClock(), 2048) as running:
        running.wait_until_ready()
        yield running


@pytest.mark.embedded
def test_a_second_call_does_not_read_the_shared_prefix_again(server: EmbeddedServer) -> None:
    prefix = "A fox lives in the wood. " * 20
    ask(server.base_url, server.api_key, prefix + "Where does it live?")
    _, reply = ask(server.base_url, server.api_key, prefix + "Who lives there?")
    usage = reply["usage"]
    assert usage["prompt_tokens"] > 100
    assert usage["prompt_tokens_details"]["cached_tokens"] > usage["prompt_tokens"] - 20


@pytest.mark.embedded
def test_the_server_is_on_loopback_silent_and_locked(
    server: EmbeddedServer, capfd: pytest.CaptureFixture[str]
) -> None:
    assert server.base_url.startswith("http://127.0.0.1:")
    status, _ = ask(server.base_url, "not the key", "Hello")
    assert status == 401
    status, _ = ask(server.base_url, server.api_key, "Hello")
    assert status == 200
    assert capfd.readouterr() == ("", "")

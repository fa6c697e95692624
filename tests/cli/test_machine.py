from __future__ import annotations

from docpager.testing import LoopbackServer, say, wire_reply
from tests.cli.desks import only_object
from tests.desk import Desk


def test_model_tells_that_the_weights_are_not_here(empty_desk: Desk) -> None:
    result = empty_desk("model", "--json")
    record = only_object(result)
    assert result.exit_code == 0
    assert record["present"] is False
    assert record["path"].startswith(str(empty_desk.folder))
    assert empty_desk("model", "--check").exit_code == 2
    assert empty_desk("model", "--remove").exit_code == 0


def test_weights_with_a_wrong_hash_are_refused(empty_desk: Desk) -> None:
    fake = empty_desk.folder / "model.gguf"
    fake.write_bytes(b"GGUF, but another one")
    result = empty_desk("model", "--obtain", str(fake))
    assert result.exit_code == 2
    assert only_object(empty_desk("model", "--json"))["present"] is False


def test_doctor_reports_each_check(desk: Desk) -> None:
    ready = wire_reply(say("ready"))
    with LoopbackServer(lambda request: ready) as server:
        options = ("--model", "m", "--base-url", server.base_url, "--tool-mode", "json")
        result = desk("doctor", "--json", *options)
        text = desk("doctor", *options, "--context-window", "9000").stdout
    checks = {check["name"]: check for check in only_object(result)["checks"]}
    assert list(checks) == [
        "archive",
        "embedder",
        "vocabulary",
        "model",
        "endpoint",
        "mode",
        "window",
        "network",
    ]
    states = {name: check["state"] for name, check in checks.items()}
    assert states["archive"] == states["window"] == "warn"
    assert set(states.values()) == {"ok", "warn"}
    assert result.exit_code == 0
    assert "ok    window      9000 tokens" in text


def test_doctor_exits_with_the_code_of_the_worst_check(empty_desk: Desk) -> None:
    (empty_desk.folder / "docpager.duckdb").write_bytes(b"damaged")
    options = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--timeout", "1")
    result = empty_desk("doctor", *options, "--json")
    states = {check["name"]: check["state"] for check in only_object(result)["checks"]}
    assert (states["archive"], states["endpoint"]) == ("fail", "fail")
    assert result.exit_code == 3
    assert empty_desk("doctor", *options, "-a", "none.duckdb").exit_code == 4

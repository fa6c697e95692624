"""Settings are decided once: flag > environment > docpager.toml > default."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docpager.config import Config, load, variables
from docpager.errors import UserError

HOME = {"HOME": "/home/someone"}

# For each setting, values that are valid everywhere, as (flag, variable, TOML) would write them.
words = st.text("abcdefgh", min_size=1, max_size=8)
VALUES: dict[str, st.SearchStrategy[object]] = {
    "model": words,
    "base_url": words.map(lambda word: f"http://{word}.example/v1"),
    "tool_mode": st.sampled_from(["auto", "tools", "json", "text", "guided"]),
    "context_window": st.integers(2048, 200_000),
    "max_steps": st.integers(1, 500),
    "max_tokens": st.integers(1, 10**7),
    "timeout": st.integers(1, 10**5).map(float),
    "seed": st.integers(0, 2**31),
    "session": words,
    "embedder": st.one_of(st.just("static"), words.map(lambda word: f"openai:{word}")),
    "workers": st.integers(1, 64),
    "wait": st.booleans(),
    "keep_runs": st.integers(1, 10_000),
    "quiet": st.booleans(),
    "verbose": st.booleans(),
    "debug": st.booleans(),
    "progress": st.booleans(),
    "color": st.booleans(),
}


@st.composite
def one_setting_in_three_places(draw: st.DrawFn) -> tuple[str, list[object]]:
    name = draw(st.sampled_from(sorted(VALUES)))
    return name, [draw(st.none() | VALUES[name]) for _ in range(3)]


@given(one_setting_in_three_places())
def test_a_flag_beats_the_environment_beats_the_file_beats_the_default(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[str, list[object]]
) -> None:
    name, (flag, variable, in_file) = case
    folder = tmp_path_factory.mktemp("settings")
    if in_file is not None:
        (folder / "docpager.toml").write_text(f"{name} = {json.dumps(in_file)}\n", encoding="utf-8")
    environ = dict(HOME)
    if variable is not None:
        environ[variables()[name]] = str(variable)
    config = load({name: flag}, environ, folder)
    default = getattr(Config(), name)
    expected = next((value for value in (flag, variable, in_file) if value is not None), default)
    assert getattr(config, name) == expected


def test_the_defaults_need_nothing(tmp_path: Path) -> None:
    config = load({}, HOME, tmp_path)
    assert config.archive == tmp_path / "docpager.duckdb"
    assert (config.model, config.base_url, config.api_key) == (None, None, None)
    assert config.tool_mode == "auto"
    assert config.color and config.progress


def test_relative_paths_are_taken_from_the_folder_given(tmp_path: Path) -> None:
    config = load({"archive": "a/b.duckdb", "trace": Path("t.jsonl")}, HOME, tmp_path)
    assert config.archive == tmp_path / "a" / "b.duckdb"
    assert config.trace == tmp_path / "t.jsonl"


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    assert load({}, {**HOME, "DOCPAGER_MODEL": ""}, tmp_path).model is None


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color_is_respected_even_against_the_file(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    (tmp_path / "docpager.toml").write_text("color = true\n", encoding="utf-8")
    assert not load({}, {**HOME, **environ}, tmp_path).color


def test_the_key_is_never_shown(tmp_path: Path) -> None:
    config = load({}, {**HOME, "OPENAI_API_KEY": "sk-very-secret"}, tmp_path)
    assert config.api_key == "sk-very-secret"
    assert "secret" not in repr(config)
    with pytest.raises(UserError) as caught:
        load({"api_key": 7}, HOME, tmp_path)
    assert "7" not in str(caught.value)


def test_passwords_are_taken_from_flags_or_the_environment_and_never_shown(tmp_path: Path) -> None:
    config = load({"passwords": ("hunter2", "swordfish")}, HOME, tmp_path)
    assert config.passwords == ("hunter2", "swordfish")
    assert "hunter2" not in repr(config) and "swordfish" not in repr(config)
    assert load({}, {**HOME, "DOCPAGER_PASSWORD": "hunter2"}, tmp_path).passwords == ("hunter2",)
    (tmp_path / "docpager.toml").write_text('passwords = ["hunter2"]\n', encoding="utf-8")
    with pytest.raises(UserError, match="DOCPAGER_PASSWORD") as caught:
        load({}, HOME, tmp_path)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(UserError) as caught:
        load({"passwords": 1234567}, HOME, tmp_path)
    assert "1234567" not in str(caught.value)


def test_a_key_in_the_file_is_refused_with_the_place_for_it(tmp_path: Path) -> None:
    (tmp_path / "docpager.toml").write_text('api_key = "sk"\n', encoding="utf-8")
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        load({}, HOME, tmp_path)


@given(st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12))
def test_an_unknown_key_names_the_nearest(
    tmp_path_factory: pytest.TempPathFactory, key: str
) -> None:
    folder = tmp_path_factory.mktemp("settings")
    (folder / "docpager.toml").write_text(f"{key}x = 1\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"docpager.toml has no key .*Did you mean '\w+'\?"):
        load({}, HOME, folder)


def test_a_misspelt_key_is_answered_with_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "docpager.toml").write_text("tool-mode = 'json'\n", encoding="utf-8")
    with pytest.raises(UserError, match="Did you mean 'tool_mode'"):
        load({}, HOME, tmp_path)


@pytest.mark.parametrize("bad", [b"model = \n", b"model = '\xff'\n", b"= 3\n"])
def test_a_broken_file_is_the_persons_to_mend(tmp_path: Path, bad: bytes) -> None:
    (tmp_path / "docpager.toml").write_bytes(bad)
    with pytest.raises(UserError, match="not valid TOML"):
        load({}, HOME, tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("context_window", "1024", "at least 2048"),
        ("context_window", "big", "whole number"),
        ("max_steps", "0", "at least 1"),
        ("timeout", "-1", "above 0"),
        ("timeout", "nan", "above 0"),
        ("tool_mode", "magic", "auto, tools, json, text, guided"),
        ("base_url", "localhost:11434", "http://"),
        ("embedder", "bert", "static or openai:MODEL"),
        ("session", "../x", "letters"),
        ("session", "a" * 65, "letters"),
        ("wait", "maybe", "true or false"),
        ("workers", "1.5", "whole number"),
        ("model", "  ", "not empty"),
    ],
)
def test_an_impossible_value_says_where_it_stood_and_what_is_possible(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    variable = variables()[name]
    with pytest.raises(UserError, match=rf"^{variable} must be .*{said}"):
        load({}, {**HOME, variable: value}, tmp_path)
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(UserError, match=rf"^{flag} must be .*{said}"):
        load({name: value}, HOME, tmp_path)


def test_an_unknown_setting_from_python_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Did you mean 'archive'"):
        load({"archiv": "x"}, HOME, tmp_path)


def test_the_users_folders_follow_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/h")
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    config = load({}, {}, tmp_path)
    assert config.cache_dir.name == "docpager"
    assert config.state_dir != config.cache_dir
    if sys.platform == "linux":
        folders = (config.cache_dir, config.state_dir)
        assert folders == (Path("/h/.cache/docpager"), Path("/h/.local/state/docpager"))
        monkeypatch.setenv("XDG_CACHE_HOME", "/c")
        monkeypatch.setenv("XDG_STATE_HOME", "/s")
        config = load({}, {}, tmp_path)
        assert (config.cache_dir, config.state_dir) == (Path("/c/docpager"), Path("/s/docpager"))
    moved = load({}, {"DOCPAGER_CACHE_DIR": "/elsewhere"}, tmp_path)
    assert moved.cache_dir == Path("/elsewhere")


@pytest.mark.skipif(sys.platform != "linux", reason="XDG's variables are those of Linux")
def test_the_users_folders_are_absolute_and_those_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/h")
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, "relative")
    at_home = (Path("/h/.cache/docpager"), Path("/h/.local/state/docpager"))
    config = load({}, {}, tmp_path)
    assert (config.cache_dir, config.state_dir) == at_home
    others = {"HOME": "/other", "XDG_CACHE_HOME": "/c", "XDG_STATE_HOME": "/s"}
    config = load({}, others, tmp_path)
    assert (config.cache_dir, config.state_dir) == at_home
    moved = {"DOCPAGER_CACHE_DIR": "here", "DOCPAGER_STATE_DIR": "/there"}
    config = load({}, others | moved, tmp_path)
    assert (config.cache_dir, config.state_dir) == (tmp_path / "here", Path("/there"))

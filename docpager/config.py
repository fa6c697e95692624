"""Settings, decided once: flag > environment > `docpager.toml` > default.

This is the only module that reads the environment; every other one is handed values.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypedDict, get_args

import platformdirs

from docpager.errors import UserError
from docpager.types import Price

ToolModeChoice = Literal["auto", "tools", "json", "text", "guided"]
FILE_NAME = "docpager.toml"


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting of one invocation; immutable, and safe to print: secrets are left out."""

    archive: Path = Path("docpager.duckdb")
    model: str | None = None
    """A model name of the endpoint, `local`, or `local:FILE.gguf`; None where nothing was said."""
    base_url: str | None = field(default=None, repr=False)
    """It may hold a password, so it is left out where a Config is printed."""
    api_key: str | None = field(default=None, repr=False)
    tool_mode: ToolModeChoice = "auto"
    context_window: int | None = None
    """Tokens of prompt and reply together; None = what is known of the model."""
    max_steps: int = 24
    """Model calls that choose a function, for one question."""
    max_tokens: int | None = None
    """Prompt and completion tokens of one question together; None = no bound but the steps."""
    max_cost: float | None = None
    """USD for one question; it needs a known price of the model."""
    timeout: float = 900.0
    """Seconds for one question; waiting for a rate limit does not count."""
    seed: int | None = None
    session: str | None = None
    trace: Path | None = None
    """A second place for the run's trace; the run store has it in any case."""
    cache: Path | None = None
    """A file that keeps every model call, and answers one that was made before."""
    replay: bool = False
    """Answer from the cache alone: a call that it does not hold is an error."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """Of models, by name or by the beginning of one; only from `docpager.toml`."""
    embedder: str | None = None
    """`static` or `openai:MODEL`; None = the archive's own, or `static` for a new archive."""
    passwords: tuple[str, ...] = field(default=(), repr=False)
    """Tried on documents that are encrypted, beside the empty one."""
    ocr: bool = False
    """Recognise pages that are pictures."""
    workers: int | None = None
    """Parsing processes; None = one for each core."""
    include: tuple[str, ...] = ()
    """Patterns in gitignore syntax; only files that fit one are ingested from a folder."""
    exclude: tuple[str, ...] = ()
    """Patterns in gitignore syntax; what fits one is not ingested from a folder."""
    file_timeout: float = 300.0
    """Seconds for reading one file."""
    page_timeout: float = 60.0
    """Seconds for reading one page."""
    worker_memory: int = 4096
    """MB of address space of a process that reads files."""
    max_file_size: int = 1024
    """MB of a PDF; a quarter of it for files of other formats."""
    max_unpacked_size: int = 1024
    """MB that an archive (Office, OpenDocument, EPUB) unpacks to; an eighth of it for one part."""
    max_page_characters: int = 10_000_000
    """Of the text of one page."""
    wait: bool = False
    """Wait for a held lock instead of giving up after some seconds."""
    keep_runs: int = 200
    """How many run traces stay in the run store."""
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    debug: bool = False
    progress: bool = True
    color: bool = True
    cache_dir: Path = Path()
    """Where weights and vocabularies are kept for all archives of this user."""
    state_dir: Path = Path()
    """Where run traces go when the archive's own folder cannot be written."""


class Settings(TypedDict, total=False):
    """What a caller may set by name; as `Config`, and None means "not said"."""

    archive: str | Path | None
    model: str | None
    base_url: str | None
    api_key: str | None
    tool_mode: str | None
    context_window: int | None
    max_steps: int | None
    max_tokens: int | None
    max_cost: float | None
    timeout: float | None
    seed: int | None
    session: str | None
    trace: str | Path | None
    cache: str | Path | None
    replay: bool | None
    embedder: str | None
    passwords: str | Sequence[str] | None
    ocr: bool | None
    workers: int | None
    include: Sequence[str] | None
    exclude: Sequence[str] | None
    file_timeout: float | None
    page_timeout: float | None
    worker_memory: int | None
    max_file_size: int | None
    max_unpacked_size: int | None
    max_page_characters: int | None
    wait: bool | None
    keep_runs: int | None
    json: bool | None
    quiet: bool | None
    verbose: bool | None
    debug: bool | None
    progress: bool | None
    color: bool | None
    cache_dir: str | Path | None
    state_dir: str | Path | None


@dataclass(frozen=True, slots=True)
class _Setting:
    read: Callable[[object], object]
    """Turns a flag's, variable's or file's value into the field's; ValueError says what it must
    be."""
    variable: str
    in_file: bool = True


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text that is not empty")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("text in UTF-8")
    return value.strip()


def _texts(value: object) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ValueError("a text, or several")
    return tuple(texts)


def _path(value: object) -> Path:
    if "\0" in str(value):
        raise ValueError("a path without a null character")
    try:
        return Path(value if isinstance(value, Path) else _file_name(value)).expanduser()
    except RuntimeError as error:
        raise ValueError("a path without a ~ or one of a user of this machine") from error


def _file_name(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a path that is not empty")
    return value


def _whole(minimum: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        wanted = f"a whole number of at least {minimum}"
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(wanted)
        try:
            number = int(value)
        except ValueError:
            raise ValueError(wanted) from None
        if number < minimum:
            raise ValueError(wanted)
        return number

    return read


def _above_zero(unit: str) -> Callable[[object], float]:
    def read(value: object) -> float:
        number = _number(value)
        if number is None or number <= 0:
            raise ValueError(f"a number of {unit} above 0")
        return number

    return read


def _number(value: object) -> float | None:
    """A finite number, also one in a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _yes_no(value: object) -> bool:
    if isinstance(value, bool):
        return value
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False}
    answer = words.get(value.strip().lower()) if isinstance(value, str) else None
    if answer is None:
        raise ValueError("true or false")
    return answer


def _tool_mode(value: object) -> str:
    choices = get_args(ToolModeChoice)
    if value not in choices:
        raise ValueError(f"one of {', '.join(choices)}")
    return str(value)


def _session(value: object) -> str:
    name = _text(value)
    if not re.fullmatch(r"\w[\w.-]{0,63}", name):
        raise ValueError("1 to 64 letters, digits, dots, dashes or underscores")
    return name


def _url(value: object) -> str:
    url = _text(value)
    if not re.match(r"https?://[^/\s]+", url):
        raise ValueError("a URL such as http://localhost:11434/v1")
    return url.rstrip("/")


def _embedder(value: object) -> str:
    name = _text(value)
    if name != "static" and not re.fullmatch(r"openai:\S+", name):
        raise ValueError("static or openai:MODEL")
    return name


def _patterns(value: object) -> tuple[str, ...]:
    """Several in a list, or in one text between commas."""
    given = _texts(value.split(",") if isinstance(value, str) else value)
    return tuple(item.strip() for item in given if item.strip())


_SETTINGS: dict[str, _Setting] = {
    "archive": _Setting(_path, "DOCPAGER_ARCHIVE"),
    "model": _Setting(_text, "DOCPAGER_MODEL"),
    "base_url": _Setting(_url, "OPENAI_BASE_URL"),
    # A key in a file ends up in a repository: it is taken from the environment only.
    "api_key": _Setting(_text, "OPENAI_API_KEY", in_file=False),
    "tool_mode": _Setting(_tool_mode, "DOCPAGER_TOOL_MODE"),
    "context_window": _Setting(_whole(2048), "DOCPAGER_CONTEXT_WINDOW"),
    "max_steps": _Setting(_whole(1), "DOCPAGER_MAX_STEPS"),
    "max_tokens": _Setting(_whole(1), "DOCPAGER_MAX_TOKENS"),
    "max_cost": _Setting(_above_zero("dollars"), "DOCPAGER_MAX_COST"),
    "timeout": _Setting(_above_zero("seconds"), "DOCPAGER_TIMEOUT"),
    "seed": _Setting(_whole(0), "DOCPAGER_SEED"),
    "session": _Setting(_session, "DOCPAGER_SESSION"),
    "trace": _Setting(_path, "DOCPAGER_TRACE"),
    "cache": _Setting(_path, "DOCPAGER_CACHE"),
    "replay": _Setting(_yes_no, "DOCPAGER_REPLAY"),
    "embedder": _Setting(_embedder, "DOCPAGER_EMBEDDER"),
    # As the key: a password in a file ends up in a repository.
    "passwords": _Setting(_texts, "DOCPAGER_PASSWORD", in_file=False),
    "ocr": _Setting(_yes_no, "DOCPAGER_OCR"),
    "workers": _Setting(_whole(1), "DOCPAGER_WORKERS"),
    "include": _Setting(_patterns, "DOCPAGER_INCLUDE"),
    "exclude": _Setting(_patterns, "DOCPAGER_EXCLUDE"),
    "file_timeout": _Setting(_above_zero("seconds"), "DOCPAGER_FILE_TIMEOUT"),
    "page_timeout": _Setting(_above_zero("seconds"), "DOCPAGER_PAGE_TIMEOUT"),
    "worker_memory": _Setting(_whole(512), "DOCPAGER_WORKER_MEMORY"),
    "max_file_size": _Setting(_whole(1), "DOCPAGER_MAX_FILE_SIZE"),
    "max_unpacked_size": _Setting(_whole(1), "DOCPAGER_MAX_UNPACKED_SIZE"),
    "max_page_characters": _Setting(_whole(1), "DOCPAGER_MAX_PAGE_CHARACTERS"),
    "wait": _Setting(_yes_no, "DOCPAGER_WAIT"),
    "keep_runs": _Setting(_whole(1), "DOCPAGER_KEEP_RUNS"),
    "json": _Setting(_yes_no, "DOCPAGER_JSON"),
    "quiet": _Setting(_yes_no, "DOCPAGER_QUIET"),
    "verbose": _Setting(_yes_no, "DOCPAGER_VERBOSE"),
    "debug": _Setting(_yes_no, "DOCPAGER_DEBUG"),
    "progress": _Setting(_yes_no, "DOCPAGER_PROGRESS"),
    "color": _Setting(_yes_no, "DOCPAGER_COLOR"),
    "cache_dir": _Setting(_path, "DOCPAGER_CACHE_DIR"),
    "state_dir": _Setting(_path, "DOCPAGER_STATE_DIR"),
}
_SECRET = frozenset({"api_key", "passwords"})
_PATHS = frozenset({"archive", "trace", "cache", "cache_dir", "state_dir"})
_PRICES = "prices"
"""The table of `docpager.toml` that is no setting by itself."""


def load(
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Config:
    """The settings in force: `flags` (None = not given) over `environ` over `cwd`'s file.

    Without `environ` and `cwd`, this process's own. Relative paths are taken from `cwd`. The
    defaults of `cache_dir` and `state_dir` are those of this process, whatever `environ` holds;
    DOCPAGER_CACHE_DIR and DOCPAGER_STATE_DIR move them.

    Raises:
        UserError: a value is impossible, a key unknown, or `docpager.toml` is not TOML.
    """
    environ = os.environ if environ is None else environ
    try:
        cwd = Path.cwd() if cwd is None else cwd
    except FileNotFoundError as error:
        raise UserError("The current folder was deleted. Change to another one.") from error
    values = _folders() | _from_file(cwd / FILE_NAME)
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        values["color"] = False
    for name, setting in _SETTINGS.items():
        # An empty variable is one that was not set, as everywhere in a shell.
        if text := environ.get(setting.variable):
            values[name] = _read(name, text, setting.variable)
    for name, value in (flags or {}).items():
        if value is not None:
            if name not in _SETTINGS:
                raise UserError(_unknown(name, "the settings", _SETTINGS))
            values[name] = _read(name, value, f"--{name.replace('_', '-')}")
    for name in _PATHS & values.keys():
        values[name] = cwd / Path(str(values[name]))
    values.setdefault("archive", cwd / "docpager.duckdb")
    if values.get("replay") and not values.get("cache"):
        raise UserError("--replay needs the recorded calls. Name their file with --cache.")
    return Config(**values)  # type: ignore[arg-type]  # each value went through its `read`


def revised(config: Config, given: Mapping[str, object]) -> Config:
    """`config` with some settings given anew by flags; None leaves one as it was.

    Raises:
        UserError: a value is impossible.
    """
    values = {
        name: _read(name, value, f"--question-{name.replace('_', '-')}")
        for name, value in given.items()
        if value is not None
    }
    return replace(config, **values)  # type: ignore[arg-type]  # each went through its `read`


def _from_file(path: Path) -> dict[str, object]:
    import tomllib

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError(f"{path.name} cannot be read: {error.strerror}. Mend it.") from error
    except ValueError as error:  # tomllib.TOMLDecodeError and UnicodeDecodeError are both
        raise UserError(f"{path.name} is not valid TOML: {error}. Correct that line.") from error
    allowed = [name for name, setting in _SETTINGS.items() if setting.in_file]
    values: dict[str, object] = {}
    if _PRICES in table:
        values[_PRICES] = _prices(table.pop(_PRICES), path.name)
    for name in table:
        if name in _SECRET:
            raise UserError(
                f"{path.name} holds {name!r}, a secret. "
                f"Put it in the variable {_SETTINGS[name].variable} instead."
            )
        if name not in allowed:
            raise UserError(_unknown(name, path.name, [*allowed, _PRICES]))
    for name, value in table.items():
        values[name] = _read(name, value, f"{path.name}: {name}")
    return values


def _prices(table: object, source: str) -> dict[str, Price]:
    """`[prices."gpt-4.1-mini"]` with `prompt`, `completion` and perhaps `cached`."""
    if not isinstance(table, dict):
        raise UserError(f'{source}: prices must be tables such as [prices."gpt-4.1-mini"].')
    return {name: _price(value, f'{source}: [prices."{name}"]') for name, value in table.items()}


def _price(table: object, source: str) -> Price:
    given = dict(table) if isinstance(table, dict) else {}
    prompt, completion = _number(given.pop("prompt", None)), _number(given.pop("completion", None))
    cached = _number(given.pop("cached", prompt))
    if prompt is None or completion is None or cached is None or given:
        raise UserError(
            f"{source} must hold the numbers prompt, completion and perhaps cached, in USD for a "
            "million tokens, and nothing else. Correct it."
        )
    if min(prompt, completion, cached) < 0:
        raise UserError(f"{source} holds a price below 0. Correct it.")
    return Price(prompt, completion, cached)


def _read(name: str, value: object, source: str) -> object:
    try:
        return _SETTINGS[name].read(value)
    except ValueError as error:
        shown = "a secret" if name in _SECRET else repr(value)
        raise UserError(f"{source} must be {error}, not {shown}. Correct it.") from error


def _unknown(name: str, place: str, allowed: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.0)
    return f"{place} has no key {name!r}. Did you mean {near[0]!r}?"


def _folders() -> dict[str, object]:
    """The user's cache and state folders by the rules of the system it runs on.

    On Linux those are XDG's: a relative path in XDG_CACHE_HOME or XDG_STATE_HOME is ignored.
    Source: XDG Base Directory Specification 0.8, "All paths set in these environment variables
    must be absolute".
    """
    cache = platformdirs.user_cache_path("docpager", appauthor=False)
    state = platformdirs.user_state_path("docpager", appauthor=False)
    return {"cache_dir": cache, "state_dir": state}


def variables() -> dict[str, str]:
    """Which environment variable sets what: the README's table is checked against it."""
    return {name: setting.variable for name, setting in _SETTINGS.items()}

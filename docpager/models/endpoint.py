"""The seam around the `openai` SDK: one POST, tried again where that can help, errors mapped.

What is tried again: no connection, a time-out, 408, 409, 429, 5xx and, a few times only, a reply
that holds nothing usable. A 503, by which local servers say that they still load their model, is
bounded by time only. An error inside a 200 is what its code says. A refused key, a used-up quota
and a wait beyond all patience are fatal at once, and nothing is tried again when the asker's own
time is up.
"""

from __future__ import annotations

import copy
import importlib
import json
import math
import random as random_module
import re
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import urlsplit, urlunsplit

from docpager.errors import BudgetReached, ModelAuthError, ModelError
from docpager.models.throttle import LongPause, Throttle
from docpager.protocols import Clock
from docpager.unicode import shortened

if TYPE_CHECKING:
    import httpx2
    import openai

T = TypeVar("T")
OnWait: TypeAlias = Callable[[float], None]
"""Told of seconds that were waited without asking anything."""
TimeLeft: TypeAlias = Callable[[], float]
"""Seconds of work left to whoever asks; what was waited does not count."""

OPENAI_URL = "https://api.openai.com/v1"

_RETRYABLE = frozenset({408, 409, 429})
_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_WINDOW = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_STANDS_FOR = {
    **dict.fromkeys(_QUOTA | {"rate_limit_exceeded", "rate_limit_error"}, 429),
    **dict.fromkeys(_WINDOW | {"invalid_request_error"}, 400),
    **dict.fromkeys(("invalid_api_key", "authentication_error"), 401),
    **dict.fromkeys(("permission_denied", "permission_error"), 403),
    **dict.fromkeys(("model_not_found", "not_found_error"), 404),
    **dict.fromkeys(("server_error", "internal_server_error", "api_error"), 500),
    "overloaded_error": 529,
}
"""The status of an error by its code or type, for endpoints that send errors with a 200."""
_SHORTEST_SECRET = 4
_LEAST_TRY_S = 0.01
"""Less time than this is none: a timer may go off that much before the clock says so."""
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?")


class UnusableReply(ModelError):
    """The endpoint answered 200 with something that is no reply; trying again may help."""


class RefusedRequest(ModelError):
    """The endpoint refuses the request as it stands (400, 422); `parameter` names the culprit."""

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


class FailingServer(ModelError):
    """The endpoint answers, but with 5xx again and again: it is down, or cannot do this."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to insist; delays double from the first to the longest, with jitter."""

    tries: int = 6
    connection_tries: int = 4
    """Fewer where nobody listens: that is mostly a server that was not started."""
    unusable_tries: int = 4
    """Of replies that are none: that is mostly a proxy's page, or no such API."""
    total_seconds: float = 180.0
    """No try begins later than this after the first one."""
    first_delay: float = 0.5
    longest_delay: float = 30.0


@dataclass(frozen=True, slots=True)
class _Failure:
    error: ModelError
    retryable: bool = False
    connected: bool = True
    counted: bool = True
    """Whether it uses up one of the tries."""
    asked_delay: float | None = None
    """Seconds after which the endpoint says to come back."""
    overloaded: bool = False
    """Whether fewer requests at once would help: 429 and 5xx."""
    said: str = ""
    """What the endpoint answered, where it may answer otherwise later."""


class _Connections:
    """The SDK's client, opened at first use, for all who share an endpoint."""

    def __init__(self) -> None:
        self.opening = threading.Lock()
        self.opened: openai.OpenAI | None = None


def load_sdk() -> None:
    """Import the SDK, which takes more than half a second, before the first call has to."""
    importlib.import_module("openai")


class Endpoint:
    """An OpenAI-compatible API at one base URL; it alone knows the key, and never shows it.

    Args:
        base_url: None is OpenAI's own.
        api_key: None sends a placeholder, which local servers do not look at.
        timeout_s: For one try, in seconds without a byte from the endpoint.
        random: Draws the jitter, in [0, 1).
        throttle: Of all requests to this endpoint; None sends each at once.
    """

    def __init__(
        self,
        base_url: str | None,
        api_key: str | None,
        *,
        clock: Clock,
        timeout_s: float = 300.0,
        retry: RetryPolicy = RetryPolicy(),
        random: Callable[[], float] = random_module.random,
        throttle: Throttle | None = None,
    ) -> None:
        self._base_url = (base_url or OPENAI_URL).rstrip("/")
        self._key = api_key
        self._clock = clock
        self._timeout_s = timeout_s
        self._retry = retry
        self._random = random
        self._throttle = throttle
        self._connections = _Connections()
        self._on_wait: OnWait | None = None
        self._time_left: TimeLeft = lambda: math.inf

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    @property
    def url(self) -> str:
        """The base URL without user, password or query: safe to print and to store."""
        parts = urlsplit(self._base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI's own API, which has renamed some fields."""
        return self._base_url == OPENAI_URL

    def for_run(self, on_wait: OnWait, time_left: TimeLeft | None = None) -> Endpoint:
        """The same endpoint with the same connections, which tells `on_wait` of every second that
        it waits: for its turn, or for the endpoint to take requests again. No request of its takes
        more than `time_left`."""
        other = copy.copy(self)
        other._on_wait = on_wait
        if time_left is not None:
            other._time_left = time_left
        return other

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        with self._connections.opening:
            if self._connections.opened is not None:
                self._connections.opened.close()
                self._connections.opened = None

    def post(self, path: str, body: Mapping[str, object], read: Callable[[object], T]) -> T:
        """POST `body` and return what `read` makes of the decoded JSON reply.

        `read` raises `UnusableReply` for a reply to be asked for again.

        Raises:
            ModelError: as told in the module docstring, when trying again cannot help (any more).
            BudgetReached: the time left to the asker is up, or that of all who share the throttle.
            WaitInterrupted: someone asked to stop, and it would have had to wait.
        """
        import openai

        began = self._clock.monotonic()
        attempts = tries = unusable = 0
        reached = False
        while True:
            patience = self._retry.total_seconds - (self._clock.monotonic() - began)
            try:
                return self._try(path, body, read, patience)
            except (openai.OpenAIError, UnusableReply) as error:
                failure = self._failure(error, str(body.get("model")))
                self._redact_in_place(error)
                attempts += 1
                tries += failure.counted
                unusable += isinstance(failure.error, UnusableReply)
                reached = reached or failure.connected
                limit = self._retry.tries if reached else self._retry.connection_tries
                spent = tries >= limit or unusable >= self._retry.unusable_tries
                delay = self._delay(failure, tries)
                late = self._clock.monotonic() - began + delay > self._retry.total_seconds
                if self._throttle is not None and isinstance(failure.error, ModelAuthError):
                    self._throttle.refusal = str(failure.error)
                if not failure.retryable or late or spent:
                    asked = failure.asked_delay if late else None
                    given_up = self._given_up(failure, attempts, asked)
                    if given_up is error:
                        raise
                    raise given_up from error
                self._require_time(error)
            self._rest(delay)

    def _try(
        self,
        path: str,
        body: Mapping[str, object],
        read: Callable[[object], T],
        patience: float,
    ) -> T:
        """One request, in its turn."""
        if self._throttle is None:
            return read(self._send(path, body))
        try:
            return self._try_in_turn(self._throttle, path, body, read, patience)
        except LongPause as pause:
            raise ModelError(
                f"{self.url} asks to wait {pause.seconds:.0f} s more, and a call is given up after "
                f"{self._retry.total_seconds:.0f} s. Try again after that."
            ) from pause

    def _try_in_turn(
        self,
        throttle: Throttle,
        path: str,
        body: Mapping[str, object],
        read: Callable[[object], T],
        patience: float,
    ) -> T:
        import openai

        with throttle.slot(patience) as slot:
            self._waited(slot.waited)
            try:
                reply = read(self._send(path, body))
            except openai.APIStatusError as error:
                failure = self._failure(error, str(body.get("model")))
                if failure.overloaded:
                    throttle.rate_limited(slot, failure.asked_delay)
                raise
            throttle.succeeded()
            return reply

    def _rest(self, seconds: float) -> None:
        """Wait before the next try."""
        if self._throttle is None:
            self._clock.sleep(seconds)
        else:
            self._throttle.rest(seconds)
            self._throttle.retried()
        self._waited(seconds)

    def _require_time(self, cause: Exception | None = None) -> float:
        """Seconds left to whoever asks."""
        left = self._time_left()
        if left < _LEAST_TRY_S:
            raise BudgetReached(
                "time", f"The time allowed was up before {self.url} answered. Raise --timeout."
            ) from cause
        return left

    def _waited(self, seconds: float) -> None:
        if self._on_wait is not None:
            self._on_wait(seconds)

    def _send(self, path: str, body: Mapping[str, object]) -> object:
        import httpx2

        client = self._client()
        response = client.post(
            path,
            cast_to=httpx2.Response,
            body=dict(body),
            options={"timeout": self._timeout(self._require_time())},
        )
        try:
            reply = json.loads(response.content)
        except (ValueError, RecursionError) as error:
            shown = self._clean(response.text) or "nothing"
            raise UnusableReply(
                f"{self.url} does not answer in JSON but: {shown}. "
                "Check the base URL: it usually ends in /v1."
            ) from error
        status = _status_inside(reply)
        if status is not None:
            raise _status_error(field(reply, "error"), status, response)
        return reply

    def _client(self) -> openai.OpenAI:
        with self._connections.opening:
            if self._connections.opened is None:
                self._connections.opened = client = self._open()
                # Nobody has to close an endpoint: its connections go with the last copy of it.
                weakref.finalize(self._connections, client.close)
            return self._connections.opened

    def _open(self) -> openai.OpenAI:
        import openai

        if self._key is None and self.is_openai:
            raise ModelAuthError(
                f"No API key for {self.url}. Set OPENAI_API_KEY, or name another endpoint with "
                "--base-url."
            )
        timeout = self._timeout()
        client = openai.OpenAI(
            base_url=self._base_url,
            api_key=self._key or "none",
            admin_api_key="",
            max_retries=0,
            timeout=timeout,
            # A redirect would carry documents to a place that nobody configured.
            http_client=openai.DefaultHttpxClient(follow_redirects=False, timeout=timeout),
        )
        # The SDK picks these up from the environment; only what was configured is sent.
        client.organization = None
        client.project = None
        return client

    def _timeout(self, most: float = math.inf) -> httpx2.Timeout:
        import httpx2

        seconds = min(self._timeout_s, most)
        return httpx2.Timeout(seconds, connect=min(10.0, seconds))

    def _delay(self, failure: _Failure, tries: int) -> float:
        """As long as the endpoint asks for, and never shorter than without its asking."""
        doubled = self._retry.first_delay * 2.0 ** min(max(tries - 1, 0), 30)
        usual = min(doubled, self._retry.longest_delay) * (0.5 + self._random() / 2)
        return max(usual, failure.asked_delay or 0.0)

    def _given_up(self, failure: _Failure, attempts: int, asked: float | None) -> ModelError:
        """The error of the last of so many attempts; `asked` is a wait that is too long."""
        if not failure.said:
            return failure.error
        if asked is not None:
            why = (
                f"It asks to wait {asked:.0f} s, and a call is given up after "
                f"{self._retry.total_seconds:.0f} s. Try again after that."
            )
        elif attempts > 1:
            why = "It was asked again without success. Try later."
        else:
            why = "Try later."
        return type(failure.error)(f"{failure.said} {why}")

    # ---- what went wrong ---------------------------------------------------------------------

    def _failure(self, error: Exception, model: str) -> _Failure:
        import httpx2
        import openai

        match error:
            case UnusableReply():
                return _Failure(error, retryable=True)
            case openai.APITimeoutError():
                what = f"{self.url} did not answer within {self._timeout_s:g} s."
                return _Failure(ModelError(f"{what} Is it overloaded? Try again."), retryable=True)
            case openai.APIConnectionError():
                cause = self._clean(str(error.__cause__ or error))
                if isinstance(error.__cause__, httpx2.RemoteProtocolError | httpx2.ReadError):
                    return _Failure(
                        ModelError(f"The reply of {self.url} broke off: {cause}. Try again."),
                        retryable=True,
                    )
                return _Failure(
                    ModelError(
                        f"{self.url} cannot be reached: {cause}. "
                        "Start the server, or check --base-url and the network."
                    ),
                    retryable=True,
                    connected=False,
                )
            case openai.APIStatusError():
                return self._status_failure(error, model)
            case _:
                return _Failure(ModelError(f"{self.url}: {self._clean(str(error))}."))

    def _status_failure(self, error: openai.APIStatusError, model: str) -> _Failure:
        status = error.status_code
        detail = self._detail(error)
        inside = "" if error.response.status_code == status else ", inside a 200"
        said = f"{self.url} answers {status}{inside}: {detail}."
        codes = {str(error.code), str(error.type)}
        if codes & _QUOTA or status == 402:
            return _Failure(ModelAuthError(f"{said} The quota is used up. Check the account."))
        if status in (401, 403):
            return _Failure(
                ModelAuthError(f"{said} The key is refused. Check OPENAI_API_KEY and --base-url.")
            )
        if status == 404:
            return _Failure(
                ModelError(
                    f"{self.url} has no model {model!r}, or is no OpenAI-compatible API (404: "
                    f"{detail}). Check --model and --base-url, which usually ends in /v1."
                )
            )
        if status in _RETRYABLE or status >= 500:
            kind = FailingServer if status >= 500 else ModelError
            return _Failure(
                kind(f"{said} Try later."),
                retryable=True,
                counted=status != 503,
                asked_delay=asked_delay(error.response.headers, self._clock),
                overloaded=status == 429 or status >= 500,
                said=said,
            )
        if codes & _WINDOW:
            return _Failure(
                RefusedRequest(
                    f"{said} The prompt does not fit the window of {model}. "
                    "Set --context-window to what the endpoint really has."
                )
            )
        if status in (400, 422):
            refused = f"{self.url} refuses the request to {model} ({status}): {detail}."
            return _Failure(
                RefusedRequest(f"{refused} Try another --tool-mode or model.", error.param)
            )
        return _Failure(ModelError(f"{said} Check --base-url."))

    def _detail(self, error: openai.APIStatusError) -> str:
        body = error.body
        said = body.get("message") if isinstance(body, dict) else body
        return self._clean(str(said or "no reason given"))

    def _clean(self, text: str) -> str:
        """One short line without secrets, for a message."""
        line = " ".join(self._without_secrets(text).split())
        return shortened(line, 300).rstrip(".")

    def _without_secrets(self, text: str) -> str:
        if self._key is not None and len(self._key) >= _SHORTEST_SECRET:
            text = text.replace(self._key, "[key]")
        parts = urlsplit(self._base_url)
        for secret in (parts.password, parts.query):
            if secret:
                text = text.replace(secret, "[key]")
        # Endpoints like to repeat the key, or most of it, when they refuse it.
        return re.sub(r"\bsk-[\w*.-]+", "[key]", text)

    def _redact_in_place(self, error: BaseException) -> None:
        """Also a chained exception may be printed: with `--debug`, in a log."""
        at: BaseException | None = error
        while at is not None:
            at.args = tuple(
                self._without_secrets(item) if isinstance(item, str) else item for item in at.args
            )
            at = at.__cause__ or at.__context__


def _status_inside(reply: object) -> int | None:
    """The status that an error inside a 200 stands for; None for a reply, or where none is told."""
    error = field(reply, "error")
    if not error or field(reply, "choices") or field(reply, "data"):
        return None
    for told in (field(error, "status"), field(error, "code"), field(error, "type")):
        status = told
        if isinstance(told, str):
            status = int(told) if told.isdecimal() else _STANDS_FOR.get(told)
        if isinstance(status, int) and 400 <= status < 600:
            return status
    return None


def _status_error(error: object, status: int, response: httpx2.Response) -> openai.APIStatusError:
    import openai

    raised = openai.APIStatusError(str(field(error, "message")), response=response, body=error)
    raised.status_code = status
    return raised


def asked_delay(headers: Mapping[str, str], clock: Clock) -> float | None:
    """Seconds after which the endpoint wants to be asked again; None where it does not say.

    `Retry-After` (seconds or a date) comes first; else the rate limits that are used up, by their
    `x-ratelimit-reset-*` durations such as `1m30s` or `6ms`.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    after = headers.get("retry-after")
    if after is not None:
        seconds = _number(after)
        return seconds if seconds is not None else _until(after, clock)
    resets = {
        kind: duration
        for kind in ("requests", "tokens")
        if (duration := parse_duration(headers.get(f"x-ratelimit-reset-{kind}", ""))) is not None
    }
    used_up = [
        duration
        for kind, duration in resets.items()
        if _number(headers.get(f"x-ratelimit-remaining-{kind}")) == 0
    ]
    return max(used_up or resets.values(), default=None)


def parse_duration(text: str) -> float | None:
    """Seconds in `1m30s`, `6ms`, `2h`, or a bare number; None for anything else."""
    number = _number(text)
    if number is not None:
        return number
    found = _DURATION.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds + milliseconds / 1000


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _until(date: str, clock: Clock) -> float | None:
    try:
        return max(0.0, (parsedate_to_datetime(date) - clock.now()).total_seconds())
    except (ValueError, TypeError):  # no date, or one without a time zone
        return None


def field(body: object, *path: str | int) -> Any:
    """What stands at `path` of decoded JSON, or None: endpoints leave out what they like."""
    for step in path:
        if isinstance(body, dict) and isinstance(step, str):
            body = body.get(step)
        elif isinstance(body, list) and isinstance(step, int) and step < len(body):
            body = body[step]
        else:
            return None
    return body

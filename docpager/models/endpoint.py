"""The seam around the `openai` SDK: one POST, tried again where that can help.

What a failure means is in `failures.py`.

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
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from docpager.errors import BudgetReached, ModelAuthError, ModelError
from docpager.models.failures import Failure, Failures, error_inside
from docpager.models.redaction import Redaction, printable_url
from docpager.models.replies import UnusableReply
from docpager.models.throttle import LongPause, Throttle
from docpager.protocols import Clock

if TYPE_CHECKING:
    import httpx2
    import openai

T = TypeVar("T")
OnWait: TypeAlias = Callable[[float], None]
"""Told of seconds that were waited without asking anything."""
TimeLeft: TypeAlias = Callable[[], float]
"""Seconds of work left to whoever asks; what was waited does not count."""

OPENAI_URL = "https://api.openai.com/v1"

_LEAST_TRY_S = 0.01
"""Less time than this is none: a timer may go off that much before the clock says so."""


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
        self._redaction = Redaction(self._base_url, api_key)
        self._failures = Failures(self.url, timeout_s, self._redaction, clock)
        self._connections = _Connections()
        self._on_wait: OnWait | None = None
        self._time_left: TimeLeft = lambda: math.inf

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r})"

    @property
    def url(self) -> str:
        """The base URL without user, password or query: safe to print and to store."""
        return printable_url(self._base_url)

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
                failure = self._failures.of(error, str(body.get("model")))
                self._redaction.in_place(error)
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
                failure = self._failures.of(error, str(body.get("model")))
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
        except (ValueError, RecursionError) as fault:
            shown = self._redaction.line(response.text) or "nothing"
            raise UnusableReply(
                f"{self.url} does not answer in JSON but: {shown}. "
                "Check the base URL: it usually ends in /v1."
            ) from fault
        error = error_inside(reply, response)
        if error is not None:
            raise error
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

    def _delay(self, failure: Failure, tries: int) -> float:
        """As long as the endpoint asks for, and never shorter than without its asking."""
        doubled = self._retry.first_delay * 2.0 ** min(max(tries - 1, 0), 30)
        usual = min(doubled, self._retry.longest_delay) * (0.5 + self._random() / 2)
        return max(usual, failure.asked_delay or 0.0)

    def _given_up(self, failure: Failure, attempts: int, asked: float | None) -> ModelError:
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

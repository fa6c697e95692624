"""What a failed request to an endpoint means: the error for a person, and whether to try again.

Nothing is tried again here: that is `endpoint.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from docpager.errors import ModelAuthError, ModelError
from docpager.models.redaction import Redaction
from docpager.models.replies import UnusableReply, field
from docpager.models.retry_after import asked_delay
from docpager.protocols import Clock

if TYPE_CHECKING:
    import httpx2
    import openai

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


class RefusedRequest(ModelError):
    """The endpoint refuses the request as it stands (400, 422); `parameter` names the culprit."""

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


class FailingServer(ModelError):
    """The endpoint answers, but with 5xx again and again: it is down, or cannot do this."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed try: the error for a person, and what helps."""

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


class Failures:
    """Tells the failures of one endpoint apart, and words them without its secrets."""

    def __init__(self, url: str, timeout_s: float, redaction: Redaction, clock: Clock) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._redaction = redaction
        self._clock = clock

    def of(self, error: Exception, model: str) -> Failure:
        """The meaning of what the SDK, or the reader of a reply, raised."""
        import httpx2
        import openai

        match error:
            case UnusableReply():
                return Failure(error, retryable=True)
            case openai.APITimeoutError():
                what = f"{self._url} did not answer within {self._timeout_s:g} s."
                return Failure(ModelError(f"{what} Is it overloaded? Try again."), retryable=True)
            case openai.APIConnectionError():
                cause = self._redaction.line(str(error.__cause__ or error))
                if isinstance(error.__cause__, httpx2.RemoteProtocolError | httpx2.ReadError):
                    return Failure(
                        ModelError(f"The reply of {self._url} broke off: {cause}. Try again."),
                        retryable=True,
                    )
                return Failure(
                    ModelError(
                        f"{self._url} cannot be reached: {cause}. "
                        "Start the server, or check --base-url and the network."
                    ),
                    retryable=True,
                    connected=False,
                )
            case openai.APIStatusError():
                return self._status_failure(error, model)
            case _:
                return Failure(ModelError(f"{self._url}: {self._redaction.line(str(error))}."))

    def _status_failure(self, error: openai.APIStatusError, model: str) -> Failure:
        status = error.status_code
        detail = self._detail(error)
        inside = "" if error.response.status_code == status else ", inside a 200"
        said = f"{self._url} answers {status}{inside}: {detail}."
        codes = {str(error.code), str(error.type)}
        if codes & _QUOTA or status == 402:
            return Failure(ModelAuthError(f"{said} The quota is used up. Check the account."))
        if status in (401, 403):
            return Failure(
                ModelAuthError(f"{said} The key is refused. Check OPENAI_API_KEY and --base-url.")
            )
        if status == 404:
            return Failure(
                ModelError(
                    f"{self._url} has no model {model!r}, or is no OpenAI-compatible API (404: "
                    f"{detail}). Check --model and --base-url, which usually ends in /v1."
                )
            )
        if status in _RETRYABLE or status >= 500:
            kind = FailingServer if status >= 500 else ModelError
            return Failure(
                kind(f"{said} Try later."),
                retryable=True,
                counted=status != 503,
                asked_delay=asked_delay(error.response.headers, self._clock),
                overloaded=status == 429 or status >= 500,
                said=said,
            )
        if codes & _WINDOW:
            return Failure(
                RefusedRequest(
                    f"{said} The prompt does not fit the window of {model}. "
                    "Set --context-window to what the endpoint really has."
                )
            )
        if status in (400, 422):
            refused = f"{self._url} refuses the request to {model} ({status}): {detail}."
            return Failure(
                RefusedRequest(f"{refused} Try another --tool-mode or model.", error.param)
            )
        return Failure(ModelError(f"{said} Check --base-url."))

    def _detail(self, error: openai.APIStatusError) -> str:
        body = error.body
        said = body.get("message") if isinstance(body, dict) else body
        return self._redaction.line(str(said or "no reason given"))


def error_inside(reply: object, response: httpx2.Response) -> openai.APIStatusError | None:
    """The error that a 200 holds instead of a reply; None where it is a reply."""
    status = _status_inside(reply)
    if status is None:
        return None
    import openai

    error = field(reply, "error")
    raised = openai.APIStatusError(str(field(error, "message")), response=response, body=error)
    raised.status_code = status
    return raised


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

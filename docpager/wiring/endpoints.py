"""The endpoint of the settings, its prices, and how tokens are counted for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docpager.clocks import SystemClock
from docpager.config import Config
from docpager.errors import UserError
from docpager.types import Price

if TYPE_CHECKING:
    from docpager.models.endpoint import Endpoint
    from docpager.models.throttle import Throttle
    from docpager.protocols import TokenCounter

EMBEDDED = "local"
REQUEST_TIMEOUT_S = 300.0
"""Without a byte from an endpoint; a local one reads a long prompt before its first."""
PATIENT_TRIES = 20
PATIENT_S = 600.0
"""How long a batch insists on one call: a rate limit is a matter of minutes, not of luck."""


def make_endpoint(config: Config, throttle: Throttle | None = None) -> Endpoint:
    """The OpenAI-compatible endpoint of the settings; with a `throttle`, that of a batch."""
    from docpager.models.endpoint import Endpoint, RetryPolicy

    short = RetryPolicy(total_seconds=min(config.timeout, RetryPolicy().total_seconds))
    patient = RetryPolicy(tries=PATIENT_TRIES, total_seconds=PATIENT_S)
    return Endpoint(
        config.base_url,
        config.api_key,
        clock=SystemClock(),
        timeout_s=min(config.timeout, REQUEST_TIMEOUT_S),
        retry=patient if throttle else short,
        throttle=throttle,
    )


def require_endpoint(config: Config, what: str) -> None:
    """Refuse settings without a key and without an address.

    Raises:
        UserError: that `what` needs one, and how to give it.
    """
    if config.base_url is None and config.api_key is None:
        raise UserError(
            f"{what} needs an endpoint. Set OPENAI_API_KEY for OpenAI's own, or give the address "
            "of another with --base-url or OPENAI_BASE_URL."
        )


def make_counter(config: Config, model: str) -> TokenCounter:
    """Counts tokens as `model` does, or too many where its vocabulary is not known."""
    from docpager.models.tokens import counter_for

    return counter_for(model, config.cache_dir / "vocabularies")


def is_embedded(model: str) -> bool:
    """Whether the name stands for the embedded model, or for another file in its runtime."""
    return model == EMBEDDED or model.startswith(f"{EMBEDDED}:")


def price_of(config: Config, model: str) -> Price | None:
    """What `model` costs by the table of prices, where the longest beginning of its name decides;
    None where it is not there. The embedded model costs nothing."""
    if is_embedded(model):
        return Price(0.0, 0.0)
    found = [name for name in config.prices if model.startswith(name)]
    return config.prices[max(found, key=len)] if found else None


def required_price(config: Config, model: str, option: str) -> Price:
    """As `price_of`, for those who want money bounded.

    Raises:
        UserError: no price is known; the message says how to give one.
    """
    price = price_of(config, model)
    if price is None:
        raise UserError(
            f"{option} cannot be kept: no price of {model} is known. Give its table "
            f'[prices."{model}"] with prompt and completion, in USD for a million tokens, in '
            "docpager.toml, or bound the tokens instead."
        )
    return price

"""Prices of models' tokens, from a file of the user's or from the library genai-prices."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from lightrag_jsonl.core.errors import ConfigError
from lightrag_jsonl.core.types import ModelTask
from lightrag_jsonl.core.usage import Usage
from lightrag_jsonl.llm.client import ModelClient

READING_TASKS: tuple[ModelTask, ...] = ("extract", "summarize")
PRICED_TOKENS = 1_000_000  # tokens that a price is for
LIBRARY = "genai-prices"

Amount = Annotated[float, msgspec.Meta(ge=0)]


class ModelPrice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The price of a million tokens of input or output; cached tokens may be cheaper."""

    input: Amount
    output: Amount
    cached_input: Amount | None = None
    currency: str = "USD"


@dataclass(frozen=True, slots=True)
class Cost:
    """An amount of money, with the source of the prices."""

    amount: float
    currency: str
    prices_from: str


def read_prices(path: Path) -> dict[str, ModelPrice]:
    """The prices in a TOML or JSON file, by the name of the model; `ConfigError` names the mistake."""
    import tomllib

    text = path.read_text(encoding="utf-8-sig")
    try:
        content = tomllib.loads(text) if path.suffix == ".toml" else msgspec.json.decode(text)
        return msgspec.convert(content, dict[str, ModelPrice])
    except (ValueError, msgspec.MsgspecError) as error:
        form = '{"gpt-4o-mini": {"input": 0.15, "output": 0.6, "currency": "USD"}}'
        raise ConfigError(
            f"{path}: {error}; prices are for a million tokens, such as {form} (or TOML)"
        ) from error


def cost_of(
    usage: Usage, model: str, prices: Mapping[str, ModelPrice] | None = None
) -> Cost | None:
    """The cost of the tokens of a model; None for unknown prices.

    `prices` count before the library genai-prices, if installed.
    """
    price = (prices or {}).get(model)
    if price is None:
        return _cost_by_library(usage, model)
    cached_price = price.input if price.cached_input is None else price.cached_input
    new_tokens = usage.input_tokens - usage.cached_tokens
    amount = new_tokens * price.input + usage.cached_tokens * cached_price
    amount += usage.output_tokens * price.output
    return Cost(amount / PRICED_TOKENS, price.currency, "file")


def cost_of_tasks(usage: Usage, client: ModelClient, tasks: Collection[ModelTask]) -> Cost | None:
    """The cost of what a model used for these tasks; None unless one model does them all, at a known price."""
    models = {client.model(task).name for task in tasks if client.has_model(task)}
    if not usage.calls or len(models) != 1:
        return None
    return cost_of(usage, models.pop())


def _cost_by_library(usage: Usage, model: str) -> Cost | None:
    try:
        import genai_prices
    except ModuleNotFoundError:
        return None
    tokens = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        calculated = genai_prices.calc_price(tokens, model_ref=model)
    except LookupError:  # a model that the library does not know
        return None
    return Cost(float(calculated.total_price), "USD", LIBRARY)

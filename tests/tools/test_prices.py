"""What tokens cost, by a file of prices or by a library."""

import json
from pathlib import Path

import pytest

from lightrag_jsonl import ConfigError, Usage
from lightrag_jsonl.tools.prices import ModelPrice, cost_of, read_prices
from tests.cli.conftest import run_json

USAGE = Usage(input_tokens=3_000_000, output_tokens=500_000, cached_tokens=1_000_000, calls=9)


def test_a_cost_is_the_sum_of_its_tokens() -> None:
    """Cached tokens are a part of those that were read, and cost their own price, or the full one."""
    price = ModelPrice(input=2.0, output=8.0, cached_input=0.5, currency="EUR")
    cost = cost_of(USAGE, "m", {"m": price})
    assert cost is not None
    assert (cost.amount, cost.currency) == (2 * 2.0 + 0.5 + 4.0, "EUR")
    full = cost_of(USAGE, "m", {"m": ModelPrice(input=2.0, output=8.0)})
    assert full is not None and (full.amount, full.currency) == (10.0, "USD")


def test_unknown_models_have_no_cost() -> None:
    """Rather than a wrong one."""
    assert cost_of(USAGE, "a-model-of-my-own", {}) is None


def test_the_library_knows_prices() -> None:
    """Of a provider's models, where it is installed; a price of the user's comes first."""
    pytest.importorskip("genai_prices", reason="needs the extra prices")
    cost = cost_of(USAGE, "gpt-4o-mini")
    assert cost is not None and cost.amount > 0 and cost.prices_from == "genai-prices"
    own = cost_of(USAGE, "gpt-4o-mini", {"gpt-4o-mini": ModelPrice(input=0.0, output=0.0)})
    assert own is not None and own.amount == 0


def test_prices_are_read_from_toml_and_json(tmp_path: Path) -> None:
    """In the same form; a wrong file is an error that shows the right form."""
    toml = tmp_path / "prices.toml"
    toml.write_text('["qwen-plus"]\ninput = 0.8\noutput = 2\ncurrency = "CNY"\n', encoding="utf-8")
    table = tmp_path / "prices.json"
    table.write_text(
        json.dumps({"qwen-plus": {"input": 0.8, "output": 2, "currency": "CNY"}}), encoding="utf-8"
    )
    expected = {"qwen-plus": ModelPrice(input=0.8, output=2.0, currency="CNY")}
    assert read_prices(toml) == read_prices(table) == expected
    for wrong in ('{"m": {"input": 1}}', '{"m": {"input": -1, "output": 1}}', "[", '{"m": 1}'):
        table.write_text(wrong, encoding="utf-8")
        with pytest.raises(ConfigError, match="for a million tokens"):
            read_prices(table)


@pytest.mark.slow
def test_an_estimate_says_the_cost(tmp_path: Path) -> None:
    """In the currency of the prices, for the model of each task."""
    text = tmp_path / "a.txt"
    text.write_text("Marie Curie discovered radium in Paris. " * 3_000, encoding="utf-8")
    prices = tmp_path / "prices.json"
    prices.write_text('{"m": {"input": 1000, "output": 0, "currency": "CNY"}}', encoding="utf-8")
    arguments = ["estimate", text, "-w", tmp_path / "kb", "--llm", "m", "--prices", prices]
    report = run_json(*arguments)
    tokens = report["extraction"]["input_tokens"]
    assert report["cost_extract"] == f"{tokens / 1000:,.4f} CNY (m, prices: file)"
    assert "cost_summarize" in report
    amounts = [
        float(report[f"cost_{task}"].split()[0].replace(",", ""))
        for task in ("extract", "summarize")
    ]
    total, currency = report["cost_total"].split()
    assert (
        float(total.replace(",", "")) == pytest.approx(sum(amounts), abs=1e-3) and currency == "CNY"
    )
    assert "no price of m" in run_json(*arguments[:-2])["cost_extract"]

"""How much of the package a reader must know to follow an insert, a question and a deletion: a ceiling that only
falls.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.size import run_apart
from tests.conftest import CHECKOUT

pytestmark = pytest.mark.slow  # runs an index under a profiler

CEILING_FILE = Path(__file__).with_name("ceiling.json")
FIGURES = ("names", "files", "lines")
SLACK = 0.97  # of the ceiling; below it, a lower number has been earned


@pytest.fixture(scope="module")
def measured_runs() -> dict[str, Any]:
    return run_apart(CHECKOUT / "lightrag_jsonl")


@pytest.mark.parametrize("run", ["insert", "query", "delete"])
def test_what_a_reader_must_know_never_grows(measured_runs: dict[str, Any], run: str) -> None:
    """Own names, files and lines that run stay at or below the stored numbers, which are lowered with each
    step: what is new here takes the place of something.
    """
    ceiling = json.loads(CEILING_FILE.read_text(encoding="utf-8"))[run]
    measured = {figure: measured_runs[run][figure] for figure in FIGURES}
    above = {figure: value for figure, value in measured.items() if value > ceiling[figure]}
    below = {figure: value for figure, value in measured.items() if value < SLACK * ceiling[figure]}

    assert not above, f"{run} runs more than {ceiling}: {above}"
    assert not below, f"lower the ceiling of {run} in {CEILING_FILE.name}: {below}"

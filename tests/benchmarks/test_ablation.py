"""The ablation measures every number of the ranking."""

from benchmarks import ablation
from benchmarks.ablation import MODULES, NOT_MEASURED, NUMBERS


def test_every_number_is_measured() -> None:
    """A public number of the modules of the ranking is one, unless the ablation names it with the reason; no
    value for a number that is gone is left.
    """
    names = {number.name for number in NUMBERS}

    assert {"DAMPING", "SHARPNESS", "TEXT_HITS", "CHUNK_LIMITS", "RANK_OFFSET"} <= names
    assert {*ablation.OFF, *ablation.HIGHEST} <= names
    assert all(any(hasattr(module, name) for module in MODULES) for name in NOT_MEASURED)

"""The ablation measures every number of the ranking."""

from benchmarks.ablation import NUMBERS

NOT_MEASURED = {
    "SPARE_CHUNKS", "TIES", "EQUAL",  # bounds by reason
    "EDGES_TO_CHOOSE_FROM",  # only where a model selects relations
    "START", "MENTION_EDGE", "RELATION_EDGE", "SYNONYM_EDGE", "ALIAS_EDGE",  # names of types
}  # fmt: skip


def test_every_number_is_measured() -> None:
    """A public number of a module that has measured numbers is one of them, unless it is named above with the reason."""
    modules = {number.module for number in NUMBERS}
    numbers = {
        name
        for module in modules
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and _is_numeric(value)
    }
    assert numbers - NOT_MEASURED == {number.name for number in NUMBERS}


def _is_numeric(value: object) -> bool:
    """Whether a value is a number, or a tuple of numbers."""
    if isinstance(value, tuple):
        return all(_is_numeric(part) for part in value)
    return isinstance(value, int | float)

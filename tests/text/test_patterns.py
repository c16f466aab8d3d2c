"""Patterns that are compiled at first use."""

import copy
import pickle
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import lightrag_jsonl
from lightrag_jsonl.text.patterns import LatePattern, pattern_of

PACKAGE = Path(str(lightrag_jsonl.__file__)).parent


def test_a_pattern_matches_as_a_compiled_one_does() -> None:
    """`pattern_of` stands for `re.compile`, with its flags, methods and attributes."""
    pattern = pattern_of(r"(?P<word>\w+)", re.ASCII)

    assert pattern.sub("-", "a é b") == re.compile(r"\w+", re.ASCII).sub("-", "a é b")
    assert pattern.groupindex == {"word": 1}
    assert pattern.pattern == r"(?P<word>\w+)"


def test_a_pattern_can_be_copied_and_sent_to_a_process() -> None:
    """As a compiled one can, before and after its first use."""
    pattern = pattern_of("铁+", re.MULTILINE)
    for _ in range(2):
        for twin in (
            copy.copy(pattern),
            copy.deepcopy(pattern),
            pickle.loads(pickle.dumps(pattern)),
        ):
            assert twin.findall("a铁铁") == ["铁铁"]
            assert twin.flags == re.compile("铁+", re.MULTILINE).flags
        assert pattern.search("铁")


@pytest.mark.slow  # imports most of the package
def test_every_pattern_of_the_package_can_be_compiled() -> None:
    """What an import no longer finds, a fault in a pattern, is found here."""
    patterns = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        if "pattern_of(" not in path.read_text(encoding="utf-8"):
            continue
        name = ".".join(("lightrag_jsonl", *path.relative_to(PACKAGE).with_suffix("").parts))
        for value in vars(import_module(name.removesuffix(".__init__"))).values():
            if isinstance(value, LatePattern):
                assert value.compiled.pattern == value.pattern
                patterns += 1

    assert patterns > 100


@pytest.mark.slow  # starts Python
def test_the_version_needs_no_other_module_of_the_package() -> None:
    """`--version` is answered before the commands, models and stores are imported."""
    program = (
        "import sys; sys.argv = ['lightrag-jsonl', '--version']; "
        "from lightrag_jsonl.__main__ import run_program; run_program(); "
        "print([name for name in sys.modules if name.startswith('lightrag_jsonl.')])"
    )
    lines = subprocess.check_output([sys.executable, "-c", program], text=True).split("\n")

    assert lines[:2] == [
        f"lightrag-jsonl {lightrag_jsonl.__version__}",
        "['lightrag_jsonl.__main__']",
    ]

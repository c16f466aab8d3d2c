"""How the package reads: what is cheap to hold, held for every module."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.readability import Readability, measure
from tests.conftest import CHECKOUT

pytestmark = pytest.mark.slow  # reads all code

PACKAGE = CHECKOUT / "lightrag_jsonl"
EXACT_WORDS = {  # names that say what they are where they stand
    "tracing/events.py": "shown",  # a field of stored traces
    "tracing/trace.py": "shown",
    "curation/review.py": "same",  # a public field, and the word of the prompt
    "readers/arabic.py": "left",  # a side of a rectangle
    "readers/pdf.py": "left",
    "readers/pictures.py": "left",
}
PRIVATE_USES = 15  # of attributes inside a room, such as `_replace` of a named tuple


@pytest.fixture(scope="module")
def readability() -> Readability:
    return measure(PACKAGE)


def listed(findings: Iterable[str]) -> str:
    return "\n".join(["", *sorted(findings)])


def test_an_assignment_gives_one_value(readability: Readability) -> None:
    """Two values have two lines: `a, b = x, y` is only for what comes as a pair."""
    packed = readability.places["packed"]
    assert not packed, listed(packed)


def test_values_are_called_what_they_are(readability: Readability) -> None:
    """No variable, parameter or field is called by a pronoun or a participle such as `found`."""
    vague_names = [
        place
        for place in readability.places["vague_names"]
        if EXACT_WORDS.get(place.partition(":")[0]) != place.rpartition(" ")[2]
    ]
    assert not vague_names, listed(vague_names)


def test_a_public_class_has_a_name_of_its_own(readability: Readability) -> None:
    """No other module defines a class, a function or a constant of the same name.

    But the retriever for each framework is called the same: a program uses one framework.
    """
    homonyms = [
        f"{name}: {', '.join(sorted(readability.homonyms[name]))}"
        for name in readability.public_homonyms
        if name != "LightRAGRetriever"
    ]
    assert not homonyms, listed(homonyms)


def test_private_names_stay_in_their_room(readability: Readability) -> None:
    """No room imports what another one calls private, and few objects use private parts of others."""
    intrusions = readability.places["room_intrusions"]
    assert not intrusions, listed(intrusions)
    private_uses = readability.places["private_uses"]
    assert len(private_uses) <= PRIVATE_USES, listed(private_uses)


ROOM = """
from pathlib import Path

class Limits:
    pass

def first(found, path):
    known, path._cache = found, Path()
    return known
"""
NEIGHBOR = """
from package.room.module import _helper

Limits: TypeAlias = int
"""


def test_every_kind_of_finding_is_seen(tmp_path: Path) -> None:
    """In a package made of them, each finding is told with its place."""
    for room, source in (("room", ROOM), ("neighbor", NEIGHBOR)):
        folder = tmp_path / room
        folder.mkdir()
        (folder / "module.py").write_text(source, encoding="utf-8")
    readability = measure(tmp_path)

    assert readability.public_homonyms == ["Limits"]
    assert readability.places == {
        "packed": ["room/module.py:8"],
        "private_uses": ["room/module.py:8 _cache"],
        "room_intrusions": ["neighbor/module.py:2 package.room.module._helper"],
        "vague_names": ["room/module.py:7 found", "room/module.py:8 known"],
    }

"""Finds the names written in a question, for rankings that take no keywords."""

from __future__ import annotations

import re
from typing import Final

_QUOTED: Final = re.compile(r"《([^》]+)》|「([^」]+)」|“([^”]+)”")
_WORD: Final = r"[A-Z0-9À-ÖØ-Þ][\w'’\-&.]*"
_LINK: Final = r"(?:of|the|and|de|la|du|von|van|for|in|on|to|a|at)"
_RUN: Final = re.compile(rf"\b{_WORD}(?:\s+(?:{_LINK}\s+)*{_WORD})*")
_POSSESSIVE: Final = re.compile(r"['’]s$")
_ASKING: Final = frozenset(
    re.findall(
        r"\w+",
        "who whom whose what when where which how why if is are was were do does did can could "
        "should would has have had in on at of and or by for from to with the a an",
    )
)


def names_in(question: str) -> tuple[str, ...]:
    """Runs of capitalized words and numbers, and quoted titles, in a question."""
    found = [match for pair in _QUOTED.findall(question) for match in pair if match]
    for run in _RUN.findall(question):
        words = run.split()
        while words and words[0].casefold() in _ASKING:
            words.pop(0)
        found.append(_POSSESSIVE.sub("", " ".join(words).rstrip(".'’")))
    return tuple(dict.fromkeys(name for name in found if name))

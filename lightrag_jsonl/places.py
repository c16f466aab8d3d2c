"""Writes out a place in a document for people: document, page, characters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from lightrag_jsonl.languages import Language, known_language

_PLACES: Mapping[Language, str] = {
    "en": "{}, page {}, characters {}–{}",
    "zh": "{}，第 {} 页，第 {}–{} 字",
}


def told_place(document: str, page: int, start: int, end: int, language: str) -> str:
    """One place in words; in English if the language has no words of its own here."""
    return _PLACES[known_language(language)].format(document, page, start, end)


def told_apart(labels: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What to call documents, by id, given (id, label) pairs: a label that several share gets the
    id added.
    """
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for id, label in labels:
        owners[label].add(id)
    return {
        id: label if len(ids) == 1 else f"{label} ({id})"
        for label, ids in owners.items()
        for id in sorted(ids)
    }

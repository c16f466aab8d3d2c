"""Finds out which chunk each description came from, by cached extraction answers."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lightrag_jsonl.migration.folder import ForeignIndex, unquoted
from lightrag_jsonl.text import clean_name, name_key

Subject: TypeAlias = frozenset[str]  # the key of a node's name, or those of an edge's two ends

# Both begin with a look-behind, so that long runs of quotes or spaces are not searched repeatedly.
RECORD = re.compile(
    r"(?<![\"'“*])[\"'“*]*\b(entity|relationship|relation)[\"'”*]*\s*(<\|(?:#\|)?>)"
)
END = re.compile(r"(?:\)|(?<!\s))\s*(##|<\|COMPLETE\|>|$)")


def subject(*names: str) -> Subject:
    """What a description is about, as name keys."""
    return frozenset(name_key(clean_name(name)) for name in names)


def folded(text: str) -> str:
    """A description in a form for comparing that of the graph with that of the answer."""
    return " ".join(unquoted(html.unescape(text)).casefold().split())


@dataclass(frozen=True, slots=True)
class Pairing:
    """Maps a subject and a description to the chunks whose answers contain it; likewise for keywords."""

    chunks: dict[tuple[Subject, str], dict[str, None]] = field(default_factory=dict)
    words: dict[tuple[Subject, str], set[str]] = field(default_factory=dict)

    def of(self, about: Subject, description: str) -> Iterable[str]:
        """The chunks that say this about a subject."""
        return self.chunks.get((about, folded(description)), ())

    def keywords(self, about: Subject, chunk: str, known: Iterable[str]) -> list[str]:
        """The edge's keywords that a chunk's answer gave; all of them if it gave none."""
        there = self.words.get((about, chunk), set())
        return [word for word in known if folded(word) in there] or list(known)


def pair(index: ForeignIndex) -> Pairing:
    """Read the cached answers.

    An answer belongs to the chunk that the cache names. Older caches name none; there it belongs to
    the only chunk that all its entities and relations have in common.
    """
    sources: dict[Subject, frozenset[str]] = {}
    for node in index.nodes:
        about = subject(node.name)
        sources[about] = sources.get(about, frozenset()) | frozenset(node.chunks)
    for edge in index.edges:
        sources[subject(edge.source, edge.target)] = frozenset(edge.chunks)
    pairing = Pairing()
    for answer in index.answers:
        said = [one for one in _records(answer.text) if one[0] in sources]
        chunk = answer.chunk or _common(said, sources)
        if chunk is not None:
            for about, fields in said:
                _note(pairing, about, chunk, fields)
    return pairing


def _records(answer: str) -> Iterator[tuple[Subject, list[str]]]:
    """The tuples in an answer: what each is about, and its further fields."""
    found = list(RECORD.finditer(answer))
    ends = [*(match.start() for match in found), len(answer)][1:]
    for match, end in zip(found, ends, strict=True):
        kind, delimiter = match.groups()
        fields = answer[match.end() : end].strip().removesuffix("(").rstrip().split(delimiter)
        fields[-1] = END.split(fields[-1], maxsplit=1)[0]
        names = 1 if kind == "entity" else 2
        if len(fields) > names:
            yield subject(*fields[:names]), fields[names:]


def _common(
    said: Iterable[tuple[Subject, list[str]]], sources: Mapping[Subject, frozenset[str]]
) -> str | None:
    shared: frozenset[str] | None = None
    for about, _ in said:
        shared = sources[about] if shared is None else shared & sources[about]
    return next(iter(shared)) if shared is not None and len(shared) == 1 else None


def _note(pairing: Pairing, about: Subject, chunk: str, fields: Iterable[str]) -> None:
    for text in fields:
        pairing.chunks.setdefault((about, folded(text)), {})[chunk] = None
        words = pairing.words.setdefault((about, chunk), set())
        words.update(folded(part) for part in re.split(r"[,，、;；]", unquoted(text)))

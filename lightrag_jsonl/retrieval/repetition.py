"""Removes from descriptions the sentences that stand in the passages of the same context."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.types import Entity, Relation

Fact = TypeVar("Fact", Entity, Relation)


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk as it will be in the prompt."""

    heading: str
    text: str


def without_repetition(fact: Fact, passages: Mapping[str, Passage]) -> Fact:
    """A fact whose description leaves out the sentences of the fact's own passages (by chunk id)."""
    names = (fact.name,) if isinstance(fact, Entity) else (fact.source, fact.target)
    own_passages = [passages[id] for id in fact.chunk_ids if id in passages]
    if not own_passages:
        return fact
    description = _without_sentences_of(own_passages, fact.description, names)
    return replace(fact, description=description)


def _without_sentences_of(
    passages: Sequence[Passage], description: str, names: Sequence[str]
) -> str:
    """A description without the sentences of the passages; the whole description if a name occurs
    neither in the sentences to leave out nor in the headings of the passages.
    """
    lines = [_sentences_with_space(line) for line in description.split("\n")]
    sentences = [sentence for line in lines for sentence in line]
    repeated = {
        sentence
        for sentence in sentences
        if not sentence[-1].isalnum()  # a whole sentence
        and any(sentence.strip() in passage.text for passage in passages)
    }
    visible_text = "\n".join([*repeated, *[passage.heading for passage in passages]])
    if not repeated or not all(name in visible_text for name in names):
        return description
    new_lines = [
        "".join([sentence for sentence in line if sentence not in repeated]).strip()
        for line in lines
    ]
    return "\n".join(filter(None, new_lines))


def _sentences_with_space(line: str) -> list[str]:
    """The sentences of a line, each with the white space before it."""
    ends = [0, *[end for _, end in sentence_spans(line)]]
    return [line[start:end] for start, end in itertools.pairwise(ends)]

"""Extracts the entities and relations of a chunk by language rules, without any model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TypeAlias

from anyio import to_thread

from lightrag_jsonl.core.text import has_cjk, name_key
from lightrag_jsonl.core.types import Chunk, EntityMention, Extraction, Language, RelationMention
from lightrag_jsonl.providers.offline.phrases import (
    HEADING,
    TAG,
    Phrase,
    Sentence,
    find_sentences,
    type_name,
)

_Found: TypeAlias = list[tuple[int, Phrase]]  # phrases of one name, with their sentences' numbers

VERSION = 2

_QUOTES = 2  # sentences quoted as an entity's description
_SENTENCE_PHRASES = 8  # the most phrases of one sentence that are related to each other
_RELATIONS_PER_ENTITY = 3
_DESCRIPTION = 320  # characters
_STRONGEST = 10
_KEYWORDS = 3
_THEMES = 8


class OfflineExtractor:
    """Extractor that finds names and noun phrases, and relates those that share a sentence.

    A sentence also names its topic: the first name of its paragraph. What is found depends on the
    chunk's text alone. A relation's strength is the number of sentences that its ends share, at
    most 10. Each chunk is read in the language it is written in, English or Chinese, or in
    `language` if it has no letters; entity types are named in `language`.
    """

    def __init__(self, language: Language = "en") -> None:
        self._language: Language = language

    @property
    def name(self) -> str:
        """Includes the language and the version of the rules."""
        return f"offline-{self._language}-{VERSION}"

    async def extract(self, chunk: Chunk) -> Extraction:
        """The entities, relations and themes of a chunk."""
        return await to_thread.run_sync(partial(extract_text, chunk.text, self._language))


def extract_text(text: str, language: Language) -> Extraction:
    """The entities, relations and themes of a text."""
    sentences = find_sentences(text, language)
    words = Counter(word for sentence in sentences for _, word in sentence.words)
    themes = tuple(word for word, _ in words.most_common(_THEMES))  # of equals the first
    names = _names(sentences)
    if not names:
        return Extraction(state="empty", keywords=themes)
    entities = {key: _entity(text, sentences, found, language) for key, found in names.items()}
    relations = tuple(_relations(text, sentences, names, entities))
    return Extraction(
        entities=tuple(entities.values()),
        relations=relations,
        keywords=themes,
        records=len(entities) + len(relations),
    )


# ── entities ────────────────────────────────────────────────────────────────────


def _names(sentences: Sequence[Sentence]) -> dict[str, _Found]:
    """The phrases by name key, each with the number of its sentence, in the order of the text."""
    names: dict[str, _Found] = {}
    for number, sentence in enumerate(sentences):
        for phrase in sentence.phrases:
            if key := name_key(phrase.name):
                names.setdefault(key, []).append((number, phrase))
    return names


def _entity(
    text: str, sentences: Sequence[Sentence], found: _Found, language: Language
) -> EntityMention:
    """The entity, under its most frequent spelling, described by the first sentences that name it;
    headings only if there are no others.
    """
    spellings = Counter(phrase.name for _, phrase in found)
    types = Counter((phrase.sure, phrase.type) for _, phrase in found)
    _, type = min(types, key=lambda vote: (not vote[0], -types[vote], vote[1]))
    numbers = list(dict.fromkeys(number for number, _ in found))
    plain = [number for number in numbers if not HEADING.match(text, sentences[number].start)]
    quotes = [_quote(text, sentences[number]) for number in (plain or numbers)[:_QUOTES]]
    if len("".join(quotes)) >= _DESCRIPTION:
        quotes = quotes[:1]
    return EntityMention(
        name=min(spellings, key=lambda name: (-spellings[name], name)),
        type=type_name(type, language),
        description=("" if has_cjk(quotes[0][-2:]) else " ").join(quotes),
    )


def _quote(text: str, sentence: Sentence) -> str:
    """The sentence on one line, without tags, cut to `_DESCRIPTION` characters."""
    line = " ".join(TAG.sub(" ", text[sentence.start : sentence.end]).split())
    if len(line) <= _DESCRIPTION:
        return line
    cut = line[: _DESCRIPTION - 1]
    return (cut if has_cjk(cut[-20:]) else cut.rsplit(" ", 1)[0]) + "…"


# ── relations ───────────────────────────────────────────────────────────────────


def _relations(
    text: str,
    sentences: Sequence[Sentence],
    names: Mapping[str, _Found],
    entities: Mapping[str, EntityMention],
) -> Iterator[RelationMention]:
    """The pairs of names that share the most sentences, in the order of the text.

    Pairs of proper names come before those with common nouns.
    """
    shared: dict[tuple[str, str], list[Sentence]] = {}
    for sentence in sentences:
        for pair in combinations(_main_names(sentence, names), 2):
            shared.setdefault(pair if pair[::-1] not in shared else pair[::-1], []).append(sentence)

    def order(pair: tuple[str, str]) -> tuple[object, ...]:
        proper = _is_proper(names[pair[0]]) + _is_proper(names[pair[1]])
        return (-proper, -len(shared[pair]), shared[pair][0].start, pair)

    kept = sorted(shared, key=order)[: _RELATIONS_PER_ENTITY * len(names)]
    for pair in sorted(kept, key=lambda pair: (shared[pair][0].start, pair)):
        sentence = shared[pair][0]
        yield RelationMention(
            source=entities[pair[0]].name,
            target=entities[pair[1]].name,
            keywords=_words_between(sentence, pair),
            description=_quote(text, sentence),
            strength=float(min(len(shared[pair]), _STRONGEST)),
        )


def _main_names(sentence: Sentence, names: Mapping[str, _Found]) -> list[str]:
    """The keys of a sentence's main phrases, in the order of the text: proper names first of all,
    then those the text has most often.
    """
    spelled = [sentence.topic, *(phrase.name for phrase in sentence.phrases)]
    keys = [key for key in dict.fromkeys(map(name_key, spelled)) if key in names]
    best = sorted(keys, key=lambda key: (not _is_proper(names[key]), -len(names[key]), key))
    return [key for key in keys if key in best[:_SENTENCE_PHRASES]]


def _is_proper(found: _Found) -> bool:
    return any(phrase.proper for _, phrase in found)


def _words_between(sentence: Sentence, pair: tuple[str, str]) -> tuple[str, ...]:
    """The first content words between the two names, or else in the whole sentence."""
    spans = {name_key(phrase.name): (phrase.start, phrase.end) for phrase in sentence.phrases[::-1]}
    opening = (sentence.start, sentence.start)  # where a pronoun stands for a name
    (_, left), (right, _) = sorted(spans.get(key, opening) for key in pair)
    between = [word for at, word in sentence.words if left <= at < right]
    words = dict.fromkeys(between or [word for _, word in sentence.words])
    return tuple(word for word in words if name_key(word) not in pair)[:_KEYWORDS]

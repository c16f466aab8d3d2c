"""Extracts the entities and relations of a chunk by language rules, without any model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from anyio import CapacityLimiter, to_thread

from lightrag_jsonl.core.options import ENTITY_TYPES
from lightrag_jsonl.core.text import has_cjk, name_key
from lightrag_jsonl.core.types import Chunk, EntityMention, Extraction, Language, RelationMention
from lightrag_jsonl.providers.offline.phrases import HEADING, TAG, Phrase, Sentence
from lightrag_jsonl.providers.offline.sentences import find_sentences

_Found: TypeAlias = list[tuple[int, Phrase]]  # phrases of one name, with their sentences' numbers

VERSION = 2
_THREADS = 2  # they compute, and more of them would hold up the event loop
_QUOTES = 2  # sentences quoted as an entity's description
_SENTENCE_NAMES = 8  # the most names of one sentence that are related to each other
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
        self._threads = CapacityLimiter(_THREADS)

    @property
    def name(self) -> str:
        """Includes the language and the version of the rules."""
        return f"offline-{self._language}-{VERSION}"

    async def extract(self, chunk: Chunk) -> Extraction:
        """The entities, relations and themes of a chunk."""
        return await to_thread.run_sync(
            extract_text, chunk.text, self._language, limiter=self._threads
        )


def extract_text(text: str, language: Language) -> Extraction:
    """The entities, relations and themes of a text."""
    sentences = find_sentences(text, language)
    words = Counter(word for sentence in sentences for _, word in sentence.words)
    themes = tuple(word for word, _ in words.most_common(_THEMES))  # of equals the first
    names = _names(sentences)
    if not names:
        return Extraction(state="empty", keywords=themes)
    entities = {key: _entity(text, sentences, found, language) for key, found in names.items()}
    relations = tuple(_relations(text, sentences, entities))
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
        type=ENTITY_TYPES[language][ENTITY_TYPES["en"].index(type)],
        description=("" if has_cjk(quotes[0][-2:]) else " ").join(quotes),
    )


def _quote(text: str, sentence: Sentence) -> str:
    """The sentence on one line, without tags, cut to `_DESCRIPTION` characters."""
    line = " ".join(TAG.sub(" ", text[sentence.start : sentence.end]).split())
    return line if len(line) <= _DESCRIPTION else line[: _DESCRIPTION - 1].rstrip() + "…"


# ── relations ───────────────────────────────────────────────────────────────────


def _relations(
    text: str, sentences: Sequence[Sentence], entities: Mapping[str, EntityMention]
) -> Iterator[RelationMention]:
    """The pairs of entities that share the most sentences, in the order of the text."""
    shared: dict[tuple[str, str], list[Sentence]] = {}
    for sentence in sentences:
        names = [sentence.topic, *(phrase.name for phrase in sentence.phrases)]
        keys = [key for key in dict.fromkeys(map(name_key, names)) if key in entities]
        for pair in combinations(keys[:_SENTENCE_NAMES], 2):
            shared.setdefault(pair if pair[::-1] not in shared else pair[::-1], []).append(sentence)
    best = sorted(shared, key=lambda pair: (-len(shared[pair]), shared[pair][0].start, pair))
    kept = best[: _RELATIONS_PER_ENTITY * len(entities)]
    for pair in sorted(kept, key=lambda pair: (shared[pair][0].start, pair)):
        yield RelationMention(
            source=entities[pair[0]].name,
            target=entities[pair[1]].name,
            keywords=_words_between(shared[pair][0], pair),
            description=_quote(text, shared[pair][0]),
            strength=float(min(len(shared[pair]), _STRONGEST)),
        )


def _words_between(sentence: Sentence, pair: tuple[str, str]) -> tuple[str, ...]:
    """The first content words between the two names, or else in the whole sentence."""
    spans = {name_key(phrase.name): (phrase.start, phrase.end) for phrase in sentence.phrases[::-1]}
    opening = (sentence.start, sentence.start)  # where a pronoun stands for a name
    (_, left), (right, _) = sorted(spans.get(key, opening) for key in pair)
    between = [word for at, word in sentence.words if left <= at < right]
    words = dict.fromkeys(between or [word for _, word in sentence.words])
    return tuple(word for word in words if name_key(word) not in pair)[:_KEYWORDS]

"""Extracts the entities and relations of a chunk by language rules, without any model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

from lightrag_jsonl.adapters.offline.phrases import HEADING, TAG, Phrase, Sentence
from lightrag_jsonl.adapters.offline.reading import read, type_name
from lightrag_jsonl.adapters.threads import Threads
from lightrag_jsonl.text import has_cjk, name_key
from lightrag_jsonl.types import Chunk, EntityMention, Extraction, Language, RelationMention

VERSION = 1
_READERS = 2  # threads; they compute, and more of them would hold up the thread that writes

_ENTITY_SENTENCES = 2  # sentences quoted as an entity's description
_SENTENCE_PHRASES = 8  # the most phrases of one sentence that are related to each other
_RELATIONS_PER_ENTITY = 3
_DESCRIPTION = 320  # characters
_KEYWORDS = 3
_THEMES = 8


class OfflineExtractor:
    """Extractor that finds names and noun phrases, and relates those that share a sentence.

    What it finds depends on the chunk's text alone. A relation's strength (1 to 10) is the
    normalized pointwise mutual information of its ends over the chunk's sentences (Bouma, 2009),
    discounted for rare pairs (Pantel and Ravichandran, 2004). Each chunk is read in the language it
    is written in, English or Chinese, or in `language` if it has no letters; entity types are named
    in `language`.
    """

    def __init__(self, language: Language = "en") -> None:
        self._language: Language = language
        self._readers = Threads(_READERS)

    @property
    def name(self) -> str:
        """Includes the language and the version of the rules."""
        return f"offline-{self._language}-{VERSION}"

    async def extract(self, chunk: Chunk) -> Extraction:
        """The entities, relations and themes of a chunk."""
        return await self._readers.run(partial(extract_text, chunk.text, self._language))


def extract_text(text: str, language: Language) -> Extraction:
    """The entities, relations and themes of a text."""
    sentences = read(text, language)
    found = _entities(sentences)
    if not found:
        return Extraction(state="empty", keywords=_themes(sentences))
    entities = tuple(_mention(text, sentences, one, language) for one in found.values())
    relations = tuple(_relations(text, sentences, found))
    return Extraction(
        entities=entities,
        relations=relations,
        keywords=_themes(sentences),
        records=len(entities) + len(relations),
    )


# ── entities ────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Found:
    """All phrases of a text that have the same name key."""

    names: Counter[str] = field(default_factory=Counter)
    sorts: Counter[tuple[bool, str]] = field(default_factory=Counter)
    sentences: list[int] = field(default_factory=list)
    proper: bool = False
    count: int = 0

    @property
    def name(self) -> str:
        return min(self.names, key=lambda name: (-self.names[name], name))


def _entities(sentences: Sequence[Sentence]) -> dict[str, _Found]:
    """Phrases by name key, in the order of their first appearance."""
    found: dict[str, _Found] = {}
    for number, sentence in enumerate(sentences):
        for phrase in sentence.phrases:
            if key := name_key(phrase.name):
                _add(found.setdefault(key, _Found()), phrase, number)
    return found


def _add(found: _Found, phrase: Phrase, number: int) -> None:
    found.names[phrase.name] += 1
    found.sorts[phrase.sure, phrase.sort] += 1
    found.proper |= phrase.proper
    found.count += 1
    if number not in found.sentences[-1:]:
        found.sentences.append(number)


def _mention(
    text: str, sentences: Sequence[Sentence], found: _Found, language: Language
) -> EntityMention:
    votes = found.sorts
    _, sort = min(votes, key=lambda vote: (not vote[0], -votes[vote], vote[1]))
    telling = [at for at in found.sentences if not HEADING.match(text, sentences[at].start)]
    telling = (telling or found.sentences)[:_ENTITY_SENTENCES]
    quoted = [_quote(text, sentences[at]) for at in telling]
    joined = quoted[0]
    for more in quoted[1:]:
        if len(joined) + len(more) < _DESCRIPTION:
            joined += ("" if has_cjk(joined[-2:]) else " ") + more
    return EntityMention(found.name, type_name(sort, language), joined)  # type: ignore[arg-type]


def _quote(text: str, sentence: Sentence) -> str:
    """The sentence on one line, without tags, cut to `_DESCRIPTION` characters."""
    line = " ".join(TAG.sub(" ", text[sentence.start : sentence.end]).split())
    if len(line) <= _DESCRIPTION:
        return line
    cut = line[: _DESCRIPTION - 1]
    return (cut if has_cjk(cut[-20:]) else cut.rsplit(" ", 1)[0]) + "…"


# ── relations ───────────────────────────────────────────────────────────────────


def _relations(
    text: str, sentences: Sequence[Sentence], found: Mapping[str, _Found]
) -> Iterable[RelationMention]:
    """The strongest pairs of names that share a sentence, in the order of the text."""
    members = [_members(sentence, found) for sentence in sentences]
    alone = Counter(key for keys in members for key in keys)
    together: dict[tuple[str, str], list[int]] = {}
    for number, keys in enumerate(members):
        for pair in combinations(keys, 2):
            ordered = pair if pair in together or pair[::-1] not in together else pair[::-1]
            together.setdefault(ordered, []).append(number)
    strengths = {
        pair: _strength(len(shared), alone[pair[0]], alone[pair[1]], len(sentences))
        for pair, shared in together.items()
    }
    limit = _RELATIONS_PER_ENTITY * len(found)
    kept = sorted(together, key=lambda pair: _order(pair, strengths[pair], together, found))[:limit]
    for pair in sorted(kept, key=lambda pair: (together[pair][0], pair)):
        sentence = sentences[together[pair][0]]
        yield RelationMention(
            source=found[pair[0]].name,
            target=found[pair[1]].name,
            keywords=_between(sentence, pair),
            description=_quote(text, sentence),
            strength=strengths[pair],
        )


def _order(
    pair: tuple[str, str],
    strength: float,
    together: Mapping[tuple[str, str], list[int]],
    found: Mapping[str, _Found],
) -> tuple[object, ...]:
    """Sorts proper names before common nouns, then the strongest first; ties by place and key."""
    proper = found[pair[0]].proper + found[pair[1]].proper
    return (-proper, -strength, together[pair][0], pair)


def _members(sentence: Sentence, found: Mapping[str, _Found]) -> list[str]:
    """The keys of a sentence's main phrases, in the order of the text: proper names first of all,
    then those the text has most often.
    """
    keys = list(dict.fromkeys(name_key(phrase.name) for phrase in sentence.phrases))
    topic = name_key(sentence.topic)
    if topic in found and topic not in keys:
        keys.insert(0, topic)
    keys = [key for key in keys if key in found]
    best = sorted(keys, key=lambda key: (not found[key].proper, -found[key].count, key))
    chosen = set(best[:_SENTENCE_PHRASES])
    return [key for key in keys if key in chosen]


def _strength(both: int, left: int, right: int, sentences: int) -> float:
    """Discounted normalized PMI over the sentences and an empty one, mapped to 1–10."""
    total = sentences + 1
    npmi = math.log(both * total / (left * right)) / -math.log(both / total)
    fewer = min(left, right)
    discount = both / (both + 1) * fewer / (fewer + 1)
    return round(1 + 9 * max(0.0, npmi) * discount, 2)


def _between(sentence: Sentence, pair: tuple[str, str]) -> tuple[str, ...]:
    """The first verbs and nouns between the two names, or else in the whole sentence."""
    spans = dict.fromkeys(pair, (sentence.start, sentence.start))
    for phrase in reversed(sentence.phrases):
        if (key := name_key(phrase.name)) in spans:
            spans[key] = (phrase.start, phrase.end)
    (_, left), (right, _) = sorted(spans[key] for key in pair)
    inside = [word for at, word in sentence.words if left <= at < right]
    outside = [
        word
        for at, word in sentence.words
        if not any(start <= at < end for start, end in spans.values())
    ]
    words = [word for word in dict.fromkeys(inside or outside) if name_key(word) not in pair]
    return tuple(words[:_KEYWORDS])


def _themes(sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """The most frequent content words of a text; of equally frequent ones the first come first."""
    counts = Counter(word for sentence in sentences for _, word in sentence.words)
    return tuple(word for word, _ in counts.most_common(_THEMES))

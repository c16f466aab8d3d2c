"""Finds entities and relations by language rules, without any model."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from anyio import CapacityLimiter, to_thread

from lightrag_jsonl.core.cjk import has_cjk
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.options import ENTITY_TYPES
from lightrag_jsonl.core.types import Chunk, EntityMention, Extraction, RelationMention
from lightrag_jsonl.providers.offline.definitions import is_defined
from lightrag_jsonl.providers.offline.keywords import PERSONAL_PRONOUN
from lightrag_jsonl.providers.offline.markup import HEADING, quoted_line
from lightrag_jsonl.providers.offline.phrases import Phrase
from lightrag_jsonl.providers.offline.sentences import Sentence, find_sentences

RULES_VERSION = 6  # part of the extractor's name: another number means that texts are read anew
_THREADS = 2  # they compute, and more of them would hold up the event loop
_QUOTED_SENTENCES = 2  # of an entity's description
_DESCRIPTION_CHARACTERS = 320
_NAMES_PER_SENTENCE = 8  # that are related to each other
_RELATIONS_PER_ENTITY = 3
_RELATION_KEYWORDS = 3
_STRONGEST = 10
_CLAUSE_END = re.compile(r"[,;，；]")
_PREPOSITION = re.compile(r"(?:\b(in|at|near|from|on)(?: the)? |([在于到至往]))$")


class OfflineExtractor:
    """Extractor of names and noun phrases, and of relations between names in the same sentence.

    The result depends on the chunk's whole text alone, English or Chinese; a sentence also names the first
    name of its paragraph. A relation's strength is the number of sentences with both ends, at most
    10. Entity types are named in `language`.
    """

    def __init__(self, language: Language = "en") -> None:
        self._language: Language = language
        self._threads = CapacityLimiter(_THREADS)
        self.name = f"offline-{language}-{RULES_VERSION}"

    async def extract(self, chunk: Chunk) -> Extraction:
        """The entities and relations of a chunk."""
        return await to_thread.run_sync(
            extract_text, chunk.whole_text, self._language, limiter=self._threads
        )


@dataclass(slots=True)
class _NamedPlaces:
    """The phrases with one name, and the numbers of their sentences."""

    phrases: list[Phrase] = field(default_factory=list)
    sentence_numbers: list[int] = field(default_factory=list)


def extract_text(text: str, language: Language) -> Extraction:
    """The entities and relations of a text."""
    sentences = find_sentences(text, language)
    places_by_key = _places_by_key(sentences)
    if not places_by_key:
        return Extraction(state="empty")
    entities = {
        key: _entity(text, sentences, places, language) for key, places in places_by_key.items()
    }
    relations = tuple(_relations(text, sentences, entities))
    return Extraction(
        entities=tuple(entities.values()),
        relations=relations,
        records=len(entities) + len(relations),
    )


def _places_by_key(sentences: Sequence[Sentence]) -> dict[str, _NamedPlaces]:
    """The places of each name in the text, by the name's key."""
    places_by_key: dict[str, _NamedPlaces] = {}
    for number, sentence in enumerate(sentences):
        for phrase in sentence.phrases:
            if key := name_key(phrase.name):
                places = places_by_key.setdefault(key, _NamedPlaces())
                places.phrases.append(phrase)
                places.sentence_numbers.append(number)
    return places_by_key


def _entity(
    text: str, sentences: Sequence[Sentence], places: _NamedPlaces, language: Language
) -> EntityMention:
    """The entity of a name, in its most frequent spelling."""
    spellings = Counter(phrase.name for phrase in places.phrases)
    type = _most_voted_type(places.phrases)
    return EntityMention(
        name=min(spellings, key=lambda name: (-spellings[name], name)),
        type=ENTITY_TYPES[language][ENTITY_TYPES["en"].index(type)],
        description=_entity_description(text, sentences, places),
    )


def _most_voted_type(phrases: Sequence[Phrase]) -> str:
    """The most frequent sure type, or else the most frequent one."""
    votes = Counter((phrase.sure, phrase.type) for phrase in phrases)
    _, type = min(votes, key=lambda vote: (not vote[0], -votes[vote], vote[1]))
    return type


def _entity_description(text: str, sentences: Sequence[Sentence], places: _NamedPlaces) -> str:
    """Sentences that define a name, or else name it first; headings only if there is nothing else."""
    defining = [
        number
        for number, phrase in zip(places.sentence_numbers, places.phrases, strict=True)
        if is_defined(text, phrase.start, phrase.end)
    ]
    numbers = list(dict.fromkeys([*defining, *places.sentence_numbers]))
    prose = [number for number in numbers if not HEADING.match(text, sentences[number].start)]
    quotes = [_quote(text, sentences[number]) for number in (prose or numbers)[:_QUOTED_SENTENCES]]
    if len("".join(quotes)) >= _DESCRIPTION_CHARACTERS:
        quotes = quotes[:1]
    return ("" if has_cjk(quotes[0][-2:]) else " ").join(quotes)


def _quote(text: str, sentence: Sentence) -> str:
    return quoted_line(text[sentence.start : sentence.end], _DESCRIPTION_CHARACTERS)


def _relations(
    text: str, sentences: Sequence[Sentence], entities: Mapping[str, EntityMention]
) -> Iterator[RelationMention]:
    """The relations of names in the most common sentences, in the order of the text."""
    shared = _sentences_by_pair(sentences, entities)
    best = sorted(shared, key=lambda pair: (-len(shared[pair]), shared[pair][0].start, pair))
    best = best[: _RELATIONS_PER_ENTITY * len(entities)]
    for source, target in sorted(best, key=lambda pair: (shared[pair][0].start, pair)):
        common = shared[source, target]
        yield RelationMention(
            source=entities[source].name,
            target=entities[target].name,
            keywords=_words_between(text, common[0], source, target),
            description=_quote(text, common[0]),
            strength=float(min(len(common), _STRONGEST)),
        )


def _sentences_by_pair(
    sentences: Sequence[Sentence], entities: Mapping[str, EntityMention]
) -> dict[tuple[str, str], list[Sentence]]:
    """The sentences of each pair of keys, in the direction of the first sentence."""
    shared: dict[tuple[str, str], list[Sentence]] = {}
    for sentence in sentences:
        names = [sentence.topic, *(phrase.name for phrase in sentence.phrases)]
        keys = [key for key in dict.fromkeys(map(name_key, names)) if key in entities]
        for source, target in combinations(keys[:_NAMES_PER_SENTENCE], 2):
            pair = (target, source) if (target, source) in shared else (source, target)
            shared.setdefault(pair, []).append(sentence)
    return shared


def _words_between(text: str, sentence: Sentence, source: str, target: str) -> tuple[str, ...]:
    """The first content words between two names, or else in the sentence.

    After a third name, or several words, the keyword is the preposition before the second name: a
    verb with an object does not lead to a place. None where the sentence does not show the relation.
    """
    spans = {name_key(phrase.name): (phrase.start, phrase.end) for phrase in sentence.phrases[::-1]}
    opening = (sentence.start, sentence.start)  # where a pronoun stands for a name
    first, second = sorted([spans.get(source, opening), spans.get(target, opening)])
    between_start = first[1]
    between_end = second[0]
    if source not in spans or target not in spans:  # one is the topic
        if not PERSONAL_PRONOUN.search(text, sentence.start, between_end):
            return ()
    elif first[0] > sentence.phrases[0].start and _CLAUSE_END.search(
        text, between_start, between_end
    ):
        return ()
    nearest = max(
        [end for start, end in spans.values() if between_start <= start < between_end],
        default=between_start,
    )
    between = [word.text for word in sentence.words if nearest <= word.start < between_end]
    preposition = _PREPOSITION.search(text, nearest, between_end)
    if preposition and (nearest > between_start or len(between) != 1):
        return (preposition[1] or preposition[2],)
    words = dict.fromkeys(between or [word.text for word in sentence.words])
    keywords = [word for word in words if name_key(word) not in (source, target)]
    return tuple(keywords[:_RELATION_KEYWORDS])

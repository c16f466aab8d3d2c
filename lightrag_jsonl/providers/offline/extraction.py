"""Finds entities and relations by language rules, without any model."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from anyio import CapacityLimiter, to_thread

from lightrag_jsonl.core.cjk import has_cjk
from lightrag_jsonl.core.languages import MENTIONED_TOGETHER, Language
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.options import ENTITY_TYPES, Tagger
from lightrag_jsonl.core.types import Chunk, EntityMention, Extraction, RelationMention
from lightrag_jsonl.providers.offline.definitions import is_defined
from lightrag_jsonl.providers.offline.markup import HEADING, quoted_line
from lightrag_jsonl.providers.offline.phrases import Phrase
from lightrag_jsonl.providers.offline.sentences import (
    Sentence,
    find_phrases,
    find_sentences,
    sentences_with_names,
)
from lightrag_jsonl.providers.offline.statements import find_statements
from lightrag_jsonl.providers.offline.tagging import check_tagger

RULES_VERSION = 11  # part of the extractor's name: another number means that texts are read anew
_THREADS = 2  # they compute, and more of them would hold up the event loop
_QUOTED_SENTENCES = 2  # of an entity's description
_TELLING_WORDS = 4  # names, verbs and nouns of a sentence that tells something
_DESCRIPTION_CHARACTERS = 320
_NAMES_PER_SENTENCE = 8  # that are related to each other
_END_OF_CLAUSE = re.compile(r"[,;:，；：](?:\s+|(?<=[，；：]))")
_RELATIONS_PER_ENTITY = 3
_PREDICATES = 3  # of a relation
_TYPE_NAMES: Mapping[str, Mapping[str, str]] = {
    language: dict(zip(ENTITY_TYPES["en"], names, strict=True))
    for language, names in ENTITY_TYPES.items()
}
_STRONGEST = 10.0
_STATED_STRENGTH = 5.0  # of a relation that one sentence states
_TOGETHER_STRENGTH = 1.0  # of names in common sentences that state no relation


class OfflineExtractor:
    """Extractor of names and noun phrases, and of relations between names in the same sentence.

    The result depends on the chunk's whole text alone, English or Chinese. A relation that a sentence states
    ("A founded B", "B was founded by A") has the predicate of the sentence and a strength of 5 to 10, by
    the number of such sentences. Other names of a sentence are "mentioned together" (同时提到), with
    strength 1. Entity types and this predicate are in `language`.

    `tagger` "lac" finds the names of Chinese texts by a trained tagger (extra `lac`), in place of rules.
    """

    def __init__(self, language: Language = "en", tagger: Tagger = "rules") -> None:
        self._language: Language = language
        self._tagger: Tagger = tagger
        self._threads = CapacityLimiter(_THREADS)
        self.name = f"offline-{language}-{RULES_VERSION}"
        if tagger != "rules":
            self.name += f"-{tagger}"

    async def extract(self, chunk: Chunk) -> Extraction:
        """The entities and relations of a chunk; `LLMError` where the tagger is not installed."""
        if self._tagger == "lac":
            check_tagger()
        return await to_thread.run_sync(
            extract_text, chunk.whole_text, self._language, self._tagger, limiter=self._threads
        )


@dataclass(slots=True)
class _NamedPlaces:
    """The phrases with one name, and the numbers of their sentences."""

    phrases: list[Phrase] = field(default_factory=list)
    sentence_numbers: list[int] = field(default_factory=list)


def extract_text(text: str, language: Language, tagger: Tagger = "rules") -> Extraction:
    """The entities and relations of a text."""
    return _extraction_of(text, find_sentences(text, language, tagger=tagger), language)


def extract_names(text: str, names: Iterable[str], language: Language) -> Extraction:
    """The entities and relations of a text, with some names that somebody else read, besides those that the
    rules find elsewhere.
    """
    return _extraction_of(text, sentences_with_names(text, names, language), language)


def _extraction_of(text: str, sentences: Sequence[Sentence], language: Language) -> Extraction:
    places_by_key = _places_by_key(sentences)
    if not places_by_key:
        return Extraction(state="empty")
    entities = {
        key: _entity(text, sentences, places, language) for key, places in places_by_key.items()
    }
    relations = tuple(_relations(text, sentences, entities, language))
    return Extraction(
        entities=tuple(entities.values()),
        relations=relations,
        records=len(entities) + len(relations),
    )


def text_names(text: str, language: Language) -> list[str]:
    """The names of the entities of a text, without all else that `extract_text` finds."""
    phrases_by_key: dict[str, list[Phrase]] = {}
    for phrase in find_phrases(text, language):
        if key := name_key(phrase.name):
            phrases_by_key.setdefault(key, []).append(phrase)
    return [_most_frequent_spelling(phrases) for phrases in phrases_by_key.values()]


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
    type = _most_voted_type(places.phrases)
    return EntityMention(
        name=_most_frequent_spelling(places.phrases),
        type=_TYPE_NAMES[language].get(type, type),
        description=_entity_description(text, sentences, places),
    )


def _most_frequent_spelling(phrases: Sequence[Phrase]) -> str:
    spellings = Counter(phrase.name for phrase in phrases)
    return min(spellings, key=lambda name: (-spellings[name], name))


def _most_voted_type(phrases: Sequence[Phrase]) -> str:
    """The most frequent sure type, or else the most frequent one."""
    votes = Counter((phrase.sure, phrase.type) for phrase in phrases)
    _, type = min(votes, key=lambda vote: (not vote[0], -votes[vote], vote[1]))
    return type


def _entity_description(text: str, sentences: Sequence[Sentence], places: _NamedPlaces) -> str:
    """Sentences that define a name, or else tell of it, or else name it first; headings only if there is
    nothing else.
    """
    defining = [
        number
        for number, phrase in zip(places.sentence_numbers, places.phrases, strict=True)
        if is_defined(text, phrase.start, phrase.end)
    ]
    telling = [number for number in places.sentence_numbers if _tells(text, sentences[number])]
    numbers = list(dict.fromkeys([*defining, *telling] or places.sentence_numbers))
    prose = [number for number in numbers if not HEADING.match(text, sentences[number].start)]
    key = name_key(places.phrases[0].name)
    quotes = [
        _quote(text, sentences[number], [key]) for number in (prose or numbers)[:_QUOTED_SENTENCES]
    ]
    if len("".join(quotes)) >= _DESCRIPTION_CHARACTERS:
        quotes = quotes[:1]
    return ("" if has_cjk(quotes[0][-2:]) else " ").join(quotes)


def _tells(text: str, sentence: Sentence) -> bool:
    """Whether a sentence says something: "'Good afternoon,' said Ann." does not, nor does a question."""
    is_question = text[: sentence.end].rstrip("\"'”’」）) ").endswith(("?", "？"))
    return not is_question and len(sentence.words) + len(sentence.phrases) >= _TELLING_WORDS


def _best_sentence(text: str, sentences: Sequence[Sentence]) -> Sentence:
    """The first sentence that tells something, or the first of all."""
    return next((sentence for sentence in sentences if _tells(text, sentence)), sentences[0])


def _quote(text: str, sentence: Sentence, keys: Iterable[str]) -> str:
    """A sentence, cut if it is long; where some names, given as keys, would be cut off, from their clause on."""
    start, end = _span_of_names(sentence, keys)
    if end - sentence.start <= _DESCRIPTION_CHARACTERS:
        return quoted_line(text[sentence.start : sentence.end], _DESCRIPTION_CHARACTERS)
    clauses = _END_OF_CLAUSE.finditer(text, sentence.start, start)
    clause_start = max((clause.end() for clause in clauses), default=start)
    return "…" + quoted_line(text[clause_start : sentence.end], _DESCRIPTION_CHARACTERS)


def _span_of_names(sentence: Sentence, keys: Iterable[str]) -> tuple[int, int]:
    """From the first to the last of some names in a sentence, given as keys, each at its first place."""
    places: dict[str, tuple[int, int]] = {}
    for phrase in sentence.subject_and_phrases:
        places.setdefault(name_key(phrase.name), (phrase.start, phrase.end))
    spans = [places[key] for key in keys if key in places]
    if not spans:
        return sentence.start, sentence.start
    return min(start for start, _ in spans), max(end for _, end in spans)


def _relations(
    text: str,
    sentences: Sequence[Sentence],
    entities: Mapping[str, EntityMention],
    language: Language,
) -> Iterator[RelationMention]:
    """The relations of names in the most common sentences, stated ones first to be chosen, in the
    order of the text.
    """
    stated = _stated_relations(text, sentences, entities)
    together = _sentences_by_pair(sentences, entities, _title(text, sentences))
    relations = dict(stated)
    for (source, target), common in together.items():
        if (source, target) not in stated and (target, source) not in stated:
            relations[source, target] = _Relation(
                (MENTIONED_TOGETHER[language],), common, stated=False
            )
    best = sorted(relations, key=lambda pair: relations[pair].rank)
    best = best[: _RELATIONS_PER_ENTITY * len(entities)]
    for source, target in sorted(best, key=lambda pair: (relations[pair].start, pair)):
        relation = relations[source, target]
        yield RelationMention(
            source=entities[source].name,
            target=entities[target].name,
            keywords=relation.keywords,
            description=_quote(text, _best_sentence(text, relation.sentences), [source, target]),
            strength=relation.strength,
        )


@dataclass(frozen=True, slots=True)
class _Relation:
    """The keywords of a relation and its sentences; `stated` by a pattern, or mentioned together."""

    keywords: tuple[str, ...]
    sentences: Sequence[Sentence]
    stated: bool

    @property
    def start(self) -> int:
        """The offset of the first sentence."""
        return self.sentences[0].start

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Stated relations first, then the most frequent ones."""
        return not self.stated, -len(self.sentences), self.start

    @property
    def strength(self) -> float:
        """That of a statement, more for each further sentence; the least for a common mention."""
        if not self.stated:
            return _TOGETHER_STRENGTH
        return min(_STATED_STRENGTH + len(self.sentences) - 1, _STRONGEST)


def _stated_relations(
    text: str, sentences: Sequence[Sentence], entities: Mapping[str, EntityMention]
) -> dict[tuple[str, str], _Relation]:
    """The relations that sentences state, by subject and object; of a pair only the first direction."""
    predicates_by_pair: dict[tuple[str, str], dict[str, None]] = {}
    sentences_by_pair: dict[tuple[str, str], list[Sentence]] = {}
    for sentence in sentences:
        for statement in find_statements(text, sentence):
            pair = (name_key(statement.subject), name_key(statement.object))
            if (
                pair[0] == pair[1]
                or pair[::-1] in sentences_by_pair
                or not entities.keys() >= {*pair}
            ):
                continue
            predicates_by_pair.setdefault(pair, {})[statement.predicate] = None
            sentences_by_pair.setdefault(pair, []).append(sentence)
    return {
        pair: _Relation(tuple(predicates)[:_PREDICATES], sentences_by_pair[pair], stated=True)
        for pair, predicates in predicates_by_pair.items()
    }


def _title(text: str, sentences: Sequence[Sentence]) -> list[str]:
    """The name that is the title of a text, on a line of its own; a list with nothing without one."""
    if len(sentences) < 2 or len(sentences[0].phrases) != 1:
        return []
    is_line = "\n" in text[sentences[0].end : sentences[1].start]
    return [sentences[0].phrases[0].name] if is_line else []


def _sentences_by_pair(
    sentences: Sequence[Sentence], entities: Mapping[str, EntityMention], title: Sequence[str]
) -> dict[tuple[str, str], list[Sentence]]:
    """The sentences of each pair of names in a sentence, or of the title and a name in a sentence."""
    shared: dict[tuple[str, str], list[Sentence]] = {}
    for sentence in sentences:
        names = [*title, *(phrase.name for phrase in sentence.subject_and_phrases)]
        keys = [key for key in dict.fromkeys(map(name_key, names)) if key in entities]
        for source, target in combinations(keys[:_NAMES_PER_SENTENCE], 2):
            start, end = _span_of_names(sentence, (source, target))
            if end - start > _DESCRIPTION_CHARACTERS:  # no quote would hold both
                continue
            pair = (target, source) if (target, source) in shared else (source, target)
            shared.setdefault(pair, []).append(sentence)
    return shared

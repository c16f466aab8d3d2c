"""Finds names, and pairs of names mentioned in the same sentence, without any model."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations

from msgspec import Struct, field

from lightrag_jsonl.core.languages import MENTIONED_TOGETHER, Language
from lightrag_jsonl.core.options import ENTITY_TYPES, Tagger
from lightrag_jsonl.core.types import (
    HEADING_SEPARATOR,
    UNKNOWN_TYPE,
    Chunk,
    EntityMention,
    Extraction,
    RelationMention,
)
from lightrag_jsonl.rules.listed_names import name_problem, with_listed_names
from lightrag_jsonl.rules.phrases import Phrase
from lightrag_jsonl.rules.pronouns import NamedSentence
from lightrag_jsonl.rules.quoting import (
    LONGEST_QUOTED_LINE,
    central_sentences,
    quoted_sentence,
    span_of_names,
)
from lightrag_jsonl.rules.sentences import find_names, named_sentences
from lightrag_jsonl.rules.tagging import check_tagger, tagger_in_use
from lightrag_jsonl.text.cjk import has_cjk
from lightrag_jsonl.text.markup import cells_of
from lightrag_jsonl.text.names import name_key

RULES_VERSION = 23  # part of the extractor's name: another number means that texts are read anew
_THREADS = {
    "rules": 1,
    "lac": 2,
}  # two threads with rules only wait for each other, and cost a fifth more
_SHORT_TEXT = 1_000  # characters; to read so few takes about as long as to hand them to a thread
_NAMES_PER_SENTENCE = 8  # that are neighbours of each other
_PAIRS_PER_NAME = 3  # of neighbours in a text, on average
_TYPE_NAMES: Mapping[str, Mapping[str, str]] = {
    language: dict(zip(ENTITY_TYPES["en"], names, strict=True))
    for language, names in ENTITY_TYPES.items()
}


class OfflineExtractor:
    """Extractor of names, and of pairs of names in the same sentence.

    The result depends on the chunk's whole text, the names of its links, the headings above, and whether the text
    begins the document, English or Chinese. No relation is read: the names of a sentence, with a name in the heading above, are
    "mentioned together" (共同出现), in `language`, with strength 1. A type comes from a title, the name
    itself or the tagger, and is "unknown" otherwise. Sentences describe a name.

    `tagger` "lac" finds the names of Chinese texts by a trained tagger (extra `lac`), "rules" by
    the parts of speech of the segmenter; "auto" is "lac" where installed.
    """

    is_trusted = True

    def __init__(self, language: Language = "en", tagger: Tagger = "auto") -> None:
        self._language: Language = language
        self._tagger = tagger_in_use(tagger)
        self._threads = ThreadPoolExecutor(_THREADS[self._tagger], thread_name_prefix="rules")
        self.name = f"offline-{language}-{RULES_VERSION}"
        if self._tagger != "rules":
            self.name += f"-{self._tagger}"

    async def extract(self, chunk: Chunk) -> Extraction:
        """The entities and relations of a chunk; `LLMError` for Chinese where the tagger is not installed."""
        if self._tagger == "lac" and has_cjk(chunk.whole_text):
            check_tagger()
        extract = partial(
            extract_text,
            chunk.whole_text,
            self._language,
            self._tagger,
            names=chunk.linked_names,
            has_title=chunk.index == 0,
            columns=cells_of(chunk.heading.rpartition(HEADING_SEPARATOR)[2]),
        )
        if self._tagger == "rules" and len(chunk.whole_text) <= _SHORT_TEXT:
            return extract()
        return await asyncio.get_running_loop().run_in_executor(self._threads, extract)


class _Bearer(Struct):
    """A name in a text: the places, and the sentences about the name, also by a pronoun or the heading."""

    phrases: list[Phrase] = field(default_factory=list)
    sentences: list[NamedSentence] = field(default_factory=list)


def extract_text(
    text: str,
    language: Language,
    tagger: Tagger = "rules",
    names: Iterable[str] = (),
    has_title: bool = True,
    columns: Sequence[str] = (),
) -> Extraction:
    """The entities and relations of a text; `names` given elsewhere count, besides the names found
    by the rules, if used as names in the text. The first line may be a title, if the text `has_title`;
    it may be the row of a table with `columns`.
    """
    stated = [name for name in names if not name_problem(name, text)]
    revise = partial(with_listed_names, names=stated) if stated else None
    sentences = named_sentences(
        text, language, tagger, has_title=has_title, columns=columns, revise=revise
    )
    return _extraction_of(text, sentences, language)


def extract_names(text: str, names: Iterable[str], language: Language) -> Extraction:
    """The entities and relations of a text, with names from another reader besides the names found
    here.
    """

    revise = partial(with_listed_names, names=names)
    return _extraction_of(text, named_sentences(text, language, revise=revise), language)


def text_names(text: str, language: Language) -> list[str]:
    """The names in a text, each once, without descriptions and pairs."""
    phrases_by_key: dict[str, list[Phrase]] = {}
    for phrase in find_names(text, language):
        if key := name_key(phrase.name):
            phrases_by_key.setdefault(key, []).append(phrase)
    return [_most_frequent_spelling(phrases) for phrases in phrases_by_key.values()]


def has_other_name(text: str, language: Language, recorded: Set[str]) -> bool:
    """Whether a text has a name that neither is in one of the recorded name keys nor holds one."""
    joined_keys = "\n".join(recorded)
    for phrase in find_names(text, language, recorded=joined_keys):
        key = name_key(phrase.name)
        if key not in joined_keys and not any(name in key for name in recorded):
            return True
    return False


def _extraction_of(text: str, sentences: Sequence[NamedSentence], language: Language) -> Extraction:
    bearers = _bearers_by_key(sentences)
    if not bearers:
        return Extraction(state="empty")
    entities = {
        key: EntityMention(
            name=_most_frequent_spelling(bearer.phrases),
            type=_TYPE_NAMES[language].get(_type(bearer.phrases), UNKNOWN_TYPE),
            description=central_sentences(text, bearer.sentences, key),
            quoted=True,
        )
        for key, bearer in bearers.items()
    }
    relations = tuple(_neighbours(text, sentences, entities, language))
    return Extraction(
        entities=tuple(entities.values()),
        relations=relations,
        records=len(entities) + len(relations),
    )


def _bearers_by_key(sentences: Sequence[NamedSentence]) -> dict[str, _Bearer]:
    """The names of a text by key, in order."""
    bearers: dict[str, _Bearer] = {}
    for sentence in sentences:
        for phrase in sentence.subject_and_names:
            if key := name_key(phrase.name):
                bearers.setdefault(key, _Bearer()).phrases.append(phrase)
    for sentence in sentences:
        names = sentence.subject_and_names
        if not names and sentence.heading is not None and sentence.continues_heading:
            names = [sentence.heading]  # with other names it may be about them
        for key in dict.fromkeys(name_key(name.name) for name in names):
            if key in bearers:
                bearers[key].sentences.append(sentence)
    return bearers


def _name_keys(sentence: NamedSentence) -> list[str]:
    """The keys of the names of a sentence, after the heading's key if the sentence is about the heading.

    A part of the heading's name among the names stands for the heading already.
    """
    keys = [name_key(name.name) for name in sentence.subject_and_names]
    if sentence.heading is not None and not sentence.is_unclear:
        heading_key = name_key(sentence.heading.name)
        if not any(_is_part(key, heading_key) for key in keys):
            return [heading_key, *keys]
    return keys


def _is_part(key: str, longer_key: str) -> bool:
    """Whether a name consists of words, or Chinese characters, of another."""
    return key in longer_key if has_cjk(key) else f" {key} " in f" {longer_key} "


def _most_frequent_spelling(phrases: Sequence[Phrase]) -> str:
    spellings = Counter(phrase.name for phrase in phrases)
    return min(spellings, key=lambda name: (-spellings[name], name))


def _type(phrases: Sequence[Phrase]) -> str:
    """The most frequent known type."""
    votes = Counter(phrase.type for phrase in phrases if phrase.sure)
    return min(votes, key=lambda type: (-votes[type], type), default=UNKNOWN_TYPE)


def _neighbours(
    text: str,
    sentences: Sequence[NamedSentence],
    entities: Mapping[str, EntityMention],
    language: Language,
) -> Iterator[RelationMention]:
    """The pairs of names in the most common sentences, in the order of the text."""
    sentences_by_pair = _sentences_by_pair(sentences, entities)
    best = sorted(
        sentences_by_pair,
        key=lambda pair: (-len(sentences_by_pair[pair]), sentences_by_pair[pair][0].start),
    )
    best = best[: _PAIRS_PER_NAME * len(entities)]
    for source, target in sorted(best, key=lambda pair: (sentences_by_pair[pair][0].start, pair)):
        yield RelationMention(
            source=entities[source].name,
            target=entities[target].name,
            keywords=(MENTIONED_TOGETHER[language],),
            description=quoted_sentence(
                text, sentences_by_pair[source, target][0], [source, target]
            ),
            strength=1.0,
        )


def _sentences_by_pair(
    sentences: Sequence[NamedSentence], entities: Mapping[str, EntityMention]
) -> dict[tuple[str, str], list[NamedSentence]]:
    """The sentences of each pair of names; a pair has one order of the two names. The names of columns are none."""
    shared: dict[tuple[str, str], list[NamedSentence]] = {}
    for sentence in sentences:
        if sentence.is_header:
            continue
        keys = [key for key in dict.fromkeys(_name_keys(sentence)) if key in entities]
        for source, target in combinations(keys[:_NAMES_PER_SENTENCE], 2):
            start, end = span_of_names(sentence, (source, target))
            if end - start > LONGEST_QUOTED_LINE:  # no quote would hold both
                continue
            pair = (target, source) if (target, source) in shared else (source, target)
            shared.setdefault(pair, []).append(sentence)
    return shared

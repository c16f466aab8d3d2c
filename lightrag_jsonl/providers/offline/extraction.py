"""Finds entities, relations and keywords by language rules, without any model."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from anyio import CapacityLimiter, to_thread

from lightrag_jsonl.core import types as t
from lightrag_jsonl.core.cjk import has_cjk, is_lone, simplified
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.options import ENTITY_TYPES
from lightrag_jsonl.core.stop_words import FUNCTION_WORDS
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.providers.offline import sentences as rules
from lightrag_jsonl.providers.offline.sentences import Phrase, Sentence

_NamesAndWords: TypeAlias = tuple[list[str], list[str]]
_Found: TypeAlias = list[tuple[int, Phrase]]  # phrases of one name, with their sentences' numbers

VERSION = 5
_THREADS = 2  # they compute, and more of them would hold up the event loop
_QUOTES = 2  # sentences quoted as an entity's description
_SENTENCE_NAMES = 8  # the most names of one sentence that are related to each other
_RELATIONS_PER_ENTITY = 3
_DESCRIPTION = 320  # characters
_STRONGEST = 10
_KEYWORDS = 3
_TURNS = 8  # of a conversation that a question may lean on
_TURN = 1000  # characters of a turn that are read
_TURN_NAMES = 4  # taken from one turn


class OfflineExtractor:
    """Extractor that finds names and noun phrases, and relates those that share a sentence.

    What is found depends on the chunk's text alone, English or Chinese; a sentence also names the
    first name of its paragraph. A relation's strength is the number of sentences that its ends
    share, at most 10. Entity types are named in `language`.
    """

    def __init__(self, language: t.Language = "en") -> None:
        self._language: t.Language = language
        self._threads = CapacityLimiter(_THREADS)
        self.name = f"offline-{language}-{VERSION}"

    async def extract(self, chunk: t.Chunk) -> t.Extraction:
        """The entities and relations of a chunk."""
        return await to_thread.run_sync(
            extract_text, chunk.text, self._language, limiter=self._threads
        )


def extract_text(text: str, language: t.Language) -> t.Extraction:
    """The entities and relations of a text."""
    sentences = rules.find_sentences(text, language)
    names = _names(sentences)
    if not names:
        return t.Extraction(state="empty")
    entities = {key: _entity(text, sentences, found, language) for key, found in names.items()}
    relations = tuple(_relations(text, sentences, entities))
    return t.Extraction(
        entities=tuple(entities.values()),
        relations=relations,
        records=len(entities) + len(relations),
    )


def _names(sentences: Sequence[Sentence]) -> dict[str, _Found]:
    names: dict[str, _Found] = {}
    for number, sentence in enumerate(sentences):
        for phrase in sentence.phrases:
            if key := name_key(phrase.name):
                names.setdefault(key, []).append((number, phrase))
    return names


def _entity(
    text: str, sentences: Sequence[Sentence], found: _Found, language: t.Language
) -> t.EntityMention:
    """The entity, described by sentences that define it, or name it first: headings only if all are."""
    spellings = Counter(phrase.name for _, phrase in found)
    types = Counter((phrase.sure, phrase.type) for _, phrase in found)
    _, type = min(types, key=lambda vote: (not vote[0], -types[vote], vote[1]))
    defined = [
        number for number, phrase in found if rules.is_defined(text, phrase.start, phrase.end)
    ]
    numbers = list(dict.fromkeys((*defined, *(number for number, _ in found))))
    plain = [one for one in numbers if not rules.HEADING.match(text, sentences[one].start)]
    quotes = [_quote(text, sentences[one]) for one in (plain or numbers)[:_QUOTES]]
    if len("".join(quotes)) >= _DESCRIPTION:
        quotes = quotes[:1]
    return t.EntityMention(
        name=min(spellings, key=lambda name: (-spellings[name], name)),
        type=ENTITY_TYPES[language][ENTITY_TYPES["en"].index(type)],
        description=("" if has_cjk(quotes[0][-2:]) else " ").join(quotes),
    )


def _quote(text: str, sentence: Sentence) -> str:
    return rules.quote(text[sentence.start : sentence.end], _DESCRIPTION)


def _relations(
    text: str, sentences: Sequence[Sentence], entities: Mapping[str, t.EntityMention]
) -> Iterator[t.RelationMention]:
    shared: dict[tuple[str, str], list[Sentence]] = {}
    for sentence in sentences:
        names = [sentence.topic, *(phrase.name for phrase in sentence.phrases)]
        keys = [key for key in dict.fromkeys(map(name_key, names)) if key in entities]
        for pair in combinations(keys[:_SENTENCE_NAMES], 2):
            shared.setdefault(pair if pair[::-1] not in shared else pair[::-1], []).append(sentence)
    best = sorted(shared, key=lambda pair: (-len(shared[pair]), shared[pair][0].start, pair))
    kept = best[: _RELATIONS_PER_ENTITY * len(entities)]
    for pair in sorted(kept, key=lambda pair: (shared[pair][0].start, pair)):
        yield t.RelationMention(
            source=entities[pair[0]].name,
            target=entities[pair[1]].name,
            keywords=_words_between(text, shared[pair][0], pair),
            description=_quote(text, shared[pair][0]),
            strength=float(min(len(shared[pair]), _STRONGEST)),
        )


def _words_between(text: str, sentence: Sentence, pair: tuple[str, str]) -> tuple[str, ...]:
    """The first content words between the two names, or else in the sentence.

    After another name, or several words, it is the preposition before the second: a verb with an
    object does not relate it to a place. None where the sentence does not show what joins the two.
    """
    spans = {name_key(phrase.name): (phrase.start, phrase.end) for phrase in sentence.phrases[::-1]}
    opening = (sentence.start, sentence.start)  # where a pronoun stands for a name
    (first, left), (right, _) = sorted(spans.get(key, opening) for key in pair)
    if len(spans.keys() & set(pair)) < 2:  # one is the topic
        if not _PERSONAL.search(text, sentence.start, right):
            return ()
    elif first > sentence.phrases[0].start and _CLAUSE_END.search(text, left, right):
        return ()
    nearest = max([end for start, end in spans.values() if left <= start < right], default=left)
    between = [word for at, word in sentence.words if nearest <= at < right]
    place = _PREPOSITION.search(text, nearest, right)
    if place and (nearest > left or len(between) != 1):
        return (place[1] or place[2],)
    words = dict.fromkeys(between or [word for _, word in sentence.words])
    return tuple(word for word in words if name_key(word) not in pair)[:_KEYWORDS]


class OfflineKeywords:
    """KeywordExtractor without a model: names and noun phrases are low-level keywords, other words
    high-level ones.

    A question with a pronoun ("he", 他), or without any name, also gets the names of the last turn
    of the user that has some; "And Marley?" or 那刘备呢 gets its other words. They are put before the
    question, to search with, and a Chinese one loses its pronouns and adverbs.
    """

    def __init__(self, language: t.Language = "en") -> None:
        self._language: t.Language = language

    async def keywords(self, question: str, history: Sequence[t.Message] = ()) -> t.Keywords:
        """Both, each in the order of the text."""
        return await to_thread.run_sync(find_keywords, question, history, self._language)


def find_keywords(question: str, history: Sequence[t.Message], language: t.Language) -> t.Keywords:
    """The low- and high-level keywords of a question, each in the order of the text."""
    question = sanitize(question)
    names, words = _names_and_words(question, language)
    more_names, more_words = _from_history(question, (names, words), history, language)
    names, words = _distinct([*names, *more_names]), _distinct([*words, *more_words])
    taken = [*more_names, *more_words]
    named = " ".join(names).casefold()
    themes = [word for word in words if word not in named]
    if not names:
        names, themes = themes or _distinct(_remaining_words(question)), []
    if taken and rules.written_in(question, language) == "zh":
        question = rules.without_fillers(question)
    return t.Keywords(tuple(themes), tuple(names), " ".join([*taken, question]) if taken else "")


def _from_history(
    question: str, own: _NamesAndWords, history: Sequence[t.Message], language: t.Language
) -> _NamesAndWords:
    names, words = own
    follows, refers = _FOLLOWING.search(question), _PERSONAL.search(question)
    if names and not refers and not (follows and not words):
        return [], []

    def read(role: str) -> list[tuple[str, _NamesAndWords]]:
        """What the turns are about, the latest first."""
        texts = [sanitize(one.content[:_TURN]) for one in history[-_TURNS:] if one.role == role]
        return [(text, _names_and_words(text, language)) for text in reversed(texts)]

    asked = read("user")
    themes = [about for text, (_, about) in asked if not _PERSONAL.search(text)]
    if names and not refers:
        return [], next(filter(None, [about for _, (_, about) in asked]), [])
    subjects = [about for _, (about, _) in asked] + themes
    subjects += [about for _, (about, _) in read("assistant")[:1]]
    return next(filter(None, subjects), [])[:_TURN_NAMES], []


def _names_and_words(text: str, language: t.Language) -> _NamesAndWords:
    sentences = rules.find_sentences(text, language, question=True)
    names = [phrase.name for sentence in sentences for phrase in sentence.phrases]
    runs = [run for sentence in sentences for run in _runs(text, sentence.words)]
    phrases = [" ".join(run) for run in runs if len(run) > 1]
    return _distinct([*names, *phrases]), _distinct([run[0] for run in runs if len(run) == 1])


def _runs(text: str, words: Iterable[tuple[int, str]]) -> list[list[str]]:
    """Words with nothing but a space between them, except for verb forms in -ing: mostly noun phrases."""
    runs, end = list[list[str]](), 0
    for at, word in words:
        if runs and text[end:at] == " " and not _VERB.search(f"{runs[-1][-1]} {word}"):
            runs[-1].append(word)
        else:
            runs.append([word])
        end = at + len(word)
    return runs


def _distinct(words: Iterable[str]) -> list[str]:
    """The words but for function words, each once: the first of those that share a key."""
    first = {name_key(word): word for word in reversed(list(words))}
    return [word for key, word in reversed(first.items()) if key not in FUNCTION_WORDS]


def _remaining_words(question: str) -> Iterator[str]:
    for piece in _PIECE.findall(question):
        if has_cjk(piece) and rules.written_in(piece, "zh") == "zh":
            parts = _BETWEEN.split(simplified(piece))
            yield from (part for part in parts if len(part) > 1 or is_lone(part))
        elif len(piece) > 1:
            yield piece.casefold()


_VERB = re.compile(r"ing\b")  # "the country containing Nugegoda"
_BETWEEN = re.compile("|".join(sorted(filter(has_cjk, FUNCTION_WORDS), key=len, reverse=True)))
_PIECE = re.compile(r"\d+(?:[.．]\d+)+|[^\W_]+(?:['’-][^\W_]+)*")  # decimals are not split
_CLAUSE_END = re.compile(r"[,;，；]")
_PREPOSITION = re.compile(r"(?:\b(in|at|near|from|on)(?: the)? |([在于到至往]))$")
_PERSONAL = re.compile(  # pronouns that an earlier turn explains
    r"\b(?:he|she|it|they|him|her|hers|them|his|its|their|theirs)\b"
    r"|[他她它](?!乡|日|山)|其(?!他|它|中|实|余)|此人|前者|后者|後者",
    re.IGNORECASE,
)
_FOLLOWING = re.compile(  # the beginning or end of a question that goes on with another subject
    r"^\W*(?:(?:and|or|but)\b|(?:what|how) about\b|那)|呢\W*$", re.IGNORECASE
)

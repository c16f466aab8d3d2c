"""Whether a sentence answers a question, or only shares words with it."""

import math
import re
from collections.abc import Mapping, Sequence

from lightrag_jsonl.core.cjk import has_cjk, simplified
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.stop_words import FUNCTION_WORDS, STOP_WORDS
from lightrag_jsonl.providers.offline.quotes import Quote, content_terms
from lightrag_jsonl.providers.offline.sentences import find_sentences, written_in

# The shares were set on 92 own questions about two novels and two sets of notes, and not tried on others.
_MOST_WEIGHT = 0.45  # of a question's weight that a sentence must have by itself
_SOME_WEIGHT = 0.2  # of it, if the sentences around have the rest
_NEIGHBORHOOD = 0.65  # of it, that a sentence and its neighbors must have together
_AS_GOOD = 0.95  # of a sentence's weight: a sentence with so much is as good
_RIVALS = 2  # sentences that may be as good, unless they have all of a question's words
_ALL_WEIGHT = 0.999
# Among so many sentences two words meet by chance: of fifteen such answers about two novels eleven were wrong.
_MANY_SENTENCES = 150
_FEW_WORDS = 2
_MOST_AMONG_MANY = 0.7  # of a question's weight
_COMPLETING = 0.1  # of a question's weight that a further sentence adds
_JOINT_WEIGHT = 0.6  # of it, that two sentences have which answer only together
_ROOT = 6  # first letters that English words of one family share
_IN_PARTS = 0.5  # of a word's weight, where a text has half of the characters of a Chinese word

# What an answer must hold, by the words of the question: answer types of question classification (Li and
# Roth, "Learning Question Classifiers", COLING 2002) that a text can show. The first one that fits counts.
_KINDS_ASKED_FOR: Mapping[str, re.Pattern[str]] = {
    "name": re.compile(r"\bwhat\b.*\bname\b|叫什么|名字", re.IGNORECASE),
    "duration": re.compile(
        r"\bhow long\b|多久|多长时间|几(?:年|天|个?月|个?小时|分钟)", re.IGNORECASE
    ),
    "time": re.compile(
        r"\b(?:when|what time)\b|\b(?:what|which) (?:year|date|day|month)\b|什么时候|何时|哪一?[年天日月]|几[点号]",
        re.IGNORECASE,
    ),
    "number": re.compile(
        r"\bhow (?:many|much|old|far|often|tall|high)\b|\bwhat (?:number|price)\b|多[少大高远]|几(?!乎)",
        re.IGNORECASE,
    ),
    "place": re.compile(r"\bwhere\b|哪里|哪儿|何处|何地|在哪|什么地方", re.IGNORECASE),
    "person": re.compile(r"\b(?:who|whom|whose)\b|谁|何人|哪位|哪个人|哪些人", re.IGNORECASE),
}
_COUNT_OR_NUMBER = (
    r"(?:\d[\d.,]*|\b(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty"
    r"|forty|fifty|sixty|hundred|thousand|dozen|half)\b|[一二两三四五六七八九十百千万半数几]+)"
)
_SHOWN: Mapping[str, re.Pattern[str]] = {
    "name": re.compile(r"\b(?:names?|named|called)\b|叫|名", re.IGNORECASE),
    "duration": re.compile(
        rf"{_COUNT_OR_NUMBER}\W?(?:second|minute|hour|day|night|week|month|year|centur)"
        rf"|{_COUNT_OR_NUMBER}个?(?:多|半)?(?:秒|分钟|小时|时辰|天|日|夜|周|星期|月|年|载)",
        re.IGNORECASE,
    ),
    "time": re.compile(
        r"\d{4}|\d:\d\d|\b(?:january|february|march|april|may|june|july|august|september|october|november"
        r"|december|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|spring|summer|autumn|winter|o'clock|noon"
        r"|midnight|today|tomorrow|yesterday)\b"
        rf"|{_COUNT_OR_NUMBER}个?(?:年|月|日|号|点|时|天|周|更)|之?后|早上|晚上|凌晨|每天|次日|当[日夜]",
        re.IGNORECASE,
    ),
    "number": re.compile(_COUNT_OR_NUMBER, re.IGNORECASE),
    "place": re.compile(
        r"\b(?:in|at|near|behind|under|above|beside|to|from)\s+(?:(?:the|an?|his|her)\s|[A-Z])|[在到往于至住去]|[里内外上下旁]"
    ),
}


class AnswerEvidence:
    """Tells sentences that answer a question from sentences that share words with it.

    An answer has most of the question's words, by their rarity, alone or with the sentences around it, and
    what the question asks for (a number, a name, …); hardly any other sentence has as much.
    """

    def __init__(self, question: str, quotes: Sequence[Quote], language: Language) -> None:
        self._question = simplified(question)
        self._quotes = quotes
        self._language: Language = language
        self._asked = _asked_kind(self._question)
        self._is_among_many = len(quotes) > _MANY_SENTENCES
        self._words = _question_words(self._question, language)
        self._places = {quote.text: place for place, quote in enumerate(quotes)}
        found_by_word = {
            word: sum(_presence(word, quote) == 1 for quote in quotes) for word in self._words
        }
        self._weights = {
            word: math.log(1 + len(quotes) / max(count, 1)) for word, count in found_by_word.items()
        }

    def answering(self, quotes: Sequence[Quote]) -> list[Quote]:
        """The quotes, best first, that answer the question: each alone, or two of them together."""
        if self._is_among_many and len(self._words) <= _FEW_WORDS:
            return []
        alone = [quote for quote in quotes if self.answers(quote)]
        if alone:
            return self._with_completing(alone, quotes)
        pair = list(quotes[:2])
        if len(pair) < 2 or not any(map(self._shows_what_is_asked, pair)):
            return []
        return pair if self._are_joined(*pair) and self._share(pair) >= _JOINT_WEIGHT else []

    def _are_joined(self, first: Quote, second: Quote) -> bool:
        """Whether a name in one of two sentences, unlike those of the question, is what the other is about."""
        return self._names_for(first, second) or self._names_for(second, first)

    def _names_for(self, quote: Quote, following: Quote) -> bool:
        """Whether a sentence has a name that the question lacks, and that the other sentence has or means."""
        question_key = name_key(self._question)
        terms = following.terms | following.implied
        for sentence in find_sentences(quote.text, self._language):
            for phrase in sentence.phrases:
                if (
                    name_key(phrase.name) not in question_key
                    and content_terms(phrase.name) <= terms
                ):
                    return True
        return False

    def _with_completing(self, alone: Sequence[Quote], quotes: Sequence[Quote]) -> list[Quote]:
        """The answers, and each other quote that has more words of the question and one of their names."""
        chosen: list[Quote] = []
        for quote in quotes:
            before = [*alone, *chosen]
            added = self._share([*before, quote]) - self._share(before)
            is_joined = any(self._are_joined(answer, quote) for answer in alone)
            if quote in alone or (added >= _COMPLETING and is_joined):
                chosen.append(quote)
        return chosen

    def answers(self, quote: Quote) -> bool:
        """Whether a quote answers the question."""
        if re.search("[?？]", quote.text) or not self._shows_what_is_asked(quote):
            return False
        share = self._share([quote])
        if self._is_among_many and share < _MOST_AMONG_MANY:
            return False
        if share < _MOST_WEIGHT and self._share(self._around(quote)) < _NEIGHBORHOOD:
            return False
        has_all_words = share > _ALL_WEIGHT
        return share >= _SOME_WEIGHT and (has_all_words or self._count_rivals(share) <= _RIVALS)

    def _count_rivals(self, share: float) -> int:
        """The number of sentences, the quote among them, that fit the question as well."""
        return sum(
            self._share([quote]) >= _AS_GOOD * share and self._shows_what_is_asked(quote)
            for quote in self._quotes
        )

    def _share(self, quotes: Sequence[Quote]) -> float:
        """The share of the question's weight in some sentences."""
        weight = sum(
            self._weights[word] * max(_presence(word, quote) for quote in quotes)
            for word in self._words
        )
        return weight / (sum(self._weights.values()) or 1.0)

    def _around(self, quote: Quote) -> Sequence[Quote]:
        """A sentence with the ones before and after in the same chunk."""
        place = self._places.get(quote.text)
        if place is None:
            return [quote]
        neighbors = self._quotes[max(place - 1, 0) : place + 2]
        return [neighbor for neighbor in neighbors if neighbor.number == quote.number]

    def _shows_what_is_asked(self, quote: Quote) -> bool:
        """Whether a sentence has something of the kind that the question asks for."""
        if self._asked is None:
            return True
        pattern = _SHOWN.get(self._asked)
        if pattern and pattern.search(simplified(quote.text)):
            return True
        return self._asked in ("person", "place", "name") and self._names_something(quote.text)

    def _names_something(self, text: str) -> bool:
        """Whether a sentence has a name of a person, an organization or a place that the question lacks."""
        question_key = name_key(self._question)
        for word in _CAPITALIZED_WORD.findall(text):
            if word.casefold() not in STOP_WORDS and word.casefold() not in question_key:
                return True
        for sentence in find_sentences(text, self._language):
            for phrase in sentence.phrases:
                if phrase.type in _NAMED and name_key(phrase.name) not in question_key:
                    return True
        return False


_NAMED = ("person", "organization", "place")
_QUESTION_WORD = re.compile(r"\b(?:what|which|who|whom|whose|when|where|how)\b", re.IGNORECASE)
_CAPITALIZED_WORD = re.compile(r"\b[A-Z][a-z]{2,}")


def _asked_kind(question: str) -> str | None:
    """The kind of thing that the first question word asks for, if a text can show it."""
    question_word = _QUESTION_WORD.search(question)
    for kind, pattern in _KINDS_ASKED_FOR.items():
        match = pattern.search(question)
        if match and (question_word is None or match.start() <= question_word.start()):
            return kind
    return None


def _question_words(question: str, language: Language) -> Sequence[str]:
    """The words of a question with a meaning: stems of English, words of Chinese, each once."""
    if written_in(question, language) == "en":
        return sorted(content_terms(question))
    words: list[str] = []
    for sentence in find_sentences(question, language, question=True):
        words += [phrase.name for phrase in sentence.phrases]
        words += [word.text for word in sentence.words]
    meaningful = [word for word in words if word not in FUNCTION_WORDS]
    return list(dict.fromkeys(meaningful)) or sorted(content_terms(question))


def _presence(word: str, quote: Quote) -> float:
    """1 for a word of a question that the sentence has, a part of it for parts of a Chinese word."""
    terms = quote.terms | quote.implied
    if not has_cjk(word):
        root = word[:_ROOT] if len(word) >= _ROOT else word + " "
        is_akin = any(term.startswith(root) for term in terms)  # "discoverer" and "discovered"
        return float(word in terms or is_akin)
    if word in simplified(quote.text) or word in terms:
        return 1.0
    return _IN_PARTS if 2 * sum(char in terms for char in word) >= len(word) else 0.0

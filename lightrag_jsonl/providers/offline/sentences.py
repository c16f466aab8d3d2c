"""The sentences of a text, with the phrases and content words by the rules of the language."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lightrag_jsonl.core.cjk import has_cjk, is_cjk
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.options import Tagger
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.providers.offline.chinese import chinese_phrases
from lightrag_jsonl.providers.offline.english import english_names, english_phrases
from lightrag_jsonl.providers.offline.listed_names import with_listed_names
from lightrag_jsonl.providers.offline.markup import without_addresses, without_markup
from lightrag_jsonl.providers.offline.phrases import ContentWord, Phrase, PhrasesAndWords, Spans

_PRONOUN_SUBJECT = re.compile(
    r"\W*(?:(?P<man>(?:he|his)\b|他(?!们))|(?P<woman>(?:she|her)\b|她(?!们))|(?P<thing>its?\b|它(?!们)))",
    re.IGNORECASE,
)
_POSSESSIVE_PRONOUNS = (
    "his",
    "her",
    "its",
)  # their phrase ends before them: "his" stands for "Bob's"
_THINGS = ("place", "organization", "work", "product", "event")  # that "he" and "she" do not mean
_BEFORE_SUBJECT = re.compile(r"\W*(?:(?:the|mr|mrs|ms|dr|sir|lady)\.?\s\W*)*", re.IGNORECASE)
_NEW_PARAGRAPH = re.compile(r"\n\s*\n|\n\u3000")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence: the span, the phrases in order, and the content words.

    `subject` stands at the place of the pronoun at the beginning, under the name that the pronoun
    means; None where no pronoun begins the sentence, or there is doubt about the name.
    """

    start: int
    end: int
    phrases: Sequence[Phrase]
    words: Sequence[ContentWord]
    subject: Phrase | None

    @property
    def subject_and_phrases(self) -> list[Phrase]:
        """The phrases, after the one of the pronoun at the beginning."""
        return [self.subject, *self.phrases] if self.subject else list(self.phrases)


def find_sentences(
    text: str, language: Language, *, question: bool = False, tagger: Tagger = "rules"
) -> list[Sentence]:
    """The sentences of a text; in a Chinese `question`, nouns of one character count as words."""
    plain, spans = _plain_and_spans(text)
    if written_in(plain, language) == "zh":
        phrases = chinese_phrases(plain, spans, question=question, tagger=tagger)
        return _with_content(text, spans, phrases)
    return _with_content(text, spans, english_phrases(plain, spans))


def sentences_with_names(text: str, names: Iterable[str], language: Language) -> list[Sentence]:
    """The sentences of a text by the rules, but with some names in place of phrases that overlap them."""
    plain, spans = _plain_and_spans(text)
    if written_in(plain, language) == "zh":
        by_rules = chinese_phrases(plain, spans, question=False, tagger="rules")
    else:
        by_rules = english_phrases(plain, spans)
    phrases = with_listed_names(plain, names, by_rules.phrases)
    return _with_content(text, spans, PhrasesAndWords(phrases, by_rules.words))


def find_phrases(text: str, language: Language) -> list[Phrase]:
    """The names and noun phrases of a text, in order, without all else that `find_sentences` finds."""
    plain, spans = _plain_and_spans(text)
    if written_in(plain, language) == "zh":
        return chinese_phrases(plain, spans, question=False, tagger="rules").phrases
    return english_names(plain, spans)


def _plain_and_spans(text: str) -> tuple[str, Spans]:
    """A text without markup and addresses, of the same length, and its sentences."""
    plain = without_markup(text)
    return without_addresses(plain), sentence_spans(plain)


def written_in(text: str, default: Language) -> Language:
    """Chinese if at least a fifth of the letters are CJK, else English; the default without letters."""
    if not has_cjk(text):
        return "en" if any(map(str.isalpha, text)) else default
    letters = [char for char in text if char.isalpha()]
    return "zh" if sum(map(is_cjk, letters)) * 5 >= len(letters) else "en"


def _with_content(text: str, spans: Spans, content: PhrasesAndWords) -> list[Sentence]:
    """The sentences with their share of the phrases and words."""
    starts = [start for start, _ in spans]
    phrases_by_sentence = defaultdict[int, list[Phrase]](list)
    words_by_sentence = defaultdict[int, list[ContentWord]](list)
    for phrase in content.phrases:
        phrases_by_sentence[bisect_right(starts, phrase.start)].append(phrase)
    for word in content.words:
        words_by_sentence[bisect_right(starts, word.start)].append(word)
    sentences: list[Sentence] = []
    antecedents = _Antecedents(text)
    for number, (start, end) in enumerate(spans, start=1):
        phrases = phrases_by_sentence[number]
        sentence = Sentence(
            start=start,
            end=end,
            phrases=phrases,
            words=words_by_sentence[number],
            subject=antecedents.subject(start, end, phrases),
        )
        sentences.append(sentence)
    return sentences


class _Antecedents:
    """What the pronouns at the beginning of sentences mean, read sentence by sentence.

    That is the name at the beginning of the last sentence without such a pronoun, in the same paragraph, and
    one sort of pronouns (he, she, it) only.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0  # of the sentence before
        self._name: Phrase | None = None
        self._sort = ""

    def subject(self, start: int, end: int, phrases: Sequence[Phrase]) -> Phrase | None:
        """The phrase of the pronoun at the beginning of the next sentence."""
        if _NEW_PARAGRAPH.search(self._text, self._end, start):
            self._name = None
        self._end = end
        pronoun = _PRONOUN_SUBJECT.match(self._text, start, end)
        if pronoun is None:
            begins_with_name = phrases and _BEFORE_SUBJECT.fullmatch(
                self._text, start, phrases[0].start
            )
            self._name = phrases[0] if begins_with_name else None
            self._sort = ""
            return None
        sort = pronoun.lastgroup or ""
        if self._name is None or not self._fits(sort):
            self._name = None
            return None
        self._sort = sort
        place = pronoun.start(sort)
        end = place if pronoun[sort].casefold() in _POSSESSIVE_PRONOUNS else pronoun.end()
        return replace(self._name, start=place, end=end)

    def _fits(self, sort: str) -> bool:
        """Whether a pronoun of this sort may mean the name."""
        is_thing = self._name is not None and self._name.type in _THINGS
        return sort in (self._sort or sort) and is_thing == (sort == "thing")

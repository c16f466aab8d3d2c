"""The sentences of a text, with the phrases and content words by the rules of the language."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from lightrag_jsonl.core.cjk import is_cjk
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.providers.offline.chinese import chinese_phrases
from lightrag_jsonl.providers.offline.english import english_phrases
from lightrag_jsonl.providers.offline.markup import without_addresses, without_markup
from lightrag_jsonl.providers.offline.phrases import ContentWord, Phrase, PhrasesAndWords, Spans

_NEW_PARAGRAPH = re.compile(r"\n\s*\n|\n\u3000")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence: the span, the phrases in order, and the content words.

    `topic` is the first name of the paragraph, or of an earlier one: the subject of most sentences.
    """

    start: int
    end: int
    phrases: Sequence[Phrase]
    words: Sequence[ContentWord]
    topic: str


def find_sentences(text: str, language: Language, *, question: bool = False) -> list[Sentence]:
    """The sentences of a text; in a Chinese `question`, nouns of one character count as words."""
    plain = without_markup(text)
    spans = sentence_spans(plain)
    plain = without_addresses(plain)
    if written_in(plain, language) == "zh":
        return _with_content(text, spans, chinese_phrases(plain, spans, question=question))
    return _with_content(text, spans, english_phrases(plain, spans))


def written_in(text: str, default: Language) -> Language:
    """Chinese if at least a fifth of the letters are CJK, else English; the default without letters."""
    letters = [char for char in text if char.isalpha()]
    if not letters:
        return default
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
    topic = ""
    previous_end = 0
    for number, (start, end) in enumerate(spans, start=1):
        phrases = phrases_by_sentence[number]
        if phrases and _NEW_PARAGRAPH.search(text, previous_end, start):
            topic = ""
        sentence = Sentence(
            start=start,
            end=end,
            phrases=phrases,
            words=words_by_sentence[number],
            topic=topic,
        )
        sentences.append(sentence)
        if phrases and not topic:
            topic = phrases[0].name
        previous_end = end
    return sentences

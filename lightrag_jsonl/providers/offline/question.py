"""What a question asks for: words, the kind of answer, and the verb or noun of an answer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from lightrag_jsonl.core.cjk import is_cjk, simplified
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.stop_words import FUNCTION_WORDS
from lightrag_jsonl.core.text import words
from lightrag_jsonl.providers.offline.quotes import content_terms
from lightrag_jsonl.providers.offline.segmentation import segmented
from lightrag_jsonl.providers.offline.sentences import find_sentences, written_in

# What an answer must hold, by the words of the question: answer types of question classification (Li and
# Roth, "Learning Question Classifiers", COLING 2002) that a text can show. The first one that fits counts.
_KINDS_ASKED_FOR: Mapping[str, re.Pattern[str]] = {
    "telephone": re.compile(r"\b(?:tele)?phone\b|电话|手机号", re.IGNORECASE),
    "name": re.compile(r"\bwhat\b.*\bname\b|叫什么|名字", re.IGNORECASE),
    "duration": re.compile(
        r"\bhow long\b|多久|多长时间|几(?:年|天|个?月|个?小时|分钟)", re.IGNORECASE
    ),
    "time": re.compile(
        r"\b(?:when|what time)\b|\b(?:what|which) (?:year|date|day|month)\b"
        r"|什么时候|何时|哪一?[年天日月]|几点|几号(?![楼店线院馆室房桌门])",
        re.IGNORECASE,
    ),
    "number": re.compile(
        r"\bhow (?:many|much|old|far|often|tall|high|large|big|deep|heavy|wide|hot|cold|fast)\b"
        r"|\bwhat (?:number|price)\b|多[少大高远重宽深]|几(?!乎)",
        re.IGNORECASE,
    ),
    "place": re.compile(r"\bwhere\b|哪里|哪儿|何处|何地|在哪|什么地方", re.IGNORECASE),
    "person": re.compile(r"\b(?:who|whom|whose)\b|谁|何人|哪位|哪个人|哪些人", re.IGNORECASE),
}
_ENGLISH_QUESTION_WORD = re.compile(r"\b(?:what|which|who|whom|whose|when|where|how)\b", re.I)
_AUXILIARIES = (
    "is|are|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|must|may|might"
)
_CATEGORY = re.compile(rf"\b(?:what|which)\s+(?P<noun>[a-z]+)(?=\s+(?:{_AUXILIARIES})\b)", re.I)
_QUESTION_PHRASE = re.compile(  # "how large", 多少钱, 几点: no words of the answer
    r"\bhow\s+(?!do\b|did\b|does\b)[a-z]+\b"
    r"|多少钱|多少|多久|多长时间|几[点号次个年天月]|什么时候|什么地方|什么|哪[里儿家个位些]|在哪|为什么|怎么样?|谁|一共",
    re.IGNORECASE,
)
_VERB_OF_WHO = re.compile(
    rf"\W*(?:who|(?:what|which)\s+[a-z]+)\s+(?!(?:{_AUXILIARIES})\b)(?P<verb>[a-z]+)\b", re.I
)
_OBJECT_ASKED_FOR = re.compile(
    r"\b(?:what|whom|who)\s+(?:do|does|did)\s+[^?]*?(?P<verb>[a-z]{3,})(?:\s+(?:to|for|from|with)\b[^?]*)?\?",
    re.I,
)
_ATTRIBUTE = re.compile(  # "What is the color of the roof?", 屋顶的颜色是什么
    r"\W*(?:what|who|how\s+\w+)\s+(?:is|was|are|were)\s+the\s+(?:[a-z]+\s+){0,2}?(?P<head>[a-z]+)\s+of\s+"
    r"(?P<owner>[^?]+)",
    re.IGNORECASE,
)
_CHINESE_ATTRIBUTE = re.compile(
    r"(?P<owner>[^，。]+)的(?P<head>\w{1,4}?)(?:是|叫|有)(?:谁|什么|多少|哪|几)"
)
_CHINESE_SUBJECT = re.compile(
    r"(?:.*，)?(?:是|被|由)?谁(?P<verb>[^\W是有的]{1,2}?)(?:了|过|的|着|[^的])"
)
_CHINESE_OBJECT = re.compile(
    r"(?P<verb>[^\W是叫有的为个]{1,2})(?:了|过|的是|着)?(?:谁|什么|哪[个些位本])"
)
_LIGHT_WORDS = words(  # verbs that an answer says in another way, and forms of address
    "get gets mean means take takes do make have has want need call called happen happened give gives"
    " happens name named mr mrs ms"
)
_LIGHT_CHINESE = frozenset("是有去来给要会能让请叫在到把被使得说想做当用换成为等了过着")
_MODAL_WORDS = words("不能 可以 应该 需要 必须 可能 能够 能不能 打算 准备")


@cache
def _light_stems() -> frozenset[str]:
    return frozenset[str]().union(*map(content_terms, _LIGHT_WORDS))


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question in simplified characters, with the words and the parts expected in an answer.

    `kind` is a kind of answer visible in a text; `subject_verb` and `object_verb` are verbs whose
    subject or object is asked for; `attribute` is what is asked for of its `owner` ("the color of
    the roof"). They are stems of English, words of Chinese, or "". `category` is the English noun
    after "which" or "what".
    """

    text: str
    words: Sequence[str]
    kind: str | None
    subject_verb: str
    object_verb: str
    attribute: str
    owner: Sequence[str]
    category: str


def analyze_question(question: str, language: Language) -> AskedQuestion:
    """What a question asks for."""
    text = simplified(question)
    is_english = written_in(text, language) == "en"
    category = _CATEGORY.search(text)
    attribute = (_ATTRIBUTE if is_english else _CHINESE_ATTRIBUTE).match(text)
    return AskedQuestion(
        text=text,
        words=_words(text, language),
        kind=_kind(text),
        subject_verb=_verb(_VERB_OF_WHO if is_english else _CHINESE_SUBJECT, text),
        object_verb=_verb(_OBJECT_ASKED_FOR if is_english else _CHINESE_OBJECT, text),
        attribute=_content_stem(attribute["head"]) if attribute else "",
        owner=_words(attribute["owner"], language) if attribute else (),
        category=_content_stem(category["noun"]) if category else "",
    )


def _verb(pattern: re.Pattern[str], question: str) -> str:
    """The verb found by a pattern in a question, or "" for a verb without a meaning of its own."""
    match = pattern.search(question)
    if match is None:
        return ""
    verb = match["verb"]
    if not verb.isascii():
        segments = {segment.text for segment in segmented(question)}
        verb = verb if verb in segments else verb[-1]  # 沙发给了谁 has no 发给
    return "" if verb in _LIGHT_CHINESE else _content_stem(verb)


def _content_stem(word: str) -> str:
    """The stem of a word with a meaning of its own, or ""."""
    terms = content_terms(word) - _light_stems() if word.isascii() else {word}
    is_meaningful = len(terms) == 1 and word.casefold() not in FUNCTION_WORDS
    return min(terms) if is_meaningful else ""


def _kind(question: str) -> str | None:
    """The kind of answer to the first question word, if visible in a text."""
    question_word = _ENGLISH_QUESTION_WORD.search(question)
    for kind, pattern in _KINDS_ASKED_FOR.items():
        match = pattern.search(question)
        is_first = match and (question_word is None or match.start() <= question_word.start())
        if is_first or (match and kind == "telephone"):
            return kind
    return None


def _words(question: str, language: Language) -> Sequence[str]:
    """The words of a question for an answer to share: stems of English, words of Chinese, each once."""
    plain = _QUESTION_PHRASE.sub(" ", question)
    if written_in(question, language) == "en":
        terms = content_terms(plain) - _light_stems()
        return sorted(terms - FUNCTION_WORDS or content_terms(question))
    listed: list[str] = []
    for sentence in find_sentences(plain, language, question=True):
        listed += [phrase.name for phrase in sentence.phrases]
        listed += [word.text for word in sentence.words]
    for segment in segmented(plain):
        is_verb = segment.tag[:1] in ("v", "z", "x") and len(segment.text) == 1
        if is_verb and is_cjk(segment.text) and segment.text not in _LIGHT_CHINESE:
            listed.append(segment.text)
    meaningful = [word for word in listed if word not in FUNCTION_WORDS | _MODAL_WORDS]
    whole = [
        word
        for word in dict.fromkeys(meaningful)
        if not any(word != longer and word in longer for longer in meaningful)
    ]
    return whole or sorted(content_terms(question))

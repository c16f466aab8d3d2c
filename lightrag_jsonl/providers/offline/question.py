"""What a question asks for: words, the kind of answer, and the verb or noun of an answer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from lightrag_jsonl.core.cjk import is_cjk, simplified
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.question_scope import YEAR
from lightrag_jsonl.core.stop_words import FUNCTION_WORDS
from lightrag_jsonl.core.text import words
from lightrag_jsonl.providers.offline.quotes import content_terms
from lightrag_jsonl.providers.offline.segmentation import SegmentedWord, segmented
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
    "place": re.compile(
        r"\bwhere\b|哪里|哪儿|何处|何地|在哪|什么地方|哪[个些]?地方", re.IGNORECASE
    ),
    "person": re.compile(r"\b(?:who|whom|whose)\b|谁|何人|哪位|哪个人|哪些人", re.IGNORECASE),
}
_ENGLISH_QUESTION_WORD = re.compile(r"\b(?:what|which|who|whom|whose|when|where|how)\b", re.I)
_AUXILIARIES = (
    "is|are|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|must|may|might"
)
_CATEGORY = re.compile(  # "which color is", "which Python version does"
    rf"\b(?:what|which)\s+(?:[a-z]+\s+){{0,2}}?(?P<noun>(?!(?:{_AUXILIARIES})\b)[a-z]+)(?=\s+(?:{_AUXILIARIES})\b)",
    re.I,
)
_QUESTION_PHRASE = re.compile(  # "how large", 多少钱, 几点: no words of the answer
    r"\bhow\s+(?!do\b|did\b|does\b)[a-z]+\b"
    r"|\b(?:what|which)\s+colou?rs?\b|什么颜色|哪种颜色|什么名字"
    r"|多少钱|多少|多久|多长时间|几[点号次个年天月]|什么时候|什么地方|哪[个些]?地方|什么|哪[里儿家个位些]|在哪|为什么|怎么样?|谁|一共",
    re.IGNORECASE,
)
_VERB_OF_WHO = re.compile(  # "Who wrote …", "Which ship reached …", not "What did Ann …"
    rf"\W*(?:who(?:\s+(?:has|had|have|will|would))?|(?:what|which)\s+(?!(?:{_AUXILIARIES})\b)[a-z]+)"
    rf"\s+(?!(?:{_AUXILIARIES})\b)(?P<verb>[a-z]+)\b(?!\s+(?:{_AUXILIARIES})\b)",
    re.I,
)
_COUNTED = re.compile(
    rf"\bhow\s+many\s+(?P<noun>[a-z]+(?:\s+(?!(?:{_AUXILIARIES})\b)[a-z]+)?)", re.I
)
_CHINESE_COUNTED = re.compile(r"(?:多少|几)(?P<unit>[^\W\d了的])(?P<noun>[^\W\d了的]?)")
_UNITS_OF_ACTIONS = "次回遍度番"
_UNITS_OF_ANYTHING = "个位名种件"  # the noun after them says what is counted
COUNT_OR_NUMBER = (
    r"(?:\d[\d.,]*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty"
    r"|forty|fifty|sixty|hundred|thousand|dozen|half)\b|[一二两三四五六七八九十百千万半数几]+)"
)
_ASKS_FOR_COLOR = re.compile(r"\b(?:what|which)\s+colou?r\b|什么颜色|哪种颜色", re.IGNORECASE)
_ASKS_FOR_MATERIAL = re.compile(r"\bmade\s+(?:up\s+)?(?:of|from)\b", re.IGNORECASE)
_ASKS_FOR_DESTINATION = re.compile(
    r"[去到往][了过]?(?:哪[里儿个些]?|什么地方|何处)|\bwhere\b.*\bgo\b", re.IGNORECASE
)
_ASKS_FOR_FAME = re.compile(
    r"\b(?:known|famous|noted|renowned)\s+for\b|(?:以|因为?)(?:什么|何)[^，。]{0,4}?(?:闻名|著称|出名|著名|知名)",
    re.IGNORECASE,
)
_FAME = re.compile(
    r"\b(?:known|famous|noted|renowned|celebrated|famed)\b|闻名|著称|出名|著名|有名|知名|驰名",
    re.IGNORECASE,
)
_STYLE_NAME = re.compile("(?P<person>[^\\W的]{2,4})的?表?字(?:什么|谁|何|叫)")
_COLORS = "black|white|red|green|blue|yellow|brown|gray|grey|pink|purple|orange|violet|scarlet|crimson|golden|silver"
_CHINESE_COLORS = "[黑白红绿蓝黄棕褐灰粉紫橙青赤朱]"
_ASKS_FOR_OTHER_NAME = re.compile(r"(?:原来|本来|原先|又|还|以前|旧时)(?:叫|名|称)")
_OBJECT_ASKED_FOR = re.compile(
    r"\b(?:(?:what|which)(?:\s+[a-z]+){0,2}|whom|who|where|when)\s+(?:do|does|did)\s+[^?]*?(?P<verb>[a-z]{3,})(?:\s+(?:to|for|from|with)\b[^?]*)?\?",
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
    r"(?P<verb>[^\W是叫有的为个]{1,2})(?:了|过|的是|着)?(?:谁|什么|哪[个些位本](?![更最]))"
)
_LIGHT_WORDS = words(  # verbs that an answer says in another way, and forms of address
    "get gets mean means take takes do make have has want need call called happen happened give gives"
    " happens name named mr mrs ms"
)
_LIGHT_CHINESE = frozenset([*"是有去来给要会能让请叫在到把被使得说想做当用换成为等了过着", "发生"])
_ASKED_AND_SHOWN = (
    (_ASKS_FOR_OTHER_NAME, re.compile("[原旧本又别亦改也](?:名|称|叫|号|唤)|唤[做作]")),
    (_ASKS_FOR_FAME, _FAME),
    (_ASKS_FOR_MATERIAL, re.compile(r"\bmade\W+(?:\w+\W+){0,2}?(?:of|from)\b", re.IGNORECASE)),
    (
        _ASKS_FOR_DESTINATION,
        re.compile(
            r"(?:去(?![世掉除年])|(?<![直遇等感看听说提收得达受想])到(?!底|处|期)|往|赴|出使|抵达)"
            r"|\b(?:went|goes|going|came|travel\w*|sail\w*|moved|returned|journey\w*)\W+(?:\w+\W+){0,2}?(?:to|into|for|back)\b",
            re.IGNORECASE,
        ),
    ),
)
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
    after "which" or "what". `named_parties` are the people, organizations and places named. `answer_pattern` shows
    what is asked for beside its word: the number before what is counted, a color, another name; without
    it no sentence is an answer. `named_works` are the titles named.
    """

    text: str
    words: Sequence[str]
    kind: str | None
    subject_verb: str
    object_verb: str
    attribute: str
    owner: Sequence[str]
    category: str
    named_parties: Sequence[str]
    named_works: Sequence[str]
    answer_pattern: re.Pattern[str] | None


def analyze_question(question: str, language: Language) -> AskedQuestion:
    """What a question asks for."""
    text = simplified(question)
    is_english = written_in(text, language) == "en"
    category = _CATEGORY.search(text)
    attribute = (_ATTRIBUTE if is_english else _CHINESE_ATTRIBUTE).match(text)
    question_words = _words(text, language)
    return AskedQuestion(
        text=text,
        words=question_words,
        kind=_kind(text),
        subject_verb=_verb(_VERB_OF_WHO if is_english else _CHINESE_SUBJECT, text),
        object_verb=_verb(_OBJECT_ASKED_FOR if is_english else _CHINESE_OBJECT, text),
        attribute=_content_stem(attribute["head"]) if attribute else "",
        owner=_words(attribute["owner"], language) if attribute else (),
        category=_content_stem(category["noun"]) if category else "",
        named_parties=_names_of_types(text, ("person", "organization", "place"), language),
        named_works=_names_of_types(text, ("work",), language),
        answer_pattern=_pattern_of_answer(text, question_words),
    )


def _names_of_types(question: str, types: Sequence[str], language: Language) -> Sequence[str]:
    """The names of certain types in a question."""
    return [
        phrase.name
        for sentence in find_sentences(question, language, question=True)
        for phrase in sentence.phrases
        if phrase.type in types
    ]


def _pattern_of_answer(question: str, question_words: Sequence[str]) -> re.Pattern[str] | None:
    """What an answer shows beside a word of the question: a number, a color, another name."""
    if counted := _COUNTED.search(question):
        nouns = "|".join(
            sorted([stem for noun in counted["noun"].split() for stem in content_terms(noun)])
        )
        return re.compile(rf"{COUNT_OR_NUMBER}\W+(?:\w+\W+){{0,2}}?(?:{nouns})", re.IGNORECASE)
    if counted := _CHINESE_COUNTED.search(question):
        if counted["unit"] in _UNITS_OF_ANYTHING and counted["noun"]:
            return re.compile(rf"(?![几数]){COUNT_OR_NUMBER}{counted['unit']}?{counted['noun']}")
        units = [counted["unit"]]
        if units[0] in _UNITS_OF_ACTIONS:
            units += [*_UNITS_OF_ACTIONS, *question_words]  # 七擒
        return re.compile(rf"(?![几数]){COUNT_OR_NUMBER}(?:{'|'.join(map(re.escape, units))})")
    if _ASKS_FOR_COLOR.search(question) and question_words:
        colored_words = "|".join(map(re.escape, question_words))
        if is_cjk(question_words[0][0]):
            return re.compile(
                rf"{_CHINESE_COLORS}色?的?(?:{colored_words})|(?:{colored_words})[^，。；]*{_CHINESE_COLORS}"
            )
        colored = rf"(?:{_COLORS})\W+(?:\w+\W+)?(?:{colored_words})|(?:{colored_words})\w*\W+(?:is|was|are|were)\W+(?:\w+\W+){{0,2}}(?:{_COLORS})\b"
        return re.compile(colored, re.IGNORECASE)
    if style := _STYLE_NAME.match(question):
        person = style["person"]
        given_names = "|".join(
            filter(None, [person[1:], person[2:]])
        )  # 司马懿 has a double surname
        return re.compile(f"{person}(?:者|，)?(?:表)?字|名(?:{given_names})，?(?:表)?字")
    for question_pattern, answer_pattern in _ASKED_AND_SHOWN:
        if question_pattern.search(question):
            return answer_pattern
    return None


def _verb(pattern: re.Pattern[str], question: str) -> str:
    """The verb found by a pattern in a question, or "" for a verb without a meaning of its own."""
    match = pattern.search(question)
    if match is None:
        return ""
    verb = match["verb"]
    if not verb.isascii():
        segments = {segment.text for segment in segmented(question)}
        starting = [segment for segment in segments if segment.startswith(verb[0])]
        following = question[match.start("verb") :]
        whole = [segment for segment in starting if following.startswith(segment)]
        # 由谁负责 asks for 负责, and 沙发给了谁 for 给, not 发给.
        verb = verb if verb in segments else max(whole, key=len, default=verb[-1])
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
    listed = YEAR.findall(plain)
    for sentence in find_sentences(plain, language, question=True):
        listed += [phrase.name for phrase in sentence.phrases]
        listed += [word.text for word in sentence.words]
    for segment in segmented(plain):
        is_verb = segment.tag[:1] in ("v", "z", "x") and len(segment.text) == 1
        if is_verb and is_cjk(segment.text) and segment.text not in _LIGHT_CHINESE:
            listed.append(segment.text)
        elif _is_unknown_name(segment) or _MONTH_OR_DAY.fullmatch(segment.text):
            listed.append(segment.text.strip("由把被"))
    light_words = FUNCTION_WORDS | _MODAL_WORDS | _LIGHT_CHINESE
    meaningful = [word for word in listed if word not in light_words]
    whole = [
        word
        for word in dict.fromkeys(meaningful)
        if not any(word != longer and word in longer for longer in meaningful)
    ]
    return whole or sorted(content_terms(question))


_MONTH_OR_DAY = re.compile("[一二三四五六七八九十]+[月日号]")
_NO_WORD_ASKED_ABOUT = re.compile("[更最很太多几哪谁什]|.*[着了过得给的]$")


def _is_unknown_name(segment: SegmentedWord) -> bool:
    """Whether a segment is no word of the dictionary, or a name, and so says what is asked about."""
    text = segment.text
    if len(text) < 2 or not all(map(is_cjk, text)) or _NO_WORD_ASKED_ABOUT.match(text):
        return False
    return not segment.in_dictionary or segment.tag in ("nr", "ns", "nz", "nt", "nrt")

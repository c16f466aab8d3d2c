"""Whether a sentence answers a question, or only shares words with the question."""

import math
import re
from collections.abc import Mapping, Sequence

from lightrag_jsonl.core.cjk import has_cjk, simplified
from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.question_scope import YEAR
from lightrag_jsonl.core.stop_words import STOP_WORDS
from lightrag_jsonl.core.terms import stem
from lightrag_jsonl.providers.offline.question import COUNT_OR_NUMBER, analyze_question
from lightrag_jsonl.providers.offline.quotes import Quote, content_terms, terms_with_characters
from lightrag_jsonl.providers.offline.segmentation import segmented
from lightrag_jsonl.providers.offline.sentences import find_sentences
from lightrag_jsonl.providers.offline.words import VERB_BASES

# The shares were set on own questions about two novels, READMEs and notes (`benchmarks.offline --labels offline`). On
# sixty others (`offline-held`) 22 answers were right and 3 wrong.
_MOST_WEIGHT = 0.45  # of a question's weight that a sentence must have by itself
_SOME_WEIGHT = 0.2  # of it, if the sentences around have the rest
_NEIGHBORHOOD = 0.65  # of it, that a sentence and its neighbors must have together
_AS_GOOD = 0.95  # of a sentence's weight: a sentence with so much is as good
_RIVALS = 2  # sentences that may be as good, unless they have all of a question's words
_MOST_RIVALS = 4  # sentences that may have all of the words, among many
_ALL_WEIGHT = 0.999
# Among so many sentences two words meet by chance: of fifteen such answers about two novels eleven were wrong.
_MANY_SENTENCES = 150
_FEW_WORDS = 2
_MOST_AMONG_MANY = 0.7  # of a question's weight
_CLEAR_AMONG_MANY = 0.6  # of it, where a number or the like stands right at its word
_COMPLETING = 0.1  # of a question's weight that a further sentence adds
_JOINT_WEIGHT = 0.7  # of it, that two sentences have which answer only together
_ROOT = 6  # first letters that English words of one family share
_IN_PARTS = 0.5  # of a word's weight, where a text has half of the characters of a Chinese word

_SHOWN: Mapping[str, re.Pattern[str]] = {  # by `kind` of a question
    "telephone": re.compile(r"\d(?:[ -]?\d){5}"),
    "person": re.compile(  # besides names that the rules know
        r"(?:(?<![一-鿿])|(?<=[是给由被和请让]))[阿老小][一-鿿](?=[，。；的]|$)"
        r"|[一-鿿](?:阿姨|叔叔?|大?[爷妈嫂婶]|师傅|老师|医生|先生|女士|太太)"
        r"|[表堂][姐妹哥弟][一-鿿]{0,2}"
        r"|由(?![谁人他她其])[^，。；]{1,6}来|在(?![谁人他她其])[^，。；]{1,6}手[里上中]"
    ),
    "name": re.compile(r"\b(?:names?|named|called)\b|叫|名", re.IGNORECASE),
    "duration": re.compile(
        rf"(?:{COUNT_OR_NUMBER}|\ban?)\W?(?:second|minute|hour|day|night|week|month|year|centur)"
        rf"|{COUNT_OR_NUMBER}个?(?:多|半)?(?:秒|分钟|小时|时辰|天|日|夜|周|星期|月|年|载)",
        re.IGNORECASE,
    ),
    "time": re.compile(
        r"\d{4}|\d:\d\d|\b(?:january|february|march|april|may|june|july|august|september|october|november"
        r"|december|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|spring|summer|autumn|winter|o'clock|noon"
        r"|midnight|today|tomorrow|yesterday)\b"
        rf"|{COUNT_OR_NUMBER}个?(?:年|月|日|号|点|时|天|周|更)|之?后|早上|晚上|凌晨|每天|次日|当[日夜]",
        re.IGNORECASE,
    ),
    "number": re.compile(COUNT_OR_NUMBER, re.IGNORECASE),
    "place": re.compile(
        r"\b(?i:in|at|near|behind|under|above|beside|to|from)\s+(?:(?:the|an?|his|her)\s|[A-Z])|[在从到往于至住去]|[里内外上下旁]"
    ),
}


_PLACE_WORDS = "in|at|near|behind|under|above|beside|to|from|on|into|over|across|with|by|here|there"
# "bought it in 1931" does not say what was bought, "said that he came" and "taught her Latin" say what was.
_PRONOUN_ALONE = (
    r"(?:it|them|that|this|him|her)\b(?=\s*(?:[.,;:!?)\]—–-]|$)"
    rf"|\s+(?:{_PLACE_WORDS}|and|or|but|for|of|when|while|as|because|since|after|before|again)\b)"
)
_NAMED = ("person", "organization", "place")


class AnswerEvidence:
    """Tells answers to a question from sentences with only words in common.

    An answer has most of the question's words, by rarity, alone or with the sentences around, and
    an item of the requested kind (a number, a name, …); hardly any other sentence has as much.
    """

    def __init__(self, question: str, quotes: Sequence[Quote], language: Language) -> None:
        self._question = analyze_question(question, language)
        self._quotes = quotes
        self._language: Language = language
        self._is_among_many = len(quotes) > _MANY_SENTENCES
        self._places = {quote.text: place for place, quote in enumerate(quotes)}
        sentences_by_word = {
            word: sum(_presence(word, quote) == 1 for quote in quotes)
            for word in self._question.words
        }
        self._weights = {
            word: math.log(1 + len(quotes) / max(count, 1))
            for word, count in sentences_by_word.items()
            if count or word != self._question.category
        }
        self._words = list(self._weights)
        self._verb_is_used = sentences_by_word.get(self._question.object_verb, 0) > 0

    def answering(self, quotes: Sequence[Quote]) -> list[Quote]:
        """The quotes in answer to the question, best first: each alone, or two together."""
        alone = [quote for quote in quotes if self.answers(quote)]
        if below_question := [quote for quote in alone if self._is_asked_above(quote)]:
            return below_question
        if alone:
            return self._with_completing(self._about_names(alone), quotes)
        pair = list(quotes[:2])
        return pair if self._answer_together(pair) else self._best_of_all()

    def _about_names(self, answers: Sequence[Quote]) -> Sequence[Quote]:
        """The answers with a name of the question, if there are any; otherwise all."""
        with_name = [quote for quote in answers if _names_any(self._question.named_parties, quote)]
        return with_name or answers

    def _is_asked_above(self, quote: Quote) -> bool:
        """Whether a sentence stands under a question with all words of this one, as in an FAQ."""
        asked_terms = terms_with_characters(quote.heading)
        words = content_terms(self._question.text)
        return quote.heading.strip("*_ ").endswith(("?", "？")) and words <= asked_terms

    def _answer_together(self, pair: Sequence[Quote]) -> bool:
        """Whether two sentences answer the question, joined by a name."""
        if self._is_among_many or len(self._words) < 2 or len(pair) < 2:
            return False
        if not any(map(self._shows_what_is_asked, pair)):
            return False
        return self._are_joined(*pair) and self._share(pair) >= _JOINT_WEIGHT

    def _best_of_all(self) -> list[Quote]:
        """The answering sentence with most words of the question; of many, only a complete sentence."""
        answering = [
            quote
            for quote in self._quotes
            if (not self._is_among_many or self._share([quote]) > _ALL_WEIGHT)
            and self.answers(quote)
        ]
        shares = [self._share([quote]) for quote in answering]
        return [answering[shares.index(max(shares))]] if shares else []

    def _are_joined(self, first: Quote, second: Quote) -> bool:
        """Whether a new name of either sentence, not in the question, is what the other is about."""
        return self._names_for(first, second) or self._names_for(second, first)

    def _names_for(self, quote: Quote, following: Quote) -> bool:
        """Whether a sentence has a name that is not in the question, but in the following sentence."""
        question_key = name_key(self._question.text)
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
        """The answers, and quotes with more words of the question and a name of the answers."""
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
        if not self._has_what_is_required(quote):
            return False
        if self._is_among_many and not self._stands_out(quote, share):
            return False
        if share < _MOST_WEIGHT and self._share(self._around(quote)) < _NEIGHBORHOOD:
            return False
        has_all_words = share > _ALL_WEIGHT
        if has_all_words and not self._is_among_many:
            return True
        most_rivals = _MOST_RIVALS if has_all_words else _RIVALS
        return share >= _SOME_WEIGHT and self._count_rivals(share) <= most_rivals

    def _stands_out(self, quote: Quote, share: float) -> bool:
        """Whether a sentence among very many has most words, and of two words both, close together."""
        pattern = self._question.answer_pattern
        shows_pattern = pattern is not None and pattern.search(simplified(quote.text))
        if shows_pattern and share >= _CLEAR_AMONG_MANY and self._count_rivals(share) <= 1:
            return True
        if len(self._words) > _FEW_WORDS:
            return share >= _MOST_AMONG_MANY
        is_complete = len(self._words) == _FEW_WORDS and share > _ALL_WEIGHT
        has_place_for_answer = self._question.kind is not None or self._question.object_verb != ""
        return has_place_for_answer and is_complete and _are_close(self._words, quote.text)

    def _has_what_is_required(self, quote: Quote) -> bool:
        """Whether a sentence has the verb or noun asked for, and something in the answer's place."""
        question = self._question
        for word in (question.subject_verb, question.attribute):
            if word and _presence(word, quote) < 1:
                return False
        if any(_has_another_number(word, quote) for word in self._words):
            return False
        if _tells_of_other_years(question.text, quote.text):
            return False
        has_verb = not question.object_verb or _presence(question.object_verb, quote) == 1
        if not has_verb and (self._verb_is_used or self._has_names_only(quote)):
            return False
        if not self._shows_pattern(quote) or not self._is_about_a_name(quote):
            return False
        if _names_other_work(question.named_works, quote.text):
            return False
        if _ASKS_FOR_AGE.search(question.text) and not _has_age_of(
            question.named_parties, quote.text
        ):
            return False
        if question.owner and not self._names_owner(quote):
            return False
        if question.kind == "place" and not self._leads_to_place(quote):
            return False
        if has_cjk(question.subject_verb):
            return self._is_beside_name(question.subject_verb, quote, before=True)
        if has_cjk(question.object_verb):
            return question.object_verb in simplified(quote.text) and (
                question.kind != "person" or self._is_beside_name(question.object_verb, quote)
            )
        pronoun = rf"{_forms(question.object_verb)}\s+{_PRONOUN_ALONE}"
        return not (question.object_verb and re.search(pronoun, quote.text, re.IGNORECASE))

    def _has_names_only(self, quote: Quote) -> bool:
        """Whether a sentence has no word of the question but the words of its names."""
        names = frozenset[str]().union(*map(content_terms, self._question.named_parties))
        return all(_presence(word, quote) == 0 or word in names for word in self._words)

    def _leads_to_place(self, quote: Quote) -> bool:
        """Whether a place follows the verb of an English sentence, one of many: "lived in the mill"."""
        verb = self._question.object_verb
        if not (verb and self._is_among_many):
            return True
        place = rf"{_forms(verb)}\s+(?:\w+\s+){{0,5}}?(?:{_PLACE_WORDS})\b"
        return has_cjk(verb) or re.search(place, quote.text, re.IGNORECASE) is not None

    def _shows_pattern(self, quote: Quote) -> bool:
        """Whether a sentence shows what the question asks for beside its word; a number may also stand
        elsewhere in one of few sentences, and a color may have a name of its own.
        """
        question = self._question
        if question.answer_pattern is None or question.answer_pattern.search(
            simplified(quote.text)
        ):
            return True
        is_strict = question.kind != "number" and question.category not in ("color", "colour")
        return not (is_strict or self._is_among_many)

    def _is_about_a_name(self, quote: Quote) -> bool:
        """Whether a sentence is about one of several names of a question: it has a name, or its passage
        has one and the sentence has no other organization.
        """
        names = self._question.named_parties
        if len(names) < 2 or _names_any(names, quote):
            return True
        passage = [near for near in self._quotes if near.number == quote.number]
        is_in_passage = any(_names_any(names, near) for near in passage)
        return is_in_passage and not self._names_something(quote.text, types=("organization",))

    def _names_owner(self, quote: Quote) -> bool:
        """Whether a sentence, or one nearby, names the owner of the attribute asked for; in a long
        Chinese text the owner stands right before the attribute (马超之父).
        """
        question = self._question
        if self._is_among_many and has_cjk(question.attribute):
            heads = {
                question.attribute,
                question.attribute[0] if question.attribute[0] in _KINSHIP else "",
            }
            texts = [
                f"{owner}{joint}{head}"
                for owner in question.owner
                for joint in ("", "之", "的")
                for head in heads
                if head
            ]
            return any(text in simplified(quote.text) for text in texts)
        around = self._around(quote)
        return any(_presence(owner, near) > 0 for owner in question.owner for near in around)

    def _is_beside_name(self, verb: str, quote: Quote, *, before: bool = False) -> bool:
        """Whether a person is named near a Chinese verb, after or before, in the same clause."""
        text = simplified(quote.text)
        at = text.find(verb)
        if at < 0:
            return False
        if before and self._has_agent(verb, text):
            return True
        if before:
            end = at
            start = end - len(re.split("[，。；：！、被]", text[:at])[-1])
        else:
            start = at + len(verb)
            end = start + len(re.split("[，。；：！]", text[start:])[0])
        clause = text[start:end]
        if self._names_something(clause) or _SHOWN["person"].search(clause):
            return True
        return self._has_name_between(quote.text, start, end)

    def _has_agent(self, verb: str, text: str) -> bool:
        """Whether a Chinese sentence says who does something: 由何敏负责, or with the object after the
        verb, 那条蛇吃了鸡蛋.
        """
        objects = [word for word in self._words if word != verb]
        passive = re.search(
            rf"[由被](?!人|谁|他|她|其)(?P<agent>[^，。；：！由被]{{1,8}}?){verb}", text
        )
        if passive:
            return not any(word in passive["agent"] for word in objects)
        for clause in re.split("[，。；：！？“”]", text):
            subject, has_verb, predicate = clause.partition(verb)
            has_object = has_verb and any(word in predicate for word in objects)
            if has_object and not _SPOKEN.search(subject) and self._ends_with_noun(subject):
                return True
        return False

    def _ends_with_noun(self, text: str) -> bool:
        """Whether the last word of a text, but for adverbs, is a noun or a name not in the question."""
        segments = [word for word in segmented(text) if word.tag[:1] not in ("d", "u")]
        if not segments:
            return False
        last = segments[-1]
        is_noun = last.tag[:1] in ("n", "j") and last.text[-1] not in _TIMES_AND_PLACES
        return is_noun and last.text not in self._question.text

    def _has_name_between(self, text: str, start: int, end: int) -> bool:
        """Whether a name at some characters is not in the question; the whole sentence shows the name."""
        question_key = name_key(self._question.text)
        return any(
            start <= phrase.start
            and phrase.end <= end
            and name_key(phrase.name) not in question_key
            for sentence in find_sentences(text, self._language)
            for phrase in sentence.phrases
            if phrase.type in _NAMED
        )

    def _count_rivals(self, share: float) -> int:
        """The number of equally fitting sentences, including the quote."""
        return sum(
            self._share([quote]) >= _AS_GOOD * share
            and self._shows_what_is_asked(quote)
            and self._has_what_is_required(quote)
            for quote in self._quotes
        )

    def _share(self, quotes: Sequence[Quote]) -> float:
        """The share of the question's weight in sentences."""
        weight = sum(
            self._weights[word] * max(_presence(word, quote) for quote in quotes)
            for word in self._words
        )
        return weight / (sum(self._weights.values()) or 1.0)

    def _around(self, quote: Quote) -> Sequence[Quote]:
        """A sentence with its neighbours in the same chunk, and the sentence under a heading."""
        place = self._places.get(quote.text)
        if place is None:
            return [quote]
        neighbors = list(self._quotes[max(place - 1, 0) : place + 2])
        for earlier in reversed(self._quotes[: place + 1]):
            if earlier.heading:
                neighbors.append(earlier)
                break
        return [neighbor for neighbor in neighbors if neighbor.number == quote.number]

    def _shows_what_is_asked(self, quote: Quote) -> bool:
        """Whether a sentence has something of the kind asked for."""
        kind = self._question.kind
        if kind is None:
            return True
        text = simplified(quote.text)
        for word in self._words:
            text = text.replace(word, " ") if has_cjk(word) else text  # 罗一鸣 has no number
        pattern = _SHOWN.get(kind)
        verb = self._question.subject_verb
        if kind == "person" and has_cjk(verb) and self._has_agent(verb, simplified(quote.text)):
            return True
        if kind == "place" and self._is_among_many and has_cjk(quote.text):
            return self._names_something(quote.text, types=("place",))
        if pattern and pattern.search(text):
            return True
        return kind in ("person", "place", "name") and self._names_something(quote.text)

    def _names_something(self, text: str, types: Sequence[str] = _NAMED) -> bool:
        """Whether a text has a name of a person, an organization or a place not in the question."""
        question_key = name_key(self._question.text)
        for word in _CAPITALIZED_ASCII_WORD.findall(text):
            if word.casefold() not in STOP_WORDS and word.casefold() not in question_key:
                return True
        for sentence in find_sentences(text, self._language):
            for phrase in sentence.phrases:
                if phrase.type in types and name_key(phrase.name) not in question_key:
                    return True
        return False


def _names_other_work(works: Sequence[str], text: str) -> bool:
    """Whether a text has titles, but none of the works asked about."""
    return (
        bool(works) and "《" in text and not any(f"《{work}" in simplified(text) for work in works)
    )


_ASKS_FOR_AGE = re.compile(r"\bhow old\b|几岁|多少岁|多大年纪|多大了", re.IGNORECASE)
_AGE_BEFORE_NAME = re.compile(
    rf"{COUNT_OR_NUMBER}[^，,;；]{{1,11}}$", re.IGNORECASE
)  # "the 34-year-old Ann"


def _has_age_of(names: Sequence[str], text: str) -> bool:
    """Whether a number in a text may be the age of a named person: it follows the name, or stands right
    before it.
    """
    plain = simplified(text)
    places = [plain.find(name) for name in names if name in plain]
    return not places or any(
        re.search(COUNT_OR_NUMBER, plain[place:], re.IGNORECASE)
        or _AGE_BEFORE_NAME.search(plain[:place])
        for place in places
    )


def _names_any(names: Sequence[str], quote: Quote) -> bool:
    return any(content_terms(name) <= quote.terms | quote.implied for name in names)


_TIMES_AND_PLACES = "时日夜年月间后前中上下里内外"
_SPOKEN = re.compile("[你我俺吾汝他她其]")
_ASKS_BESIDE_YEAR = re.compile(
    r"\b(?:after|before|since|until|till|by|from|between|than)\s+(?:the\s+)?(?:year\s+)?\d{4}"
    r"|\d{4}年?(?:(?:之|以)?[前后来]|[至到起])|[从自到至]\s?\d{4}",
    re.IGNORECASE,
)
_NUMBERED_NAME = re.compile(r"(?P<letters>[^\W\d_]+)\d+")
_CAPITALIZED_ASCII_WORD = re.compile(r"\b[A-Z][a-z]{2,}")
_CLOSE_WORDS = 5  # words of English between two words that belong together
_KINSHIP = frozenset("父母妻夫子女兄弟姐妹祖孙叔伯舅姑")  # 妻子 and 妻 mean the same
_ALL_CHARACTERS = 0.8  # of a word's weight, where a text has its characters, but not side by side


def _presence(word: str, quote: Quote) -> float:
    """1 for a word of a question in the sentence, a fraction for parts of a Chinese word."""
    terms = quote.terms | quote.implied
    if not has_cjk(word):
        has_family = len(word) >= _ROOT and word.isalpha()  # "route12" is not akin to "route13"
        root = word[:_ROOT] if has_family else word + " "
        is_akin = any(term.startswith(root) for term in terms)  # "discoverer" and "discovered"
        agents = {f"{word}er", f"{word}or"}  # "owns" and "owner"
        return float(word in terms or is_akin or not agents.isdisjoint(terms))
    if word in terms or word in simplified(f"{quote.heading} {quote.text}"):
        return 1.0
    if len(word) == 2 and word[0] in _KINSHIP and word[0] in terms:
        return 1.0
    share = sum(char in terms for char in word) / len(word)
    if share == 1:
        return _ALL_CHARACTERS
    pairs = {word[at : at + 2] for at in range(len(word) - 1)}
    has_part = len(word) == 2 or not pairs.isdisjoint(terms)  # not 停 and 车 apart for 停车场
    return _IN_PARTS if has_part and share >= _IN_PARTS else 0.0


def _forms(verb: str) -> str:
    """A pattern of the forms of an English verb, given by its stem."""
    irregular = [form for form, base in VERB_BASES.items() if stem(base) == verb]
    return rf"\b(?:{'|'.join([*irregular, re.escape(verb) + '[a-z]*'])})\b"


def _has_another_number(word: str, quote: Quote) -> bool:
    """Whether a sentence has a numbered name such as Route66 with another number than a question's."""
    numbered = _NUMBERED_NAME.fullmatch(word)
    if numbered is None or word in quote.terms:
        return False
    letters = numbered["letters"]
    matches = [_NUMBERED_NAME.fullmatch(term) for term in quote.terms]
    return any(match is not None and match["letters"] == letters for match in matches)


def _tells_of_other_years(question: str, sentence: str) -> bool:
    """Whether a sentence names years, but no year of the question, and no span around such a year.

    "After 1931" and the like ask for other years.
    """
    asked_years = {int(year) for year in YEAR.findall(question)}
    years = {int(year) for year in YEAR.findall(sentence)}
    if not asked_years or not years or _ASKS_BESIDE_YEAR.search(question):
        return False
    return not any(min(years) <= year <= max(years) for year in asked_years)


def _is_in(word: str, clause: str) -> bool:
    """Whether a clause has a Chinese word, or its short form (祖 for 祖父)."""
    is_relative = len(word) == 2 and word[0] in _KINSHIP
    return word in clause or (is_relative and word[0] in clause)


def _are_close(words: Sequence[str], text: str) -> bool:
    """Whether all words stand close together in a text, in Chinese in the same clause."""
    places: list[int] = []
    if has_cjk(text):
        clauses = re.split("[，。；：！]", simplified(text))
        return any(all(_is_in(word, clause) for word in words) for clause in clauses)
    stems = [content_terms(word) for word in text.split()]
    for word in words:
        matching = [number for number, terms in enumerate(stems) if word in terms]
        if not matching:
            return False
        places.append(matching[0])
    return max(places) - min(places) <= _CLOSE_WORDS

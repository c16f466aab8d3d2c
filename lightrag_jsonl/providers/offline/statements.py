"""Statements of a sentence: a subject, a predicate and an object, by patterns with little doubt.

A pattern covers the text from the subject to the object, so whatever else may change the meaning (another
name, a negation, a condition, a question) leaves the sentence without a statement.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from lightrag_jsonl.core.cjk import has_cjk, simplified
from lightrag_jsonl.core.dates import ENGLISH_MONTHS
from lightrag_jsonl.core.stop_words import STOP_WORDS
from lightrag_jsonl.providers.offline import words as tables
from lightrag_jsonl.providers.offline.offices import (
    CLASSICAL_OFFICES,
    TAKES_CLASSICAL_OFFICE,
    TAKES_OFFICE,
)
from lightrag_jsonl.providers.offline.phrases import Phrase
from lightrag_jsonl.providers.offline.sentences import Sentence


class Statement(NamedTuple):
    """A relation in the words of a sentence: `predicate` leads from the subject to the object."""

    subject: str
    predicate: str
    object: str


def find_statements(text: str, sentence: Sentence) -> Iterator[Statement]:
    """The statements about neighbouring names of a sentence; none of a question."""
    if text[: sentence.end].rstrip("\"'”’」）) ").endswith(("?", "？")):
        return
    rules = (
        _chinese_statement if has_cjk(text[sentence.start : sentence.end]) else _english_statement
    )
    for subject, object in pairwise(sentence.subject_and_phrases):
        yield from rules(text, sentence, subject, object)


# ── English ─────────────────────────────────────────────────────────────────────

_TIME_WORD = (
    rf"(?:\d{{1,4}}(?:st|nd|rd|th|s)?|AD|CE|BC|BCE|the|early|late|mid|around|about|spring|summer|autumn"
    rf"|winter|of|to|until|and|{ENGLISH_MONTHS})"
)
_TIME = (  # before a subject: "In 1902 ", "From AD 196 to AD 199, "
    rf"(?:in|on|by|after|before|since|during|from|between|until)\s+(?=\D{{0,25}}\d)(?:{_TIME_WORD},?\s+){{1,9}}"
)
_OPENING = re.compile(  # what may stand before the subject of a sentence or a coordinated clause
    r"(?:.*,\s(?:and|but|while)\s+)?\W*(?:(?:later|then|today|however|meanwhile|originally|finally),?\s+)?"
    rf"(?:{_TIME}|(?:in|on|at|by|after|since|during|from|until)\s[^,]{{1,40}},\s+)?(?:(?:the|mr|mrs|ms|dr|prof|sir|lady)\.?\s+)*[\"“'‘*_`]*",
    re.IGNORECASE | re.DOTALL,
)
_FREE_OBJECT = re.compile(  # what may follow the object: no "'s", and no noun that it describes
    r"[\"”*_`]*\s*(?:[.,;:!?)\]]|$|\(|(?:in|at|on|from|and|or|to|for|with|as|by|during|who|which|that|when|where"
    r"|while|after|before|until|because|since|through|near|under|over|between|but|against|around|into)\b)"
)
_ADVERBS = (
    r"(?:(?:has|had|also|later|then|first|once|soon|still|now|again|recently|[a-z]{3,}ly)\s+){0,2}"
)
_DETERMINER = r"(?:(?:the|an?)\s+(?:[a-z][a-z-]+\s+){0,2})?[\"“'‘*_`]*"
_PREPOSITIONS = r"to|for|in|at|with|from|on|of|near|into|as|after|under|against|through|about"
_VERB_PHRASE = re.compile(
    rf"\s+{_ADVERBS}(?P<verb>[a-z]{{3,}})(?:\s+(?P<preposition>{_PREPOSITIONS}|by))?\s+(?P<determiner>{_DETERMINER})"
)
_PASSIVE = re.compile(
    rf",?\s+(?:(?:which|who)\s+)?(?:(?:is|was|are|were|been|being)\s+|has\s+been\s+|had\s+been\s+)?{_ADVERBS}"
    rf"(?P<verb>[a-z]{{3,}})\s+(?P<preposition>{_PREPOSITIONS}|by)\s+(?P<determiner>{_DETERMINER})"
)
_ROLE = re.compile(  # "is the capital of", ", a village in"
    r"(?:,|\s+(?:is|was|became|remains|has\s+been|had\s+been))\s+(?:(?P<article>the|an?)\s+)?(?P<role>(?:[a-z][a-z-]+\s+){0,2}[a-z]{3,})\s+"
    r"(?P<preposition>of|in|at|for|near)\s+(?P<determiner>(?:the\s+)?)"
)
_POSSESSED = re.compile(  # "'s nephew", "'s nephew was"
    r"(?:['’]s?|his|her|its)\s+(?:[a-z-]+\s+){0,2}(?P<role>(?!was\b)[a-z]{3,})(?:,|\s+(?:is|was))?\s+(?:the\s+)?",
    re.IGNORECASE,
)
_PART_PLAYED = " as "  # in a list of actors and parts: "Ann as Bob's father Carl as Bob's friend"
_NO_ROLES = (
    "one",
    "part",
    "kind",
    "sort",
    "type",
    "number",
    "lot",
    "result",
    "way",
    "form",
    "member",
    "series",
)
_AUXILIARY = re.compile(r"\b(?:is|was|are|were|been|being)\b")


def _english_statement(
    text: str, sentence: Sentence, subject: Phrase, object: Phrase
) -> Iterator[Statement]:
    """The statement of the words between two names, if a pattern covers them."""
    between_start = subject.end
    between_end = object.start
    if possessed := _POSSESSED.fullmatch(text, between_start, between_end):
        role = possessed["role"].casefold()
        is_relative = role in tables.RELATIVES or tables.TYPES.get(role) == "person"
        is_part = text.endswith(_PART_PLAYED, 0, subject.start) and "," not in possessed[0]
        if is_relative and not is_part and not text.startswith(_PART_PLAYED, object.end):
            yield Statement(subject.name, role, object.name)
        return
    before = text[sentence.start : subject.start]
    if not _OPENING.fullmatch(before) or not _FREE_OBJECT.match(text, object.end):
        return
    role_match = _ROLE.fullmatch(text, between_start, between_end)
    if role_match and (role_match["article"] or _ends_with_office(role_match["role"])):
        role = role_match["role"]
        if not STOP_WORDS.intersection(role.split()) and role.split()[-1] not in _NO_ROLES:
            yield Statement(subject.name, f"{role} {role_match['preposition']}", object.name)
        return
    yield from _verb_statement(text[between_start:between_end], subject.name, object.name)


def _ends_with_office(role: str) -> bool:
    return role.split()[-1] in tables.OFFICES


def _verb_statement(between: str, subject: str, object: str) -> Iterator[Statement]:
    """The statement of a verb between two names, the other way round for the passive voice."""
    is_passive = _AUXILIARY.search(between) is not None
    match = (_PASSIVE if is_passive or between.startswith(",") else _VERB_PHRASE).fullmatch(between)
    if match is None:
        match = _PASSIVE.fullmatch(between)
    if match is None or STOP_WORDS.intersection(match["determiner"].split()) - {"the", "a", "an"}:
        return
    verb = match["verb"]
    preposition = match["preposition"]
    if preposition == "by":
        if _is_participle(verb):
            yield Statement(object, verb, subject)
    elif is_passive or match.re is _PASSIVE:
        if is_passive and _is_participle(verb):
            yield Statement(subject, f"{verb} {preposition}", object)
    elif _is_verb(verb) and (preposition or verb not in tables.LINKING_VERBS):
        yield Statement(subject, f"{verb} {preposition}" if preposition else verb, object)


def _is_participle(word: str) -> bool:
    return word in tables.IRREGULAR_PARTICIPLES or _is_regular_past(word)


def _is_regular_past(word: str) -> bool:
    return len(word) > 4 and word.endswith("ed") and word not in tables.NO_PAST_FORMS


def _is_verb(word: str) -> bool:
    """Whether a word is a verb in the past or in the third person."""
    if word in STOP_WORDS:
        return False
    is_past = word in tables.IRREGULAR_PASTS or _is_regular_past(word)
    return is_past or word in tables.THIRD_PERSON_VERBS


# ── Chinese ─────────────────────────────────────────────────────────────────────

_CHINESE_OPENING = re.compile(
    r"(?:.*[，；：。、]|)\W*(?:却说|且说|后来|随后|于是|当时|同年|其后|此后|次年)?", re.DOTALL
)
_MARKS_BEFORE_NAME = ("《", "“", "‘", "「")
_MARKS_AFTER_NAME = ("》", "”", "’", "」")
_FREE_CHINESE_OBJECT = (
    re.compile(  # neither "Li's poem" (李白《静夜思》) nor one of several owners (甲、乙的主张)
        r"[》”’」]?+(?!《|[、和与及](?!《)[^，。；、的]{1,16}的)(?:[^\w·\-－—]|$|[和与及并])"
    )
)
_CHINESE_ADVERBS = r"(?:已经|已|曾经|曾|也|又|便|遂|亦|还|共同|正式|主要|后来|\d{4}年){0,2}"
_CHINESE_VERB = re.compile(
    rf"{_CHINESE_ADVERBS}(?P<verb>\w{{1,4}}?)(?P<particle>[于在自到至往入为]?)(?:了|过|着)?[《“「]?"
)
_CHINESE_PASSIVE = re.compile(rf"{_CHINESE_ADVERBS}(?:是)?[被由]")
_MUTUAL = re.compile(rf"{_CHINESE_ADVERBS}[与和同跟]")
_CHINESE_ROLE_OF = re.compile(rf"{_CHINESE_ADVERBS}(?:是|为|乃|即)")
_CHINESE_ROLE = re.compile(r"[》”’」]?的(?P<role>\w{1,5})(?=[，。；！”」]|$)")
_OFFICE = re.compile(rf"{_CHINESE_ADVERBS}{TAKES_OFFICE}")
_CLASSICAL_OFFICE = re.compile(rf"{_CHINESE_ADVERBS}(?P<verb>{TAKES_CLASSICAL_OFFICE})")
_OFFICE_AFTER = re.compile(r"(?:的|)(?P<role>\w{2,6})(?=[，。；！”」]|$)")
_SEAT = re.compile(r"(?:的)?(?P<predicate>(?:总部|总行|校址|院址)(?:设|位|坐落)?[于在])")
_CREATED_AFTER = re.compile(r"(?:所|)(?P<verb>\w{1,2})(?=的)")
_CHINESE_POSSESSED = re.compile(r"[之的](?P<role>[^\W\d]{1,5}?)(?:是|为|叫|名叫)?")
# Beginnings of no verb, or of none that states a fact about its object alone.
_NO_VERBS = (
    *(
        "是",
        "有",
        "为",
        "不",
        "没",
        "未",
        "无",
        "莫",
        "勿",
        "休",
        "毋",
        "非",
        "可",
        "能",
        "想",
        "要",
        "欲",
    ),
    *("只", "必", "须", "应", "该", "若", "如", "使", "令", "让"),
    *("担任", "完成", "进行", "争先", "接入", "犹"),
)
_VERB_AFTER = re.compile(
    r"(?:共同|所|一起|首次|正式)?(?P<verb>\w{2}|(?<=所)[著写作撰])(?=了|[于在]\d|[，。；！]|$|的\W)"
)


def _chinese_statement(
    text: str, sentence: Sentence, subject: Phrase, object: Phrase
) -> Iterator[Statement]:
    """The statement of the words between two names, or right after the second name."""
    written = text[sentence.start : sentence.end]
    plain = simplified(written)
    start = subject.end - sentence.start
    start += plain.startswith(_MARKS_AFTER_NAME, start)
    end = object.start - sentence.start
    end -= plain.endswith(_MARKS_BEFORE_NAME, start, end)
    after = object.end - sentence.start
    opens = _CHINESE_OPENING.fullmatch(plain, 0, subject.start - sentence.start)
    if not (subject.sure and object.sure and opens):
        return
    is_free = _FREE_CHINESE_OBJECT.match(plain, after) is not None
    possessed = _CHINESE_POSSESSED.fullmatch(plain, start, end)
    if possessed and is_free and _is_relative(possessed["role"], object):
        yield Statement(subject.name, written[slice(*possessed.span("role"))], object.name)
    elif seat := _SEAT.fullmatch(plain, start, end):
        if object.type == "place":
            yield Statement(subject.name, written[slice(*seat.span("predicate"))], object.name)
    elif is_free and (holding := _held_office(plain, start, end, subject, object)):
        yield Statement(subject.name, written[slice(*holding)], object.name)
    elif _OFFICE.fullmatch(plain, start, end):
        office = _OFFICE_AFTER.match(plain, after)
        if office and office["role"].endswith(tables.CHINESE_OFFICES):
            yield Statement(subject.name, written[slice(*office.span("role"))], object.name)
    elif _CHINESE_ROLE_OF.fullmatch(plain, start, end) and (
        created := _creation(plain, subject, object, after)
    ):
        yield Statement(object.name, written[slice(*created)], subject.name)
    elif _CHINESE_ROLE_OF.fullmatch(plain, start, end):
        role = _CHINESE_ROLE.match(plain, after)
        if role and "的" not in role["role"] and role["role"] not in tables.GENERIC_NOUNS:
            yield Statement(object.name, written[slice(*role.span("role"))], subject.name)
    elif _CHINESE_PASSIVE.fullmatch(plain, start, end):
        verb = _VERB_AFTER.match(plain, after)
        if verb and _is_chinese_verb(verb["verb"], sentence):
            yield Statement(object.name, written[slice(*verb.span("verb"))], subject.name)
    elif _MUTUAL.fullmatch(plain, start, end):
        verb = _VERB_AFTER.match(plain, after)
        if verb and verb["verb"] in tables.MUTUAL_VERBS:
            yield Statement(subject.name, written[slice(*verb.span("verb"))], object.name)
    elif is_free or _is_part_of_place(sentence, object):
        verb = _CHINESE_VERB.fullmatch(plain, start, end)
        if verb and _leads_to_object(verb, sentence) and not _is_compound(subject, verb, object):
            predicate = written[verb.start("verb") : verb.end("particle")]
            yield Statement(subject.name, predicate, object.name)


def _held_office(
    text: str, start: int, end: int, person: Phrase, office: Phrase
) -> tuple[int, int] | None:
    """The span of the verb in 荀彧任益州牧."""
    verb = _CLASSICAL_OFFICE.fullmatch(text, start, end)
    is_office = simplified(office.name).endswith(CLASSICAL_OFFICES)
    if verb is None or person.type != "person" or not is_office:
        return None
    return verb.span("verb")


def _creation(text: str, subject: Phrase, object: Phrase, after: int) -> tuple[int, int] | None:
    """The span of the verb in "《…》是某人执导的电影"."""
    created = _CREATED_AFTER.match(text, after)
    if subject.type != "work" or object.type != "person" or created is None:
        return None
    return created.span("verb") if created["verb"] in tables.CREATING_VERBS else None


def _is_relative(role: str, object: Phrase) -> bool:
    """Whether a person or a capital can be called so."""
    return role in (tables.CHINESE_CAPITALS if object.type == "place" else tables.CHINESE_RELATIVES)


def _is_part_of_place(sentence: Sentence, place: Phrase) -> bool:
    """Whether a smaller place follows: 浙江省 in 出生于浙江省杭州市."""
    return place.type == "place" and any(
        phrase.start == place.end and phrase.type == "place" for phrase in sentence.phrases
    )


def _is_chinese_verb(verb: str, sentence: Sentence) -> bool:
    """Whether a word is a verb of the sentence, or in the table of verbs."""
    if verb in tables.CHINESE_VERBS:
        return True
    return any(word.is_verb and simplified(word.text) == verb for word in sentence.words)


def _is_compound(subject: Phrase, verb: re.Match[str], object: Phrase) -> bool:
    """Whether the verb is rather a part of a name (英国推理作家协会, 迟子建在《收获》上)."""
    if object.type == "work" and verb["particle"] == "在":
        return True
    is_bare = verb.end() == verb.end("verb") and not verb["particle"]
    return is_bare and subject.type == "place" and object.type == "organization"


def _leads_to_object(match: re.Match[str], sentence: Sentence) -> bool:
    """Whether a verb, alone or with a particle (出生于), states a fact about the object."""
    if (match["verb"] + match["particle"]).startswith(_NO_VERBS):
        return False
    if _is_chinese_verb(match["verb"] + match["particle"], sentence):
        return True
    return bool(match["particle"]) and _is_chinese_verb(match["verb"], sentence)

"""Checks and locates the names given by another reader of a text."""

import re
from collections.abc import Iterable, Sequence

from lightrag_jsonl.core.types import UNKNOWN_TYPE
from lightrag_jsonl.rules.phrases import Phrase, without_overlap
from lightrag_jsonl.text.cjk import CJK, has_cjk, simplified
from lightrag_jsonl.text.names import clean_name
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.segmentation import SegmentedWord, segmented
from lightrag_jsonl.text.strings import words
from lightrag_jsonl.text.terms import is_grammatical

CLAUSE = "a clause or a list, not a name"
COMMON_WORD = "a common word, not a name"
_LETTER_OF_WORD = rf"[^\W_{CJK}]"  # of a word written with spaces
_LEADING_ARTICLE = pattern_of(
    r"^(?:the|an?) ", re.IGNORECASE
)  # the rules leave it out of names, too
_LEAST_CHINESE_NAME = 2  # characters: single ones are parts of many words
_CLAUSE_MARKS = pattern_of(r"[，。；：！？、…]|[;:!?] |, | \. ")
_CLAUSE_ENDS = pattern_of(r"[.,;:!?]$(?<!\w\.)|[两几数二三四五六七八九十百千万]人$|曰$|之人$")
_LONGEST_ENGLISH_NAME = 8  # words
_INNER_WORDS = words("of the a an and for in on de du da di la le von van der den el al bin")
_IS_TERM = pattern_of(  # after a term: it is defined, not only told of
    r"['\"”’]?(?:\s*\([^()]{0,160}\))?,?\s+(?:(?:is|are)\s+(?:an?|the|one\s+of)|means|refers\s+to)\s"
)
# Parts of speech of the segmenter: first of verbs, then first letters of those of adverbs, pronouns,
# prepositions, particles, times and conjunctions.
_VERB_TAGS = ("v", "vg", "vd", "ad", "zg")
_CLAUSE_TAGS = "drpuytc"
_NOUN_TAGS = ("n", "l", "ng")
_NO_NAME_TAGS = ("v", "d", "r", "p", "u", "y", "t", "c", "a", "m", "q", "f")


def name_problem(name: str, text: str) -> str:
    """The reason why a phrase is no name in a text, or "".

    A name stands in the text, is no clause, and is more than a common word: a term in lower case
    counts if defined in the text or, with several words, if repeated; a Chinese noun if repeated.
    """
    places = _spans_of_name(name, text)
    if not places:
        return "the text does not have this name"
    if _CLAUSE_MARKS.search(name) or _CLAUSE_ENDS.search(name):
        return CLAUSE
    if has_cjk(name):
        is_work = f"《{simplified(name)}》" in simplified(text)
        return "" if is_work else _chinese_problem(simplified(name), len(places))
    return _english_problem(text, places)


def is_clause(phrase: str) -> bool:
    """Whether a Chinese phrase has a verb, an adverb, a pronoun or a preposition; words of one character may be
    parts of a word unknown to the segmenter (由来).
    """
    tags = [word.tag for word in segmented(phrase) if len(word.text) > 1 and has_cjk(word.text)]
    return any(tag in _VERB_TAGS or tag[0] in "drp" for tag in tags)


def with_listed_names(
    text: str, phrases_by_rules: Sequence[Phrase], *, names: Iterable[str]
) -> list[Phrase]:
    """All places of the names in a text, the longer of two overlapping names, and the phrases found
    by the rules of the language elsewhere.

    A name has the type of the rules' phrase at the same place.
    """
    phrases: list[Phrase] = []
    for name in names:
        for start, end in _spans_of_name(_LEADING_ARTICLE.sub("", name, count=1), text):
            phrases.append(_typed_phrase(text, start, end, phrases_by_rules))
    listed = without_overlap(phrases)
    taken = {at for phrase in listed for at in range(phrase.start, phrase.end)}
    further_phrases = [
        phrase for phrase in phrases_by_rules if taken.isdisjoint(range(phrase.start, phrase.end))
    ]
    return without_overlap([*listed, *further_phrases])


def _typed_phrase(text: str, start: int, end: int, phrases: Iterable[Phrase]) -> Phrase:
    """A name as spelled in a text, with the type of the phrase over most of the place, if any."""
    name = clean_name(text[start:end])
    best = Phrase(start=start, end=end, name=name, type=UNKNOWN_TYPE, sure=False)
    most_shared = 0
    for phrase in phrases:
        shared = min(end, phrase.end) - max(start, phrase.start)
        if shared > most_shared:
            most_shared = shared
            best = Phrase(start=start, end=end, name=name, type=phrase.type, sure=phrase.sure)
    return best


def _spans_of_name(name: str, text: str) -> list[tuple[int, int]]:
    """The places of a name in a text, also over a line break and in other characters; in other
    capitals only without an exact place.
    """
    parts = [re.escape(part) for part in simplified(name).split()]
    if not parts:
        return []
    space = r"\s*" if has_cjk(name) else r"\s+"
    pattern = re.sub("['’]", "['’]", space.join(parts))
    if not has_cjk(name):
        pattern = rf"(?<!{_LETTER_OF_WORD}){pattern}(?!{_LETTER_OF_WORD})"
    plain = simplified(text)
    for flags in (0, re.IGNORECASE):
        places = [match.span() for match in re.finditer(pattern, plain, flags)]
        if places:
            return places
    return []


# ── kinds of phrases that are no names ──────────────────────────────────────────


def _english_problem(text: str, places: Sequence[tuple[int, int]]) -> str:
    start, end = places[0]
    written = _LEADING_ARTICLE.sub("", " ".join(text[start:end].split()))
    name_words = written.casefold().replace("’", "'").split()
    if not name_words or len(name_words) > _LONGEST_ENGLISH_NAME:
        return CLAUSE
    if is_grammatical(name_words[0]) and not _is_title(written):  # of Ann Lee, In 1902
        return CLAUSE
    inner_words = [word for word in name_words[1:] if is_grammatical(word)]
    if is_grammatical(name_words[-1]) or not _INNER_WORDS.issuperset(inner_words):
        return CLAUSE
    if any(char.isupper() or char.isdigit() for char in written):
        return ""
    has_several_words = sum(not is_grammatical(word) for word in name_words) > 1
    if has_several_words and len(places) > 1:
        return ""
    return "" if any(_IS_TERM.match(text, end) for _, end in places) else COMMON_WORD


def _is_title(name: str) -> bool:
    """Whether a name that begins with a function word has the capitals of a title: Of Mice and Men."""
    first_word, *other_words = name.split()
    return first_word[0].isupper() and any(word[0].isupper() for word in other_words)


def _chinese_problem(name: str, count: int) -> str:
    if len(name) < _LEAST_CHINESE_NAME:
        return "a single character, not a name"
    parts = [*segmented(name)]
    if len("".join(part.text for part in parts)) < len(name):
        return CLAUSE  # 玄德笑: the segmenter leaves the verb out
    if len(parts) == 1:
        is_common = parts[0].tag in _NO_NAME_TAGS or (parts[0].tag in _NOUN_TAGS and count == 1)
        return COMMON_WORD if parts[0].in_dictionary and is_common else ""
    return CLAUSE if count == 1 and _has_clause_words(parts) else ""


def _has_clause_words(parts: Sequence[SegmentedWord]) -> bool:
    """Whether Chinese words are more than nouns: with a verb, or something else of a clause."""
    tags = [part.tag for part in parts if has_cjk(part.text)]
    has_adjective_inside = "a" in tags[1:]
    ends_with_place = tags[-1:] == ["f"]  # 帐下
    return (
        has_adjective_inside
        or ends_with_place
        or any(tag in _VERB_TAGS or tag[0] in _CLAUSE_TAGS for tag in tags)
    )

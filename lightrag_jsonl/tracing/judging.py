"""Judges the claims of a text against passages by facts that words can decide.

Words tell what is `missing` near the nearest sentence: a number, a date, a name, a quotation, a "not"
too many or too few. They never tell that a sentence supports a claim.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, structs

from lightrag_jsonl.core.answers import Span, Verdict
from lightrag_jsonl.core.languages import Language, written_in
from lightrag_jsonl.text.cjk import has_cjk, simplified
from lightrag_jsonl.text.names import letters_and_digits, nfkc_casefold
from lightrag_jsonl.text.sentences import sentence_spans
from lightrag_jsonl.text.terms import GRAMMAR_WORDS, content_stems, search_terms, stem
from lightrag_jsonl.tracing.cited_passages import (
    CitedPassages,
    JudgedPassage,
    Place,
    Window,
    read_passages,
)
from lightrag_jsonl.tracing.claim_facts import (
    ClaimFact,
    is_no_name,
    name_facts,
    overlaps,
    polarity,
    quotation_facts,
    value_facts,
    words_of,
)
from lightrag_jsonl.tracing.claim_words import HEDGES, NEGATIONS, STRONG_WORDS

_SHORTEST_COPY = 12  # characters of a claim that is a quotation word for word
_QUOTATION_MARKS = "“”\"'‘’「」"
_FULL_STOPS = ".。!！?？…"
_CLAUSE_BORDERS = _FULL_STOPS + _QUOTATION_MARKS + ",;:，；：、\n|()（）—"
_PRECISION = 0.01  # "about" allows a hundredth
_EXACT = 1e-6
_COUNTABLE = 12  # a number of things up to this may be counted instead of written


class Reason(Struct, frozen=True, kw_only=True):
    """Why a claim is marked: a key of `_REASON_WORDS` with the quotes for its gaps; the characters of the claim,
    and those of the passage of the nearest sentence, that differ. One that does not decide only asks to compare.
    """

    kind: str
    quotes: tuple[str, ...] = ()
    differing: Span | None = None
    instead: Span | None = None
    decides: bool = True


class ClaimJudgement(Struct, frozen=True, kw_only=True):
    """What words tell of a claim: its nearest sentence, if one shares a word, and the window of sentences
    that were looked at.

    The verdict is "missing", "compare" or "nearest": words never tell that a sentence supports a claim. With it
    come its reasons in words, the `differing` characters of the claim, and those of the passage of the nearest
    sentence that stand there `instead`.
    """

    nearest: Place | None = None
    window: str = ""
    verdict: Verdict = "nearest"
    reason: str = ""
    differing: tuple[Span, ...] = ()
    instead: tuple[Span, ...] = ()


def judge_claim(
    claim: str,
    passages: Sequence[JudgedPassage],
    *,
    known_words: Collection[str] = frozenset(),
    language: Language = "en",
) -> ClaimJudgement:
    """The nearest sentence of a claim in passages, and what of the claim does not stand near it, with the reasons
    in the `language` of the index, or in Chinese for a claim in Chinese.

    `known_words` are words of names, in lower case, such as those of the index: they tell a name from
    a word at the start of a claim.
    """
    copied = _copied_place(claim, passages)
    if copied is not None:
        window_text = passages[copied.passage].text[copied.start : copied.end]
        return ClaimJudgement(nearest=copied, window=window_text)
    words = _REASON_WORDS["zh" if has_cjk(claim) else language]
    all_passages = read_passages(tuple(passages))
    window = all_passages.window(claim)
    if window is None:
        return _judged(_reasons_of_strangers(claim, all_passages), words)
    judgement = _judged(_reasons(claim, window, known_words), words)
    return structs.replace(judgement, nearest=window.place, window=window.text)


def _judged(reasons: Iterable[Reason], words: Mapping[str, str]) -> ClaimJudgement:
    """The judgement for some reasons; of several, those that decide."""
    all_reasons = list(reasons)
    deciding = [reason for reason in all_reasons if reason.decides]
    verdict: Verdict = "compare" if all_reasons else "nearest"
    own_reasons = deciding or all_reasons
    texts = [words[reason.kind].format(*reason.quotes) for reason in own_reasons]
    instead = [reason.instead for reason in own_reasons if reason.instead]
    return ClaimJudgement(
        verdict="missing" if deciding else verdict,
        reason=words["joint"].join(texts),
        differing=tuple([reason.differing for reason in own_reasons if reason.differing]),
        instead=tuple(dict.fromkeys(instead)),
    )


def words_of_names(names: Iterable[str]) -> frozenset[str]:
    """The words of names, in lower case, as `judge_claim` knows them."""
    return frozenset(word for name in names for word in nfkc_casefold(name).split())


def _copied_place(claim: str, passages: Sequence[JudgedPassage]) -> Place | None:
    """The place of a claim that stands in a passage word for word: it is a quotation."""
    quoted = claim.strip().strip(_QUOTATION_MARKS).rstrip(_FULL_STOPS)
    if len(quoted) < _SHORTEST_COPY:
        return None
    quoted_words = [re.escape(word) for word in quoted.split()]
    pattern = re.compile(r"\s+".join(quoted_words))
    for number, passage in enumerate(passages):
        match = pattern.search(passage.text)
        if match is not None:
            start, end = _whole_sentences(passage.text, *match.span())
            return Place(passage=number, start=start, end=end)
    return None


def _whole_sentences(text: str, start: int, end: int) -> Span:
    """A span with the closing marks behind it; the sentences around a span that begins inside a clause."""
    while end < len(text) and text[end] in _FULL_STOPS + _QUOTATION_MARKS:
        end += 1
    before = text[:start].rstrip(" ")
    if not before or before[-1] in _CLAUSE_BORDERS:
        return start, end
    around = [(first, last) for first, last in sentence_spans(text) if first < end and start < last]
    first_start = around[0][0]
    last_end = around[-1][1]
    return min(start, first_start), max(end, last_end)


def _reasons_of_strangers(claim: str, passages: CitedPassages) -> Iterator[Reason]:
    """The reasons to mark a claim that shares no word with the passages: numbers and dates that stand
    nowhere, and that nothing can be compared. In another language that is to be expected, and a claim may
    share its words with the title of a document (a list of the documents).
    """
    for fact in value_facts(claim):
        if not _stands_among(fact, passages.values) and not _is_countable(fact):
            yield _lacking(fact, "lacks")
    title_stems = content_stems("\n".join(passages.backgrounds), without=GRAMMAR_WORDS)
    names_a_title = content_stems(claim, without=GRAMMAR_WORDS) & title_stems
    is_same_language = written_in(claim, "en") == written_in(passages.whole, "en")
    if is_same_language and not names_a_title:
        yield Reason(kind="nothing", decides=False)


def _lacking(fact: ClaimFact, kind: str) -> Reason:
    return Reason(kind=kind, quotes=(fact.text,), differing=(fact.start, fact.end))


def _reasons(claim: str, window: Window, known_words: Collection[str]) -> Iterator[Reason]:
    yield from _value_reasons(claim, window)
    yield from _quotation_reasons(claim, window.passages)
    yield from _name_reasons(claim, window, known_words)
    if window.is_near:
        yield from _polarity_reasons(claim, window)
        yield from _strength_reasons(claim, window)


# ── numbers and dates ───────────────────────────────────────────────────────────


def _value_reasons(claim: str, window: Window) -> Iterator[Reason]:
    nearest = value_facts(window.nearest)
    for fact in value_facts(claim):
        if _stands_among(fact, window.values):
            continue
        if not window.is_near and _stands_among(fact, window.passages.values):
            continue
        counterpart = _counterpart(fact, nearest)
        if counterpart is not None:
            start = window.place.start
            yield Reason(
                kind="says",
                quotes=(counterpart.text, fact.text),
                differing=(fact.start, fact.end),
                instead=(start + counterpart.start, start + counterpart.end),
            )
        elif not _is_countable(fact):
            yield _lacking(fact, "lacks")


def _is_countable(fact: ClaimFact) -> bool:
    """Whether a number may be counted from what a text lists: three towns."""
    is_bare = fact.kind == "number" and not fact.measure
    return is_bare and fact.number <= _COUNTABLE and fact.number % 1 == 0


def _stands_among(fact: ClaimFact, values: Sequence[ClaimFact]) -> bool:
    """Whether a number or a date is one of these."""
    is_same = _same_date if fact.kind == "date" else _same_number
    return any(is_same(fact, value, values) for value in values)


def _counterpart(fact: ClaimFact, candidates: Sequence[ClaimFact]) -> ClaimFact | None:
    """A fact of the same kind about the same: with the same unit or the same counted word."""
    for candidate in candidates:
        if candidate.kind != fact.kind:
            continue
        if fact.kind == "date":
            return candidate
        if fact.measure and fact.measure == candidate.measure:
            return candidate
        if fact.counted and fact.counted == candidate.counted:
            return candidate
    return None


def _same_number(fact: ClaimFact, source_fact: ClaimFact, values: Sequence[ClaimFact]) -> bool:
    if source_fact.kind == "date":
        return fact.plain in source_fact.date and fact.plain > 0
    if fact.measure and source_fact.measure and fact.measure != source_fact.measure:
        return False
    is_equal = _equal(fact.number, source_fact.number, fact, source_fact)
    if is_equal and fact.measure == source_fact.measure:
        return True
    is_open = not (fact.measure and source_fact.measure)
    return is_open and _equal(fact.plain, source_fact.plain, fact, source_fact)


def _equal(number: float, source_number: float, fact: ClaimFact, source: ClaimFact) -> bool:
    if fact.is_rounded or source.is_rounded:
        tolerance = max(_PRECISION * abs(source_number), _EXACT)
        return abs(number - source_number) <= tolerance
    return math.isclose(number, source_number, rel_tol=_EXACT, abs_tol=_EXACT)


def _same_date(fact: ClaimFact, source_fact: ClaimFact, values: Sequence[ClaimFact]) -> bool:
    """Whether each part of a date stands there: the year may stand elsewhere in the window."""
    if source_fact.kind == "number":
        return False
    years = {value.date[0] for value in values if value.kind == "date"} | {
        value.plain for value in values if value.kind == "number"
    }
    for position, (own, source_part) in enumerate(zip(fact.date, source_fact.date, strict=True)):
        if not own or own == source_part:
            continue
        if position == 0 and not source_part and own in years:
            continue
        return False
    return True


# ── quotations and names ────────────────────────────────────────────────────────


def _quotation_reasons(claim: str, passages: CitedPassages) -> Iterator[Reason]:
    for fact in quotation_facts(claim):
        quoted_pieces = fact.text.replace("...", "…").split("…")
        pieces = [letters_and_digits(simplified(piece)) for piece in quoted_pieces]
        if not all(piece in passages.letters for piece in pieces):
            yield _lacking(fact, "quotation")


def _name_reasons(claim: str, window: Window, known_words: Collection[str]) -> Iterator[Reason]:
    """The names that no passage has; and, to be compared, those that no passage has that shares another word."""
    passages = window.passages
    if written_in(claim, "en") != written_in(passages.whole, "en"):
        return  # in another script, a name has other letters
    values = value_facts(claim)

    def is_known(word: str) -> bool:
        if word in passages.capitalized_words:
            return True
        return word in known_words and f" {word} " not in passages.whole

    names = list(name_facts(claim, is_known))
    capitalized = [word for word in claim.split() if word[0].isupper()]
    all_names = " ".join([*capitalized, *(fact.text for fact in names)])
    name_terms = content_stems(all_names, without=GRAMMAR_WORDS)
    passages_on_it = window.passages_without(name_terms)
    for fact in names:
        if overlaps(fact.start, fact.end, values):
            continue  # the month of a date
        place = (fact.start, fact.end)
        if missing := _missing_part(fact.text, passages):
            yield Reason(kind="name", quotes=(missing,), differing=place)
        elif passages_on_it.texts and (elsewhere := _missing_part(fact.text, passages_on_it)):
            yield Reason(kind="elsewhere", quotes=(elsewhere,), differing=place, decides=False)


def _missing_part(name: str, passages: CitedPassages) -> str:
    """The part of a name that passages do not have, also not in a short form; "" if there is none."""
    if has_cjk(name):
        return "" if simplified(name) in passages.simplified else name
    words = name.replace("-", " ").split()
    parts = [word for word in words if word[:1].isupper()]
    missing = [part for part in parts if not _stands(part, passages)]
    if not missing or _is_part_of_name(parts, missing, passages) or _is_acronym(name, passages):
        return ""
    return " ".join(missing)


def _stands(part: str, passages: CitedPassages) -> bool:
    """Whether the words of a part of a name stand in passages, or a form of them: Polish, Poland."""
    stems = passages.stems
    if part.endswith(".") or len(part) == 1:  # an initial
        initial = part[0].lower()
        return any(word.startswith(initial) for word in stems)
    for term in search_terms(part):
        if stem(term) in stems or term in GRAMMAR_WORDS:
            continue
        kindred = (word for word in stems if word[:4] == term[:4])
        has_form = any(abs(len(word) - len(term)) < 5 for word in kindred)
        if len(term) < 5 or not has_form:
            return False
    return True


def _is_part_of_name(parts: Sequence[str], missing: Sequence[str], passages: CitedPassages) -> bool:
    """Whether the passages have another part of a name that stands alone somewhere: Ms McCullough for
    Deb McCullough.
    """
    for part in parts:
        named = rf"(?:\b(?P<before>[A-Z]\w*)\.? )?\b{re.escape(part)}\b(?! [A-Z])"
        for match in () if part in missing else re.finditer(named, passages.whole):
            before = match["before"]
            if before is None or before in parts or is_no_name(before):
                return True
    return False


def _is_acronym(name: str, passages: CitedPassages) -> bool:
    """Whether a name in capitals has the initials of capitalized words that follow each other."""
    letters = name.replace(".", "")
    return letters.isupper() and len(letters) > 1 and letters in passages.initials


# ── words that turn a statement round, or make it stronger or weaker ────────────


def _polarity_reasons(claim: str, window: Window) -> Iterator[Reason]:
    """A "not" of the claim where a sentence says the same without any "not", or one that the claim has lost.

    With other words, in two sentences or with a "not" of its own, a passage may well say what the claim denies.
    """
    claimed = polarity(claim)
    if not claimed.operators:
        yield from _lost_operators(claim, window, NEGATIONS, decides=True)
        return
    polarities = [polarity(sentence) for sentence in window.alike]
    affirmed = [sentence.affirmed for sentence in polarities if not sentence.operators]
    for negation in claimed.operators:
        if negation.words and any(negation.words <= sentence for sentence in affirmed):
            yield Reason(
                kind="affirms",
                quotes=(negation.text,),
                differing=(negation.start, negation.end),
            )
            return


def _lost_operators(
    claim: str, window: Window, operators: frozenset[str], *, decides: bool
) -> Iterator[Reason]:
    """The first operator of the nearest sentence whose words the claim has without any."""
    claimed = polarity(claim, operators)
    nearest = polarity(window.nearest, operators)
    if claimed.operators or not nearest.operators:
        return
    sentences = [polarity(sentence, operators) for sentence in window.sentences]
    affirmed = {word for sentence in sentences for word in sentence.affirmed}
    for operator in nearest.operators:
        words = operator.words
        if not words or not words <= claimed.affirmed or words <= affirmed:
            continue  # it is said of something else, or elsewhere without it
        start = window.place.start
        yield Reason(
            kind="denies",
            quotes=(operator.text,),
            instead=(start + operator.start, start + operator.end),
            decides=decides,
        )
        return


def _strength_reasons(claim: str, window: Window) -> Iterator[Reason]:
    for group in STRONG_WORDS.values():
        claimed = words_of(claim, group)
        if claimed and not any(words_of(sentence, group) for sentence in window.best):
            start, end, word = claimed[0]
            yield Reason(
                kind="strong",
                quotes=(word,),
                differing=(start, end),
                decides=False,
            )
    yield from _lost_operators(claim, window, HEDGES, decides=False)


_REASON_WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "joint": "; ",
        "says": "the passage says “{}”, not “{}”",
        "lacks": "the passage does not say: {}",
        "quotation": "these words do not stand in the passage: “{}”",
        "name": "the passage does not name {}",
        "elsewhere": "{} stands only in passages that share nothing else with it",
        "affirms": "the passage says so without “{}”",
        "denies": "the passage says “{}”",
        "strong": "the passage does not say “{}”",
        "nothing": "the passage shares no word with it",
    },
    "zh": {
        "joint": "；",
        "says": "原文写的是“{}”，不是“{}”",
        "lacks": "原文中没有“{}”",
        "quotation": "原文中没有“{}”这句原话",
        "name": "原文没有提到{}",
        "elsewhere": "提到{}的段落与这句话没有其他相同的词语",
        "affirms": "原文的说法中没有“{}”",
        "denies": "原文写的是“{}”",
        "strong": "原文没有说“{}”",
        "nothing": "原文与这句话没有相同的词语",
    },
}

"""The meaning of the pronoun at the beginning of a sentence, where certain."""

import re
from collections.abc import Sequence

from msgspec import Struct

from lightrag_jsonl.rules.chinese import begins_with_surname
from lightrag_jsonl.rules.english import OFFICES, PERSON_TITLES
from lightrag_jsonl.rules.phrases import Phrase, Spans
from lightrag_jsonl.rules.words import is_given_name, is_ordinary, may_be_verb
from lightrag_jsonl.text.cjk import has_cjk
from lightrag_jsonl.text.markup import HEADING, cells_of, is_table_header
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import TABLE_ROW, beginning_of_words
from lightrag_jsonl.text.terms import STOP_WORDS

_PRONOUN_WORD = pattern_of(  # others than these groups are never sure
    r"(?=[hsit他她它])"  # first letters, for speed
    r"(?:(?P<person>\b(?:he|she|his|her)\b|[他她](?!们))|(?P<thing>\bits?\b|它(?!们))"
    r"|\b(?:they|their)\b|[他她它]们)",
    re.IGNORECASE,
)
_POINTING = pattern_of(  # at the beginning of a sentence: to something before
    r"\W*(?:(?:this|these|those|that)\b|[此该这那]|其(?!他|它|中|实|余))", re.IGNORECASE
)
_OPENING = pattern_of(  # what may stand before a subject: nothing, a time, or "Later, "
    r"\W*(?:(?:in|on|by|from|since|during|until|after)\s[^,]{0,30}?\d{4},?\s"
    r"|(?:later|then|soon|afterwards|finally|however),?\s|\d{4}年[^，]{0,8}，?)?",
    re.IGNORECASE,
)
_EMPTY_IT = pattern_of(  # it was noted that, it took ten years to: of nothing before
    r"it(?:['’]s|\s+(?:is|was|(?:has|had|will|would|may|might|can|could)\s+(?:be|been)))"
    r"(?:\s+(?!(?:an?|the|one)\b)\w+){1,2}\s+(?:that|whether|why)\b"
    r"|it\s+(?:seem|appear|turn|follow|happen)\w*\s+(?:out\s+)?that\b|it\s+(?:rain|snow)(?:s|ed)\b"
    r"|it\s+(?:took|takes)\s+(?:(?-i:[A-Z])|(?:\w+\s+){1,2}(?:minute|hour|day|week|month|year)s?\b)"
    r"[^.,;:]*\bto\b",
    re.IGNORECASE,
)
_THINGS = ("place", "organization", "work", "event")  # no person
_TITLE_WORDS = "|".join(sorted({"the", *PERSON_TITLES, *OFFICES}))
_BEFORE_SUBJECT = pattern_of(rf"(?:\W|\b(?:{_TITLE_WORDS})\b)*", re.IGNORECASE)
_LONGEST_PREPOSITION = 12  # characters, with an article
_OF_PLACE = pattern_of(r"\b(?:in|at|near|from)\s+(?:the\s+)?$|[在于]$", re.IGNORECASE)
_AND = pattern_of(r"\s*(?:,|and\b|or\b|&|、|和|与|及)", re.IGNORECASE)
_BRACKETED = pattern_of(r"\s*\([^()]{0,160}\)|,[^,.;:]{0,120},")  # between a subject and its verb
_SECOND_WORD = pattern_of(r"\s+([^\W\d_]+)")
_OWNED = pattern_of(r"[的之]")
_NEW_PARAGRAPH = pattern_of(r"\n\s*\n|\n\u3000")
_INNER_BAR = pattern_of(r"[^\S\n]\|[^\S\n]")


class NamedSentence(Struct, frozen=True):
    """A sentence and the names inside, in order; `start` is behind the marks of a list and the like.

    A row of a table has the names of the `columns`, none if they are unknown; the first row `is_header`.
    `heading` is the heading above, if the heading is a name. `subject` is the name meant by the
    pronoun at the beginning, at the pronoun's place; None without a pronoun. A sentence
    `is_unclear` if the pronoun at the beginning may mean several names, and `continues_heading` if no
    sentence of the paragraph before has another subject than the heading.
    """

    start: int
    end: int
    names: Sequence[Phrase]
    heading: Phrase | None = None
    is_heading: bool = False
    subject: Phrase | None = None
    is_unclear: bool = False
    continues_heading: bool = False
    columns: Sequence[str] | None = None
    is_header: bool = False

    @property
    def subject_and_names(self) -> list[Phrase]:
        """The names, after the name meant by the pronoun at the beginning."""
        return [self.subject, *self.names] if self.subject else list(self.names)


def with_subjects(
    text: str,
    spans: Spans,
    names_by_sentence: Sequence[Sequence[Phrase]],
    *,
    has_title: bool,
    columns: Sequence[str] = (),
) -> list[NamedSentence]:
    """The sentences of a text, with the meaning of pronouns at the beginning; `columns` are those of the
    table in which the text begins.

    A pronoun means the name in the heading, unless a sentence between has another subject; or the
    only name at the beginning of the sentence before, in the same paragraph, if the rest of that
    sentence names only places. A further paragraph, or point of a list, is about the heading again only
    if it begins with the name, or has "he" or "she" and nobody else was the subject since. "It was noted that" means
    nothing before.
    """
    sentences: list[NamedSentence] = []
    heading: Phrase | None = None
    candidate: Phrase | None = None
    last_subject: Phrase | None = None
    end_before = 0
    for (mark_start, end), names in zip(spans, names_by_sentence, strict=True):
        is_row = _is_row(text, mark_start, end)
        is_header = is_row and is_table_header(text, end)
        is_barred = text[mark_start] == "|"  # its first cell may look like a mark
        start = mark_start if is_barred else beginning_of_words(text, mark_start, end)
        columns = columns if is_row else ()
        own_columns = columns if is_row and not is_header else None
        if is_header:
            columns = cells_of(text[start:end])
        is_heading = _is_heading(text, mark_start, end, may_be_title=has_title and not sentences)
        if is_heading:
            heading = _whole_name(text, start, end, names)
            candidate = heading
            last_subject = heading
        elif is_row or start > mark_start or _NEW_PARAGRAPH.search(text, end_before, start):
            is_of_heading = _has_personal_pronoun(text, start, end) and last_subject is heading
            candidate = heading if is_of_heading else None
        end_before = len(text) if is_heading else end  # below a heading begins no further paragraph
        is_pronoun = not is_heading and _begins_with_pronoun(text, start, end, names)
        subject = _pronoun_subject(text, start, end, candidate) if is_pronoun else None
        sentences.append(
            NamedSentence(
                start=start,
                end=end,
                names=names,
                heading=heading,
                is_heading=is_heading,
                subject=subject,
                is_unclear=is_pronoun and subject is None,
                continues_heading=heading is not None and candidate is heading,
                columns=own_columns,
                is_header=is_header,
            )
        )
        if not is_heading:
            candidate = _next_candidate(text, sentences[-1], candidate, heading)
            last_subject = _last_subject(text, sentences[-1], last_subject, heading)
    return sentences


def _is_heading(text: str, start: int, end: int, *, may_be_title: bool) -> bool:
    """Whether a sentence is a heading, or the title in the first line of a text."""
    is_line = text[end : end + 1] == "\n" and text[end - 1] not in ".!?。！？"
    return HEADING.match(text, start) is not None or (may_be_title and is_line)


def _is_row(text: str, start: int, end: int) -> bool:
    """Whether a sentence is a row of a table, also of one without bars at both ends; code is none."""
    if TABLE_ROW.match(text, start):
        return True
    line = text[start:end]
    return "`" not in line and _INNER_BAR.search(line) is not None


def _whole_name(text: str, start: int, end: int, names: Sequence[Phrase]) -> Phrase | None:
    """The only name in a heading, without marks; None if there are other words."""
    if len(names) != 1:
        return None
    around = text[start : names[0].start] + text[names[0].end : end]
    return None if re.search(r"\w", around) else names[0]


def _begins_with_pronoun(text: str, start: int, end: int, names: Sequence[Phrase]) -> bool:
    """Whether a sentence has a pronoun before the first name."""
    first_name = names[0].start if names else end
    return (
        _POINTING.match(text, start, end) is not None
        or _PRONOUN_WORD.search(text, start, first_name) is not None
    )


def _pronoun_subject(text: str, start: int, end: int, candidate: Phrase | None) -> Phrase | None:
    """The candidate at the place of a fitting pronoun at the beginning of a sentence; he or she is a person."""
    pronoun = _PRONOUN_WORD.search(text, start, end)
    sort = pronoun.lastgroup if pronoun else None
    if candidate is None or pronoun is None or sort is None:
        return None
    if _OPENING.fullmatch(text, start, pronoun.start()) is None:
        return None
    if sort == "person" and candidate.type != "person" and not _may_be_person(candidate):
        return None
    if sort == "thing" and (candidate.type == "person" or _EMPTY_IT.match(text, pronoun.start())):
        return None
    return Phrase(
        start=pronoun.start(),
        end=pronoun.end(),
        name=candidate.name,
        type="person" if sort == "person" else candidate.type,
        sure=sort == "person" or candidate.sure,
    )


def _may_be_person(name: Phrase) -> bool:
    """Whether a name of unknown type has a surname of China or a given name in front, or no ordinary word."""
    if name.type in _THINGS:
        return False
    if has_cjk(name.name):
        return begins_with_surname(name.name)
    words = name.name.casefold().split()
    return is_given_name(words[0]) or not any(
        word in STOP_WORDS or is_ordinary(word) for word in words
    )


def _has_personal_pronoun(text: str, start: int, end: int) -> bool:
    """Whether the first pronoun of a sentence is "he" or "she" or the like."""
    pronoun = _PRONOUN_WORD.search(text, start, end)
    return pronoun is not None and pronoun.lastgroup == "person"


def _last_subject(
    text: str, sentence: NamedSentence, before: Phrase | None, heading: Phrase | None
) -> Phrase | None:
    """The last name that a sentence began with, unless that of a thing: the heading itself if it has the name."""
    name = _opening_name(text, sentence)
    if name is None or name.type in _THINGS:
        return before
    return heading if _is_same(name, heading) else name


def _is_same(name: Phrase, heading: Phrase | None) -> bool:
    """Whether a name is that of the heading."""
    return heading is not None and name_key(name.name) == name_key(heading.name)


def _opening_name(text: str, sentence: NamedSentence) -> Phrase | None:
    """The name that a sentence begins with."""
    for name in sentence.names[:1]:
        if _BEFORE_SUBJECT.fullmatch(text, sentence.start, name.start) is not None:
            return name
    return None


def _next_candidate(
    text: str, sentence: NamedSentence, candidate: Phrase | None, heading: Phrase | None
) -> Phrase | None:
    """The meaning of a pronoun at the beginning of the next sentence, if certain."""
    subject = sentence.subject
    further_names = list(sentence.names)
    first_name = _opening_name(text, sentence)
    if first_name is not None:
        if not _is_subject(text, first_name, sentence.end):
            return None
        subject = further_names.pop(0)
        if further_names and _AND.match(text, subject.end, further_names[0].start):
            return None
    if subject is None:
        return candidate if candidate is heading and not further_names else None
    if _is_same(subject, heading):
        return heading
    key = name_key(subject.name)
    rivals = [
        name
        for name in further_names
        if name_key(name.name) != key and not _is_place_of_event(text, name)
    ]
    return None if rivals else subject


def _is_subject(text: str, name: Phrase, end: int) -> bool:
    """Whether a verb follows the name that begins a sentence: no "'s", and no noun that the name describes."""
    if has_cjk(text[name.end - 1 : name.end + 1]):
        return _OWNED.match(text, name.end, end) is None
    aside = _BRACKETED.match(text, name.end, end)
    word = _SECOND_WORD.match(text, aside.end() if aside else name.end, end)
    if word is None:
        return False
    return may_be_verb(word[1].casefold())


def _is_place_of_event(text: str, name: Phrase) -> bool:
    """Whether a name only says where something is: a place, or after a preposition of place."""
    if name.type == "place":
        return True
    start = max(0, name.start - _LONGEST_PREPOSITION)
    return _OF_PLACE.search(text, start, name.start) is not None

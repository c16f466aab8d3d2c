"""Word lists: ordinary words and given names, to tell names from other words, and base forms of verbs."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from lightrag_jsonl.core.languages import Language
from lightrag_jsonl.text.strings import words as word_set
from lightrag_jsonl.text.terms import STOP_WORDS


def _base_by_form(table: str) -> Mapping[str, str]:
    """The base form of each other form; each row of the table is a verb and its other forms."""
    bases: dict[str, str] = {}
    for row in table.split(";"):
        base, *forms = row.split()
        bases.update(dict.fromkeys(forms, base))
    return bases


# The base form of each irregular form, for verbs of the content; forms of two verbs (found, lay) and those
# that are mostly other words (bit, bore, born, wound) are left out.
VERB_BASES = _base_by_form(
    """beat beaten; blow blew blown; break broke broken; breed bred; bring brought; build built; buy bought;
    catch caught; choose chose chosen; creep crept; dig dug; draw drew drawn; dream dreamt;
    drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt;
    fight fought; flee fled; fly flew flown; forbid forbade forbidden; forget forgot forgotten;
    forgive forgave forgiven; freeze froze frozen; grow grew grown; hang hung; hear heard; hide hid hidden;
    hold held; lead led; learn learnt; leave left; lend lent; light lit; lose lost; meet met;
    overcome overcame; oversee oversaw overseen; overtake overtook overtaken; ride rode ridden;
    ring rang rung; rise rose risen; run ran; seek sought; sell sold; send sent; shake shook shaken;
    shine shone; shoot shot; sing sang sung; sink sank sunk; sit sat; slay slew slain; sleep slept;
    speak spoke spoken; spend spent; stand stood; steal stole stolen; stick stuck; strike struck;
    swear swore sworn; sweep swept; swim swam swum; swing swung; teach taught; tear tore torn; tell told;
    think thought; throw threw thrown; understand understood; undergo underwent undergone;
    undertake undertook undertaken; wake woke woken; wear wore worn; weep wept; win won;
    withdraw withdrew withdrawn; write wrote written"""
)

# ── ordinary words and given names ────────────────────────────────────────────

_NO_VERBS = word_set("of and or for in on at from with as the a an to")
_BEGINS_NO_NAME = "*"  # mark in the English list
_LEAST_STEM = 3  # characters
_REGULAR_ENDINGS = (  # of regular forms, and what the word itself has in their place
    *(("ies", "y"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", ""), ("ed", "e")),
    *(("ing", ""), ("ing", "e"), ("ly", "")),
)


def is_ordinary_chinese(word: str) -> bool:
    """Whether a word in simplified characters is in the list."""
    return word in _marks_by_word("zh")


def is_ordinary(word: str) -> bool:
    """Whether an English word in lower case, or a base form, is in the list."""
    marks = _marks_by_word("en")
    return any(form in marks for form in _base_forms(word))


def begins_no_name(word: str) -> bool:
    """Whether an English word in lower case, or a base form, is mostly a verb or an adverb."""
    marks = _marks_by_word("en")
    return next((marks[form] for form in _base_forms(word) if form in marks), False)


def may_be_verb(word: str) -> bool:
    """Whether an English word in lower case that follows a name may be the verb of the name."""
    is_grammatical = word in STOP_WORDS and word not in _NO_VERBS
    return is_grammatical or word.endswith("ed") or begins_no_name(word)


def is_given_name(word: str) -> bool:
    """Whether an English word in lower case is a given name, and mostly nothing else."""
    return word in _given_names()


def _base_forms(word: str) -> Iterator[str]:
    """A word, and the possible base forms of the word."""
    yield word
    for ending, own_ending in _REGULAR_ENDINGS:
        stem = word.removesuffix(ending)
        if stem == word or len(stem) < _LEAST_STEM:
            continue
        yield stem + own_ending
        if not own_ending and stem[-1] == stem[-2]:  # stopped
            yield stem[:-1]


@cache
def _given_names() -> frozenset[str]:
    return frozenset(" ".join(_lines_of("given_names")).split())


@cache
def _marks_by_word(language: Language) -> Mapping[str, bool]:
    """The words of a list, read once, and whether each is marked."""
    lines = _lines_of(f"common_words_{language}")
    return {line.rstrip(_BEGINS_NO_NAME): line.endswith(_BEGINS_NO_NAME) for line in lines}


def _lines_of(name: str) -> list[str]:
    """The lines of a text file beside this module, without comments."""
    text = Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("#")]

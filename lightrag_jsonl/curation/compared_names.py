"""Names taken apart, to compare entities by their names: numbers, titles, words and core; and years of one bearer."""

import re
import unicodedata
from collections.abc import Collection, Iterable

from lightrag_jsonl.indexing.chinese_names import CHINESE_TITLES
from lightrag_jsonl.indexing.name_parts import PEOPLE, UNTYPED
from lightrag_jsonl.storage.rows import EntityRow
from lightrag_jsonl.text.cjk import has_cjk, simplified
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import sentence_spans
from lightrag_jsonl.text.terms import search_terms

_NAMED_YEAR = r"(?P<year>1[0-9]{3}|20[0-9]{2})"
_BEGINNINGS = (
    re.compile(
        rf"\b(?:born|founded|established|incorporated|released|published)\b[^.;)]{{0,40}}?\b{_NAMED_YEAR}"
    ),
    re.compile(rf"\(\s?(?:[^()]{{0,30}}\b)?{_NAMED_YEAR}\s?[-–—]"),
    re.compile(rf"\b(?:is|was)\s+an?\s+{_NAMED_YEAR}\b"),
    re.compile(
        rf"{_NAMED_YEAR}\s?年[^。；，,]{{0,12}}?(?:出生|生于|成立|创立|创办|上映|出版|发行)"
    ),
    re.compile(rf"(?:出生于|生于|成立于|创立于|创办于|上映于|出版于)\s?{_NAMED_YEAR}"),
    re.compile(rf"[（(]\s?{_NAMED_YEAR}\s?年?[^()（）]{{0,12}}[-–—]"),
)
_YEAR_ATTRIBUTES = pattern_of(
    r"born|birth|founded|established|released|published|出生|生年|生日|成立|创立|上映|出版",
    re.IGNORECASE,
)
_ARTICLE = pattern_of(r"^[“\"《]?(?:The |A |An )?")


def first_years(name: str, attributes: Iterable[tuple[str, str]], description: str) -> set[str]:
    """The first years by attributes, and by the first dated sentence that begins with the name."""
    years: set[str] = set()
    for attribute, value in attributes:
        match = re.search(_NAMED_YEAR, value) if _YEAR_ATTRIBUTES.search(attribute) else None
        if match is not None:
            years.add(match["year"])
    for start, end in sentence_spans(description):
        sentence = _ARTICLE.sub("", description[start:end])
        year = _first_year(sentence) if sentence.startswith(_ARTICLE.sub("", name)) else None
        if year is not None:
            return years | {year}
    return years


def _first_year(sentence: str) -> str | None:
    for pattern in _BEGINNINGS:
        year = pattern.search(sentence)
        if year is not None:
            return year["year"]
    return None


# ── names taken apart ─────────────────────────────────────────────────────────

# Short forms of given names with the full name that most bearers have.
_NICKNAMES = """
    abby abigail, abe abraham, andy andrew, bart bartholomew, becky rebecca, ben benjamin, beth elizabeth, betsy elizabeth,
    betty elizabeth, bill william, billy william, bob robert, bobby robert, cathy catherine, chuck charles, dan daniel,
    danny daniel, dave david, dick richard, don donald, ed edward, eddie edward, eliza elizabeth, fred frederick,
    gus augustus, jack john, jake jacob, jeff jeffrey, jenny jennifer, jerry gerald, jim james, jimmy james, joe joseph,
    johnny john, kate katherine, kathy katherine, ken kenneth, larry lawrence, liz elizabeth, lizzie elizabeth,
    maggie margaret, matt matthew, meg margaret, mike michael, nancy ann, ned edward, nick nicholas, peggy margaret,
    pete peter, phil philip, polly mary, ray raymond, rich richard, rick richard, rob robert, ron ronald, sally sarah,
    steve stephen, sue susan, susie susan, ted edward, tim timothy, toby tobias, tom thomas, tommy thomas, tony anthony,
    vicky victoria, walt walter, will william, zack zachary
"""
FULL_GIVEN_NAMES = dict(pair.split() for pair in _NICKNAMES.split(","))
LEGAL_FORMS = "inc incorporated ltd limited llc plc corp corporation co company gmbh ag sa group"
LATIN_TITLES = "mr sir lord mrs ms miss dame lady dr prof professor st saint the"
LEFT_OUT = frozenset(f"{LEGAL_FORMS} {LATIN_TITLES}".split())
EPITHETS = "a an old young little tiny poor dear master"
NO_PART = LEFT_OUT | frozenset(
    EPITHETS.split()
)  # of people; do not make one name a part of another
CJK_ENDING = pattern_of(
    r"(?:控股|科技|股份)*(?:有限(?:责任)?)?公司$|集团$|(?<=..)(?:先生|女士|教授|博士)$"
)
NAME_NUMBER = pattern_of(r"\d+[a-z]*|(?<=\s)[ivxlc]+\b")
# Words that tell two names apart as numbers do; directions not in names of people (Kanye West).
ORDER = "first second third fourth fifth sixth seventh eighth ninth tenth last other another"
DIRECTION = (
    "north south east west northern southern eastern western upper lower inner outer left right"
)
CONTRASTS = frozenset(f"{ORDER} {DIRECTION}".split())
PERSONAL_CONTRASTS = frozenset(ORDER.split())
NAME_SIGNS = pattern_of(r"[+#*]|(?:^|\s)\.(?=\w)|(?<=\w)-$")  # of C++, C#, A*, .NET and A-
TRADE_SIGNS = str.maketrans("", "", "™®©℠")
INITIALS = pattern_of(r"\b(?:[A-Z]\.){2,}|\b[A-Z]{2,6}\b|\b[A-Z]\b")
GENERIC_ENDING = pattern_of(r"(?<=[a-z])药物?$|(?<=药)物$")  # ARB药物, 抗凝药物
CJK_NUMBER = pattern_of(r"[一二三四五六七八九十百千零〇甲乙丙丁]|\d+")
HIS = pattern_of(r"\b(?:mr|sir|lord)\b|先生$")
HERS = pattern_of(r"\b(?:mrs|ms|miss|dame|lady)\b|(?:女士|夫人|太太|小姐)$")
GHOST = "ghost|spirit|spectre|specter|soul|shade"  # in which a dead person appears in stories
GHOST_OF = pattern_of(rf"^(?:the )?(?:{GHOST}) of (.*)|^(.*)['’]s (?:{GHOST})$")
OWNER = pattern_of(r"^.*\w['’]s?\s+(?=\w)")  # "Scrooge's nephew" is no longer name of Scrooge
CJK_TITLE = pattern_of(f"(?:{'|'.join(sorted(CHINESE_TITLES, key=len, reverse=True))})$")
REVERSED_NAME = pattern_of(r"^([^,]+),\s*([^,]+)$")  # "Smith, John"
DOTTED = pattern_of(r"\b(?:[a-z]\.){2,}")  # u.s., j.r.r.
ASIDE = pattern_of(r"(?<!\s)\s*[(（][^()（）]*[)）]\s*$")


class ComparedName:
    """An entity's name taken apart; the `core` leaves out legal forms, titles and additions."""

    def __init__(self, row: EntityRow) -> None:
        plain = _without_accents(row.name.translate(TRADE_SIGNS))
        bare = ASIDE.sub("", plain) or plain
        aside = ASIDE.search(row.name)
        self.aside = "" if aside is None else aside[0].strip(" ()（）")
        self.row = row
        self.keys = {row.key, *map(name_key, row.names)}
        self.is_person = row.type.casefold() in PEOPLE
        self.cjk = has_cjk(plain)
        self.titles = (bool(HIS.search(plain)), bool(HERS.search(plain)))
        self.signs = [sign.strip() for sign in NAME_SIGNS.findall(row.key)]
        self.initials = {
            "".join(filter(str.isalpha, letters)).casefold()
            for letters in INITIALS.findall(row.name)
        }
        self.words: tuple[str, ...] = ()
        self.spelled_words: tuple[str, ...] = ()
        self.plain_words: tuple[str, ...] = ()
        self.owner = ""
        if self.cjk:
            letters = "".join(filter(str.isalnum, bare))
            self.core = GENERIC_ENDING.sub("", CJK_ENDING.sub("", letters)) or letters
            self.numbers = sorted(CJK_NUMBER.findall(self.core))
        else:
            self._take_words(REVERSED_NAME.sub(r"\2 \1", bare))
            self.numbers = sorted([*NAME_NUMBER.findall(plain), *self._contrasts()])

    def _take_words(self, bare: str) -> None:
        """The words of a name in Latin or another script with spaces; nicknames as full names."""
        self.plain_words = tuple(search_terms(DOTTED.sub(_without_dots, bare)))
        terms = search_terms(bare)
        self.core = "".join([term for term in terms if term not in LEFT_OUT] or terms)
        self.spelled_words = _own_words(bare, left_out=NO_PART if self.is_person else LEFT_OUT)
        self.words = self.spelled_words
        if self.is_person:
            self.words = tuple([FULL_GIVEN_NAMES.get(word, word) for word in self.words])
        owner = OWNER.match(bare)
        if owner is not None:
            self.owner = owner[0]

    def _contrasts(self) -> frozenset[str]:
        """The words of the name with a contrast, like numbers."""
        contrasts = PERSONAL_CONTRASTS if self.is_person else CONTRASTS
        return contrasts.intersection(self.plain_words)

    def agrees(self, other_name: "ComparedName") -> bool:
        """Whether neither numbers nor titles nor signs tell two names apart ("Henry IV", "Mrs. Smith",
        "C#"), nor additions in brackets.
        """
        has_other_addition = self.aside and other_name.aside and self.aside != other_name.aside
        if has_other_addition or self.signs != other_name.signs:
            return False
        is_couple = sorted((self.titles, other_name.titles)) == [(False, True), (True, False)]
        same_numbers = self.numbers == other_name.numbers or self.core == other_name.core
        return same_numbers and not is_couple

    def is_part_of(self, longer: "ComparedName") -> bool:
        """Whether the name is a part of a longer name: any part of a person's name, else the last
        words.
        """
        has_other_owner = bool(self.owner and longer.owner and self.owner != longer.owner)
        if has_other_owner or not self.may_be(longer):
            return False
        if self.cjk or longer.cjk:
            ends = longer.core.endswith(self.core) and longer.is_person and len(self.core) > 1
            return ends and self.core != longer.core
        if "and" in longer.words or not self.words or not set(self.words) <= set(longer.words):
            return False
        is_of_person = longer.is_person and (self.is_person or len(self.words) > 1)
        return is_of_person or self.ends(longer)

    def is_plural_of(self, other_name: "ComparedName") -> bool:
        """Whether two nouns without an article are the two numbers of one."""
        shorter, longer = sorted((self.plain_words, other_name.plain_words))
        is_bare = "the" not in longer and not self.is_person
        if not is_bare or longer[:-1] != shorter[:-1]:
            return False
        return longer[-1] == f"{shorter[-1]}s"

    def ends(self, longer: "ComparedName") -> bool:
        """Whether the words of the name are the last words of a longer name."""
        return self.cjk or self.words == longer.words[-len(self.words) :]

    @property
    def has_initials(self) -> bool:
        """Whether a word of a Latin name is written as initials, in capitals."""
        if self.row.name.isupper() and len(self.plain_words) > 1:
            return False
        return not self.initials.isdisjoint(self.plain_words)

    def may_be(self, other_name: "ComparedName") -> bool:
        """Whether the types of both entities allow the same entity."""
        types = {self.row.type.casefold(), other_name.row.type.casefold()}
        return len(types) == 1 or not types.isdisjoint(UNTYPED)

    @property
    def title_start(self) -> int | None:
        """Where the title at the end of a Chinese name begins; None without a title."""
        title = CJK_TITLE.search(simplified(self.row.name)) if self.cjk else None
        return None if title is None else title.start()

    def sentences(self) -> set[str]:
        """The sentences of the description."""
        text = self.row.description
        return {text[start:end] for start, end in sentence_spans(text)}


def _without_accents(name: str) -> str:
    """A name in lower case, without combining characters; the letters of Korean syllables stay joined."""
    decomposed = unicodedata.normalize("NFKD", name)
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", letters).casefold()


def _without_dots(letters: re.Match[str]) -> str:
    """Initials as one word."""
    return letters[0].replace(".", "") + " "


def _own_words(name: str, *, left_out: Collection[str]) -> tuple[str, ...]:
    """The words of a name for a shorter name, without an owner's name."""
    ghost = GHOST_OF.search(name)
    own = (ghost[1] or ghost[2]) if ghost else OWNER.sub("", name)
    return tuple(word for word in search_terms(own) if word not in left_out)

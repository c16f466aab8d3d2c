"""Names taken apart, to compare entities by their names: numbers, titles, words and core."""

import re
import unicodedata

from lightrag_jsonl.core.cjk import has_cjk, simplified
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.terms import search_terms
from lightrag_jsonl.core.types import UNKNOWN_TYPE
from lightrag_jsonl.curation.chinese_names import CHINESE_TITLES
from lightrag_jsonl.storage.rows import EntityRow

LEGAL_FORMS = "inc incorporated ltd limited llc plc corp corporation co company gmbh ag sa group"
LATIN_TITLES = "mr sir lord mrs ms miss dame lady dr prof professor st saint the"
LEFT_OUT = frozenset(f"{LEGAL_FORMS} {LATIN_TITLES}".split())
EPITHETS = "a an old young little tiny poor dear master"
NO_PART = LEFT_OUT | frozenset(EPITHETS.split())  # do not make one name a part of another
UNTYPED = {"", UNKNOWN_TYPE, "other", "未知", "其他"}
PEOPLE = {"person", "people", "character", "human", "creature", "人物", "人", "角色", "生物"}
CJK_ENDING = re.compile(
    r"(?:控股|科技|股份)*(?:有限(?:责任)?)?公司$|集团$|(?<=..)(?:先生|女士|教授|博士)$"
)
NAME_NUMBER = re.compile(r"\d+[a-z]*|(?<=\s)[ivxlc]+\b")
CJK_NUMBER = re.compile(r"[一二三四五六七八九十百千零〇甲乙丙丁]|\d+")
HIS = re.compile(r"\b(?:mr|sir|lord)\b|先生$")
HERS = re.compile(r"\b(?:mrs|ms|miss|dame|lady)\b|(?:女士|夫人|太太|小姐)$")
GHOST = "ghost|spirit|spectre|specter|soul|shade"  # in which a dead person appears in stories
GHOST_OF = re.compile(rf"^(?:the )?(?:{GHOST}) of (.*)|^(.*)['’]s (?:{GHOST})$")
OWNER = re.compile(r"^.*\w['’]s?\s+(?=\w)")  # "Scrooge's nephew" is no longer name of Scrooge
CJK_TITLE = re.compile(f"(?:{'|'.join(sorted(CHINESE_TITLES, key=len, reverse=True))})$")
REVERSED_NAME = re.compile(r"^([^,]+),\s*([^,]+)$")  # "Smith, John"
ASIDE = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")


class ComparedName:
    """An entity's name taken apart; the `core` leaves out legal forms, titles and additions."""

    def __init__(self, row: EntityRow) -> None:
        plain = _without_accents(row.name)
        bare = ASIDE.sub("", plain) or plain
        self.row = row
        self.keys = {row.key, *map(name_key, row.names)}
        self.is_person = row.type.casefold() in PEOPLE
        self.cjk = has_cjk(plain)
        self.titles = (bool(HIS.search(plain)), bool(HERS.search(plain)))
        if self.cjk:
            letters = "".join(filter(str.isalnum, bare))
            self.core = CJK_ENDING.sub("", letters) or letters
            self.numbers = sorted(CJK_NUMBER.findall(self.core))
            self.words: tuple[str, ...] = ()
        else:
            bare = REVERSED_NAME.sub(r"\2 \1", bare)
            terms = search_terms(bare)
            self.core = "".join([term for term in terms if term not in LEFT_OUT] or terms)
            self.numbers = sorted(NAME_NUMBER.findall(plain))
            self.words = _own_words(bare)

    def agrees(self, other_name: "ComparedName") -> bool:
        """Whether neither numbers nor titles tell two names apart ("Henry IV", "Mrs. Smith")."""
        is_couple = sorted((self.titles, other_name.titles)) == [(False, True), (True, False)]
        same_numbers = self.numbers == other_name.numbers or self.core == other_name.core
        return same_numbers and not is_couple

    def is_part_of(self, longer: "ComparedName") -> bool:
        """Whether the name is a part of a longer name: any part of a person's name, else the last
        words.
        """
        if not self.may_be(longer):
            return False
        if self.cjk or longer.cjk:
            ends = longer.core.endswith(self.core) and longer.is_person and len(self.core) > 1
            return ends and self.core != longer.core
        if "and" in longer.words or not self.words or not set(self.words) <= set(longer.words):
            return False
        if not (self.is_person and longer.is_person):
            return self.words == longer.words[-len(self.words) :]
        return longer.is_proper or set(self.words) == set(longer.words)

    @property
    def is_proper(self) -> bool:
        """Whether no long word of the name is written in lower case."""
        return not any(word.islower() and len(word) > 3 for word in self.row.name.split())

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
    """A name in lower case, without combining characters."""
    decomposed = unicodedata.normalize("NFKD", name)
    return "".join(char for char in decomposed if not unicodedata.combining(char)).casefold()


def _own_words(name: str) -> tuple[str, ...]:
    """The words of a name that a shorter name may have, too; none of an owner's name."""
    ghost = GHOST_OF.search(name)
    own = (ghost[1] or ghost[2]) if ghost else OWNER.sub("", name)
    return tuple(word for word in search_terms(own) if word not in NO_PART)

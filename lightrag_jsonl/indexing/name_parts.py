"""The parts of a name, and the short forms that a document may use for it after that."""

from collections.abc import Iterator
from functools import cached_property, lru_cache

from msgspec import Struct

from lightrag_jsonl.core.types import UNKNOWN_TYPE
from lightrag_jsonl.indexing.chinese_names import CHINESE_TITLES, COMPOUND_SURNAMES
from lightrag_jsonl.indexing.english_names import initials
from lightrag_jsonl.rules.english import OFFICES
from lightrag_jsonl.rules.words import is_given_name, is_ordinary
from lightrag_jsonl.text.cjk import has_cjk
from lightrag_jsonl.text.names import without_accents
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import words as word_set
from lightrag_jsonl.text.terms import STOP_WORDS

UNTYPED = {"", UNKNOWN_TYPE, "other", "未知", "其他"}
CONCEPTS = {"concept", "概念"}  # also what a name is taken for that says nothing about its bearer
PEOPLE = {"person", "people", "character", "human", "creature", "人物", "人", "角色", "生物"}
# An office or a school is a place for one reader and an organization for another.
PLACES = {
    "geo",
    "place",
    "location",
    "building",
    "facility",
    "organization",
    "institution",
    "地点",
    "机构",
    "组织",
    "场所",
}
# Before a surname: "Mr. Rutherford", "President Lincoln"; "sir" also before a given name.
TITLES = OFFICES | word_set("mr mister dr prof private herr monsieur senor signor")
# Before a given name; the king and the prince of a name are two.
ROYAL_TITLES = word_set("king queen prince princess emperor empress tsar czar pope saint st sultan")
# Of others with the same surname: Mrs. Cratchit is not Bob Cratchit.
FAMILY_TITLES = word_set(
    """mrs miss ms madam madame mme mlle mademoiselle lady dame frau senora signora duchess countess baroness aunt uncle
    mother father brother sister grandmother grandfather grandma grandpa cousin mama papa"""
)
APART_TITLES = FAMILY_TITLES | word_set("young old elder younger little big baby master tiny poor")
_ALL_TITLES = TITLES | ROYAL_TITLES | APART_TITLES | {"the"}
CHINESE_APART_TITLES = word_set(  # 海澄公 is the duke of a place
    "公 侯 夫人 太太 小姐 女士 姑娘 奶奶 娘子 大娘 大嫂 姨娘 公主 郡主 皇后 太后 贵妃 公子 少爷 太子 氏 某"
)
JOINING_WORDS = word_set("of and or for in at on from to with by the a an & vs")
GENERATIONS = pattern_of(r"jr|junior|sr|senior|[ivx]{1,4}|1[0-9]?th|[1-9](?:st|nd|rd|th)")
_PERSON_WORD = pattern_of(r"[^\W\d_]+(?:['’-][^\W\d_]{2,})*")  # not "Scrooge's", "3rd"
_POSSESSIVE = pattern_of(r"['’]s?$")
_ASIDE = pattern_of(r"(?<!\s)\s*[(（]([^()（）]+)[)）]$")
_REVERSED = pattern_of(  # "Rutherford, Ernest"
    r"^([^,]+),\s+((?!(?:jr|sr|[ivx]+)\b)[^,]+)$"
)
_LATIN_WORD = pattern_of(r"[^\s,.]+(?:\.(?=[^\s,.]{2})[^\s,.]*)?")
_SEGMENT = pattern_of(r"[^·•・\s](?:[^·•・]*[^·•・\s])?")  # with the spaces in "从 awk 到 Python"
_CHINESE_TITLE = pattern_of(f"(?:{'|'.join(sorted(CHINESE_TITLES, key=len, reverse=True))})$")
_CHINESE_FIRM = pattern_of(r"(?:股份)?(?P<legal_form>有限)?(?:责任)?公司$")
SHORTEST_ACRONYM = 3  # letters
_ACRONYM = pattern_of(r"[A-Z]{3,7}")


class NameParts(Struct, frozen=True, dict=True):
    """A name of a document: the `words` in lower case without titles, and what else it says.

    `kind` is "person", "place" (also of organizations), "concept", another type, or "" if unknown; `type` is the
    type itself. `form` counts what the name adds to its words. `votes` is the number of mentions, `first` the position of the first.
    """

    name: str
    key: str
    kind: str
    type: str
    votes: int
    first: int
    words: tuple[str, ...] = ()
    titles: frozenset[str] = frozenset()
    form: int = 0
    aside: str = ""
    cjk: bool = False

    @classmethod
    def of(cls, name: str, key: str, type: str, *, votes: int, first: int) -> "NameParts":
        """The parts of a name with a key and a type."""
        kind = _kind(type)
        plain = without_accents(key)
        match = _ASIDE.search(plain)
        bare = plain[: match.start()] if match else plain
        aside = match[1].strip() if match else ""
        cjk = has_cjk(plain)
        all_words = _chinese_words(bare, kind) if cjk else _latin_words(bare, kind)
        words = all_words if cjk else _without_titles(all_words)
        titles = frozenset(all_words[: len(all_words) - len(words)]) - {"the"}
        if not cjk and kind != "person":
            words = _without_legal_form(words)
        if aside and aside.replace(".", "") in initials(words):
            aside = ""
        return cls(
            name=name,
            key=key,
            kind=kind,
            type=type.casefold(),
            votes=votes,
            first=first,
            words=words,
            titles=titles,
            form=len(plain) - len("".join(words)),
            aside=aside,
            cjk=cjk,
        )

    @cached_property
    def order(self) -> tuple[object, ...]:
        """Names in full before their short forms."""
        letters = sum(len(word) == 1 for word in self.words)
        plainness = (bool(self.titles), self.form, self.key.isascii())
        length = -len("".join(self.words))
        return -len(self.words), letters, length, plainness, -self.votes, self.key

    @property
    def is_apart(self) -> bool:
        """Whether a title says that this may be another bearer of the surname."""
        return not self.titles.isdisjoint(APART_TITLES)

    @property
    def is_royal(self) -> bool:
        """Whether a title says that this is a king, a saint or the like."""
        return not self.titles.isdisjoint(ROYAL_TITLES)

    @property
    def is_relative(self) -> bool:
        """Whether a title says that this is another bearer of the surname."""
        return not self.titles.isdisjoint(FAMILY_TITLES)

    @property
    def may_be_person(self) -> bool:
        """Whether the words are those of a person's full name: by the type, or else by a given name, by
        initials, by a title, or since no word is an ordinary one.
        """
        if len(self.words) < 2 or self.kind not in ("", "person"):
            return False
        if not (
            JOINING_WORDS.isdisjoint(self.words) and all(map(_PERSON_WORD.fullmatch, self.words))
        ):
            return False
        if self.kind or "," in self.name:  # "Victoria, Australia" is none for want of a type
            return self.kind == "person"
        return self.is_evident_person or self.has_only_rare_words

    @property
    def is_evident_person(self) -> bool:
        """Whether a given name, initials or a title says so, whatever the type."""
        first = self.words[0]
        return (
            self.cjk
            or is_given_name(first)
            or len(first) == 1 < len(self.words[-1])
            or bool(self.titles & TITLES)
        )

    @property
    def has_only_rare_words(self) -> bool:
        """Whether all words are written as names are, and none is an ordinary word: Linus Torvalds."""
        written = self.name.split()
        if not all(word[0].isupper() and not word.isupper() for word in written):
            return False
        return not any(word in STOP_WORDS or is_ordinary(word) for word in self.words)

    def short_forms(self) -> Iterator[tuple[str, ...]]:
        """The words of other names for this person: the surname, the given name, without the number of a
        king, without middle names, and with initials.
        """
        words = self.words
        if GENERATIONS.fullmatch(words[-1]) and not self.cjk:
            yield words[:-1]
            words = words[:-1]
        for start in range(1, len(words)):
            is_particle = len(words[start]) < 4 and not is_given_name(words[start])
            if start == len(words) - 1 or self.cjk or is_particle:
                yield words[start:]  # van der Meer; "Standish Barry" may be another full name
        if self.kind and len(words) > 1:
            yield words[:1]
        if len(words) < 2 or self.cjk:
            return
        *given_names, family = words
        letters = tuple(name[0] for name in given_names)
        yield (*letters, family)
        yield (given_names[0], *letters[1:], family)
        yield (given_names[0], family)

    def acronym(self) -> str:
        """The name as an acronym, if it is written like one."""
        return self.name.casefold() if _ACRONYM.fullmatch(self.name) else ""

    def may_be_short_for(self, longer: "NameParts") -> bool:
        """Whether titles and types allow that this name, with words of a longer one, is the same."""
        if not same_kind(self.kind, longer.kind) or self.is_apart or self.aside:
            return False
        if self.is_royal:
            return self.words == longer.words[:-1] and bool(GENERATIONS.fullmatch(longer.words[-1]))
        has_given_name = self.words[0] == longer.words[0]
        if not has_given_name and (self.kind != "person" or self.cjk) and self.first < longer.first:
            return False  # Freud, and Anna Freud later, are two
        has_surname = self.words[-1] == longer.words[-1]
        return has_surname or (self.kind == "person" and self.titles <= {"sir"})

    def is_full_like(self, longer: "NameParts") -> bool:
        """Whether the name has the given name and the surname of a longer one, and no title."""
        ends = self.words[0], self.words[-1]
        return (
            ends == (longer.words[0], longer.words[-1]) and len(self.words) > 1 and not self.titles
        )

    def is_same_as(self, plainer: "NameParts") -> bool:
        """Whether this name, with the words of another, is another spelling of it."""
        if self.aside != plainer.aside or not same_kind(self.kind, plainer.kind):
            return False
        if self.titles and plainer.titles and self.titles != plainer.titles:
            return False
        is_first_name = is_given_name(self.words[0]) or self.is_royal
        if self.titles and not plainer.titles and len(self.words) == 1 and is_first_name:
            return False  # King John or Dr. John, and John
        firm = _CHINESE_FIRM.search(self.key)
        if firm and self.type != plainer.type:
            is_one_untyped = not UNTYPED.isdisjoint((self.type, plainer.type))
            if not (firm["legal_form"] and is_one_untyped):
                return False  # the company of a railway, and the railway; Linux公司, and Linux
        apart = (self.titles ^ plainer.titles) & APART_TITLES
        return not apart or (len(self.words) > 1 and plainer.kind == "person")


def same_kind(first: str, second: str) -> bool:
    """Whether two kinds of names do not contradict each other."""
    return first == second or not {first, second}.isdisjoint(_VAGUE_KINDS)


_VAGUE_KINDS = {"", "concept"}  # "Ashdown", alone in its sentence, is often read as a concept


@lru_cache(1_000)  # the same few types come again and again
def _kind(type: str) -> str:
    folded = type.casefold()
    if folded in PEOPLE:
        return "person"
    if folded in PLACES:
        return "place"
    if folded in CONCEPTS:
        return "concept"
    return "" if folded in UNTYPED else folded


def _latin_words(bare: str, kind: str) -> tuple[str, ...]:
    """The words of a Latin name, initials apart from each other: "J.J. Thomson" has three."""
    if kind == "person":
        bare = _REVERSED.sub(r"\2 \1", bare)
    return tuple(_LATIN_WORD.findall(_POSSESSIVE.sub("", bare)))


def _without_titles(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words behind the titles, or all if there are none."""
    start = 0
    while start < len(words) - 1 and words[start] in _ALL_TITLES:
        start += 1
    return words[start:]


def _without_legal_form(words: tuple[str, ...]) -> tuple[str, ...]:
    while len(words) > 1 and words[-1] in _LEGAL_FORMS:
        words = words[:-1]
    return words


_LEGAL_FORMS = word_set("inc incorporated ltd limited llc plc corp corporation gmbh ag sa")


def _chinese_words(bare: str, kind: str) -> tuple[str, ...]:
    """The parts of a Chinese name between dots, without a title at the end."""
    segments = _SEGMENT.findall(bare)
    if not segments:
        return ()
    title = _CHINESE_TITLE.search(segments[-1])
    if title is not None and kind in ("person", "") and title[0] not in CHINESE_APART_TITLES:
        stem = segments[-1][: title.start()]
        if len(stem) > 1 and stem not in COMPOUND_SURNAMES:
            segments[-1] = stem
    elif kind != "person":
        segments[-1] = _CHINESE_FIRM.sub("", segments[-1]) or segments[-1]
    return tuple(segments)

"""One bearer, one node: in a document, a short form of a name belongs to the only longer name.

"Rutherford" is Ernest Rutherford where no other name of the document has that part, "Curie" beside Marie and
Pierre Curie is nobody. The mentions of a document get the names of the bearers and keep the names as they
were written, so that the next extraction, or a person, may decide otherwise.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TypeAlias

from msgspec import Struct, field, structs

from lightrag_jsonl.core.types import UNKNOWN_TYPE, Chunk, EntityMention
from lightrag_jsonl.indexing.chinese_names import LONGEST, REACH
from lightrag_jsonl.indexing.english_names import CHARACTERS_AROUND, bracketed_names, initials
from lightrag_jsonl.indexing.name_parts import FAMILY_TITLES, SHORTEST_ACRONYM, NameParts, same_kind
from lightrag_jsonl.rules.words import may_be_verb
from lightrag_jsonl.storage.rows import (
    EntityMentionRow,
    Mention,
    MentionRow,
    RelationMentionRow,
    winner,
)
from lightrag_jsonl.storage.views import StoreView
from lightrag_jsonl.text.cjk import CJK, has_cjk
from lightrag_jsonl.text.names import folded_text, name_key
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.sentences import sentence_spans

MentionRows: TypeAlias = tuple[list[EntityMentionRow], list[RelationMentionRow]]

_GIVES_A_NAME = pattern_of(  # 云港大学（简称云大）; 尚恩·菲南（英语：Shane Filan）
    rf"(?<![^{CJK}\w])[^{CJK}\w]*(?:(?:以下|下文|后文|本文)?简称|以下称|下称)[为為曰是叫作做之：:\s“「『‘\"]*"
    rf"|(?<=[{CJK}])\s?(?P<bracket>[（(])(?P<language>[{CJK}]{{1,3}}[语語文][：:])?\s*(?=[^\W\d_{CJK}])"
)
_ENDS_A_WORD = pattern_of(  # a word that opens a bracket is no bearer: 诺丁汉郡（英文简称Notts）
    rf"(?:\A|(?<![(（])[^{CJK}\w(（·]|[的在由])\Z"
)
# Not "NASDAQ: LK", nor the first part of "Yun College, Port Yun".
_ENDS_A_BRACKETED_NAME = pattern_of(r"[)）]|[,，](?!\s*[a-z])")
_NAME_LETTERS = rf"(?:[^\W{CJK}]|['’-])*+"
_NAME = rf"[A-ZÀ-Þ]{_NAME_LETTERS}"
# A class of first letters before all else, since the engine then finds the places where a name begins.
_FIRST_NAME = rf"[A-ZÀ-Þ](?<![^\W{CJK}].){_NAME_LETTERS}"
_NAME_AND_WORD = pattern_of(  # "Odum came"; of "Ilse Odum came" the whole name
    rf"(?P<name>{_FIRST_NAME}(?:[^\S\n]+{_NAME}){{0,9}}+)\s*(?P<word>[a-z]+|[{CJK}])"
)
_PLACE = pattern_of(rf"\b(?:[Ii]n|[Aa]t|[Nn]ear)\s+({_NAME})(?!['’\w])")
_LOWER_WORD = pattern_of(r"[a-z](?<![\w'’-].)[a-z]*+(?![\w'’-])")
_INITIALS = "".join(sorted({title[0] for title in FAMILY_TITLES}))
_RELATIVE = pattern_of(
    rf"(?=[{_INITIALS}{_INITIALS.upper()}])\b(?i:{'|'.join(sorted(FAMILY_TITLES))})\.?\s+"
    r"(?:[A-Z][\w.]*\s+)?(?P<name>[A-Z][\w'’-]+)"
)
_FAMILY = pattern_of(r"[Tt](?<!\w.)he\s+(?P<name>[A-Z]\w+)s\b")
_FAMILIES = pattern_of(  # the Hale, Moreau, and Varga families
    r"(?P<names>[A-Z](?<![\w'’-].)[\w'’-]++(?:(?:,\s+(?:and\s+)?|\s+(?:and|&)\s+)[A-Z][\w'’-]++){0,8})"
    r"\s(?:family|families|brothers|sisters|siblings|twins|clan|dynasty)\b"
)
_CHINESE_FAMILY = pattern_of(
    rf"(?P<family>[{CJK}]{{2,8}})(?:王朝|家族|世家|父子|兄弟|姐妹|夫[妇婦])"
)


class DocumentMentions(Struct):
    """All mentions of a document, and the texts of its chunks."""

    entities: list[EntityMentionRow] = field(default_factory=list)
    relations: list[RelationMentionRow] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(
        self,
        texts: Iterable[str],
        entities: Iterable[EntityMentionRow],
        relations: Iterable[RelationMentionRow],
    ) -> None:
        """Add the mentions of further chunks."""
        self.texts += texts
        self.entities += entities
        self.relations += relations

    def add_stored(self, view: StoreView, chunks: Mapping[int, Chunk]) -> None:
        """Add the mentions of stored chunks, given by row id."""
        texts = [chunk.text for chunk in chunks.values()]
        self.add(texts, view.entity_mentions(chunks=chunks), view.relation_mentions(chunks=chunks))

    def of_chunks(self, chunks: Container[int]) -> MentionRows:
        """The mentions in some of the chunks."""
        return (
            [row for row in self.entities if row.chunk in chunks],
            [row for row in self.relations if row.chunk in chunks],
        )

    def chunks_changed_in(self, joined: "DocumentMentions") -> set[int]:
        """The chunks with a mention by the name of another bearer in `joined`, with the same mentions."""
        entities = zip(self.entities, joined.entities, strict=True)
        relations = zip(self.relations, joined.relations, strict=True)
        return {
            *[before.chunk for before, after in entities if before.mention != after.mention],
            *[before.chunk for before, after in relations if before.mention != after.mention],
        }

    def with_bearers(self, apart: Collection[str]) -> "DocumentMentions":
        """The mentions by the names of their bearers; names with a key in `apart` are their own."""
        entities = [_row_as_written(row) for row in self.entities]
        relations = [_row_as_written(row) for row in self.relations]
        stated_ends = {
            frozenset((name_key(row.mention.source), name_key(row.mention.target)))
            for row in relations
            if row.mention.states_something
        }
        bearers = find_bearers(entities, self.texts, apart, stated_ends)
        if not bearers:
            return DocumentMentions(entities, relations, self.texts)
        return DocumentMentions(
            entities=[_entity_of_bearer(row, bearers) for row in entities],
            relations=[_relation_of_bearers(row, bearers) for row in relations],
            texts=self.texts,
        )


def _row_as_written(row: MentionRow[Mention]) -> MentionRow[Mention]:
    return structs.replace(row, mention=as_written(row), written=()) if row.written else row


def as_written(row: MentionRow[Mention]) -> Mention:
    """The mention with the names that the text gives it."""
    mention = row.mention
    if not row.written:
        return mention
    if isinstance(mention, EntityMention):
        return replace(mention, name=row.written[0], aliases=mention.aliases[:-1])
    source, target = row.written
    return replace(mention, source=source, target=target)


def _entity_of_bearer(row: EntityMentionRow, bearers: Mapping[str, str]) -> EntityMentionRow:
    """The mention by the name of its bearer; the written name is the last of the aliases."""
    written = row.mention.name
    bearer = bearers.get(name_key(written))
    if bearer is None:
        return row
    mention = replace(row.mention, name=bearer, aliases=(*row.mention.aliases, written))
    return structs.replace(row, mention=mention, written=(written,))


def _relation_of_bearers(row: RelationMentionRow, bearers: Mapping[str, str]) -> RelationMentionRow:
    written = (row.mention.source, row.mention.target)
    source, target = [bearers.get(name_key(name), name) for name in written]
    if (source, target) == written:
        return row
    return structs.replace(
        row, mention=replace(row.mention, source=source, target=target), written=written
    )


# ── from names to bearers ───────────────────────────────────────────────────────


def find_bearers(
    mentions: Sequence[EntityMentionRow],
    texts: Collection[str],
    apart: Collection[str] = (),
    related: Container[frozenset[str]] = frozenset(),
) -> dict[str, str]:
    """For the key of each short form in a document, the name of the bearer.

    The result depends on the set of the mentions and of the texts of chunks. Names with a key in `apart` are no
    short forms, and two names whose keys are a pair in `related` have two bearers: "Quill School" is in "Quill".
    A name with middle names is the other name of the one without, so that it is the one to be in `apart`.
    """
    names = _Names.of(mentions, texts)
    targets = {name.key: name.key for name in names.by_order}
    for name in names.by_order:
        if name.key in apart:
            continue
        ends = {targets[longer.key] for longer in names.longer(name)}
        if len(ends) != 1 or names.is_common_word(name):
            continue
        (end,) = ends
        is_undone = end in apart and name.is_full_like(names.by_key[end])
        if not is_undone and frozenset((name.key, end)) not in related:
            targets[name.key] = end
    _follow_statements(targets, names, mentions, apart)
    if all(key == end for key, end in targets.items()):
        return {}
    names_by_end: dict[str, list[NameParts]] = defaultdict(list)
    for key, end in targets.items():
        names_by_end[end].append(names.by_key[key])
    bearers = {end: _bearer(names.by_key[end], forms) for end, forms in names_by_end.items()}
    return {key: bearers[end].name for key, end in targets.items() if bearers[end].key != key}


def _bearer(longest: NameParts, forms: Iterable[NameParts]) -> NameParts:
    """Of the names with given name and surname the most frequent, then the plainest, then the first: most texts
    leave middle names out.
    """
    full_names = [form for form in forms if form.is_full_like(longest)]
    return min(full_names, key=lambda form: (-form.votes, form.form, form.first), default=longest)


class _Names(Struct, frozen=True, dict=True):
    """The names of a document, in full before short, by key, by words and by short forms."""

    by_order: Sequence[NameParts]
    by_key: Mapping[str, NameParts]
    by_words: Mapping[tuple[str, ...], Sequence[NameParts]]
    by_short_form: Mapping[tuple[str, ...], Sequence[NameParts]]
    by_end: Mapping[str, Sequence[NameParts]]  # by the first and the last word
    texts: Collection[str]

    @classmethod
    def of(cls, mentions: Iterable[EntityMentionRow], texts: Collection[str]) -> "_Names":
        """The names of mentions; each has the most frequent spelling and type."""
        spellings: dict[str, Counter[str]] = defaultdict(Counter)
        types: dict[str, Counter[str]] = defaultdict(Counter)
        positions: dict[str, int] = {}
        for row in mentions:
            mention = row.mention
            key = name_key(mention.name)
            spellings[key][mention.name] += 1
            positions[key] = min(row.position, positions.get(key, row.position))
            if mention.type != UNKNOWN_TYPE:
                types[key][mention.type] += 1
        parts = [
            NameParts.of(
                winner(votes),
                key,
                winner(types[key]),
                votes=votes.total(),
                first=positions[key],
            )
            for key, votes in spellings.items()
        ]
        names = sorted((name for name in parts if name.words), key=lambda name: name.order)
        by_words: dict[tuple[str, ...], list[NameParts]] = defaultdict(list)
        by_short_form: dict[tuple[str, ...], list[NameParts]] = defaultdict(list)
        by_end: dict[str, list[NameParts]] = defaultdict(list)
        for name in names:
            by_words[name.words].append(name)
            for word in {name.words[0], name.words[-1]}:
                by_end[word].append(name)
            if name.may_be_person:
                for form in dict.fromkeys(name.short_forms()):
                    by_short_form[form].append(name)
        return cls(
            by_order=names,
            by_key={name.key: name for name in names},
            by_words=by_words,
            by_short_form=by_short_form,
            by_end=by_end,
            texts=texts,
        )

    def longer(self, name: NameParts) -> Iterator[NameParts]:
        """The other names that a name may be a form of; a rival that only might be the bearer counts, too."""
        for namesake in self.by_words[name.words]:
            if namesake.order < name.order and name.is_same_as(namesake):
                yield namesake
                if len(name.words) == 1 and name.titles != namesake.titles:
                    yield from self._rivals(name, is_given=False)
        candidates = self.by_short_form.get(name.words, ())
        acronym = name.acronym()
        if not candidates and len(acronym) < SHORTEST_ACRONYM:
            return
        full_names = [
            longer
            for longer in candidates
            if longer.words != name.words and self._may_be_short(name, longer)
        ]
        if full_names and self._is_shared(name):
            return
        yield from full_names
        if full_names and len(name.words) == 1:
            is_given = all(longer.words[0] == name.words[0] for longer in full_names)
            yield from self._rivals(name, is_given=is_given)
        if len(acronym) >= SHORTEST_ACRONYM:
            for longer in self.by_acronym.get(acronym, ()):
                if same_kind(name.kind, longer.kind):
                    yield longer

    def _may_be_short(self, name: NameParts, longer: NameParts) -> bool:
        """Whether a name with words of another, longer one may be the same person."""
        if longer.order >= name.order or not name.may_be_short_for(longer):
            return False
        has_given_name = name.is_full_like(longer) or (
            name.cjk and name.words[0] == longer.words[0]
        )
        if has_given_name and self.are_told_apart(name, longer):
            return False
        return (
            "person" in (name.kind, longer.kind)
            or longer.is_evident_person
            or name.name in self.subjects
        )

    def _is_shared(self, name: NameParts) -> bool:
        """Whether a text uses a short form for a family or for a place, too."""
        if name.titles:
            return False
        is_family = len(name.words) == 1 and name.words[0] in self.families
        return is_family or (not name.kind and name.name in self.places)

    @cached_property
    def by_acronym(self) -> Mapping[str, Sequence[NameParts]]:
        """The names of several words by their initials."""
        by_acronym: dict[str, list[NameParts]] = defaultdict(list)
        for name in self.by_order:
            if len(name.words) > 1 and not name.cjk:
                for letters in initials(name.words):
                    by_acronym[letters].append(name)
        return by_acronym

    @cached_property
    def lower_words(self) -> frozenset[str]:
        """The words of the texts that are written small somewhere."""
        return frozenset(chain.from_iterable(map(_LOWER_WORD.findall, self.texts)))

    @cached_property
    def families(self) -> frozenset[str]:
        """The surnames of which the texts have several bearers."""
        return frozenset(chain.from_iterable(map(_family_names, self.texts)))

    @cached_property
    def subjects(self) -> frozenset[str]:
        """The names that a verb follows somewhere, as the names of those who act; or Chinese words."""
        return frozenset(
            place["name"]
            for text in self.texts
            for place in _NAME_AND_WORD.finditer(text)
            if has_cjk(place["word"]) or may_be_verb(place["word"])
        )

    @cached_property
    def places(self) -> frozenset[str]:
        """The names that something is in, at or near: Washington is no person where a text has "in Washington"."""
        return frozenset(chain.from_iterable(map(_PLACE.findall, self.texts)))

    def are_told_apart(self, name: NameParts, longer: NameParts) -> bool:
        """Whether a text tells two names with one given name apart, as John Adams from his son John Quincy Adams: one
        sentence has both, or somebody else of the family is named, too.
        """
        family = name.words[-1]
        if any(
            len(relative.words) > 1
            and relative.words[-1] == family
            and relative.words[0][0] != name.words[0][0]
            for relative in self.by_end[family]
        ):
            return True
        return any(
            longer.name in text[start:end] and name.name in text[start:end].replace(longer.name, "")
            for text in self.texts
            if name.name in text and longer.name in text
            for start, end in sentence_spans(text)
        )

    def _rivals(self, name: NameParts, *, is_given: bool) -> Iterator[NameParts]:
        """Names of others with this word: "Mrs. Curie", "Old Joe" beside a given name, and for a name of
        unknown kind "Curie Institute".
        """
        for rival in self.by_end[name.words[0]]:
            if rival.key == name.key:
                continue
            if len(rival.words) == 1:
                if rival.is_relative or (is_given and (rival.is_apart or rival.is_royal)):
                    yield rival
                continue
            has_word = is_given or rival.words[-1] == name.words[0]
            may_be_person = rival.kind == "person" or (not rival.kind and has_word)
            if name.kind != "person" or may_be_person:
                yield rival

    def is_common_word(self, name: NameParts) -> bool:
        """Whether a name of one word is no name everywhere in the text."""
        if name.cjk or len(name.words) > 1 or name.titles or name.acronym():
            return False
        return name.words[0] in self.lower_words or name.name[0].islower()


def _family_names(text: str) -> Iterator[str]:
    """The surnames of which a text has several bearers: the Wilcoxes, Mrs. Wilson, the Hale and Moreau families, 巴列奥略王朝."""
    for relative in _RELATIVE.finditer(text):
        yield relative["name"].casefold()
    for plural_name in _FAMILY.finditer(text):
        plural = plural_name["name"].casefold()
        yield plural
        yield plural.removesuffix("e")
    for families in _FAMILIES.finditer(text):
        yield from families["names"].casefold().replace(",", "").split()
    if not has_cjk(text):
        return
    for chinese_family in _CHINESE_FAMILY.finditer(text):
        surname = chinese_family["family"]
        # 住在瓦格纳家族: where the surname begins is not known.
        yield from (surname[start:] for start in range(len(surname)))


def _follow_statements(
    targets: dict[str, str],
    names: _Names,
    mentions: Iterable[EntityMentionRow],
    apart: Collection[str],
) -> None:
    """Join names that a record or the text says to be one bearer's, if it says so of one bearer alone."""
    bearers_by_alias: dict[str, set[str]] = defaultdict(set)
    aliases_by_bearer: dict[str, set[str]] = defaultdict(set)
    for bearer, alias in _stated_pairs(mentions, names):
        if targets[bearer] != targets[alias]:
            bearers_by_alias[targets[alias]].add(targets[bearer])
            aliases_by_bearer[targets[bearer]].add(targets[alias])
    for alias in sorted(bearers_by_alias.keys() - apart):
        bearers = {targets[bearer] for bearer in bearers_by_alias[alias]} - {alias}
        if len(bearers) != 1:
            continue
        (bearer,) = bearers
        has_other_alias = bool(aliases_by_bearer[alias] - aliases_by_bearer[bearer] - bearers)
        name = names.by_key[alias]
        may_be_one = same_kind(name.kind, names.by_key[bearer].kind)
        if may_be_one and not has_other_alias and not names.is_common_word(name):
            targets.update({key: bearer for key, end in targets.items() if end == alias})


def _stated_pairs(mentions: Iterable[EntityMentionRow], names: _Names) -> Iterator[tuple[str, str]]:
    """The keys of a bearer and of another name, by records and by the text."""
    for row in mentions:
        bearer = name_key(row.mention.name)
        for alias in map(name_key, row.mention.aliases):
            if bearer in names.by_key and alias in names.by_key:
                yield bearer, alias
    for text in names.texts:
        if text.isascii() and "(" not in text and "&" not in text:  # nothing stands in brackets
            continue
        folded = folded_text(text)
        if has_cjk(text):
            yield from _stated_other_names(folded, names.by_key)
        for statement in bracketed_names(folded, names.by_key):
            yield statement.bearer, statement.alias


def _stated_other_names(text: str, names: Mapping[str, NameParts]) -> Iterator[tuple[str, str]]:
    """The names to which a folded Chinese text gives a short form, or a Latin name in brackets, with the other name.

    Other words that give names are too often misread. What stands in brackets behind a person, or behind what may
    be one, may be where he works, unless the language is named.
    """
    for statement in _GIVES_A_NAME.finditer(text):
        beginning = text[max(0, statement.start() - REACH) : statement.start()]
        starts = [start for start in range(len(beginning)) if beginning[start:] in names]
        bearers = [beginning[at:] for at in starts if _ENDS_A_WORD.search(beginning[:at])]
        if not bearers:
            continue
        bearer = bearers[0]
        longest = LONGEST
        if statement["bracket"]:
            longest = CHARACTERS_AROUND
            is_foreign = "·" in bearer or bool(statement["language"])
            if names[bearer].kind in ("", "person") and not is_foreign:
                continue
        behind = text[statement.end() : statement.end() + longest]
        aliases = [behind[:length] for length in range(len(behind), 1, -1)]
        alias = next((key for key in aliases if key in names), "")
        end = statement.end() + len(alias)
        if statement["bracket"]:
            is_whole = _ENDS_A_BRACKETED_NAME.match(text, end) is not None
        else:
            is_whole = not (text[end : end + 1].isalnum() or text[end : end + 1].isspace())
        if alias and is_whole:
            yield bearer, alias

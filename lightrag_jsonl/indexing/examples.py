"""Recognizes records that a model copied from the example in its prompt.

Small models write the example's entities into the graph, or repeat the example's statements about
somebody in the text. Words of the text alone cannot tell: of the true records 2 to 4 % share no word
with the text (translations, abstractions). So a copy must also be made of the example's words.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import msgspec

from lightrag_jsonl.core.cjk import has_cjk
from lightrag_jsonl.core.names import QUOTE_FORMS, folded_text, name_key, nfkc_casefold
from lightrag_jsonl.core.patterns import pattern_of
from lightrag_jsonl.core.stop_words import is_grammatical
from lightrag_jsonl.core.terms import search_terms
from lightrag_jsonl.core.types import Message, Record
from lightrag_jsonl.llm.reader import read_answer

LEAST_COPIED_WORDS = 2  # of a statement about a name of the text; one word may be a coincidence
DATE_FIELDS = ("valid_from", "valid_to")
ESCAPED = pattern_of(r"\\(?:u....|.)")  # a character of a JSON text
LONGEST_PART = 3  # characters of words that are looked for as a whole, never inside longer words


@dataclass(frozen=True, slots=True)
class RecordStatement:
    """The statement of a record: keys of the subjects' names, of aliases and of keywords, the content
    words and the dates.
    """

    names: frozenset[str]
    aliases: frozenset[str]
    words: frozenset[str]
    keywords: frozenset[str] = frozenset()
    dates: frozenset[str] = frozenset()

    @classmethod
    def of(cls, record: Record, *, with_terms: bool = True) -> "RecordStatement":
        """The statement of a record of `extract-graph`.

        Without `with_terms` the names of relations and attributes do not count: they come from an
        ontology.
        """
        names = _keys(record.get(field) for field in ("name", "source", "target"))
        aliases = record.get("aliases")
        keywords = record.get("keywords")
        text = _statement_text(record, with_terms=with_terms)
        return cls(
            names=names,
            aliases=_keys(aliases) if isinstance(aliases, list) else frozenset(),
            words=_content_words(text, without=names),
            keywords=_keys(keywords) if isinstance(keywords, list) else frozenset(),
            dates=_keys(record.get(field) for field in DATE_FIELDS),
        )


@dataclass(frozen=True)
class Examples:
    """The statements in the examples of a prompt."""

    statements: tuple[RecordStatement, ...] = ()
    with_terms: bool = True

    @cached_property
    def names(self) -> frozenset[str]:
        """The keys of all names, also of aliases."""
        names = [statement.names | statement.aliases for statement in self.statements]
        return frozenset[str]().union(*names)

    def checked(
        self, record: Record, source: "TextWords", *, with_keywords: bool = True
    ) -> Record | None:
        """A record of `extract-graph` without the dates and keywords that come from an example and not
        from the text; None if the whole record does.

        Without `with_keywords`, keywords stay: they are predicates, which many texts share.
        """
        shared_words = self.shared_words([record])
        if not shared_words:
            return record
        if not self.words.isdisjoint(shared_words) and self._is_copy(record, source):
            return None
        if self._copies_a_date(record, source):  # the other date is made up
            record = {key: record[key] for key in record if key not in DATE_FIELDS}
        keywords = record.get("keywords")
        if not with_keywords or not isinstance(keywords, list):
            return record
        own_keywords = [word for word in keywords if not self._is_copied_keyword(word, source)]
        return {**record, "keywords": own_keywords}

    def shared_words(self, records: Sequence[Record]) -> set[str]:
        """The words of an example in records, in other scripts also inside a word; none means no copies."""
        text = ESCAPED.sub(" ", msgspec.json.encode(records).decode())
        if text.isascii():
            return self._all_words.intersection(search_terms(text))
        folded = nfkc_casefold(text).translate(QUOTE_FORMS).replace("'", "")
        return {word for word in self._all_words if word in folded}

    def _copies_a_date(self, record: Record, source: "TextWords") -> bool:
        """Whether a date of a record is an example's, and not in the text."""
        dates = self._dates & _keys(record.get(field) for field in DATE_FIELDS)
        return any(not source.has_name(date) for date in dates)

    def _is_copied_keyword(self, keyword: object, source: "TextWords") -> bool:
        """Whether a keyword has words of an example only, and none of the text."""
        if not isinstance(keyword, str):
            return False
        words = _content_words(keyword, without=frozenset())
        has_only_copied_words = bool(words) and words <= self._words_and_keywords
        return has_only_copied_words and not any(map(source.has_word, words))

    @cached_property
    def _dates(self) -> frozenset[str]:
        return frozenset[str]().union(*[statement.dates for statement in self.statements])

    @cached_property
    def _words_and_keywords(self) -> frozenset[str]:
        keywords = frozenset[str]().union(*[statement.keywords for statement in self.statements])
        return self.words.union(*map(_words_of_name, keywords))

    @cached_property
    def _all_words(self) -> set[str]:
        """The words that only a copy, or a record about the same, shares with an example; not "of"."""
        all_words = self._words_and_keywords.union(*map(_words_of_name, self._dates))
        return {word for word in all_words if not is_grammatical(word)}

    @cached_property
    def words(self) -> frozenset[str]:
        """All content words, and the words of names."""
        words = [statement.words for statement in self.statements]
        name_words = map(_words_of_name, self.names)
        return frozenset[str]().union(*words, *name_words)

    @classmethod
    def of(
        cls,
        messages: Sequence[Message],
        expand: Callable[[Record], Iterable[Record]],
        *,
        with_terms: bool = True,
    ) -> "Examples":
        """The examples in a prompt that was rendered without a text: all JSON objects.

        `expand` turns an object into the equivalent records of `extract-graph`.
        """
        text = "\n".join(turn.content for turn in messages)
        lines = [line[max(0, line.find('{"')) :] for line in text.split("\n")]
        records = read_answer("\n".join(lines)).records
        statements = [
            RecordStatement.of(part, with_terms=with_terms)
            for record in records
            for part in expand(record)
        ]
        return cls(tuple(statements), with_terms)

    def _is_copy(self, record: Record, source: "TextWords") -> bool:
        """Whether a record comes from an example and not from the text."""
        statement = RecordStatement.of(record, with_terms=self.with_terms)
        return (
            self._names_a_stranger(statement, source)
            or self._tells_of_a_stranger(record, source)
            or self._is_all_from_examples(statement, source)
            or self._repeats_a_statement(statement, source)
        )

    def _names_a_stranger(self, statement: RecordStatement, source: "TextWords") -> bool:
        """Whether a name is an example's and not in the text.

        If a part of the name is in the text, the rest may be a model's knowledge; then the record
        counts as true if most of the statement is in the text.
        """
        for name in statement.names & self.names:
            if source.has_name(name):
                continue
            if not any(map(source.has_word, _words_of_name(name))):
                return True
            true_words = [word for word in statement.words - self.words if source.has_word(word)]
            if 2 * len(true_words) <= len(statement.words):
                return True
        return False

    def _tells_of_a_stranger(self, record: Record, source: "TextWords") -> bool:
        """Whether the description holds a name of an example, and the text no word of this name.

        "Old May" is not looked for: "sixty years old may enter" is no name.
        """
        description = folded_text(str(record.get("description") or ""))
        for name in self.names:
            if name not in description:
                continue
            words = _words_of_name(name)
            if not any(is_grammatical(word) or source.has_word(word) for word in words):
                return True
        return False

    def _is_all_from_examples(self, statement: RecordStatement, source: "TextWords") -> bool:
        """Whether all words of names and most further words are an example's, and no word the text's."""
        name_words = frozenset[str]().union(*map(_words_of_name, statement.names))
        if not name_words <= self.words or any(map(source.has_word, name_words)):
            return False
        own_words = statement.words - self.words
        is_about_text = any(map(source.has_word, own_words))
        has_words = bool(name_words or statement.words)
        return has_words and not is_about_text and 2 * len(own_words) <= len(statement.words)

    def _repeats_a_statement(self, statement: RecordStatement, source: "TextWords") -> bool:
        """Whether most of the statement is most of an example's statement, and not in the text."""
        for example in self.statements:
            shared_words = statement.words & example.words
            copied = [word for word in shared_words if not source.has_word(word)]
            size = max(len(statement.words), len(example.words))
            if len(copied) >= LEAST_COPIED_WORDS and 2 * len(copied) > size:
                return True
        return False


@dataclass
class TextWords:
    """The words of a chunk and its background, to look up words and names in."""

    text: str

    @cached_property
    def _terms(self) -> frozenset[str]:
        return frozenset(search_terms(self.text))

    @cached_property
    def _folded(self) -> str:
        return folded_text(self.text)

    @cached_property
    def _closed_up(self) -> str:
        return "".join(self._folded.split())

    def has_word(self, word: str) -> bool:
        """Whether a search term occurs; a long term also inside another word, such as the plural."""
        if word in self._terms:
            return True
        if has_cjk(word):
            return word in self._closed_up
        return len(word) > LONGEST_PART and word in self._folded

    def has_name(self, key: str) -> bool:
        """Whether a name occurs, or each word of the name somewhere."""
        if key in self._folded or (has_cjk(key) and "".join(key.split()) in self._closed_up):
            return True
        words = search_terms(key)
        return not has_cjk(key) and bool(words) and all(map(self.has_word, words))

    def has_part_of_name(self, key: str) -> bool:
        """Whether a name occurs, or a word of the name; in Chinese two characters in a row."""
        if self.has_name(key):
            return True
        if not has_cjk(key):
            return any(map(self.has_word, search_terms(key)))
        name = "".join(key.split())
        pairs = [name[start : start + 2] for start in range(len(name) - 1)]
        return any(pair in self._closed_up for pair in pairs)


def names_any(description: str, names: Iterable[str]) -> bool:
    """Whether a description holds a part of one of the names, given as keys.

    Names in another script than the description's may have been translated; with no other names, the
    answer is yes.
    """
    is_cjk = has_cjk(description)
    comparable_names = [name for name in names if has_cjk(name) == is_cjk]
    words = TextWords(description)
    return not comparable_names or any(map(words.has_part_of_name, comparable_names))


def _statement_text(record: Record, *, with_terms: bool) -> str:
    """The description of a record; without a description, the keywords or the attribute's value."""
    if not with_terms:
        attribute = record.get("attribute")
        return str(attribute[-1]) if isinstance(attribute, list) and attribute else ""
    for name in ("description", "keywords", "attribute"):
        value = record.get(name)
        if isinstance(value, list):
            value = " ".join(part for part in value if isinstance(part, str))
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _keys(values: Iterable[object]) -> frozenset[str]:
    names = [name_key(value) for value in values if isinstance(value, str)]
    return frozenset(filter(None, names))


@lru_cache(10_000)  # the same names come again and again
def _words_of_name(key: str) -> frozenset[str]:
    return frozenset(search_terms(key)) or frozenset([key])


def _content_words(text: str, *, without: frozenset[str]) -> frozenset[str]:
    """The search terms of a text, except for words of names and of grammar."""
    folded = folded_text(text)
    for name in sorted(without, key=lambda key: (-len(key), key)):
        folded = folded.replace(name, " ")
    name_words = frozenset[str]().union(*map(_words_of_name, without))
    words = frozenset(word for word in search_terms(folded) if not is_grammatical(word))
    return words - name_words

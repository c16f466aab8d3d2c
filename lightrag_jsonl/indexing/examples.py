"""Recognizes records that a model copied from the example in its prompt.

Small models write the example's entities into the graph, or repeat the example's statements about
somebody in the text. Words of the text alone cannot tell: of the true records 2 to 4 % share no word
with the text (translations, abstractions). So a copy must also be made of the example's words.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property, lru_cache

import msgspec
from msgspec import Struct

from lightrag_jsonl.core.types import Json, Message, Record
from lightrag_jsonl.llm.reader import read_answer
from lightrag_jsonl.text.cjk import has_cjk
from lightrag_jsonl.text.names import QUOTE_FORMS, folded_text, name_key, nfkc_casefold
from lightrag_jsonl.text.terms import is_grammatical, search_terms

LEAST_COPIED_WORDS = 2  # of a statement about a name of the text; one word may be a coincidence
NAME_FIELDS = ("name", "source", "target")
DATE_FIELDS = ("valid_from", "valid_to")
_APOSTROPHES = ("'", *QUOTE_FORMS)  # a search term has none
_RECORDS = msgspec.json.Encoder()
LONGEST_PART = 3  # characters of words that are looked for as a whole, never inside longer words


class Examples(Struct, frozen=True, dict=True):
    """The records in the examples of a prompt, in the form of `extract-graph`.

    Without `with_terms` the names of relations and attributes do not count: they come from an
    ontology.
    """

    records: tuple[Record, ...] = ()
    with_terms: bool = True

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
        parts = [part for record in records for part in expand(record)]
        return cls(tuple(parts), with_terms)

    def may_be_copies(self, records: Sequence[Record], source: "TextWords") -> list[bool]:
        """For each record, whether it has a telling word of an example, whole or inside a word, that the text does
        not have; otherwise it is no copy.
        """
        plain = nfkc_casefold(_RECORDS.encode_lines(records).decode())
        for mark in _APOSTROPHES:
            plain = plain.replace(mark, "")
        words = [
            word for word in self._telling_words if word in plain and not source.has_word(word)
        ]
        if not words:
            return [False] * len(records)
        lines = plain.split("\n")[:-1]
        return [any(word in line for word in words) for line in lines]

    def checked(
        self, record: Record, source: "TextWords", *, with_keywords: bool = True
    ) -> Record | None:
        """A record of `extract-graph` without the dates and keywords that come from an example and not
        from the text; None if the whole record does.

        Without `with_keywords`, keywords stay: they are predicates, which many texts share.
        """
        if self._is_copy(record, source):
            return None
        dates = self._dates & _keys(record.get(field) for field in DATE_FIELDS)
        if any(not source.has_name(date) for date in dates):  # the other date is made up
            record = {key: record[key] for key in record if key not in DATE_FIELDS}
        keywords = record.get("keywords")
        if not with_keywords or not isinstance(keywords, list):
            return record
        own_keywords = [word for word in keywords if not self._is_copied_keyword(word, source)]
        return {**record, "keywords": own_keywords}

    @cached_property
    def _names(self) -> frozenset[str]:
        """The keys of all names, also of aliases."""
        aliases = [_keys(_listed(record, "aliases")) for record in self.records]
        return frozenset().union(*map(_names_of, self.records), *aliases)

    @cached_property
    def _statements(self) -> list[frozenset[str]]:
        return [self._statement_of(record) for record in self.records]

    @cached_property
    def _dates(self) -> frozenset[str]:
        return _keys(record.get(field) for record in self.records for field in DATE_FIELDS)

    @cached_property
    def _words(self) -> frozenset[str]:
        """The words of statements, names, keywords and dates."""
        keywords = [_keys(_listed(record, "keywords")) for record in self.records]
        names = self._names.union(self._dates, *keywords)
        return frozenset().union(*self._statements, *map(_words_of_name, names))

    @cached_property
    def _telling_words(self) -> list[str]:
        return [word for word in self._words if not is_grammatical(word)]

    def _is_copy(self, record: Record, source: "TextWords") -> bool:
        """Whether a record comes from an example and not from the text: it tells of somebody whom the
        text does not know, consists mainly of an example's words, or makes an example's statement.
        """
        names = _names_of(record)
        record_text = "\n".join([*names, folded_text(str(record.get("description") or ""))])
        if any(name in record_text and self._is_stranger(name, source) for name in self._names):
            return True
        statement = self._statement_of(record)
        all_words = statement.union(*map(_words_of_name, names))
        if 2 * len(_copied(all_words, self._words, source)) > len(all_words):
            return True
        for example in self._statements:
            copied = _copied(statement, example, source)
            size = max(len(statement), len(example))
            if len(copied) >= LEAST_COPIED_WORDS and 2 * len(copied) > size:
                return True
        return False

    def _is_stranger(self, name: str, source: "TextWords") -> bool:
        """Whether the text has no word of a name.

        "Old May" is nobody for sure: "sixty years old may enter" is no name.
        """
        return not any(
            is_grammatical(word) or source.has_word(word) for word in _words_of_name(name)
        )

    def _is_copied_keyword(self, keyword: object, source: "TextWords") -> bool:
        """Whether a keyword has words of an example only, and none of the text."""
        if not isinstance(keyword, str):
            return False
        words = _content_words(keyword, without=frozenset())
        return bool(words) and len(_copied(words, self._words, source)) == len(words)

    def _statement_of(self, record: Record) -> frozenset[str]:
        """The content words of what a record says: the description, or else keywords or attribute."""
        text = _statement_text(record, with_terms=self.with_terms)
        return _content_words(text, without=_names_of(record))


def _copied(words: frozenset[str], example: frozenset[str], source: "TextWords") -> Collection[str]:
    """The words that an example has, and not the text."""
    return [word for word in words & example if not source.has_word(word)]


def _names_of(record: Record) -> frozenset[str]:
    """The keys of the names that a record is about."""
    return _keys(record.get(field) for field in NAME_FIELDS)


def _listed(record: Record, field: str) -> list[Json]:
    value = record.get(field)
    return value if isinstance(value, list) else []


class TextWords(Struct, dict=True):
    """The words of a chunk and its background, to look up words and names in."""

    text: str

    @cached_property
    def folded(self) -> str:
        """The text, folded like the keys of names."""
        return folded_text(self.text)

    @cached_property
    def _terms(self) -> frozenset[str]:
        return frozenset(search_terms(self.text))

    @cached_property
    def _closed_up(self) -> str:
        return "".join(self.folded.split())

    def has_word(self, word: str) -> bool:
        """Whether a search term occurs; a long term also inside another word, such as the plural."""
        if has_cjk(word):
            is_inside = word in self._closed_up
        else:
            is_inside = len(word) > LONGEST_PART and word in self.folded
        return is_inside or word in self._terms

    def has_whole_name(self, key: str) -> bool:
        """Whether a name occurs, also with other punctuation, or (in Chinese) over a line break."""
        return key in self.folded or (has_cjk(key) and "".join(key.split()) in self._closed_up)

    def has_name(self, key: str) -> bool:
        """Whether a name occurs, or each word of the name somewhere."""
        if self.has_whole_name(key):
            return True
        words = search_terms(key)
        return not has_cjk(key) and bool(words) and all(map(self.has_word, words))


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

"""The sentences of a context for quotes in an answer, with their terms."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from lightrag_jsonl.core.answers import Context
from lightrag_jsonl.core.citation_markers import CITATION_MARKER
from lightrag_jsonl.core.cjk import is_cjk, simplified
from lightrag_jsonl.core.names import folded_text
from lightrag_jsonl.core.sentences import sentence_spans
from lightrag_jsonl.core.stop_words import FUNCTION_WORDS
from lightrag_jsonl.core.terms import search_terms, stem
from lightrag_jsonl.core.types import Relation
from lightrag_jsonl.providers.offline.definitions import defines
from lightrag_jsonl.providers.offline.markup import HEADING, quoted_line, without_markup
from lightrag_jsonl.providers.offline.words import VERB_BASES

LONGEST_QUOTE = 400  # characters of one sentence
_EARLY = 10  # a pronoun among so many first words may be the sentence's subject
_PRONOUN = re.compile(r"(?:he|she|they|it|his|her|their|its)\W?", re.IGNORECASE)
_CHINESE_PRONOUN = re.compile("(?:后来|此后|当时|随后|[^，。]{1,12}[年月日]，?)?[他她它](?!们)")
_FAQ_QUESTION = re.compile(
    r"(?:[-*•]\s+|\d{1,3}[.)、]\s*)?"
    r"(?:(?:\*\*|__|(?:Q|问题?)\d{0,3}\s?[:：.、])[^\n]{1,200}?[?？](?:\*\*|__)?"
    r"|(?![“\"‘'「『—-])[^\n“”\"「」]{1,200}?[?？](?=[^\S\n]*(?:\n|\Z)))"
)
_SHORT = 10  # characters of a sentence that answers with a word
_THIS_IS = re.compile(r"(?:This|It) is an? ")
_NOTE_MARK = re.compile(rf" ?{CITATION_MARKER.pattern}")
_WORD_JOINER = "\u2060"  # an invisible character, which keeps a bracket from being a citation
_ASKING = "谁哪吗呢的了是"  # two of them ask (是谁), or join what is asked (的是)


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence and the number of its citation; `rank` is the rank of its item, from 0."""

    number: int
    rank: int
    text: str
    terms: frozenset[str]
    heading: str = ""
    implied: frozenset[str] = frozenset()  # terms of the name behind the sentence's pronoun

    def defines(self, name: str) -> bool:
        """Whether the quote defines a name; under a heading with the name also by "This is a …"."""
        is_headed = name.casefold() in self.heading.casefold()
        if is_headed and _THIS_IS.match(self.text):
            return True
        return defines(simplified(self.text), simplified(name))

    def opens_entry(self, name: str) -> bool:
        """Whether the quote is the beginning of what stands under a name ("Ada Lund was born …")."""
        folded_name = folded_text(name)
        is_headed = folded_text(self.heading.strip(" #")) == folded_name
        return is_headed and folded_text(self.text).startswith(folded_name)

    def is_about(self, name: str) -> bool:
        """Whether the quote has a name, spelled as it is, or a pronoun for the subject of a text with it."""
        folded_name = folded_text(name)
        return folded_name in folded_text(f"{self.heading} {self.text}") or bool(
            self.implied & terms_with_characters(name)
        )

    def only_names(self, asked_terms: frozenset[str]) -> bool:
        """Whether the quote is no sentence, but a heading without terms beyond the question's."""
        words = {term for term in self.terms if not term.isdigit()}
        return words <= asked_terms and self.text[-1:].isalnum()


@dataclass(frozen=True, slots=True)
class _Item:
    """A chunk, an entity or a relation: a heading, the title of the document, and the text."""

    text: str
    heading: str = ""
    title: str = ""


def chunk_quotes(context: Context) -> list[Quote]:
    """The sentences of the chunks of a context."""
    items = [
        _Item(text=chunk.text, title=context.documents.get(chunk.document_id, ""))
        for chunk in context.chunks
    ]
    return _quotes(items, first_number=1)


def description_quotes(context: Context) -> list[Quote]:
    """The sentences of the descriptions of a context: of relations, then of entities. A relation whose
    description says no more than the triple is quoted as the triple.
    """
    relations = [
        _Item(
            text=relation.description or _triple(relation),
            heading=f"{relation.source} {relation.target}",
        )
        for relation in context.relations
    ]
    entities = [_Item(text=entity.description, heading=entity.name) for entity in context.entities]
    first_entity = len(context.chunks) + 1
    first_relation = first_entity + len(entities)
    return _quotes(relations, first_number=first_relation) + _quotes(
        entities, first_number=first_entity
    )


def _triple(relation: Relation) -> str:
    """A relation as words; nothing without a keyword of the relation."""
    keywords = ", ".join(relation.keywords)
    return f"{relation.source} {keywords} {relation.target}" if keywords else ""


def _quotes(items: Iterable[_Item], *, first_number: int) -> list[Quote]:
    """The sentences of items, equal ones once."""
    quotes: dict[str, Quote] = {}
    for rank, item in enumerate(items):
        for heading, line in _headed_lines(item):
            subject = item.title if _refers_back(line) else ""
            terms = terms_with_characters(line)
            if heading:
                terms = content_terms(heading) | terms
            quote = Quote(
                number=first_number + rank,
                rank=rank,
                text=line,
                terms=terms,
                heading=heading,
                implied=terms_with_characters(subject) - terms if subject else frozenset(),
            )
            quotes.setdefault(line.casefold(), quote)
    return list(quotes.values())


def _headed_lines(item: _Item) -> Iterator[tuple[str, str]]:
    """The sentences of an item on a line each; a heading, or a question that the text itself answers,
    counts for the sentence under it, and with a short one ("Yes.") also for the next.
    """
    heading = item.heading
    spans = sentence_spans(without_markup(item.text))
    for number, (start, end) in enumerate(spans, start=1):
        line = _citable_line(item.text[start:end])
        is_heading = (
            HEADING.match(item.text, start)
            or line == item.title
            or _is_answered_below(item.text, start, end)
        )
        if is_heading and number < len(spans):
            heading += f" {line}"
        else:
            yield heading, line
            heading = heading if len(line) < _SHORT else ""


def _is_answered_below(text: str, start: int, end: int) -> bool:
    """Whether a sentence is a question of an FAQ: bold, after "Q:", or on a line of its own."""
    question = _FAQ_QUESTION.match(text, start)
    is_at_line_start = not text[:start].rpartition("\n")[2].strip()
    return is_at_line_start and question is not None and question.end() >= end


def _refers_back(sentence: str) -> bool:
    """Whether a pronoun may be the subject: it then stands for the subject of the text, the title."""
    words = sentence.split(maxsplit=_EARLY)[:_EARLY]
    return (
        any(_PRONOUN.fullmatch(word) for word in words)
        or _CHINESE_PRONOUN.match(sentence) is not None
    )


def _citable_line(sentence: str) -> str:
    """The sentence without tags and footnote marks; no rest of it looks like a citation."""
    return _NOTE_MARK.sub(_without_note, quoted_line(sentence, LONGEST_QUOTE)).strip()


def _without_note(mark: re.Match[str]) -> str:
    """Nothing for a footnote mark; years like 【2024】 and indices like [0] or a[1] stay."""
    numbers = [int(number) for number in re.findall(r"\d+", mark["numbers"])]
    before = mark.string[: mark.start()][-1:]
    is_index = mark[0][0] == "[" and before.isascii() and before.isalnum()
    if not is_index and all(0 < number < 1000 for number in numbers):
        return ""
    return mark[0].replace(mark["numbers"], _WORD_JOINER + mark["numbers"])


def content_terms(text: str) -> frozenset[str]:
    """The terms of a text except function words, or all if there are no others: verbs in their base form
    ("wrote" meets "write"), and without endings.
    """
    terms = search_terms(text)
    content = [term for term in terms if term not in _function_terms()]
    return frozenset(stem(VERB_BASES.get(term, term)) for term in content or terms)


def terms_with_characters(text: str) -> frozenset[str]:
    """The content terms of a text, and its Chinese characters."""
    return content_terms(text).union(filter(is_cjk, folded_text(text)))


@cache
def _function_terms() -> frozenset[str]:
    terms = {term for word in FUNCTION_WORDS for term in search_terms(word)}
    return frozenset(terms | {first + second for first in _ASKING for second in _ASKING})

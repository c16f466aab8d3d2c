"""Writes a context as the text that a model reads: passages, entities, relations, sources."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from lightrag_jsonl.core.answers import Community, CommunityReport, Context
from lightrag_jsonl.core.languages import (
    FIXED_WORDS,
    STATING_NOTHING,
    known_language,
    written_in,
)
from lightrag_jsonl.core.types import (
    HEADING_SEPARATOR,
    UNKNOWN_TYPE,
    Chunk,
    Entity,
    Excerpt,
    Relation,
)
from lightrag_jsonl.text.citation_markers import CITATION_LABEL, SOURCE_LABEL
from lightrag_jsonl.text.markup import without_marks
from lightrag_jsonl.text.names import name_key, nfkc_casefold
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import UNSEEN, cut, on_one_line
from lightrag_jsonl.text.terms import content_stems, search_terms, terms_of_name

ELLIPSIS = "…"  # for what is left out between two excerpts
LABEL_LENGTH = 200  # characters; longer titles are cut, so that no title fills a context

# Bounds by reason, not tuned on questions: a line stays a line.
SHOWN_OF_MANY = (
    5  # other names or statements with a value beside an entity, predicates in each direction
)
SHOWN_TEXTS = 3  # of the description of an entity or a relation that the question does not name
VALUE_LENGTH = 100  # characters of an alias, or of the name or the value of such a statement

_LINE_MARK = pattern_of(r"\s*(?:(?:#{1,6}|[-*+•·●▪>]|\d{1,3}[.)])\s+)+")
_GAP = pattern_of(f"{UNSEEN}{{4,}} ?")
_BARE_WORD = pattern_of(r"[^\W_]+")
_ENDING_MARKS = ".!?…。！？｡;；:：,，、"
_CLOSING_MARKS = "\"'”’」』）)]】〕》〉»*_"
_EMPTY_WORDS = frozenset(("a", "an", "the", "is", "are", "was", "were"))
_BEFORE_NUMBER = r"(?:[^\w\[\]］】]|_){0,9}"
_BARE_NUMBER = (
    r"\d++(?:[-‐-―−~～－]\d++)?+(?![^\W_])"  # or a range; not 9a of [^0-9a-f], not 2023年
)
_OPENED_NUMBER = pattern_of(  # a class of characters comes first, since `re` looks for that fast
    r"[\[［【(（<](?<!\\.)"
    rf"(?:(?<=[\[［【])(?={_BEFORE_NUMBER}(?:{CITATION_LABEL}{_BEFORE_NUMBER})?{_BARE_NUMBER})"
    rf"|(?<=[(（])(?={_BEFORE_NUMBER}{SOURCE_LABEL}{_BEFORE_NUMBER}\d)|(?<=<)sup>(?=\s*\d))"
)


class ContextWriter:
    """Writes items, without their numbers, and complete contexts in the language of the index.

    `context` has the titles and dates of the documents; `mark` begins each heading, so that no
    document can pose as a heading. `question_stems` are those of the question's words that carry its subject.
    """

    def __init__(self, context: Context, mark: str) -> None:
        self.words = FIXED_WORDS[known_language(context.language)]
        self.context = context
        self.mark = mark
        self.question_stems = content_stems(context.question)
        self._question_terms = frozenset(search_terms(context.question))

    def fact(self, fact: Entity | Relation, description: str, periods: Sequence[str] = ()) -> str:
        """An entity or a relation on one line; `periods` are when a relation holds."""
        if isinstance(fact, Entity):
            return self.entity(fact, description)
        return self.relation(fact, description, periods)

    def entity(self, entity: Entity, description: str) -> str:
        """An entity on one line: name, type, other names, statements with a value, description."""
        remarks = [entity.type] if entity.type not in ("", UNKNOWN_TYPE) else []
        aliases = other_names(entity)
        if aliases:
            listed_aliases = self.words.keyword_comma.join(aliases)
            remarks.append(self.words.also_called.format(listed_aliases))
        remarks += self._statements(entity)
        brackets = ""
        if remarks:
            line = safe_line(self.words.semicolon.join(remarks))
            brackets = self.words.brackets.format(line)
        return f"{safe_line(entity.name)}{brackets}{self._described(description)}"

    def relation(self, relation: Relation, description: str, periods: Sequence[str] = ()) -> str:
        """A relation on one line, with the periods when it holds; without an arrow if no text says what one is
        to the other.
        """
        source = safe_line(relation.source)
        target = safe_line(relation.target)
        if is_unstated(relation):
            return f"{source} — {target}{self._described(description)}"
        directions: list[str] = []
        if relation.keywords or not relation.reverse_keywords:
            predicate = self._predicate(relation.keywords)
            directions.append(f"{source} — {predicate} → {target}")
        if relation.reverse_keywords:
            predicate = self._predicate(relation.reverse_keywords)
            directions.append(f"{target} — {predicate} → {source}")
        triples = self.words.comma.join(directions)
        if periods:
            listed_periods = self.words.semicolon.join(periods)
            triples += self.words.brackets.format(listed_periods)
        return f"{triples}{self._described(description)}"

    def with_dates(self, texts: Sequence[str], description: str) -> list[str]:
        """Texts that are statements of a description, or parts of them, each after the time when it holds, as
        far as that is known; if all are dated, the date of a document is said once for texts in a row.
        """
        dates = [self._date(text, description.split("\n")) for text in texts]
        dated_texts: list[str] = []
        last_date = ""
        for text, date in zip(texts, dates, strict=True):
            is_said = all(dates) and date == last_date and not self._is_period(date)
            last_date = date
            plain = plain_statement(text) if date else text
            label = self.words.brackets.format(date) if plain and date and not is_said else ""
            joint = " " if label.startswith(" ") else ""
            dated_texts.append(f"{label.strip()}{joint}{plain}")
        return dated_texts

    def _date(self, text: str, statements: Sequence[str]) -> str:
        """The date of a statement, or of the statements that a text is left of, if they have one date."""
        dates = self.context.claim_dates
        if text in statements:
            return dates.get(text, "")
        possible_dates = {dates.get(whole, "") for whole in statements if text in whole}
        return possible_dates.pop() if len(possible_dates) == 1 else ""

    def periods(self, description: str) -> list[str]:
        """When the statements of a description hold, which stand elsewhere; a few of many."""
        texts = description.split("\n")
        dates = [self.context.claim_dates.get(text, "") for text in texts]
        return [*dict.fromkeys(filter(self._is_period, dates))][:SHOWN_TEXTS]

    def _is_period(self, date: str) -> bool:
        """Whether a date of a statement says when it holds, not when it was written."""
        before, _, after = self.words.written.partition("{}")
        return bool(date) and not (date.startswith(before) and date.endswith(after))

    def relevant_texts(self, fact: Entity | Relation, description: str) -> list[str]:
        """All texts of a description of a fact if they are few or the question names the fact; or else those
        that have most words of the question, in their order: a hub's other texts are about something else.
        """
        texts = new_statements(fact, description)
        is_long = len(texts) > SHOWN_TEXTS and bool(self.question_stems)
        if not is_long or self._is_named(fact):
            return texts
        shared_words = [len(self.question_stems & content_stems(text)) for text in texts]
        positions = range(len(texts))
        ranked = sorted(positions, key=lambda position: -shared_words[position])
        best = [position for position in ranked[:SHOWN_TEXTS] if shared_words[position]]
        in_order = sorted(best or ranked[:1])
        return [texts[position] for position in in_order]

    def _is_named(self, fact: Entity | Relation) -> bool:
        """Whether the question has all words of the entity's name, or of a name of the relation."""
        if isinstance(fact, Entity):
            names = (fact.name, *fact.aliases)
        else:
            names = (fact.source, fact.target)
        return any(map(self.has_name, names))

    def has_name(self, name: str) -> bool:
        """Whether the question has all words of a name."""
        terms = terms_of_name(name)
        return bool(terms) and self._question_terms.issuperset(terms)

    def frame(self, chunk: Chunk) -> str:
        """The text around a chunk's own text: its heading, and its entries among the sources."""
        heading = self.heading(99, chunk)
        sources = self._sources([chunk])
        return "\n".join([heading, *sources])

    def headings(self, names: Sequence[str]) -> list[str]:
        """The first line, and the headings of sections with these names."""
        colon = self.words.colon
        return [self._first_line(), *[f"{self.mark} {name}{colon}" for name in names]]

    def _first_line(self) -> str:
        """The mark, and the date that the question is about."""
        line = f"{self.words.first_line}{self.mark}"
        if not self.context.as_of:
            return line
        note = self.words.as_of if self.context.has_records else self.words.as_of_documents
        return f"{line}\n{note.format(self.context.as_of)}"

    def heading(self, number: int, chunk: Chunk) -> str:
        """The line above a chunk: number, title and date, heading path, page."""
        place = self._place(chunk)
        colon = self.words.colon.rstrip()
        return f"{self.mark} [{number}] {place}{colon}"

    def _place(self, chunk: Chunk) -> str:
        """The title, date, heading path and page of a chunk."""
        parts = (self._title(chunk.document_id), self._section(chunk))
        return self.words.comma.join(filter(None, parts))

    def _section(self, chunk: Chunk) -> str:
        """The heading path below the title, and the page of a chunk."""
        is_paged = chunk.document_id in self.context.paged
        page = self.words.page.format(chunk.page) if is_paged else ""
        heading = chunk.heading.removeprefix(f"{chunk.title}{HEADING_SEPARATOR}")
        parts = (_shown_label(heading) if heading != chunk.title else "", page)
        return self.words.comma.join(filter(None, parts))

    def text(
        self, entities: Sequence[str], relations: Sequence[str], chunks: Sequence[Chunk]
    ) -> str:
        """The complete text, from lines and chunks; an item with an empty line has a number and is not
        shown, and a section without items has no heading.
        """
        passages = [
            f"{self.heading(number, chunk)}\n{self._passage(chunk)}"
            for number, chunk in enumerate(chunks, 1)
        ]
        facts = [
            f"[{number}] {line}" if line else ""
            for number, line in enumerate([*entities, *relations], len(chunks) + 1)
        ]
        sections = (
            ["\n\n".join(passages)] if passages else [],
            list(filter(None, facts[: len(entities)])),
            list(filter(None, facts[len(entities) :])),
            self._sources(chunks),
        )
        return _under_headings(self.headings(self.words.headings), sections)

    def _passage(self, chunk: Chunk) -> str:
        """The text of a chunk without the heading that stands above it already, with an ellipsis for what
        did not hold at the time asked about.
        """
        text = escaped(chunk.text)
        text = _GAP.sub(f"{ELLIPSIS} ", text).strip("\n")
        first_line, _, body = text.partition("\n")
        title = self.context.documents.get(chunk.document_id, "")
        last_heading = chunk.heading.rpartition(HEADING_SEPARATOR)[2]
        headings = [plain_statement(heading) for heading in (title, last_heading)]
        plain_line = plain_statement(first_line)
        is_heading = plain_line != "" and plain_line in headings
        return body.strip("\n") if is_heading and body.strip() else text

    def overview_headings(self) -> list[str]:
        """The first line, and the headings of both sections of an overview."""
        return self.headings([self.words.communities, self.words.excerpts])

    def overview(
        self,
        communities: Sequence[Community],
        chunks: Sequence[Chunk],
        excerpts: Mapping[str, Sequence[Excerpt]],
    ) -> str:
        """The complete text of an overview, from the chunks with excerpts, by chunk id."""
        numbers = {chunk.id: number for number, chunk in enumerate(chunks, 1)}
        sections = (
            [self.community(community, numbers) for community in communities],
            self._excerpts(chunks, excerpts),
        )
        return _under_headings(self.overview_headings(), sections)

    def community(self, community: Community, numbers: Mapping[str, int]) -> str:
        """A community on one line: names, and the numbers of its passages."""
        comma = self.words.list_comma
        names = "".join([listed_name(name, comma) for name in community.entities])
        passages = [f"[{numbers[id]}]" for id in community.chunk_ids if id in numbers]
        line = f"- {names.rstrip(comma)} {''.join(passages)}"
        if community.report is None:
            return line
        return f"{line}{self.words.colon}{self.report(community.report, numbers)}"

    def report(self, report: CommunityReport, numbers: Mapping[str, int]) -> str:
        """A report on one line: title, summary, and the findings with the numbers of passages."""
        sentences = [f"{safe_line(report.title)}{self.words.colon}{safe_line(report.summary)}"]
        for finding in report.findings:
            marks = [f"[{numbers[id]}]" for id in finding.chunk_ids if id in numbers]
            sentences.append(f"{safe_line(finding.text)} {''.join(marks)}")
        return " ".join(sentences)

    def _excerpts(
        self, chunks: Sequence[Chunk], excerpts: Mapping[str, Sequence[Excerpt]]
    ) -> list[str]:
        """A line for each chunk with excerpts; title, path of headings and page stand where they change."""
        lines: list[str] = []
        title = ""
        section = ""
        for number, chunk in enumerate(chunks, 1):
            if chunk.id not in excerpts:  # cited by a report only
                continue
            chunk_title = self._title(chunk.document_id)
            chunk_section = self._section(chunk)
            place = chunk_section if chunk_section != section else ""
            if chunk_title != title:
                place = self._place(chunk)
            title = chunk_title
            section = chunk_section
            text = safe_line(excerpt_text(chunk, excerpts[chunk.id]))
            colon = self.words.colon if place else ""
            lines.append(f"[{number}] {place}{colon}{text}")
        return lines

    def _sources(self, chunks: Sequence[Chunk]) -> list[str]:
        """A line for each document: its title, and the numbers of its chunks, also of those that are
        shown as chunks of another document.
        """
        numbers_by_document: dict[str, list[str]] = {}
        for number, chunk in enumerate(chunks, 1):
            for document_id in (chunk.document_id, *self.context.copies.get(chunk.id, ())):
                numbers_by_document.setdefault(document_id, []).append(f"[{number}]")
        return [
            f"- {self._title(document_id)}{self.words.colon}{''.join(numbers)}"
            for document_id, numbers in numbers_by_document.items()
        ]

    def _predicate(self, keywords: Sequence[str]) -> str:
        """The keywords of one direction; of many, those first that have words of the question."""
        if len(keywords) > SHOWN_OF_MANY:
            keywords = sorted(keywords, key=self._strangeness)[:SHOWN_OF_MANY]
        return safe_line(self.words.keyword_comma.join(keywords))

    def _title(self, document_id: str) -> str:
        """A document's title with its date, if the title does not say it."""
        title = _shown_label(self.context.documents.get(document_id, document_id))
        date = _shown_label(self.context.dates.get(document_id, ""))
        return title if date in title else title + self.words.brackets.format(date)

    def _statements(self, entity: Entity) -> list[str]:
        """The statements with a value, such as "serves: 4 people"; of many, those first that have
        words of the question.
        """
        statements: list[str] = []
        for attribute, value in entity.attributes:
            name = cut(attribute, VALUE_LENGTH)
            shown_value = cut(value, VALUE_LENGTH)
            parts = filter(None, [name, shown_value])
            statements.append(self.words.colon.join(parts))
        if len(statements) > SHOWN_OF_MANY:
            statements.sort(key=self._strangeness)
        return statements[:SHOWN_OF_MANY]

    def _strangeness(self, statement: str) -> int:
        """How few words a statement has in common with the question, as a number to sort by."""
        shared_terms = self._question_terms.intersection(search_terms(statement))
        return -len(shared_terms)

    def _described(self, description: str) -> str:
        text = safe_line(description)
        return f"{self.words.colon}{text}" if text else ""


def _under_headings(headings: Sequence[str], sections: Sequence[Sequence[str]]) -> str:
    """The first of some headings, and each section with lines below its own; "" without any line."""
    texts = [headings[0]]
    for heading, lines in zip(headings[1:], sections, strict=True):
        if lines:
            texts.append("\n".join([heading.rstrip(), *lines]))
    return "\n\n".join(texts) if len(texts) > 1 else ""


def readable_description(fact: Entity | Relation) -> str:
    """A description on one line, each text of it a sentence, without a name or a triple alone."""
    return as_sentences(new_statements(fact, fact.description))


def other_names(entity: Entity) -> list[str]:
    """The first aliases of an entity that are more than another spelling of the name."""
    names_by_key: dict[str, str] = {}
    for alias in entity.aliases:
        names_by_key.setdefault(name_key(alias), alias)
    names_by_key.pop(name_key(entity.name), None)
    return [cut(name, VALUE_LENGTH) for name in names_by_key.values()][:SHOWN_OF_MANY]


def as_sentences(texts: Sequence[str]) -> str:
    """Texts one after the other; each but the last ends with punctuation, in the text's language."""
    complete_texts = list(filter(None, map(plain_statement, texts)))
    sentences: list[str] = []
    for text in complete_texts[:-1]:
        bare = text.rstrip(_CLOSING_MARKS)
        language = written_in(bare, "en")
        full_stop = FIXED_WORDS[language].full_stop
        if bare.endswith(tuple(_ENDING_MARKS)):
            full_stop = " " if language == "en" else ""
        sentences.append(f"{text}{full_stop}")
    return "".join([*sentences, *complete_texts[-1:]])


def is_unstated(relation: Relation) -> bool:
    """Whether two names only stand together in a text, without a word on what one is to the other."""
    predicates = (*relation.keywords, *relation.reverse_keywords)
    return all(not text.strip() or text in STATING_NOTHING for text in predicates)


@lru_cache(10_000)  # the statements about a hub are looked at for many questions
def plain_statement(text: str) -> str:
    """A text without the marks of a heading, of an item of a list and of emphasis."""
    mark = _LINE_MARK.match(text)
    return without_marks(text[mark.end() :] if mark else text).strip()


def new_statements(fact: Entity | Relation, description: str) -> list[str]:
    """The lines of a description of a fact that say more than the fact's own line says already: more than a name, or
    than source, predicate and target.
    """
    if not description:
        return []
    stated = set(_own_names_and_triples(fact))
    texts = dict.fromkeys(description.split("\n"))  # what was left of two may be the same
    return [text for text in texts if _bare_words(plain_statement(text)) not in stated]


def _own_names_and_triples(fact: Entity | Relation) -> Iterator[str]:
    """Each name and each triple that a fact's line states, as bare words; also with all keywords at once."""
    if isinstance(fact, Entity):
        yield from map(_bare_words, (fact.name, *fact.aliases))
        return
    source_words = _bare_words(fact.source)
    target_words = _bare_words(fact.target)
    yield from (source_words, target_words)
    for keyword in (*fact.keywords, " ".join(fact.keywords)):
        yield source_words + _bare_words(keyword) + target_words
    for keyword in (*fact.reverse_keywords, " ".join(fact.reverse_keywords)):
        yield target_words + _bare_words(keyword) + source_words


@lru_cache(5_000)  # the statements about a hub are looked at for many questions
def _bare_words(text: str) -> str:
    """The words of a text in order, closed up, without articles and forms of "be", to compare texts
    by words whatever the punctuation and the spaces.
    """
    words = _BARE_WORD.findall(nfkc_casefold(text))
    return "".join([word for word in words if word not in _EMPTY_WORDS])


def excerpt_text(chunk: Chunk, spans: Sequence[Excerpt]) -> str:
    """The spans of a chunk's text, with an ellipsis for what is left out between them."""
    pieces: list[str] = []
    last_end = 0
    for start, end in spans:
        if pieces:
            gap = chunk.text[last_end:start]
            pieces.append(f" {ELLIPSIS} " if gap.strip() else gap)
        pieces.append(chunk.text[start:end])
        last_end = end
    return "".join(pieces)


@lru_cache(5_000)  # an overview is written for several budgets
def listed_name(name: str, comma: str) -> str:
    """A name in a list of names."""
    return f"{safe_line(name)}{comma}"


def escaped(text: str) -> str:
    """A document's text with a backslash before each bracket that opens a number, labeled or not."""
    return _OPENED_NUMBER.sub(lambda opening: f"\\{opening[0]}", text)


@lru_cache(1_000)  # the same titles, dates and headings come again and again
def _shown_label(text: str) -> str:
    return safe_line(text)[:LABEL_LENGTH]


def safe_line(text: str) -> str:
    """A text on one line, with escaped brackets, so that nothing in it looks like an item."""
    return escaped(on_one_line(text))

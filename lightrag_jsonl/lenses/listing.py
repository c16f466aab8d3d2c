"""Lists and numbers from the records of the graph, for questions such as "How many …?" and "List all …".

They are as complete as the records of a model or a user: what rules read makes no list. A list is made only if every content word of the question is accounted for: as the name of an entity, as
a type of entities, as a predicate, or as a word for documents. In doubt there is no list, and the
question is answered like any other.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import Struct, structs

from lightrag_jsonl.core.answers import Context, Keywords, ListedItem, Listing, ListRequest
from lightrag_jsonl.core.languages import FIXED_WORDS, FixedWords, known_language
from lightrag_jsonl.core.types import Relation
from lightrag_jsonl.retrieval.context_writer import safe_line
from lightrag_jsonl.retrieval.filtering import (
    entity_names,
    load_entities,
    load_relations,
    with_filter,
)
from lightrag_jsonl.retrieval.hits import column
from lightrag_jsonl.retrieval.lens import Lens, Section
from lightrag_jsonl.retrieval.question_names import entities_called, question_names
from lightrag_jsonl.retrieval.task import SearchResult, SearchTask
from lightrag_jsonl.storage.graph_index import distinct_rows
from lightrag_jsonl.storage.status import reads_when_asked, titles
from lightrag_jsonl.text.cjk import has_cjk
from lightrag_jsonl.text.names import name_key
from lightrag_jsonl.text.question_kinds import (
    DOCUMENT_WORDS,
    asked_years,
    asks_for_list,
    asks_for_people,
    has_other_numbers,
    listed_characters,
    listed_words,
    singular_forms,
    word_forms,
)

MOST_LISTED = 500  # items; of more, the first by name and how many there are
LONGEST_TYPE = 8  # Chinese characters of a type that is looked for in a question


class Listings(Lens):
    """The list or the number that a question asks for, if the graph has records for it."""

    def find(self, task: SearchTask, result: SearchResult) -> SearchResult | None:
        """The result with the list, in modes that search the graph."""
        question = task.query.question
        context = result.context
        if not task.mode.graph or not (context.keywords.listed or asks_for_list(question)):
            return None
        listing = find_listing(task, question, context.keywords)
        if listing is None:
            return None
        return structs.replace(result, context=replace(context, listing=listing))

    def section(self, context: Context) -> Section | None:
        """The list in words; listed items have the last numbers."""
        lines = listing_lines(context)
        return Section(lines[0], lines[1:]) if lines else None

    def appended(self, context: Context, text: str, cited: Collection[int]) -> str:
        """The whole list: the prompt may have had no room for all items."""
        lines = "\n".join(listing_lines(context))
        return f"\n\n{lines}" if lines and text else lines


class ListWords(Struct, frozen=True):
    """The request for a list: the named entity, and the content words beside the name.

    `name_first`: the name stands before the last content word: "that Ada founded". `years` limit
    documents.
    """

    entity: int | None
    words: tuple[str, ...]
    name_first: bool
    years: tuple[str, ...] = ()


class TypedRows(Struct, frozen=True):
    """The entities of the types in the words of a question; all without a type."""

    types: tuple[str, ...]
    rows: frozenset[int] | None
    other_words: tuple[str, ...]


class PredicateMatch(Struct, frozen=True):
    """A relation by row id with predicates in the question; `is_source` of the named entity."""

    relation: int
    predicates: tuple[str, ...]
    is_source: bool


class EntityTypes:
    """The visible entities of each type; under a filter, by the types in visible passages."""

    def __init__(self, task: SearchTask) -> None:
        self._task = task
        self._visible_rows: dict[str, set[int]] = {}
        if task.filtered is not None:
            for row, entity in load_entities(task, task.filtered["entity"]).items():
                self._visible_rows.setdefault(entity.type.casefold(), set()).add(row)
            self._types = set(self._visible_rows)
        else:
            self._types = task.snapshot.entity_types()

    def rows(self, types: Iterable[str]) -> tuple[tuple[str, ...], frozenset[int]]:
        """The types with entities among some types, and all entities of these types."""
        rows_by_type = {type: self._rows_of(type) for type in types if type in self._types}
        return tuple(rows_by_type), frozenset().union(*rows_by_type.values())

    def _rows_of(self, type: str) -> Iterable[int]:
        if self._task.filtered is None:
            return self._task.snapshot.listed("entity", type=type)
        return self._visible_rows[type]


def find_listing(task: SearchTask, question: str, keywords: Keywords) -> Listing | None:
    """The list in answer to a question, if the graph has records for it."""
    task = with_filter(task)
    types = EntityTypes(task)
    list_words = _requested_words(task, question, keywords.listed) if keywords.listed else None
    if list_words is None and asks_for_list(question):
        list_words = _question_words(task, types, question)
    if list_words is None or not (list_words.words or list_words.entity is not None):
        return None
    unread = _count_unread(task, list_words.entity)
    is_unread = unread > 0 and reads_when_asked(task.snapshot.settings())
    has_records = task.snapshot.has_records() and not is_unread
    listing = _listing_of(task, types, list_words, has_records=has_records)
    if listing is None or listing.documents:
        return listing
    return replace(listing, unread=unread)


def _listing_of(
    task: SearchTask, types: EntityTypes, list_words: ListWords, *, has_records: bool
) -> Listing | None:
    """The list of what some words ask for; without records, of documents alone."""
    is_about_documents = all(word in DOCUMENT_WORDS for word in list_words.words)
    if list_words.words and is_about_documents:
        if list_words.entity is not None and not has_records:
            return None
        return _documents(task, list_words.entity, list_words.years)
    if list_words.years or not has_records:
        return None
    typed = _typed_rows(types, list_words.words)
    if list_words.entity is not None:
        return _related(task, list_words.entity, typed, name_is_source=list_words.name_first)
    if typed.rows and not typed.other_words:
        return _entities(task, typed)
    return None


def _count_unread(task: SearchTask, entity: int | None) -> int:
    """The number of passages that only rules have read, of those that the list should be made from: of the
    entity, or of all that the filter lets through.
    """
    snapshot = task.snapshot
    if entity is None:
        unread = column(snapshot.chunks_by_rules())
    else:
        _, chunks = snapshot.graph.chunks_of(column([entity]))
        unread = column(snapshot.chunks_by_rules(rows=distinct_rows(chunks).tolist()))
    return int(task.inside("chunk", unread).sum())


# ── what is asked for ───────────────────────────────────────────────────────────


def _requested_words(task: SearchTask, question: str, request: ListRequest) -> ListWords | None:
    """The words of a model's request; None if the index does not know the entity."""
    entity: int | None = None
    if request.of:
        key = name_key(request.of)
        entity = entities_called(task, [key]).get(key)
        if entity is None:
            return None
    text = f"{request.items}\n{request.relation}"
    list_words = (*listed_words(text), *listed_characters(text))
    _, name, after = question.partition(request.of or question)
    name_first = not name or bool(listed_words(after) or listed_characters(after))
    return ListWords(entity, list_words, name_first=name_first, years=asked_years(text))


def _question_words(task: SearchTask, types: EntityTypes, question: str) -> ListWords | None:
    """The words of a question beside a single named entity; None for several entities, or a number
    beside the name.
    """
    spellings = {
        row: spelling
        for row, spelling in question_names(task).spellings.items()
        if not types.rows(singular_forms(name_key(spelling)))[1]
    }
    if len(spellings) > 1:
        return None
    before = question
    after = ""
    entity: int | None = None
    for row, spelling in spellings.items():
        entity = row
        before, _, after = question.partition(spelling)
    if has_other_numbers(f"{before} {after}"):
        return None
    own_words = (*listed_words(before), *listed_characters(before))
    words_after = (*listed_words(after), *listed_characters(after))
    content_words = (*own_words, *words_after)
    if asks_for_people(question) and not _typed_rows(types, content_words).types:
        content_words = ("people", *content_words)
    return ListWords(
        entity,
        content_words,
        name_first=bool(words_after),
        years=(*asked_years(before), *asked_years(after)),
    )


def _typed_rows(types: EntityTypes, list_words: Sequence[str]) -> TypedRows:
    """The entities of the type in a word, or in two words together ("side effects")."""
    for first in range(len(list_words)):
        for length in (2, 1):
            span = list_words[first : first + length]
            for candidate, remainder in _type_candidates(span):
                named_types, rows = types.rows(candidate)
                if rows:
                    remaining_words = (
                        *list_words[:first],
                        *remainder,
                        *list_words[first + length :],
                    )
                    return TypedRows(named_types, rows, remaining_words)
    return TypedRows((), None, tuple(list_words))


def _type_candidates(
    span: Sequence[str],
) -> Iterable[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Possible types in a word or two, each with the remaining words; of Chinese, the longest."""
    if len(span) == 2 and not has_cjk("".join(span)):
        last_forms = singular_forms(span[1])
        yield tuple([f"{span[0]}{joint}{form}" for form in last_forms for joint in " _-"]), ()
    if len(span) != 1:
        return
    word = span[0]
    if not has_cjk(word):
        yield singular_forms(word), ()
        return
    for length in range(min(len(word), LONGEST_TYPE), 0, -1):
        for start in range(len(word) - length, -1, -1):
            remainder = tuple(filter(None, (word[:start], word[start + length :])))
            yield singular_forms(word[start : start + length]), remainder


# ── lists ───────────────────────────────────────────────────────────────────────


def _entities(task: SearchTask, typed: TypedRows) -> Listing | None:
    """All entities of a type."""
    entities = load_entities(task, column(sorted(typed.rows or ())))
    items = [
        (entity.name, entity.chunk_ids)
        for entity in entities.values()
        if entity.type.casefold() in typed.types
    ]
    listing = _listing(_recorded(task, items))
    return replace(listing, types=typed.types) if listing.items else None


def _related(
    task: SearchTask, entity: int, typed: TypedRows, *, name_is_source: bool
) -> Listing | None:
    """The entities related to an entity, of the type and by the predicate in the words, if any."""
    relation_rows = task.snapshot.graph.relations_of(column([entity]))[1]
    relation_rows = relation_rows[task.inside("relation", relation_rows)]
    relations = load_relations(task, relation_rows)
    name = entity_names(task, [entity])[entity]
    matches = [
        PredicateMatch(row, predicates, is_source)
        for row, relation in relations.items()
        for predicates, is_source in _matching(relation, typed.other_words, name)
    ]
    predicates = {predicate for match in matches for predicate in match.predicates}
    if set(typed.other_words) - _words_of(predicates, typed.other_words):
        return None
    if typed.other_words:
        matches = _in_one_direction(matches, name_is_source=name_is_source)
        relations = {match.relation: relations[match.relation] for match in matches}
    elif typed.rows is None:
        return None
    items = _other_ends(task, relations, entity, typed)
    if not items:
        return None
    visible_predicates = {predicate for match in matches for predicate in match.predicates}
    return replace(
        _listing(items), types=typed.types, of=name, predicates=tuple(sorted(visible_predicates))
    )


def _other_ends(
    task: SearchTask, relations: Mapping[int, Relation], entity: int, typed: TypedRows
) -> list[ListedItem]:
    """The entities of a type at the other ends of relations, each once, with a source of the relation."""
    rows = column(relations)
    ends = task.snapshot.graph.ends(rows)
    other_rows = ends.sum(axis=1) - entity
    entities = load_entities(task, distinct_rows(other_rows))
    items: dict[int, tuple[str, tuple[str, ...]]] = {}
    for row, other_row in zip(rows.tolist(), other_rows.tolist(), strict=True):
        end = entities[other_row]
        if typed.rows is None or end.type.casefold() in typed.types:
            _, chunk_ids = items.get(other_row, ("", ()))
            items[other_row] = (end.name, (*chunk_ids, *relations[row].chunk_ids))
    return _recorded(task, items.values())


def _recorded(task: SearchTask, items: Iterable[tuple[str, tuple[str, ...]]]) -> list[ListedItem]:
    """The items with a passage that a model or a user gave records of, each with the first such passage."""
    items = list(items)
    names = {chunk_id for _, chunk_ids in items for chunk_id in chunk_ids}
    by_rules = set(task.snapshot.chunks_by_rules(names).values())
    listed: list[ListedItem] = []
    for name, chunk_ids in items:
        recorded = [chunk_id for chunk_id in chunk_ids if chunk_id not in by_rules]
        if recorded:
            listed.append(ListedItem(name, recorded[0]))
    return listed


def _matching(
    relation: Relation, list_words: Sequence[str], name: str
) -> Iterable[tuple[tuple[str, ...], bool]]:
    """The predicates of a relation in the words of the question, for each direction, and whether
    the named entity is the source.
    """
    is_source = relation.source == name
    for keywords, direction in (
        (relation.keywords, is_source),
        (relation.reverse_keywords, not is_source),
    ):
        predicates = tuple([keyword for keyword in keywords if _words_of((keyword,), list_words)])
        if predicates:
            yield predicates, direction


def _words_of(predicates: Iterable[str], list_words: Sequence[str]) -> set[str]:
    """The words of a question in a predicate, in any form."""
    forms: set[str] = set()
    texts: list[str] = []
    for predicate in predicates:
        forms.update(*[word_forms(word) for word in listed_words(predicate)])
        texts += listed_characters(predicate)
    return {
        word
        for word in list_words
        if word_forms(word) & forms or (has_cjk(word) and any(word in text for text in texts))
    }


def _in_one_direction(
    matches: Sequence[PredicateMatch], *, name_is_source: bool
) -> list[PredicateMatch]:
    """If a predicate leads both from and to the named entity, only the direction of the question."""
    in_direction = [match for match in matches if match.is_source == name_is_source]
    return in_direction or list(matches)


def _documents(task: SearchTask, entity: int | None, years: Sequence[str]) -> Listing | None:
    """The visible documents of the years in the question, if any: all, or with a passage on an
    entity. None for years in the question and a document without a date.
    """
    chunks = task.snapshot.graph.chunks
    if entity is not None:
        chunks = task.snapshot.graph.chunks_of(column([entity]))[1]
    chunks = chunks[task.inside("chunk", chunks)]
    first_chunks: dict[str, str] = {}
    for chunk in task.snapshot.chunks(chunks.tolist()).values():
        first_chunks.setdefault(chunk.document_id, chunk.id)
    documents = task.snapshot.documents(first_chunks)
    if years:
        if not all(document.date for document in documents):
            return None
        documents = [item for item in documents if str(item.date).startswith(tuple(years))]
    titles_by_id = titles(task.snapshot, documents)
    items = [
        ListedItem(
            titles_by_id[document.id] or document.source or document.id,
            first_chunks[document.id],
            "chunk",
        )
        for document in documents
    ]
    name = "" if entity is None else entity_names(task, [entity])[entity]
    return replace(_listing(items), of=name, documents=True)


def _listing(items: Collection[ListedItem]) -> Listing:
    ordered = sorted(items, key=lambda item: (name_key(item.name), item.name, item.chunk_id))
    return Listing(items=tuple(ordered[:MOST_LISTED]), total=len(items))


# ── in words ────────────────────────────────────────────────────────────────────


def listing_lines(context: Context) -> list[str]:
    """The list of a context in words: the kind and the number of items, then a numbered item on each line;
    nothing without a list.
    """
    listing = context.listing
    if listing is None:
        return []
    words = FIXED_WORDS[known_language(context.language)]
    scope = [words.listed_filtered] if context.where else []
    if context.as_of:
        scope.append(words.listed_as_of.format(context.as_of))
    lines = [_heading(listing, scope, words) + words.colon.rstrip()]
    first_number = context.items - len(listing.items) + 1
    for number, item in enumerate(listing.items, start=first_number):
        lines.append(f"- {safe_line(item.name)} [{number}]")
    if listing.total > len(listing.items):
        lines.append(f"- {words.not_listed.format(listing.total - len(listing.items))}")
    return lines


def _heading(listing: Listing, scope: Sequence[str], words: FixedWords) -> str:
    """The kind and the number of the items, and the `scope`: what limits the documents that count."""
    parts: list[str] = []
    if listing.documents:
        parts.append(words.listed_documents)
    if listing.types:
        types = words.keyword_comma.join(listing.types)
        parts.append(words.listed_type.format(safe_line(types)))
    if listing.predicates:
        predicates = words.keyword_comma.join(listing.predicates)
        parts.append(words.listed_relations.format(safe_line(predicates), safe_line(listing.of)))
    elif listing.of:
        parts.append(words.listed_related.format(safe_line(listing.of)))
    if listing.documents and not listing.of and not scope:
        return words.listing_of_documents.format(listing.total)
    if listing.documents and not listing.of:
        return words.listing_of_some_documents.format(words.comma.join(scope), listing.total)
    heading = words.listing.format(words.comma.join([*parts, *scope]), listing.total)
    return heading + (words.listing_unread.format(listing.unread) if listing.unread else "")

"""The texts that a mode searches with: a question's keywords."""

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from lightrag_jsonl.core import user_code
from lightrag_jsonl.core.answers import Keywords, ListRequest
from lightrag_jsonl.core.errors import ResponseError
from lightrag_jsonl.core.modes import ModePlan
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import KeywordExtractor
from lightrag_jsonl.core.types import Json, Message
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.field_aliases import normalize_keywords
from lightrag_jsonl.text.names import folded_text, name_key
from lightrag_jsonl.text.strings import sanitize

# Bounds of what a model's answer may cost, not tuned.
KEYWORD_LIMIT = 16  # of each kind; a model that lists more has lost sight of the question
KEYWORD_LENGTH = 200  # characters

SearchTexts: TypeAlias = tuple[str, ...]

log = logging.getLogger(__name__)


async def question_keywords(
    question: str,
    history: Sequence[Message],
    param: QueryParam,
    *,
    client: ModelClient,
    extractor: KeywordExtractor | None,
    meter: UsageMeter,
) -> Keywords:
    """The question's keywords, from `param`, the extractor or the model; and in a conversation, the
    question as it would be asked without the conversation.

    If the model's answer is unreadable there are no keywords, and the question itself is searched for.
    """
    if param.hl_keywords or param.ll_keywords:
        return Keywords(_tidy(param.hl_keywords), _tidy(param.ll_keywords))
    if extractor is not None:
        keywords = await user_code.find_keywords(extractor, question, history)
        return Keywords(
            _tidy(keywords.high_level),
            _tidy(keywords.low_level),
            _self_contained(keywords.question) if history else "",
            keywords.whole,
            keywords.listed,
        )
    variables = {"query": question, "history": tuple(history)}
    try:
        value = await client.json("keywords", variables, meter, normalize=normalize_keywords)
    except ResponseError as error:
        log.warning("no keywords (%s): searching by the question itself", error)
        return Keywords()
    fields = value if isinstance(value, dict) else {}
    conversation = folded_text(" ".join([question, *[turn.content for turn in history]]))
    listed = fields.get("list")
    copied = {key for key in _example_keywords(client) if key not in conversation}
    return Keywords(
        _tidy(fields.get("high_level_keywords"), without=copied),
        _tidy(fields.get("low_level_keywords"), without=copied),
        _self_contained(fields.get("question")) if history else "",
        fields.get("whole") is True,
        _list_request(listed) if isinstance(listed, dict) else None,
    )


def _list_request(fields: Mapping[str, Json]) -> ListRequest | None:
    """What the model says is to be listed: a description by fields, if any is given."""
    texts = [fields.get(name) for name in ("items", "of", "relation")]
    items, of, relation = [sanitize(text) if isinstance(text, str) else "" for text in texts]
    if not (items or relation):
        return None
    return ListRequest(items=items, of=of, relation=relation)


def _self_contained(question: Json) -> str:
    """The question as rewritten by the model in a conversation; "" if the model gives no text."""
    return " ".join(sanitize(question).split()) if isinstance(question, str) else ""


def _example_keywords(client: ModelClient) -> set[str]:
    """The folded keywords in the examples of the prompt, which small models copy."""
    keywords: set[str] = set()
    for line in client.prompts.prompt("keywords").example_lines:
        for texts in json.loads(line).values():
            keywords |= set(map(folded_text, _tidy(texts)))
    return keywords


def _tidy(texts: Iterable[str] | Json, *, without: Collection[str] = ()) -> SearchTexts:
    """Keywords without blank ones, repetitions and some folded texts, in order, at most `KEYWORD_LIMIT`."""
    if not isinstance(texts, list | tuple):
        return ()
    keywords_by_key: dict[str, str] = {}
    for text in texts:
        keyword = " ".join(sanitize(text).split())[:KEYWORD_LENGTH] if isinstance(text, str) else ""
        if keyword and folded_text(keyword) not in without:
            keywords_by_key.setdefault(name_key(keyword) or keyword, keyword)
    return tuple(keywords_by_key.values())[:KEYWORD_LIMIT]


def search_texts(
    mode: ModePlan, keywords: Keywords, question: str
) -> tuple[SearchTexts, SearchTexts]:
    """The texts to search for among entities and among relations.

    A mode without keywords of its own kind uses the other kind, and without any keywords the question.
    """
    low = keywords.low_level if mode.entities else ()
    high = keywords.high_level if mode.relations else ()
    if low or high or not mode.graph:
        return low, high
    if keywords.low_level or keywords.high_level:
        return keywords.low_level, keywords.high_level
    return ((question,) if mode.entities else ()), ((question,) if mode.relations else ())

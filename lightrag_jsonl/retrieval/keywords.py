"""The texts that a mode searches with: a question's keywords."""

import logging
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from lightrag_jsonl.core import user_code
from lightrag_jsonl.core.errors import ResponseError
from lightrag_jsonl.core.modes import ModePlan
from lightrag_jsonl.core.names import name_key
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import KeywordExtractor
from lightrag_jsonl.core.text import sanitize
from lightrag_jsonl.core.types import Json, Keywords, Message
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.field_aliases import normalize_keywords

KEYWORD_LIMIT = 16  # of each kind; a model that lists more has lost sight of the question
KEYWORD_LENGTH = 200  # characters

Texts: TypeAlias = tuple[str, ...]

log = logging.getLogger(__name__)


async def find_keywords(
    question: str,
    history: Sequence[Message],
    param: QueryParam,
    client: ModelClient,
    extractor: KeywordExtractor | None,
    meter: UsageMeter,
) -> Keywords:
    """The question's keywords: given in `param`, by the extractor, or by the model; and if it
    follows a conversation, the question as it would be asked without one.

    If the model's answer is unreadable there are none, and the search uses the question itself.
    """
    if param.hl_keywords or param.ll_keywords:
        return Keywords(_tidy(param.hl_keywords), _tidy(param.ll_keywords))
    if extractor is not None:
        found = await user_code.find_keywords(extractor, question, history)
        complete = _self_contained(found.question, history)
        return Keywords(_tidy(found.high_level), _tidy(found.low_level), complete)
    variables = {"query": question, "history": tuple(history)}
    try:
        value = await client.json("keywords", variables, meter, normalize=normalize_keywords)
    except ResponseError as error:
        log.warning("no keywords (%s): searching by the question itself", error)
        return Keywords()
    fields = value if isinstance(value, dict) else {}
    return Keywords(
        _tidy(fields.get("high_level_keywords")),
        _tidy(fields.get("low_level_keywords")),
        _self_contained(fields.get("question"), history),
    )


def _self_contained(found: Json, history: Sequence[Message]) -> str:
    """What a question was made into, if there is a conversation that it could lean on."""
    if not (history and isinstance(found, str)):
        return ""
    return " ".join(sanitize(found).split())


def _tidy(texts: Iterable[str] | Json) -> Texts:
    """Keywords without blank ones and repetitions, in order, at most `KEYWORD_LIMIT`."""
    kept: dict[str, str] = {}
    for text in texts if isinstance(texts, list | tuple) else ():
        plain = " ".join(sanitize(text).split())[:KEYWORD_LENGTH] if isinstance(text, str) else ""
        if plain:
            kept.setdefault(name_key(plain) or plain, plain)
    return tuple(kept.values())[:KEYWORD_LIMIT]


def search_texts(mode: ModePlan, keywords: Keywords, question: str) -> tuple[Texts, Texts]:
    """The texts to search for among entities and among relations.

    A mode that lacks its own kind of keywords uses the other kind; without any keywords the
    question is used.
    """
    low = keywords.low_level if mode.entities else ()
    high = keywords.high_level if mode.relations else ()
    if low or high or not mode.graph:
        return low, high
    if keywords.low_level or keywords.high_level:
        return keywords.low_level, keywords.high_level
    return ((question,) if mode.entities else ()), ((question,) if mode.relations else ())

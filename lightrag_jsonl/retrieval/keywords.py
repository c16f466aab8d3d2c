"""Finds a question's keywords: given by the caller, by the model, or by language rules."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from lightrag_jsonl.core import user_code
from lightrag_jsonl.core.errors import ResponseError
from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import KeywordExtractor
from lightrag_jsonl.core.text import name_key, sanitize
from lightrag_jsonl.core.types import Json, Keywords, Message
from lightrag_jsonl.llm.client import ModelClient, UsageMeter
from lightrag_jsonl.llm.field_aliases import normalize_keywords

KEYWORD_LIMIT = 16  # of each kind; a model that lists more has lost sight of the question
KEYWORD_LENGTH = 200  # characters

log = logging.getLogger(__name__)


async def find_keywords(
    question: str,
    param: QueryParam,
    history: Sequence[Message],
    *,
    client: ModelClient,
    extractor: KeywordExtractor | None,
    meter: UsageMeter,
) -> Keywords:
    """The question's keywords.

    Keywords in `param` save the call. If the model's answer is unreadable there are no keywords,
    and the search uses the question itself.
    """
    if param.hl_keywords or param.ll_keywords:
        return Keywords(_tidy(param.hl_keywords), _tidy(param.ll_keywords))
    if extractor is not None:
        found = await user_code.find_keywords(extractor, question, history)
        return Keywords(_tidy(found.high_level), _tidy(found.low_level))
    variables = {"query": question, "history": tuple(history)}
    try:
        value = await client.json("keywords", variables, meter, normalize=normalize_keywords)
    except ResponseError as error:
        log.warning("no keywords (%s): searching by the question itself", error)
        return Keywords()
    fields = value if isinstance(value, dict) else {}
    return Keywords(
        _tidy(fields.get("high_level_keywords")), _tidy(fields.get("low_level_keywords"))
    )


def _tidy(texts: Iterable[str] | Json) -> tuple[str, ...]:
    """Keywords without blank ones and repetitions, in order, at most `KEYWORD_LIMIT`."""
    kept: dict[str, str] = {}
    for text in texts if isinstance(texts, list | tuple) else ():
        plain = " ".join(sanitize(text).split())[:KEYWORD_LENGTH] if isinstance(text, str) else ""
        if plain:
            kept.setdefault(name_key(plain) or plain, plain)
    return tuple(kept.values())[:KEYWORD_LIMIT]

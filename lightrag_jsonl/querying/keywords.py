"""Finds a question's keywords: given by the caller, by the model, or by language rules."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from lightrag_jsonl.ask import Ask
from lightrag_jsonl.calls import keywords_of
from lightrag_jsonl.drift import normalize_keywords
from lightrag_jsonl.errors import ResponseError
from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.protocols import KeywordExtractor
from lightrag_jsonl.spending import Spending
from lightrag_jsonl.text import name_key, sanitize
from lightrag_jsonl.types import Json, Keywords, Message

KEYWORD_LIMIT = 16  # of each kind; a model that lists more has lost sight of the question
KEYWORD_LENGTH = 200  # characters

log = logging.getLogger(__name__)


async def find_keywords(
    question: str,
    *,
    param: QueryParam,
    history: Sequence[Message],
    ask: Ask,
    extractor: KeywordExtractor | None,
    spending: Spending,
) -> Keywords:
    """The question's keywords.

    Keywords in `param` save the call. If the model's answer is unreadable there are no keywords,
    and the search uses the question itself.
    """
    if param.hl_keywords or param.ll_keywords:
        return Keywords(tidy(param.hl_keywords), tidy(param.ll_keywords))
    if extractor is not None:
        found = await keywords_of(extractor, question, history)
        return Keywords(tidy(found.high_level), tidy(found.low_level))
    variables = {"query": question, "history": tuple(history)}
    try:
        value = await ask.json("keywords", variables, spending, normalize=normalize_keywords)
    except ResponseError as error:
        log.warning("no keywords (%s): searching by the question itself", error)
        return Keywords()
    fields = value if isinstance(value, dict) else {}
    high = tidy(_texts(fields.get("high_level_keywords")))
    low = tidy(_texts(fields.get("low_level_keywords")))
    return Keywords(high, low)


def tidy(texts: Iterable[str]) -> tuple[str, ...]:
    """Keywords without blank ones and repetitions, in order, at most `KEYWORD_LIMIT`."""
    kept: dict[str, str] = {}
    for text in texts:
        plain = " ".join(sanitize(text).split())[:KEYWORD_LENGTH]
        if plain:
            kept.setdefault(name_key(plain) or plain, plain)
    return tuple(kept.values())[:KEYWORD_LIMIT]


def _texts(value: Json) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

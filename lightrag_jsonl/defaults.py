"""What is used if the caller gave nothing: the offline adapters and the recorded tokenizer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from lightrag_jsonl.languages import known_language
from lightrag_jsonl.protocols import (
    LLM,
    Answerer,
    Embedder,
    Extractor,
    KeywordExtractor,
    Tokenizer,
)
from lightrag_jsonl.tokens import FittedTokenizer, default_tokenizer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """Model, embedder and the like of one index. Without a model, an extractor and an answerer
    replace it.
    """

    llm: LLM | None
    embedder: Embedder
    extractor: Extractor | None
    keyword_extractor: KeywordExtractor | None
    answerer: Answerer | None


def complete(
    llm: LLM | Callable[..., object] | None,
    embedder: Embedder | Callable[..., object] | None,
    extractor: Extractor | None,
    keyword_extractor: KeywordExtractor | None,
    answerer: Answerer | None,
    language: str,
) -> Parts:
    """The caller's parts, plain functions wrapped, with offline parts for those that are missing."""
    from lightrag_jsonl.adapters import offline
    from lightrag_jsonl.adapters.functions import as_embedder, as_llm

    if llm is None:
        rules = known_language(language)
        extractor = extractor or offline.OfflineExtractor(rules)
        keyword_extractor = keyword_extractor or offline.OfflineKeywords(rules)
        answerer = answerer or offline.ExtractiveAnswerer(rules)
    return Parts(
        llm=None if llm is None else as_llm(llm),
        embedder=offline.HashEmbedder() if embedder is None else as_embedder(embedder),
        extractor=extractor,
        keyword_extractor=keyword_extractor,
        answerer=answerer,
    )


def wrapped_embedder(embedder: Embedder | Callable[..., object]) -> Embedder:
    """The embedder itself, or a plain function wrapped as one."""
    from lightrag_jsonl.adapters.functions import as_embedder

    return as_embedder(embedder)


def candidate_names(llm: LLM | None, language: str) -> Callable[[str], Sequence[str]] | None:
    """For a model that may only write names from the text: a function that finds candidates in a text."""
    if getattr(llm, "constrain", "") != "grounded":
        return None
    from lightrag_jsonl.adapters.offline.extraction import extract_text

    chosen = known_language(language)
    return lambda text: [one.name for one in extract_text(text, language=chosen).entities]


def tokenizer_for(recorded: str | None) -> Tokenizer:
    """The tokenizer an index was built with; if it is not available here, another one, with a warning."""
    fitted = FittedTokenizer()
    if recorded == fitted.name:
        return fitted
    found = default_tokenizer()
    if recorded is not None and found.name != recorded:
        log.warning(
            "this index counts tokens with %s, which is not at hand here; %s stands in, so new "
            "chunks and budgets may differ a little",
            recorded,
            found.name,
        )
        return cast(Tokenizer, _Renamed(found, recorded))
    return found


class _Renamed:
    """A substitute tokenizer under the recorded name, so that the record does not change."""

    def __init__(self, tokenizer: Tokenizer, name: str) -> None:
        self.name = name
        self.error = getattr(tokenizer, "error", 0.0)
        self.additive = getattr(tokenizer, "additive", False)
        self.count = tokenizer.count
        self.truncate = tokenizer.truncate

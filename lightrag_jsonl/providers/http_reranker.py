"""Rerankers behind an HTTP endpoint: Jina, Cohere, Voyage, vLLM, llama.cpp, TEI and DashScope."""

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from lightrag_jsonl.core.errors import LLMError
from lightrag_jsonl.core.retrying import READER_PATIENCE, with_retries
from lightrag_jsonl.core.types import Json
from lightrag_jsonl.providers.connection import ServerConnection
from lightrag_jsonl.text.patterns import pattern_of
from lightrag_jsonl.text.strings import sanitize

KEY_NOT_NEEDED = "no-key"  # a key for another server is never sent in its place
RERANK_PATH = pattern_of(r"/(?:[\w-]*rerank\w*)/?$")
DASHSCOPE_PATH = "/services/rerank/"  # of the native protocol, with its own form of a request
_WANTS_TEXTS = pattern_of(r"missing field.{0,3}texts|\btexts\b.{0,40}(?:required|missing)")
_TOO_MANY = pattern_of(r"batch|too many|too large|at most|maximum|exceed|limit", re.IGNORECASE)


class HTTPReranker:
    """A reranking model at a server; give it to an index as `reranker=`.

    - `base_url`: such as `https://api.jina.ai/v1`, completed by `/rerank`, or the whole address of
      the endpoint (`…/rerank`, DashScope's `…/services/rerank/text-rerank/text-rerank`). The form
      of requests follows from the address, or from the server's first refusal (TEI).
    - `model`: "" for a server with a single model (TEI).
    - `api_key`: the key for this server; no key from the environment is sent.
    - `batch_size`: the most texts of one request; a refused batch is halved.
    - `timeout`, `max_retries`, `max_answer_bytes`, `extra_body`, `extra_headers`: as of `OpenAILLM`.

    Raises `LLMError`, or `ConfigError` for a wrong address or a missing key.
    """

    def __init__(
        self,
        model: str = "",
        *,
        base_url: str,
        api_key: str | None = None,
        batch_size: int | None = None,
        timeout: float = 30.0,
        max_retries: int = 2,
        max_answer_bytes: int = 10_000_000,
        extra_body: Mapping[str, Json] | None = None,
        extra_headers: Mapping[str, str] | None = None,
    ) -> None:
        server_url, self._path = _split_url(base_url)
        self.model = model
        self.name = f"{model or 'reranker'} at {urlsplit(base_url).netloc}"
        self.max_retries = max_retries
        self._batch_size = batch_size
        self._extra_body = dict(extra_body or {})
        self._connection = ServerConnection(
            base_url=server_url,
            api_key=api_key or KEY_NOT_NEEDED,
            timeout=timeout,
            max_bytes=max_answer_bytes,
            headers=dict(extra_headers or {}),
        )
        self._is_dashscope = DASHSCOPE_PATH in urlsplit(base_url).path
        self._has_texts = False  # whether the server calls documents `texts`, as TEI does

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """The relevance of each text, higher is better, in the order of the texts."""
        size = self._batch_size or max(len(texts), 1)
        scores: list[float] = []
        for start in range(0, len(texts), size):
            scores += await self._score_batch(query, texts[start : start + size])
        return scores

    async def _score_batch(self, query: str, texts: Sequence[str]) -> list[float]:
        """The scores of a batch; a batch too large for the server is halved."""
        try:
            answer = await with_retries(
                lambda: self._post(query, texts),
                retries=self.max_retries,
                patience=READER_PATIENCE,
            )
        except LLMError as error:
            if not error.refused or len(texts) == 1 or not _TOO_MANY.search(str(error)):
                raise
            self._batch_size = (len(texts) + 1) // 2
            return list(await self.score(query, texts))
        return self._read_scores(answer, len(texts))

    async def _post(self, query: str, texts: Sequence[str]) -> object:
        """The answer of the server; a server that wants `texts` gets `texts` from now on."""
        try:
            with self._connection.failures():
                return await self._connection.client().post(
                    self._path, cast_to=object, body=self._body(query, texts)
                )
        except LLMError as error:
            if self._has_texts or not _WANTS_TEXTS.search(str(error)):
                raise
        self._has_texts = True
        return await self._post(query, texts)

    def _body(self, query: str, texts: Sequence[str]) -> dict[str, Any]:
        documents = [sanitize(text) or " " for text in texts]
        body: dict[str, Any] = {"model": self.model} if self.model else {}
        if self._is_dashscope:
            body["input"] = {"query": sanitize(query), "documents": documents}
            body["parameters"] = {"return_documents": False, "top_n": len(documents)}
        elif self._has_texts:
            body |= {"query": sanitize(query), "texts": documents, "truncate": True}
        else:
            body |= {"query": sanitize(query), "documents": documents}
        return body | self._extra_body

    def _read_scores(self, answer: object, count: int) -> list[float]:
        """The scores in the order of the texts, from a list of indices and scores."""
        try:
            scores: dict[int, float] = {}
            for item in _items_of(answer):
                name = "relevance_score" if "relevance_score" in item else "score"
                scores[int(item["index"])] = float(item[name])
            return [scores[index] for index in range(count)]
        except (TypeError, ValueError, LookupError) as error:
            raise LLMError(
                f"{self._connection.host}: the response is not a score for each of {count} texts; "
                "check the address of the reranker (it usually ends in /v1 or /rerank)"
            ) from error


def _split_url(url: str) -> tuple[str, str]:
    """The address of the server, and the path of the endpoint."""
    parts = urlsplit(url)
    endpoint_path = RERANK_PATH.search(parts.path)
    if endpoint_path is None:
        return url, "/rerank"
    server_path = parts.path[: endpoint_path.start()]
    server_url = urlunsplit((parts.scheme, parts.netloc, server_path, parts.query, ""))
    return server_url, endpoint_path[0].rstrip("/")


def _items_of(answer: Any) -> list[Any]:
    """The list of results: TEI's answer itself, or a field of the answer."""
    if isinstance(answer, list):
        return answer
    if "output" in answer:
        return _items_of(answer["output"])
    items = answer["results"] if "results" in answer else answer["data"]
    return list(items)

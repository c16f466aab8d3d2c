"""Orders the chunks found by the scores of a reranker."""

from dataclasses import replace

import numpy as np
from msgspec import structs

from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Reranker
from lightrag_jsonl.core.user_code import rerank_scores
from lightrag_jsonl.retrieval.hits import Hits, concatenated, fuse
from lightrag_jsonl.retrieval.task import SearchResult
from lightrag_jsonl.storage.vector_index import Floats, Ids

RERANKED = 2  # times `chunk_top_k`: the number of chunks that a reranker chooses from


async def rerank(
    reranker: Reranker, result: SearchResult, question: str, param: QueryParam
) -> SearchResult:
    """The best `chunk_top_k` chunks by the reranker's order, as far as `rerank_weight` lets the
    reranker decide. The chunk that would be first in a search by text alone is among them.
    """
    chunks = result.context.chunks
    texts = [chunk.text for chunk in chunks]
    raw_scores = await rerank_scores(reranker, question, texts)
    scores = np.nan_to_num(raw_scores, nan=-np.inf)
    ranked_positions = _by_weight(np.arange(len(scores)), scores, param)
    best = ranked_positions[: param.chunk_top_k]
    positions_by_id = {chunk.id: position for position, chunk in enumerate(chunks)}
    text_positions = [positions_by_id[id] for id in result.text_chunk_ids]
    by_text = np.array(text_positions[: RERANKED * param.chunk_top_k], np.int64)
    guaranteed = _by_weight(by_text, scores[by_text], param)[:1]
    if len(best) > 1 and not np.isin(guaranteed.ids, best.ids).all():
        last = Hits.of(guaranteed.ids, best.scores[-1:])
        best = concatenated([best[:-1], last])[0]
    ranked = [replace(chunks[position], score=score) for position, score, _ in best.rows()]
    guaranteed_chunk_id = ""
    if len(guaranteed):
        guaranteed_chunk_id = chunks[guaranteed.ids[0]].id
    context = replace(result.context, chunks=tuple(ranked))
    return structs.replace(result, context=context, guaranteed_chunk_id=guaranteed_chunk_id)


def _by_weight(positions: Ids, scores: Floats, param: QueryParam) -> Hits:
    """Positions in the order of their scores, fused with the order in which they come."""
    ranks = np.arange(len(positions))
    by_score = Hits.ranked(ranks, scores)
    as_given = Hits.of(ranks, -ranks)
    fused = fuse([by_score, as_given], weights=[param.rerank_weight, 1 - param.rerank_weight])
    return Hits(positions[fused.ids], fused.scores, fused.why)

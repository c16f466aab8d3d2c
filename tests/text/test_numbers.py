"""Numbers from users' own parts: what is no number of its kind is refused or ignored."""

from math import inf, isfinite, nan
from typing import Any

import pytest

from lightrag_jsonl import Completion, ConfigError, LLMError, Usage
from lightrag_jsonl.core.user_code import CheckedTokenizer, checked_completion, rerank_scores

WRONG = [nan, inf, -inf]


class Scores:
    """A reranker that gives fixed scores."""

    name = "scores"

    def __init__(self, *scores: float) -> None:
        self._scores = scores

    async def score(self, query: str, texts: object) -> tuple[float, ...]:
        """The scores, whatever the texts are."""
        return self._scores


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_score_that_is_no_number_is_refused(wrong: float) -> None:
    """With the name of the reranker; large and negative scores are taken."""
    with pytest.raises(LLMError, match=r"scores.*NaN or infinite"):
        await rerank_scores(Scores(0.5, wrong), "谁？", ["水", "x"])
    assert (await rerank_scores(Scores(-1e300, 0.5), "谁？", ["水", "x"])).tolist() == [-1e300, 0.5]


@pytest.mark.parametrize("wrong", [*WRONG, -3, None, "many", 10**40])
def test_a_wrong_count_of_tokens_is_ignored(wrong: Any) -> None:
    """The answer counts as a call with the other numbers."""
    usage = Usage(input_tokens=wrong, output_tokens=7, cached_tokens=wrong, calls=wrong)
    completion = checked_completion(Completion("水", usage=usage), "m", longest=9)
    assert completion.usage == Usage(input_tokens=0, output_tokens=7, cached_tokens=0, calls=1)


@pytest.mark.parametrize("wrong", [*WRONG, -1.0])
def test_a_pause_that_is_none_is_ignored(wrong: float) -> None:
    """A request is repeated after the usual pause."""
    assert LLMError("busy", retry_after=wrong).retry_after is None
    assert LLMError("busy", retry_after=0.5).retry_after == 0.5 and isfinite(0.5)


def test_a_tokenizer_counts_from_zero() -> None:
    """A negative count, and an error that is no number, are refused with its name."""

    class Backwards:
        name = "backwards"
        error = 0.0

        def count(self, text: str) -> int:
            """A negative number."""
            return -1

        def truncate(self, text: str, limit: int) -> str:
            """The text."""
            return text

    with pytest.raises(ConfigError, match="counted -1 tokens"):
        CheckedTokenizer(Backwards()).count("水")
    Backwards.error = nan
    with pytest.raises(ConfigError, match="error must be a number"):
        CheckedTokenizer(Backwards())

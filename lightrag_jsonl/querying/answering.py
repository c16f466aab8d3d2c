"""What the model is asked for an answer, and what is said where nothing was found."""

from __future__ import annotations

from collections.abc import Mapping

from lightrag_jsonl.options import QueryParam
from lightrag_jsonl.prompts import PromptManager
from lightrag_jsonl.protocols import Tokenizer
from lightrag_jsonl.types import Context, Json, Message

QUESTION_SHARE = 0.25  # of the total budget that a question may take; a longer one is cut
HISTORY_SHARE = 0.25  # and that the conversation may take
FORM = (
    "Multiple Paragraphs"  # of an answer, where a prompt of the user's asks for it and names none
)


def answer_variables(
    context: Context, *, param: QueryParam, tokenizer: Tokenizer, terms: Mapping[str, Json]
) -> dict[str, object]:
    """The variables of the answer prompts; `terms` are the defaults of the one that is asked."""
    return {
        "query": context.question,
        "context": context.prompt,
        "history": recent_turns(param, tokenizer),
        "response_type": param.response_type or terms.get("response_type", FORM),
        "user_prompt": param.user_prompt,
    }


def chat_messages(question: str, *, param: QueryParam, tokenizer: Tokenizer) -> tuple[Message, ...]:
    """The conversation as it would go on without any index."""
    wishes = (Message("system", param.user_prompt),) if param.user_prompt else ()
    return (*wishes, *recent_turns(param, tokenizer), Message("user", question))


def recent_turns(param: QueryParam, tokenizer: Tokenizer) -> tuple[Message, ...]:
    """The last turns of the conversation that fit their share of the budget, in order."""
    left = int(param.max_total_tokens * HISTORY_SHARE)
    kept: list[Message] = []
    for turn in reversed(param.turns):
        left -= tokenizer.count(turn.content)
        if left < 0:
            break
        kept.append(turn)
    return tuple(reversed(kept))


def nothing_found(prompts: PromptManager, param: QueryParam) -> str:
    """What is said without asking a model."""
    if param.fail_response is not None:
        return param.fail_response
    return prompts.render("no-context")[-1].content.strip()

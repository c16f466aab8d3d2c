"""What is sent to the model for an answer, and the answer that is given if nothing was found."""

from __future__ import annotations

from collections.abc import Mapping

from lightrag_jsonl.core.options import QueryParam
from lightrag_jsonl.core.protocols import Tokenizer
from lightrag_jsonl.core.types import Context, Json, Message
from lightrag_jsonl.llm.prompt_manager import PromptManager

HISTORY_SHARE = 0.25  # of the total budget for the conversation
FORM = "Multiple Paragraphs"  # of an answer, where a user's prompt asks for it and names none


def answer_variables(
    context: Context, param: QueryParam, tokenizer: Tokenizer, terms: Mapping[str, Json]
) -> dict[str, object]:
    """The variables of the answer prompts; `terms` are the prompt's defaults for variables."""
    return {
        "query": context.question,
        "context": context.prompt,
        "history": recent_turns(param, tokenizer),
        "response_type": param.response_type or terms.get("response_type", FORM),
        "user_prompt": param.user_prompt,
    }


def chat_messages(question: str, param: QueryParam, tokenizer: Tokenizer) -> tuple[Message, ...]:
    """The messages for the mode `bypass`: the conversation and the question, without any context."""
    wishes = (Message("system", param.user_prompt),) if param.user_prompt else ()
    return (*wishes, *recent_turns(param, tokenizer), Message("user", question))


def recent_turns(param: QueryParam, tokenizer: Tokenizer) -> tuple[Message, ...]:
    """The latest turns of the conversation that fit into their share of the budget, in order."""
    left = int(param.max_total_tokens * HISTORY_SHARE)
    kept: list[Message] = []
    for turn in reversed(param.turns):
        left -= tokenizer.count(turn.content)
        if left < 0:
            break
        kept.append(turn)
    return tuple(reversed(kept))


def nothing_found(prompts: PromptManager, param: QueryParam) -> str:
    """The answer if nothing was found; no model is asked."""
    if param.fail_response is not None:
        return param.fail_response
    return prompts.render("no-context")[-1].content.strip()
